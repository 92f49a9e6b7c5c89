"""Combines several methods into one program file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any

import torch
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from compiler.dialect.checked_variants import check_out_variants
from compiler.emit.backend_options import check_devices
from compiler.emit.config import ExecutorchBackendConfig
from compiler.emit.constants import TensorSegment
from compiler.emit.containers import tree_spec_string
from compiler.emit.delegates import DelegateMaps, PlacedDelegates, place_delegates
from compiler.emit.external import external_tags, file_parts
from compiler.emit.method import EmitOptions, EmittedMethod, Stores, emit_method
from compiler.emit.training import training_methods, with_trained_weights
from compiler.emit.values import ValueBuilder
from compiler.errors import UnsupportedError
from compiler.memory.methods import PlannedMethod, plan_methods
from compiler.memory.specs import spec_of
from compiler.stages import Stages
from schema.objects.cyclic_gc import gc_suspended
from schema.program import encode_parts
from schema.program import model as m


@dataclass(frozen=True)
class EmittedProgram:
    """A program file that has not been written yet.

    Attributes:
        table: its tables
        segments: its segments, each as a sequence of buffers
        alignment: of segments, in bytes
        inside: segments that are ranges of the first one
        debug_handles: by method, the debug handle of each instruction that has one, several for a
            delegate
        delegates: by method, facts about its delegate instructions
        external: blobs that delegates look up by key in other files, by the name of the file
        external_tensors: constants in other files, by the name of the file
        planned: by method, its instructions and memory plan
    """

    table: m.ProgramTable
    segments: tuple[tuple[memoryview | bytes, ...], ...]
    alignment: int
    inside: Mapping[int, m.DataSegment]
    debug_handles: Mapping[str, Mapping[int, int | list[int]]]
    delegates: Mapping[str, DelegateMaps]
    external: Mapping[str, Mapping[str, bytes]]
    external_tensors: Mapping[str, Mapping[str, torch.Tensor]]
    planned: Mapping[str, PlannedMethod]

    @cached_property
    def buffer(self) -> bytes:
        """Return the bytes of the file."""
        return b"".join(self._parts)

    @cached_property
    def _parts(self) -> tuple[Any, ...]:
        with gc_suspended():
            return encode_parts(
                self.table, self.segments, alignment=self.alignment, inside=self.inside
            )

    def write_to(self, stream: IO[bytes]) -> None:
        """Write the file without joining its parts in memory first."""
        for part in self._parts:
            stream.write(part)

    def files(self) -> dict[str, list[Any]]:
        """Return by name the external files, as buffers to write one after another."""
        tags = sorted({*self.external, *self.external_tensors})
        return {
            f"{tag.removesuffix('.ptd')}.ptd": file_parts(
                self.external_tensors.get(tag, {}), self.external.get(tag, {}), self.alignment
            )
            for tag in tags
        }


@gc_suspended()
def emit_program(
    programs: Mapping[str, ExportedProgram],
    constant_methods: Mapping[str, Any],
    config: ExecutorchBackendConfig,
    stages: Stages,
) -> EmittedProgram:
    """Return the program of several methods; equal weights are stored once.

    Raises:
        MissingOutVariantsError: operators have no out variant, over all methods
        CompileError: a shape cannot be planned, or a value cannot be written
    """
    check_out_variants(_nodes(programs))
    constant_methods = {**training_methods(programs), **constant_methods}
    programs = {name: with_trained_weights(program) for name, program in programs.items()}
    tags = {
        name: external_tags(
            program, config.external_constants, trained=config.external_mutable_weights
        )
        for name, program in programs.items()
    }
    return emit_planned(
        plan_methods(programs, config, tags, stages), constant_methods, config, stages
    )


@gc_suspended()
def emit_planned(
    planned: Mapping[str, PlannedMethod],
    constant_methods: Mapping[str, Any],
    config: ExecutorchBackendConfig,
    stages: Stages,
) -> EmittedProgram:
    """Return the program of several methods whose memory is planned.

    Raises: CompileError if a value cannot be written
    """
    stores = Stores(TensorSegment(config.constant_tensor_alignment or 16), TensorSegment(1))
    emitted: dict[str, EmittedMethod] = {}
    for name in sorted(planned):
        with stages.stage("emit", name):
            one = planned[name]
            options = EmitOptions(
                config.emit_stacktrace,
                one.external,
                config.emit_mutable_buffer_names,
                config.store_zero_state,
            )
            emitted[name] = emit_method(name, one.program, one.steps, one.plan, stores, options)
    plans = [method.plan for method in emitted.values()]
    check_devices(
        [delegate for plan in plans for delegate in plan.delegates],
        non_cpu=config.enable_non_cpu_memory_planning,
    )
    plans += [_constant_plan(name, value, stores) for name, value in constant_methods.items()]
    stores.constants.occupy()
    segments = [stores.constants]
    if len(stores.states.offsets) > 1:
        segments.append(stores.states)
    placed = place_delegates(
        plans,
        stores.delegates,
        segments,
        extract=config.extract_delegate_segments,
        alignment=config.segment_alignment,
        delegate_alignment=config.delegate_alignment,
    )
    return EmittedProgram(
        table=_table(placed, stores),
        segments=placed.segments,
        alignment=placed.alignment,
        inside=placed.inside,
        debug_handles={name: method.debug_handles for name, method in emitted.items()},
        delegates={name: method.delegates for name, method in emitted.items()},
        external=placed.external,
        external_tensors=stores.external.files,
        planned=planned,
    )


def _nodes(programs: Mapping[str, ExportedProgram]) -> Iterator[torch.fx.Node]:
    for program in programs.values():
        for module in program.graph_module.modules():  # bodies of control flow too
            if isinstance(module, torch.fx.GraphModule):
                yield from module.graph.nodes


def _table(placed: PlacedDelegates, stores: Stores) -> m.ProgramTable:
    states = stores.states.offsets
    return m.ProgramTable(
        version=0,
        execution_plan=placed.plans,
        constant_buffer=None,
        backend_delegate_data=placed.inline,
        segments=(),  # placed on writing
        constant_segment=m.SubsegmentOffsets(0, tuple(stores.constants.offsets)),
        mutable_data_segments=(
            (m.SubsegmentOffsets(1, tuple(states)),) if len(states) > 1 else None
        ),
        named_data=placed.named,
    )


def _constant_plan(name: str, value: Any, stores: Stores) -> m.ExecutionPlan:  # noqa: ANN401
    """Return a method without instructions that returns a constant.

    Raises: UnsupportedError naming a method whose value cannot be stored
    """
    leaves, spec = pytree.tree_flatten(value)
    table = ValueBuilder(_no_node)
    try:
        outputs = tuple(
            table.tensor(spec_of(leaf, {}), stores.constants.add(leaf), None)
            if isinstance(leaf, torch.Tensor)
            else table.literal(leaf)
            for leaf in leaves
        )
    except UnsupportedError as error:
        raise UnsupportedError(f"the constant method {name}: {error}") from error
    return m.ExecutionPlan(
        name=name,
        container_meta_type=m.ContainerMetadata("", tree_spec_string(spec)),
        values=tuple(table.values),
        inputs=(),
        outputs=outputs,
        chains=(m.Chain((), (), (), None),),
        operators=(),
        delegates=(),
        non_const_buffer_sizes=(0,),
        non_const_buffer_device=None,
    )


def _no_node(node: torch.fx.Node) -> int:
    raise AssertionError(f"a constant method reads {node}")
