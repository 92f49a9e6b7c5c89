"""The place of each documented name of the `executorch` package in this project.

One entry per stock module and module of ours; a renamed object is written `stock=ours`. The
tables of docs/python-api.md, `etscope port` and the run of the original test suites use it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

# a line ``stock module -> module of ours``, and indented lines with the names
_TABLE = """
executorch.backends.transforms.duplicate_dynamic_quant_chain -> compiler
    DuplicateDynamicQuantChainPass
executorch.backends.xnnpack -> compiler.backends.xnnpack
    XnnpackDynamicallyQuantizedPartitioner XnnpackPartitioner
executorch.backends.xnnpack.partition.xnnpack_partitioner -> compiler.backends.xnnpack
    XnnpackDynamicallyQuantizedPartitioner XnnpackFloatingPointPartitioner XnnpackPartitioner
    XnnpackQuantizedPartitioner
executorch.backends.xnnpack.quantizer.xnnpack_quantizer -> compiler.backends.xnnpack.quantizer
    XNNPACKQuantizer get_symmetric_quantization_config
executorch.backends.xnnpack.recipes -> compiler.compat.xnnpack.recipes
    XNNPackRecipeType
executorch.devtools -> inspector
    ETRecord Inspector generate_etrecord parse_etrecord
executorch.devtools -> runtime.bundled
    BundledProgram
executorch.devtools.backend_debug -> inspector
    DelegationBreakdown get_delegation_info print_delegation_info
executorch.devtools.backend_debug.delegation_info -> inspector
    DelegationBreakdown DelegationInfo get_delegation_info print_delegation_info
executorch.devtools.bundled_program.config -> runtime.bundled
    MethodTestCase MethodTestSuite
executorch.devtools.bundled_program.core -> runtime.bundled
    BundledProgram
executorch.devtools.bundled_program.serialize -> runtime.bundled
    deserialize_from_flatbuffer_to_bundled_program serialize_from_bundled_program_to_flatbuffer
executorch.devtools.etrecord -> inspector
    ETRecord generate_etrecord parse_etrecord
executorch.devtools.etrecord._etrecord -> inspector
    ETRecord generate_etrecord parse_etrecord
executorch.devtools.etrecord._etrecord -> inspector.compat.etrecord
    ETRecordReservedFileNames _get_reference_outputs _get_representative_inputs
executorch.devtools.inspector -> inspector
    Event EventBlock Inspector PerfData TimeScale compare_results
executorch.devtools.inspector._inspector -> inspector
    Event EventBlock Inspector PerfData TimeScale
executorch.devtools.inspector._inspector -> inspector.compat.devtools.traces
    DebugEventSignature DelegateMetadata EventSignature InstructionEvent
    InstructionEventSignature ProfileEventSignature
executorch.devtools.inspector._inspector_utils -> inspector.compat.inspector_utils
    EDGE_DIALECT_GRAPH_KEY NodeFilter TimeScale calculate_cosine_similarity calculate_mse
    calculate_snr calculate_time_scale_factor convert_to_float_tensor
    create_debug_handle_to_op_node_mapping find_op_names find_populated_event
    get_aot_debug_handle_to_op_name_mapping is_inference_output_equal
    map_runtime_aot_intermediate_outputs merge_runtime_overlapping_debug_handles
    propagate_back_debug_handle
executorch.devtools.inspector.vgf_neural_statistics -> inspector.compat.vgf_statistics
    SCHEMA SCHEMA_VERSION parse_vgf_neural_statistics_delegate_metadata
    parse_vgf_neural_statistics_metadata
executorch.devtools.inspector._intermediate_output_capturer -> inspector.compat.inspector_utils
    IntermediateOutputCapturer
executorch.devtools.inspector.numerical_comparator -> inspector
    L1Comparator MSEComparator NumericalComparatorBase SNRComparator
executorch.devtools.intermediate_output_tap -> compiler.compat.taps
    FULL_TENSOR NodeSelector STATS StatReducer TapRule TapSpec find_tap_nodes get_reducer
    is_tap_node select_all select_all_call_function select_any select_by_module_class
    select_by_module_path select_by_op_type select_not strip_taps_ tap_intermediate_outputs_
executorch.devtools.intermediate_output_tap -> inspector.compat.taps
    compare_aot_runtime_dataframe tap_compare
executorch.devtools.size_analysis_tool.size_analysis_tool -> inspector
    generate_model_size_information
executorch.devtools.visualization -> inspector.compat.visualization
    visualize visualize_with_clusters
executorch.devtools.visualization.visualization_utils -> inspector.compat.visualization
    visualize visualize_with_clusters
executorch.exir -> compiler
    EdgeCompileConfig EdgeProgramManager ExecutorchBackendConfig ExecutorchProgramManager
    to_edge to_edge_transform_and_lower
