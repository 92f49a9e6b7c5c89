"""The documented planning algorithms, from specs to offsets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from compiler.errors import PlanError
from compiler.memory.blocks import MemoryBlock, aligned
from compiler.memory.planners import Planner, by_size
from compiler.memory.planners.naive import naive as one_behind_another
from compiler.memory.tensor_spec import TensorSpec


@dataclass
class SpecAllocResult:
    """Location that an algorithm assigns to a tensor.

    Attributes:
        mem_id: planned buffer, from 1
        mem_obj_id: id of the object it shares with others
        mem_offset: bytes from the start of the planned buffer
    """

    mem_id: int
    mem_obj_id: int
    mem_offset: int


@dataclass
class MemoryAlgoResult:
    """The result of a planning algorithm.

    Attributes:
        spec_dict: the place of each tensor
        bufsizes: bytes of each arena; entry 0 is reserved and 0
    """

    spec_dict: dict[TensorSpec, SpecAllocResult] = field(
        default_factory=dict[TensorSpec, SpecAllocResult]
    )
    bufsizes: list[int] = field(default_factory=list[int])


Algorithm = Callable[..., Any]


def greedy(
    alignment: int,
    specs: Collection[TensorSpec],
    graph_module: torch.fx.GraphModule,
    graph_signature: Any,  # noqa: ANN401 - ExportGraphSignature or None
    extra_padding: int = 0,
    *,
    allow_overlapping_allocations: bool = True,
) -> MemoryAlgoResult:
    """Return offsets with the largest tensors placed first, with reuse of memory.

    Args:
        alignment: bytes
        specs: tensors to place, with their lifetimes
        graph_module: ignored
        graph_signature: ignored
        extra_padding: bytes added to each planned buffer
        allow_overlapping_allocations: whether tensors that are live at the same time may share
            the memory of one larger tensor that is not
    """
    del graph_module, graph_signature
    planner = by_size.greedy if allow_overlapping_allocations else by_size.objects
    return _planned(planner, alignment, specs, extra_padding)


def interval(
    alignment: int,
    specs: Collection[TensorSpec],
    graph_module: torch.fx.GraphModule,
    graph_signature: Any,  # noqa: ANN401
    extra_padding: int = 0,
) -> MemoryAlgoResult:
    """Return offsets with tensors placed by size times lifetime, largest first."""
    del graph_module, graph_signature
    return _planned(by_size.interval, alignment, specs, extra_padding)


def naive(
    alignment: int,
    specs: Collection[TensorSpec],
    graph_module: torch.fx.GraphModule,
    graph_signature: Any,  # noqa: ANN401
    extra_padding: int = 0,
) -> MemoryAlgoResult:
    """Return consecutive offsets, without reuse of memory."""
    del graph_module, graph_signature
    return _planned(one_behind_another, alignment, specs, extra_padding)


FAST: dict[Any, str] = {greedy: "greedy", interval: "interval", naive: "naive"}
"""Names of the planners that these algorithms are."""


def _planned(
    planner: Planner, alignment: int, specs: Collection[TensorSpec], extra_padding: int
) -> MemoryAlgoResult:
    by_arena: dict[int, list[TensorSpec]] = {}
    for spec in specs:
        spec.realign(alignment)
    inside = _inside_others(specs)
    for spec in specs:
        if spec in inside:
            continue
        by_arena.setdefault(spec.mem_id or 1, []).append(spec)
    result = MemoryAlgoResult({}, [0] * (max(by_arena, default=1) + 1))
    for arena, members in by_arena.items():
        blocks = [_block(spec) for spec in members]
        offsets = planner(blocks, alignment)
        for number, (spec, offset) in enumerate(zip(members, offsets, strict=True)):
            result.spec_dict[spec] = SpecAllocResult(arena, number, offset)
        ends = [at + aligned(b.nbytes, alignment) for b, at in zip(blocks, offsets, strict=True)]
        result.bufsizes[arena] = max(ends) + extra_padding
    for spec, (root, offset) in inside.items():
        place = result.spec_dict[root]
        result.spec_dict[spec] = SpecAllocResult(
            place.mem_id, place.mem_obj_id, place.mem_offset + offset
        )
    return result


def _inside_others(specs: Collection[TensorSpec]) -> dict[TensorSpec, tuple[TensorSpec, int]]:
    """Return aliasing tensors with base and offset; lifetimes of bases are extended to theirs."""
    found: dict[TensorSpec, tuple[TensorSpec, int]] = {}
    for spec in specs:
        root, offset, chain = spec, 0, {spec}
        while root.storage_base is not None:
            offset += root.storage_base_offset
            root = root.storage_base
            if root in chain:
                raise PlanError(f"the storage_base of {spec!r} aliases that tensor itself")
            chain.add(root)
        if root is not spec:
            found[spec] = root, offset
            times = [[at or 0 for at in one.lifetime] for one in (root, spec)]
            root.lifetime = [min(t[0] for t in times), max(t[1] for t in times)]
    return found


def _block(spec: TensorSpec) -> MemoryBlock:
    first, last = spec.lifetime
    return MemoryBlock("", spec.nbytes(), first or 0, last or 0)


class MemoryPlanningAlgorithmSuite:
    """Runs several algorithms and keeps the smallest plan."""

    def __init__(self, algo_list: Sequence[Algorithm] | None = None) -> None:
        """Store the algorithms; all built-in ones by default."""
        self.algo_list: list[Algorithm] = list(algo_list or (greedy, interval, naive))

    def __call__(
        self,
        alignment: int,
        specs: Collection[TensorSpec],
        graph_module: torch.fx.GraphModule,
        graph_signature: Any,  # noqa: ANN401
        extra_padding: int = 0,
    ) -> list[int]:
        """Assign each spec its location in the smallest plan and return the planned sizes.

        Raises: PlanError if an algorithm returns an invalid plan
        """
        results = [
            checked_result(
                algorithm,
                algorithm(alignment, specs, graph_module, graph_signature, extra_padding),
            )
            for algorithm in self.algo_list
        ]
        best = min(results, key=lambda result: sum(result.bufsizes))
        return apply_result(best)


def checked_result(algorithm: Any, result: Any) -> MemoryAlgoResult:  # noqa: ANN401
    """Return a result that is one.

    Raises: PlanError naming the algorithm
    """
    if hasattr(result, "spec_dict") and hasattr(result, "bufsizes"):
        return result
    name = getattr(algorithm, "__name__", type(algorithm).__name__)
    raise PlanError(f"{name} returned {type(result).__name__}, expected a MemoryAlgoResult")


def apply_result(result: MemoryAlgoResult) -> list[int]:
    """Write the offsets of a result into the specs and return the sizes of the planned buffers."""
    for spec, place in result.spec_dict.items():
        spec.mem_id, spec.mem_obj_id = place.mem_id, place.mem_obj_id
        spec.mem_offset = place.mem_offset
    return list(result.bufsizes)
