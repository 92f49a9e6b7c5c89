"""The documented options of memory planning and emission."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from compiler.emit.backend_options import (
    DynamicMemoryPlanningMode,
    PropagateDeviceConfig,
    check_planning_mode,
    check_to_out_var_pass,
    takes_hints,
)
from compiler.memory.options import MemoryPlanningPass


def _no_passes() -> list[Any]:
    return []


@dataclass(frozen=True)
class ExecutorchBackendConfig:
    """Configuration of emission: how an edge program becomes a file.

    Attributes:
        passes: run over each method before memory is planned
        memory_planning_pass: the planner, or one per method
        propagate_device_config: copies for delegates on other devices, which are never emitted
        to_out_var_pass: a ``ToOutVarPass``; operators without out variant are always an error
        dynamic_memory_planning_mode: upper bounds, the only supported mode
        emit_stacktrace: write the source lines of each instruction into the program
        extract_delegate_segments: store payloads in segments, which can be mapped, instead of in
            the tables
        segment_alignment: of segments in the file, in bytes
        constant_tensor_alignment: of constants in their segment, in bytes, None for 16
        delegate_alignment: of payloads, in bytes, None for that of segments
        sym_shape_eval_pass: takes upper bounds from ranges, or from example inputs; or by method
        remove_view_copy: let static views share memory instead of copying it
        external_constants: store all parameters and buffers in a file beside the program, or those
            for whose placeholder a function returns the name of a file
        external_mutable_weights: store parameters that are trained in a file beside the program
        emit_mutable_buffer_names: write the names of buffers that are written; those of unplanned
            buffers always are
        do_quant_fusion_and_const_prop: run these two passes before memory is planned
        run_reinplace_pass: let operators write into the memory of inputs that are not read again
        reinplace_extra_ops: edge operators that may do so, besides ``index_put``
        enable_non_cpu_memory_planning: reject delegates that need memory of another device;
            otherwise
            they use host memory
        joint_arena: give the planned buffers of all methods the size of the largest
        store_zero_state: write the initial bytes of buffers that are written also where all of
            them are zero, such as an empty KV cache; without them, memory planned for these has to
            begin as zeros, as that of the stock runtime's modules does
    """

    passes: Any = field(default_factory=_no_passes)
    memory_planning_pass: Any = field(default_factory=MemoryPlanningPass)
    propagate_device_config: Any = field(default_factory=PropagateDeviceConfig)
    to_out_var_pass: Any = None
    dynamic_memory_planning_mode: Any = DynamicMemoryPlanningMode.UPPER_BOUND
    emit_stacktrace: bool = False
    extract_delegate_segments: bool = True
    segment_alignment: int = 128
    constant_tensor_alignment: int | None = 16
    delegate_alignment: int | None = None
    sym_shape_eval_pass: Any = None
    remove_view_copy: bool = True
    external_constants: bool | Callable[[torch.fx.Node], str | None] = False
    external_mutable_weights: bool = False
    emit_mutable_buffer_names: bool = False
    do_quant_fusion_and_const_prop: bool = False
    run_reinplace_pass: bool = False
    enable_non_cpu_memory_planning: bool = True
    reinplace_extra_ops: frozenset[Any] | None = None
    joint_arena: bool = False
    store_zero_state: bool = True

    def __post_init__(self) -> None:
        """Check the alignments and the unsupported options.

        Raises: ValueError naming the option
        """
        check_to_out_var_pass(self.to_out_var_pass)
        check_planning_mode(self.dynamic_memory_planning_mode)
        takes_hints(self.sym_shape_eval_pass)
        for name in ("segment_alignment", "constant_tensor_alignment", "delegate_alignment"):
            value = getattr(self, name)
            if value is not None and (value < 1 or value & (value - 1)):
                raise ValueError(f"{name} is a power of two, not {value}")

    def takes_hints(self, method: str) -> bool:
        """Return whether the upper bounds of a method are the sizes of its example inputs."""
        return takes_hints(self.sym_shape_eval_pass, method)

    def planning_of(self, method: str) -> Any:  # noqa: ANN401 - a MemoryPlanningPass, or alike
        """Return the memory options of a method."""
        planning = self.memory_planning_pass
        if not isinstance(planning, Mapping):
            return planning
        named: Mapping[str, Any] = planning  # pyright: ignore[reportUnknownVariableType]
        return named.get(method) or named.get("default") or MemoryPlanningPass()