executorch.exir._serialize._named_data_store -> compiler
    NamedDataStore NamedDataStoreOutput
executorch.exir.backend.backend_api -> compiler
    CompileSpec LoweredBackendModule MethodProgramsPartitionerSpec to_backend
executorch.exir.backend.backend_details -> compiler
    BackendDetails CompileSpec PreprocessResult
executorch.exir.backend.canonical_partitioners.all_node_partitioner -> compiler
    AllNodePartitioner
executorch.exir.backend.canonical_partitioners.config_partitioner -> compiler
    ConfigerationBasedPartitioner PartitionerConfig
executorch.exir.backend.canonical_partitioners.group_partitioner -> compiler
    GroupBasedPartitioner
executorch.exir.backend.canonical_partitioners.pattern_op_partitioner -> compiler
    generate_grouped_partitions_from_list_of_nodes generate_partitions_from_list_of_nodes
    generate_pattern_op_partitions
executorch.exir.backend.compile_spec_schema -> compiler
    CompileSpec
executorch.exir.backend.partitioner -> compiler
    DelegationSpec PartitionResult Partitioner
executorch.exir.backend.test.backend_with_compiler_demo -> compiler.backends.demo
    BackendWithCompilerDemo
executorch.exir.backend.test.demos.rpc.executor_backend_preprocess -> compiler.backends.demo
    ExecutorBackend
executorch.exir.backend.test.op_partitioner_demo -> compiler.backends.demo
    AddMulPartitionerDemo
executorch.exir.backend.utils -> compiler
    DelegateMappingBuilder WhyNoPartition WhyNoPartitionReporter format_delegated_graph
    get_delegated_payload get_delegates get_non_lowered_nodes print_delegated_graph
    tag_constant_data tag_mutated_buffer
executorch.exir.capture -> compiler
    EdgeCompileConfig ExecutorchBackendConfig
executorch.exir.capture._config -> compiler
    EdgeCompileConfig ExecutorchBackendConfig
executorch.exir -> compiler.compat.capture
    CaptureConfig capture
executorch.exir.capture -> compiler.compat.capture
    CaptureConfig capture
executorch.exir.capture._config -> compiler.compat.capture
    CaptureConfig
executorch.exir.capture._capture -> compiler.compat.capture
    capture
executorch.exir.delegate -> compiler
    executorch_call_delegate
executorch.exir.dialects._ops -> compiler
    bind_pattern_to_op ops
executorch.exir.dialects._ops -> compiler.dialect.ops
    _DialectNamespace=_Edge _Ops
executorch.exir.dynamic_shape -> compiler
    DynamicMemoryPlanningMode
executorch.exir.graph_module -> compiler
    get_control_flow_submodules
executorch.exir.lowered_backend_module -> compiler
    LoweredBackendModule executorch_call_delegate
executorch.exir.lowered_backend_module -> compiler.dialect.delegate_call
    get_lowered_backend_modules get_lowered_submodules
executorch.exir.memory_planning -> compiler
    MemoryAlgoResult MemoryPlanningAlgorithmSuite SpecAllocResult greedy naive
executorch.exir.memory_planning -> compiler.compat.memory_planning
    AllocationSpec SharedObject _compute_total_sizes _does_not_overlap
    _extend_storage_base_lifetimes _find_max_overlapping_allocations_offset _is_inplace_node
    _resolve_storage_base_specs get_node_tensor_specs pick_shared_obj
executorch.exir.memory_planning -> compiler.compat.plan_apply
    apply_algo
executorch.exir.memory_planning -> compiler.compat.plan_checks
    Verifier collect_specs_from_nodes filter_nodes
executorch.exir.pass_base -> compiler
    ExportPass ExportPassBaseError ExportedProgramPassBase ExportedProgramPassResult
    NodeMetadata PassResult ProxyValue
executorch.exir.pass_manager -> compiler
    ExportedProgramPassManager PassManager
executorch.exir.passes -> compiler.compat.backend_dialect
    EdgeToBackendOpsPass
executorch.exir.passes.replace_edge_with_backend_pass -> compiler.compat.backend_dialect
    EdgeToBackendOpsPass
executorch.exir.passes._quant_patterns_and_replacements -> compiler.compat.backend_dialect
    _trace_and_lower_to_edge_ops=trace_and_lower_to_edge_ops
executorch.exir.passes -> compiler
    ExportPass HintBasedSymShapeEvalPass MemoryPlanningPass QuantFusionPass SpecPropPass
    ToOutVarPass remove_unused_parameters_pass
executorch.exir.passes.constant_prop_pass -> compiler
    constant_prop_pass
executorch.exir.passes.cse_pass -> compiler
    CSEPass
