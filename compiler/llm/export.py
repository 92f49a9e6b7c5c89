"""Export of a language model: methods over one KV cache, and what a runner asks of the program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch.export import Dim, ExportedProgram

from compiler.emit.config import ExecutorchBackendConfig
from compiler.frontend import export
from compiler.interface.external_weights import mark_behind, mark_weights
from compiler.llm.config import (
    LlmConfig,
    LlmConfigError,
    MethodConfig,
    adapters_of,
    metadata_of,
)
from compiler.llm.decoder import DecoderSizes
from compiler.llm.lora import is_adapter
from compiler.llm.memory_check import check_export_memory
from compiler.llm.model import BuiltModel, build_model
from compiler.llm.nano_gpt import NanoGptSizes
from compiler.llm.quantization import key_of_word, linear_word, table_word
from compiler.llm.recipe_words import (
    in_files,
    partitioners_of,
    shares_state,
)
from compiler.llm.transformers_export import export_family
from compiler.llm.transformers_source import TransformersDecoder
from compiler.memory.options import MemoryPlanningPass
from compiler.partition.named_partitioners import create_partitioner, parse_partitioner
from compiler.pipeline.edge_manager import to_edge_transform_and_lower
from compiler.pipeline.program_manager import ExecutorchProgramManager
from compiler.quantize.program import NONE, quantize_program
from compiler.quantize.weights import (
    GroupError,
    WeightModes,
    quantize_weights,
    weight_modes_by_method,
)

FORWARD = "forward"
FOUNDATION = "foundation"  # file of all weights where a configuration names none


@dataclass(frozen=True)
class ExportedLlm:
    """Exported methods of a language model.

    Attributes:
        programs: by method
        constants: values of the methods that a runner asks, by name
        model: that was exported
    """

    programs: Mapping[str, ExportedProgram]
    constants: Mapping[str, Any]
    model: BuiltModel


def exported_llm(config: LlmConfig, methods: tuple[str, ...] = ()) -> ExportedLlm:
    """Return the exported methods of a configuration, in floating point.

    Args:
        config: of the model and its export
        methods: only these; empty for all

    Raises: LlmConfigError, FamilyError, CheckpointError, ExportError, OSError
    """
    check_export_memory(config)
    model = build_model(config)
    requested = config.multimethod.methods or (MethodConfig(FORWARD),)
    names = [one.method_name for one in requested]
    unknown = [name for name in methods if name not in names]
    if unknown:
        raise LlmConfigError(f"unknown method {unknown[0]!r}; available: {', '.join(names)}")
    constants = constants_of(config, model)
    if both := sorted(set(names) & set(constants)):
        path = "base.metadata" if both[0] in metadata_of(config) else "multimethod.methods"
        words = f"{path}: {both[0]} names a method and a value that a runner asks"
        raise LlmConfigError(words)
    programs = {
        one.method_name: _exported(config, _adapted(config, model, one), one)
        for one in requested
        if not methods or one.method_name in methods
    }
    return ExportedLlm(programs, constants, model)


def _adapted(config: LlmConfig, model: BuiltModel, method: MethodConfig) -> BuiltModel:
    """Return the model of a method, which may have an adapter of its own."""
    if method.lora_config in (None, config.base.lora_config):
        return model
    return build_model(replace(config, base=replace(config.base, lora_config=method.lora_config)))


def _exported(config: LlmConfig, model: BuiltModel, method: MethodConfig) -> ExportedProgram:
    longest = config.export.max_seq_length
    fixed = method.export_seq_len
    dynamic = _takes_many(config, model) and fixed is None and longest > 1
    if fixed is not None and fixed > 1 and _is_recurrent(model):
        words = f"expected 1, found {fixed}: the state of this family takes one token a call"
        raise LlmConfigError(f"multimethod.methods: {method.method_name}: export_seq_len: {words}")
    if fixed is None:
        fixed = min(3, longest) if dynamic or not config.model.use_kv_cache else 1
    if not dynamic and not config.model.use_kv_cache and method.export_seq_len is None:
        fixed = longest
    tokens = torch.zeros((1, fixed), dtype=torch.int64)
    shapes: list[Any] = [{1: Dim("token_dim", max=longest)} if dynamic else None]
    inputs: tuple[torch.Tensor, ...] = (tokens,)
    if config.model.use_kv_cache:
        inputs = (tokens, torch.zeros(1, dtype=torch.int64))
        shapes.append(None)
    dynamic_shapes = tuple(shapes) if dynamic else None
    if isinstance(model.module, TransformersDecoder):
        kind = model.config.get("model_type") or config.base.model_class
        return export_family(model.module, kind, inputs, dynamic_shapes)
    return export(model.module, inputs, dynamic_shapes=dynamic_shapes)


def _is_recurrent(model: BuiltModel) -> bool:
    return isinstance(model.module, TransformersDecoder) and model.module.is_recurrent


def _takes_many(config: LlmConfig, model: BuiltModel) -> bool:
    """Return whether a call may have several tokens."""
    return config.model.enable_dynamic_shape and not _is_recurrent(model)


def constants_of(config: LlmConfig, model: BuiltModel) -> dict[str, Any]:
    """Return what the runner of a language model asks of its program."""
    sizes, found = model.sizes, model.config
    layers = sizes.n_layer if isinstance(sizes, NanoGptSizes) else sizes.n_layers
    more: dict[str, Any] = {}
    if begins := _tokens_of(found, "bos_token_id"):
        more["get_bos_id"] = begins[0]
    if ends := _tokens_of(found, "eos_token_id"):
        more["get_eos_ids"] = ends
    if isinstance(sizes, DecoderSizes) and sizes.rolls(model.cache):
        more["use_rolling_kv_cache"] = True
    return {
        "get_max_seq_len": config.export.max_seq_length,
        "get_max_context_len": config.export.max_context_length,
        "get_n_layers": layers,
        "get_vocab_size": sizes.vocab_size,
        "use_kv_cache": config.model.use_kv_cache,
        "use_sdpa_with_kv_cache": config.model.use_sdpa_with_kv_cache,
        "enable_dynamic_shape": _takes_many(config, model),
        **more,
        **metadata_of(config),
    }


def _tokens_of(found: Mapping[str, Any], name: str) -> list[int]:
    """Return the tokens of a member of ``config.json``; negative ones stand for none.

    Raises: LlmConfigError
    """
    given: Any = found.get(name)
    listed: list[Any] = cast("list[Any]", given) if isinstance(given, list) else [given]
    numbers = [one for one in listed if one is not None]
    if any(type(one) is not int or one >= 1 << 63 for one in numbers):
        words = f"expected a token or a list of them, found {given!r:.60}"
        raise LlmConfigError(f"config.json: {name}: {words}")
    return [one for one in numbers if one >= 0]


def export_llm(config: LlmConfig) -> ExecutorchProgramManager:
    """Return the program of a configuration: exported, quantized, lowered and planned.

    Raises: errors of ``exported_llm``, CompileError
    """
    found = exported_llm(config)
    programs = quantized_programs(config, found.programs)
    if in_files(config):
        mark_files(config, programs)
    chosen = [create_partitioner(parse_partitioner(one)) for one in partitioners_of(config)]
    edge = to_edge_transform_and_lower(
        programs,
        partitioner=chosen or None,
        constant_methods=found.constants,
        generate_etrecord=config.debug.generate_etrecord,
    )
    return edge.to_executorch(backend_config(config))


def quantized_programs(
    config: LlmConfig, programs: Mapping[str, ExportedProgram]
) -> dict[str, ExportedProgram]:
    """Return programs quantized as a configuration demands; they are not changed.

    Raises: QuantizeError, LlmConfigError, ModuleNotFoundError
    """
    given = config.quantization
    table = table_word(given)
    if given.pt2e_quantize is not None:
        mode = given.pt2e_quantize.rpartition("_")[2]
        return {name: quantize_program(one, mode) for name, one in programs.items()}
    if not (given.qmode or table or given.modules):
        return dict(programs)
    how = WeightModes(linear_word(given) or NONE, table, given.modules)
    by_method = weight_modes_by_method(programs, how)
    try:
        return {name: quantize_weights(one, by_method[name]) for name, one in programs.items()}
    except GroupError as error:
        key = key_of_word(given, error.word)
        raise LlmConfigError(f"quantization.{key}: {error}") from error


def mark_files(
    config: LlmConfig, programs: Mapping[str, ExportedProgram], *, files: bool = True
) -> None:
    """Mark the weights of programs, in place, for the files of a configuration.

    Args:
        config: whose files, if it names none, are one for all weights
        programs: exported, by method
        files: whether there are any; otherwise marks are taken off
    """
    adapters, named = adapters_of(config), in_files(config)
    names = config.export.foundation_weights_file, config.export.lora_weights_file
    foundation, adapter = (one.removesuffix(".ptd") if one else None for one in names)

    def file_of(name: str) -> str | None:
        if not files or not named:
            return FOUNDATION if files else None
        return adapter if adapters and is_adapter(name) else foundation

    def is_exchanged(name: str) -> bool:
        return files and adapter is not None and alone and is_adapter(name)

    # adapters of several methods have the same names, with which a file can hold one of them
    alone = len(adapters) == 1
    for program in programs.values():
        mark_weights(program, file_of, is_exchanged)


def backend_config(config: LlmConfig) -> ExecutorchBackendConfig:
    """Return how the program is planned and written."""
    return ExecutorchBackendConfig(
        memory_planning_pass=MemoryPlanningPass(share_mutable_buffers=shares_state(config)),
        external_constants=mark_behind if in_files(config) else False,
        do_quant_fusion_and_const_prop=True,
        emit_mutable_buffer_names=config.model.use_kv_cache,
        store_zero_state=not config.model.use_kv_cache,
    )
