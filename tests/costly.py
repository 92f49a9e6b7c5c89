"""How many cases of costly tests an ordinary run takes; `make thorough` runs all of them.

On two cores of a slow machine the cases that are left out take 12 minutes.
"""

from __future__ import annotations

# file of tests -> test -> cases, evenly spread
LIMITS = {
    "compiler/test_compile_server.py": {
        "test_warm_compile_is_a_cold_one_byte_for_byte": 13,
    },
    "compiler/test_memory_law.py": {
        "test_program_of_the_stock_compiler_keeps_the_law": 7,
        "test_portable_program_keeps_the_law": 30,
    },
    "compiler/test_partition_regions.py": {
        "test_work_of_partitioning_grows_linearly": 1,
    },
    "compiler/test_run_on_stock.py": {
        "test_edge_operators_are_those_of_the_stock_lowering_or_fewer": 5,
    },
    "compiler/test_trained_layers.py": {
        "test_layers_train_as_eager_does": 7,
    },
    "compiler/test_xnnpack_recipes.py": {
        "test_recipe_gives_the_numbers_of_the_stock_recipe": 3,
    },
    "inspector/test_cli_interop.py": {
        "test_profile_rows_equal_the_events_of_the_stock_inspector": 12,
    },
    "inspector/test_cli_libraries.py": {
        "test_file_that_calls_such_operators_compiles_and_its_recipe_makes_it_again": 1,
    },
    "inspector/test_documented_snippets.py": {
        "test_ported_snippet_runs_without_the_package_and_gives_the_numbers_of_stock": 5,
    },
    "inspector/test_folded_weights_of_vendors.py": {
        "test_folded_weights_have_their_values": 2,
    },
    "inspector/test_gap_stock_recurrent.py": {
        "test_recurrent_net_of_the_stock_compiler_is_compared_and_has_no_divergence": 4,
    },
    "inspector/test_graph_payloads.py": {
        "test_gap_inside_of_an_interpreted_payload_has_no_false_divergence": 8,
    },
    "inspector/test_tables.py": {
        "test_tables_of_any_session_are_made_or_refused_in_a_sentence": 15,
    },
    "inspector/test_unseen_nets.py": {
        "test_every_verb_has_the_figures_of_the_run": 7,
        "test_flops_are_those_of_the_counter_of_torch": 6,
        "test_comparison_has_the_figures_of_both_runs": 4,
        "test_no_text_has_a_time_of_zero": 8,
    },
    "inspector/test_vendor_flows.py": {
        "test_cadence_computes_what_its_references_do": 1,
        "test_images_that_the_passes_move_to_channels_last_are_compared_in_their_order": 1,
        "test_scales_of_channels_stay_with_their_channels": 1,
    },
    "inspector/test_worker_commands.py": {
        "test_a_compile_finds_what_is_installed_beside_its_interpreter": 1,
    },
    "llm/test_adapter_files.py": {
        "test_adapters_of_portable_programs_are_exchanged_by_file": 1,
    },
    "llm/test_llm_export.py": {
        "test_a_program_generates_the_tokens_of_eager": 5,
        "test_quantized_weights_stay_close_to_the_float_program": 3,
    },
    "llm/test_lora.py": {
        "test_tokens_are_those_of_the_merged_model": 3,
    },
    "llm/test_quantized_margins.py": {
        "test_tokens_differ_only_by_rounded_scales": 1,
    },
    "llm/test_quantized_records.py": {
        "test_packed_weights_do_not_contradict_the_record": 1,
    },
    "llm/test_quantized_tables.py": {
        "test_rows_are_looked_up_quantized_beside_xnnpack": 4,
    },
    "llm/test_random_positions.py": {
        "test_random_tokens_and_positions_run_for_every_seed": 2,
    },
    "llm/test_recorded_programs.py": {
        "test_a_decoder_compiles_for_a_backend_of_the_package": 2,
        "test_a_recorded_decoder_with_plain_attention_compiles_again": 2,
    },
    "llm/test_rolling_caches.py": {
        "test_tokens_beyond_the_context_are_those_of_a_model_that_sees_all": 3,
    },
    "llm/test_stock_bits.py": {
        "test_bits_are_the_stock_runtimes_with_its_kernels_of_sums": 2,
    },
    "llm/test_stock_runner.py": {
        "test_the_stock_runner_generates_the_tokens_of_our_runner": 2,
        "test_the_stock_runner_generates_the_tokens_of_eager": 3,
    },
    "llm/test_tied_tables.py": {
        "test_a_shared_table_is_stored_once": 5,
        "test_a_layer_that_reads_the_table_is_that_of_eager": 2,
    },
    "llm/test_token_graphs.py": {
        "test_tokens_have_the_bits_of_single_calls": 3,
    },
    "schema/test_etdump_hostile.py": {
        "test_decode_of_damaged_bytes_refuses_or_gives_a_sound_dump": 4,
    },
}


def limits() -> dict[str, int]:
    """Return the number of cases by the name of a test as pytest has it."""
    return {f"tests/{path}::{test}": one[test] for path, one in LIMITS.items() for test in one}