executorch.exir.passes.external_constants_pass -> compiler
    delegate_external_constants_pass_unlifted
executorch.exir.passes.memory_planning_pass -> compiler
    MemoryPlanningPass
executorch.exir.passes.propagate_device_config -> compiler
    PropagateDeviceConfig
executorch.exir.passes.reinplace -> compiler
    reinplace_pass
executorch.exir.passes.spec_prop_pass -> compiler
    SpecPropPass
executorch.exir.passes.sym_shape_eval_pass -> compiler
    ConstraintBasedSymShapeEvalPass HintBasedSymShapeEvalPass
executorch.exir.print_program -> compiler
    add_cursor_to_graph inspect_node
executorch.exir.print_program -> compiler.compat.emission
    pretty_print
executorch.exir.emit -> compiler.compat.emission
    EmitterOutput emit_program
executorch.exir.emit._emit_program -> compiler.compat.emission
    EmitterOutput emit_program
executorch.exir.capture._capture -> compiler.compat.programs
    WrapperModule patch_forward
executorch.exir.error -> compiler.errors
    InternalError=CompileError
executorch.exir.graph_module -> compiler.compat.graphs
    _get_submodule=get_submodule bfs_trace_with_node_process contains_any_call_fn_target_op
executorch.exir.passes -> compiler.compat.passes.debug_pass
    DebugPass
executorch.exir.passes -> compiler.compat.graphs
    dead_code_elimination_pass propagate_dynamic_shape
executorch.exir.passes.reinplace -> compiler.passes.standard.reinplace
    DEFAULT_INPLACEABLE_OPS
executorch.exir -> inspector.compat.serde
    load save
executorch.exir.serde.export_serialize -> inspector.compat.serde
    GraphModuleDeserializer SerializedArtifact _CURRENT_DESERIALIZER _reconstruct_fake_tensor
    deserialize_torch_artifact serialize_torch_artifact
executorch.exir.serde.serialize -> inspector.compat.serde
    deserialize load save serialize
executorch.exir.sym_util -> compiler.compat.sizes
    collect_free_symbols eval_expr eval_shape eval_shape_upper_bound eval_upper_bound
executorch.exir.program -> compiler
    EdgeProgramManager ExecutorchProgramManager to_edge to_edge_transform_and_lower
executorch.exir.program._program -> compiler
    EdgeProgramManager ExecutorchProgramManager to_edge to_edge_transform_and_lower
executorch.exir.tensor -> compiler
    TensorSpec
executorch.exir.tensor -> compiler.compat.tensor
    ALIGNMENT AddressSpaceOverflowException calculate_aligned_num_bytes check_spec
    contiguous_stride_from_shape determine_tensor_dynanism dim_order_from_stride
    get_scalar_type layout_enum make_allocation_info make_tensor_value memory_format_enum
    num_bytes_from_shape_and_dtype scalar_type_enum stride_from_dim_order
executorch.export -> inspector.compat.export_session
    AOQuantizationConfig BackendRecipeProvider ExportRecipe ExportSession LoweringRecipe
    QuantizationRecipe RecipeType StageType export recipe_registry
executorch.backends.xnnpack._passes -> compiler.compat.xnnpack
    XNNPACKPassManager
executorch.backends.xnnpack._passes.remove_noop_expand_copy_pass -> compiler.compat.xnnpack
    RemoveNoopExpandCopyPass
executorch.backends.xnnpack.partition.config.xnnpack_config -> compiler.backends.xnnpack
    ConfigPrecisionType
executorch.backends.xnnpack.recipes.xnnpack_recipe_provider -> compiler.compat.xnnpack.recipes
    XNNPACKRecipeProvider
executorch.backends.xnnpack.utils.configs -> compiler.compat.xnnpack
    get_transform_passes get_xnnpack_edge_compile_config get_xnnpack_executorch_backend_config
executorch.exir._serialize._cord -> compiler.interface.file_data
    FileBackedData
executorch.exir.backend.backend_api -> compiler.compat.programs
    validation_disabled
executorch.exir.backend.canonical_partitioners.config_partitioner -> compiler.compat.operators
    format_target_name
executorch.exir.backend.utils -> compiler.compat.graphs
    is_identical_graph
executorch.exir.common -> compiler.compat.operators
    extract_out_arguments get_schema_for_operators
executorch.exir.dialects.edge._ops -> compiler.dialect.ops
    EdgeOpOverload=EdgeOp
executorch.exir.lowered_backend_module -> compiler.compat.graphs
    arrange_graph_outputs create_submodule_from_nodes
executorch.exir.memory -> compiler.dialect.memory_ops
    alloc free view
executorch.exir.memory_planning -> compiler.compat.graphs
    _do_user_inputs_exist=do_user_inputs_exist
