"""The memory plan of one method, by built-in planners or custom code, and shared buffers."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.dialect.delegate_call import executorch_call_delegate
from compiler.errors import PlanError
from compiler.memory.blocks import BlockPlacement, MemoryBlock, Role, aligned, lower_bound, verify
from compiler.memory.lifetimes import Schedule
from compiler.memory.options import PADDING, SIZES, MemoryPlanningPass
from compiler.memory.out_graph import OutGraph
from compiler.memory.planners import plan_blocks
from schema.backends import backend_of

_SHARED_ARENA = 2


def plan_method(program: ExportedProgram, steps: Schedule, options: Any) -> BlockPlacement:  # noqa: ANN401
    """Return the verified plan of a method.

    Args:
        program: the edge program
        steps: its schedule
        options: a MemoryPlanningPass, or any pass that plans the graph it is given

    Raises: PlanError naming the values that overlap or have no place
    """
    padding = _padding(program)
    planners = options.planners if isinstance(options, MemoryPlanningPass) else None
    if planners is None:
        return _plan_by_user(program, steps, options, padding)
    plan = plan_blocks(steps.blocks, options.alignment, planners)
    return replace(plan, nbytes=plan.nbytes + padding) if padding else plan


def _padding(program: ExportedProgram) -> int:
    modules = (m for m in program.graph_module.modules() if isinstance(m, torch.fx.GraphModule))
    calls = (node for module in modules for node in module.graph.nodes)
    if not any(node.target is executorch_call_delegate for node in calls):
        return 0
    found = (getattr(m, "backend_id", "") for m in program.graph_module.modules())
    return max((backend_of(str(name)).bytes_read_past_end for name in found), default=0)


def _plan_by_user(
    program: ExportedProgram,
    steps: Schedule,
    options: Any,  # noqa: ANN401
    padding: int,
) -> BlockPlacement:
    built = OutGraph(program, steps)
    built.module.meta[PADDING] = padding
    run = getattr(options, "run", None)
    if run is None:
        options(built.module)
    else:
        run(built.module, program.graph_signature)
    sizes = built.module.meta.get(SIZES)
    if not sizes:
        raise PlanError(f"{type(options).__name__} planned nothing: it must call super().run()")
    places = [_place(block, built, index) for index, block in enumerate(steps.blocks)]
    alignment = int(getattr(options, "alignment", 1))
    plan = BlockPlacement(
        offsets=tuple(offset for _, offset in places),
        nbytes=sum(sizes[1:]),
        lower_bound=lower_bound(steps.blocks, alignment),
        planner=_name(options),
        arenas=tuple(arena for arena, _ in places),
        sizes=tuple(int(size) for size in sizes[1:]),
    )
    if not getattr(options, "allow_lifetime_and_storage_overlap", False):
        verify(steps.blocks, plan, alignment)
    return plan


def _name(options: Any) -> str:  # noqa: ANN401
    algorithm = getattr(options, "memory_planning_algo", None)
    return getattr(algorithm, "__name__", type(options).__name__)


def _place(block: MemoryBlock, built: OutGraph, index: int) -> tuple[int, int]:
    if not block.planned:
        return 1, -1
    spec = built.of_block.get(index)
    if spec is None or spec.mem_id is None or spec.mem_offset is None:
        raise PlanError(f"the algorithm assigned no offset to {block.name}")
    if spec.mem_id < 1:
        raise PlanError(
            f"the algorithm assigned {block.name} to planned buffer {spec.mem_id}; 0 is reserved"
        )
    try:
        return operator.index(spec.mem_id), operator.index(spec.mem_offset)
    except TypeError as error:
        place = f"{spec.mem_offset!r} of planned buffer {spec.mem_id!r}"
        raise PlanError(
            f"the algorithm assigned {place} to {block.name}, expected integers"
        ) from error


def without_shared(steps: Schedule) -> Schedule:
    """Return a schedule without the buffers that methods share."""
    blocks = [replace(b, planned=b.planned and b.role is not Role.BUFFER) for b in steps.blocks]
    return replace(steps, blocks=tuple(blocks))


def share_buffers(
    plans: Mapping[str, BlockPlacement],
    schedules: Mapping[str, Schedule],
    names: Mapping[str, Mapping[str, str]],
    alignment: int,
) -> dict[str, BlockPlacement]:
    """Return plans in which buffers of one name share an offset in the second planned buffer.

    Args:
        plans: by method, without these buffers
        schedules: by method
        names: by method, the full name of the buffer of a placeholder
        alignment: of buffers, in bytes

    Raises: PlanError if a plan has several planned buffers, or a name has two sizes
    """
    offsets: dict[str, int] = {}
    sizes: dict[str, int] = {}
    end = 0
    for method, steps in schedules.items():
        if len(plans[method].arena_sizes) > 1:
            raise PlanError(
                f"{method}: buffers cannot be shared, since the method has several planned buffers"
            )
        for block in steps.blocks:
            if block.role is not Role.BUFFER:
                continue
            name = names[method][block.name]
            if name not in offsets:
                offsets[name], sizes[name] = end, block.nbytes
                end += aligned(block.nbytes, alignment)
            if sizes[name] != block.nbytes:
                raise PlanError(
                    f"{method}: the shared buffer {name} has a different size in another method"
                )
    return {
        method: _with_shared(plans[method], steps.blocks, names[method], offsets, end)
        for method, steps in schedules.items()
    }


def _with_shared(
    plan: BlockPlacement,
    blocks: Sequence[MemoryBlock],
    names: Mapping[str, str],
    offsets: Mapping[str, int],
    size: int,
) -> BlockPlacement:
    shared = [block.role is Role.BUFFER for block in blocks]
    return replace(
        plan,
        offsets=tuple(
            offsets[names[block.name]] if is_shared else offset
            for block, is_shared, offset in zip(blocks, shared, plan.offsets, strict=True)
        ),
        arenas=tuple(_SHARED_ARENA if is_shared else 1 for is_shared in shared),
        nbytes=plan.nbytes + size,
        sizes=(plan.nbytes, size),
    )
