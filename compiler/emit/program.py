"""Several methods as one program file, ready to be written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any

import torch
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from compiler.config import ExecutorchBackendConfig
from compiler.emit.constants import Segment
from compiler.emit.delegates import DelegateMaps, PlacedDelegates, place_delegates
from compiler.emit.method import EmittedMethod, Stores, emit_method
from compiler.emit.out_variants import check_out_variants
from compiler.emit.values import ValueTable
from compiler.memory.blocks import MemoryPlan
from compiler.memory.lifetimes import schedule
from compiler.memory.planners import plan_blocks
from compiler.memory.specs import spec_of
from compiler.stages import Stages
from schema.program import encode_parts
from schema.program import model as m


@dataclass(frozen=True)
class EmittedProgram:
    """A program file that has not been written yet.

    Attributes:
        table: its tables
        segments: its segments, each as the buffers that make it up
        alignment: bytes; where a segment may start
        debug_handles: by method, the debug handle of each instruction that has one, all of those
            inside a delegate
        delegates: by method, what is known about its delegate instructions
        external: blobs that delegates look up by key in other files, by the name of the file
        memory: by method, the plan of its memory
    """

    table: m.ProgramTable
    segments: tuple[tuple[memoryview | bytes, ...], ...]
    alignment: int
    debug_handles: Mapping[str, Mapping[int, int | list[int]]]
    delegates: Mapping[str, DelegateMaps]
    external: Mapping[str, Mapping[str, bytes]]
    memory: Mapping[str, MemoryPlan]

    @cached_property
    def buffer(self) -> bytes:
        """Return the bytes of the file."""
        return b"".join(self._parts)

    @cached_property
    def _parts(self) -> tuple[Any, ...]:
        return encode_parts(self.table, self.segments, alignment=self.alignment)

    def write_to(self, stream: IO[bytes]) -> None:
        """Write the file without joining its parts in memory first."""
        for part in self._parts:
            stream.write(part)


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
    check_out_variants(node for program in programs.values() for node in program.graph.nodes)
    stores = Stores(Segment(config.constant_tensor_alignment), Segment(1))
    emitted: dict[str, EmittedMethod] = {}
    memory: dict[str, MemoryPlan] = {}
    for name in sorted(programs):
        options = config.planning_of(name)
        with stages.stage("plan", name):
            steps = schedule(programs[name], options)
            memory[name] = plan_blocks(steps.blocks, options.alignment, options.planners)
        with stages.stage("emit", name):
            emitted[name] = emit_method(
                name,
                programs[name],
                steps,
                memory[name],
                stores,
                stack_traces=config.emit_stacktrace,
            )
    plans = [method.plan for method in emitted.values()]
    plans += [_constant_plan(name, value, stores) for name, value in constant_methods.items()]
    segments = [tuple(stores.constants.parts)]
    if len(stores.states.offsets) > 1:
        segments.append(tuple(stores.states.parts))
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
        debug_handles={name: method.debug_handles for name, method in emitted.items()},
        delegates={name: method.delegates for name, method in emitted.items()},
        external=placed.external,
        memory=memory,
    )


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
    """Return a method without instructions that gives a constant."""
    leaves, spec = pytree.tree_flatten(value)
    table = ValueTable(_no_node)
    outputs = tuple(
        table.tensor(spec_of(leaf, {}), stores.constants.add(leaf), None)
        if isinstance(leaf, torch.Tensor)
        else table.literal(leaf)
        for leaf in leaves
    )
    return m.ExecutionPlan(
        name=name,
        container_meta_type=m.ContainerMetadata("", pytree.treespec_dumps(spec)),
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