executorch.exir.operator.convert -> compiler.compat.operators
    _get_overload_schema=function_schema is_inplace_variant is_out_variant
    output_to_aliased_input_map to_out_variant unwrap_op_overload
executorch.exir.operator.util -> compiler.compat.operators
    gen_out_variant_schema
executorch.exir.pass_base -> compiler.compat.graphs
    map_args
executorch.exir.program._program -> compiler.compat.operators
    _remove_invalid_ops_for_not_decompose=without_views
executorch.exir.program._fake_program -> compiler.compat.graphs
    get_fake_program update_to_real_program
executorch.exir.program._program -> compiler.compat.graphs
    _transform=transform
executorch.exir.tracer -> compiler.compat.graphs
    _default_decomposition_table=default_decomposition_table
executorch.exir.verification.arg_validator -> compiler.compat.verifying
    EdgeOpArgValidator
executorch.exir.verification.verifier -> compiler.compat.verifying
    EXIREdgeDialectVerifier
executorch.export.recipe -> compiler.compat.session
    Mode
executorch.export.recipe_registry -> compiler.compat.session.registry
    RecipeRegistry
executorch.export.stages -> inspector.compat.stages
    EdgeProgramManagerTransformStage EdgeTransformAndLowerStage ExecutorchStage
    PipelineArtifact QuantizeStage SourceTransformStage Stage ToBackendStage ToEdgeStage
    TorchExportStage
executorch.extension.export_util -> compiler.compat.programs
    save_pte_program
executorch.extension.export_util.utils -> compiler.compat.programs
    save_pte_program
executorch.extension.pybindings._portable_lib -> runtime.compat.portable_lib
    BundledModule ExecuTorchMethod ExecuTorchModule ExecuTorchProgram MethodMeta TensorInfo
    Verification _create_profile_block _dump_profile_results _get_operator_names
    _get_registered_backend_names _is_available _load_bundled_program_from_buffer
    _load_for_executorch _load_for_executorch_from_buffer
    _load_for_executorch_from_bundled_program _load_for_executorch_from_data_loader
    _load_program _load_program_from_buffer _reset_profile_results _threadpool_get_thread_count
    _unsafe_reset_threadpool
executorch.extension.pybindings.portable_lib -> runtime.compat.portable_lib
    BundledModule ExecuTorchMethod ExecuTorchModule ExecuTorchProgram MethodMeta TensorInfo
    Verification _create_profile_block _dump_profile_results _get_operator_names
    _get_registered_backend_names _is_available _load_bundled_program_from_buffer
    _load_for_executorch _load_for_executorch_from_buffer
    _load_for_executorch_from_bundled_program _load_for_executorch_from_data_loader
    _load_program _load_program_from_buffer _reset_profile_results _threadpool_get_thread_count
    _unsafe_reset_threadpool
executorch.extension.pybindings.data_loader -> runtime.compat.portable_lib
    PyDataLoader
executorch.extension.training -> runtime.compat.training
    TrainingModule _load_for_executorch_for_training
    _load_for_executorch_for_training_from_buffer get_sgd_optimizer
executorch.runtime -> runtime
    BackendRegistry Method MethodMeta OperatorRegistry Program Runtime Verification
executorch.util.activation_memory_profiler -> inspector
    generate_memory_trace
"""


class NamePlace(NamedTuple):
    """The module of ours that has a documented name, and the name that it has there."""

    module: str
    name: str


def _rows() -> list[tuple[str, str, list[str]]]:
    """Return stock module, module of ours and names of each entry."""
    found: list[tuple[str, str, list[str]]] = []
    for line in _TABLE.strip().splitlines():
        if line.startswith(" "):
            found[-1][2].extend(line.split())
        else:
            stock, _, ours = line.partition(" -> ")
            found.append((stock, ours, []))
    return found


@lru_cache(maxsize=1)
def places() -> dict[tuple[str, str], NamePlace]:
    """Return the place of each (stock module, documented name)."""
    found: dict[tuple[str, str], NamePlace] = {}
    for stock, ours, names in _rows():
        for name in names:
            documented, _, own = name.partition("=")
            found[stock, documented] = NamePlace(ours, own or documented)
    return found


def place_of(module: str, name: str) -> NamePlace | None:
    """Return the counterpart of `from module import name`; None if it has none."""
    return places().get((module, name))


def as_markdown() -> str:
    """Return the table of docs/python-api.md: stock module, names, module of ours."""
    rows = ["| stock module | names | ours |", "|---|---|---|"]
    for stock, ours, names in sorted(_rows()):
        listed = ", ".join(
            f"`{name.replace('=', '` as `')}`" for name in sorted(names, key=str.lower)
        )
        rows.append(f"| `{stock}` | {listed} | `{ours}` |")
    return "\n".join(rows) + "\n"
