"""Constants that several partitions read, each stored in as few layouts as kernels allow.

Filters are read in their layout from the file; other readers can transpose a constant when they
run. Without an agreement each partition stores it in the layout that it computes in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.backends.xnnpack.facts import Facts, argument, op_of, rank_of, shape_of, value_of
from compiler.backends.xnnpack.layout import (
    UNIT,
    Layout,
    boundary,
    channels_last,
    moves_data,
    plain,
)
from compiler.backends.xnnpack.placement import Placement, Want, wants
from compiler.backends.xnnpack.precision import ConfigPrecisionType
from compiler.backends.xnnpack.steps import PayloadStep, PayloadSteps
from compiler.untyped import aten

Node = torch.fx.Node
_STORED = "xnnpack_stored_layouts"
_LEAST = 1024  # bytes: a smaller constant is not worth a transposition in each run
_FILTER = 1  # argument of a convolution
_SIGNAL = 3  # dimensions; below that there is one layout


@dataclass
class _Reads:
    """The reads of one constant.

    Attributes:
        nodes: its placeholder in each partition
        required: layouts that are stored in any case
        flexible: layouts requested by readers that can transpose
    """

    nodes: list[Node] = field(default_factory=list[Node])
    required: list[Layout] = field(default_factory=list[Layout])
    flexible: list[Layout] = field(default_factory=list[Layout])


def agree_on_layouts(programs: Sequence[ExportedProgram], outside: Collection[str]) -> None:
    """Mark the constants of partitions with the layouts in which the file has them anyway.

    Args:
        programs: the partitions of a method
        outside: names of the constants that operators outside of partitions read
    """
    readers = Counter(node.name for each in programs for node in _large(each) for _ in node.users)
    readers.update(outside)
    shared = {name for name, count in readers.items() if count > 1}
    found: dict[str, _Reads] = {}
    for program in programs:
        mine = [node for node in _large(program) if node.name in shared]
        if mine:
            _collect(program, mine, found)
    for name, reads in found.items():
        node = reads.nodes[0]
        if name in outside:
            reads.required.append(boundary(value_of(node)))
        stored = reads.required or _most_requested(node, reads.flexible)
        for each in reads.nodes:
            each.meta[_STORED] = tuple(stored)


def stored_layout(node: Node, layout: Layout) -> Layout | None:
    """Return the layout to transpose a constant from, None if it is stored as requested."""
    stored: Sequence[Layout] = node.meta.get(_STORED, ())
    sizes = shape_of(node)
    fits = len([d for d in layout if d != UNIT]) == len(sizes)
    if not stored or not fits or any(not moves_data(sizes, one, layout) for one in stored):
        return None
    return stored[0]


def _large(program: ExportedProgram) -> Iterator[Node]:
    facts = Facts(program)
    for node in program.graph.nodes:
        if not facts.is_constant(node) or rank_of(node) < _SIGNAL:
            continue
        tensor = facts.tensor(node)
        if tensor.is_floating_point() and tensor.nbytes >= _LEAST:
            yield node


def _collect(program: ExportedProgram, nodes: Sequence[Node], found: dict[str, _Reads]) -> None:
    """Add the reads of constants in a partition."""
    names = {node.name: node for node in nodes}
    for node in nodes:
        found.setdefault(node.name, _Reads()).nodes.append(node)
    steps = PayloadSteps(program)
    home = Placement(steps).home
    for step in steps.built.values():
        for read in step.node.all_input_nodes:
            root = steps.root(read)
            if root.name not in names or root.op != "placeholder":
                continue
            if op_of(step.node) is aten.convolution.default and read is step.node.args[_FILTER]:
                layout = _filter_layout(step)
                found[root.name].required += [] if layout is None else [layout]
            elif rank_of(root) == rank_of(step.node):
                found[root.name].flexible.append(_requested(step, steps, home, root))


def _requested(
    step: PayloadStep, steps: PayloadSteps, home: dict[Node, Layout], constant: Node
) -> Layout:
    kind = wants(step, steps)
    if kind is Want.EITHER:
        return home[step.node]
    rank = rank_of(constant)
    return channels_last(rank) if kind is Want.LAST else plain(rank)


def _filter_layout(step: PayloadStep) -> Layout | None:
    """Return the layout in which a filter is stored, None if its values change."""
    node: Any = step.node
    if step.norms or step.pattern.precision is not ConfigPrecisionType.FP32:
        return None
    weight, groups = node.args[_FILTER], int(argument(node, "groups"))
    transposed = bool(argument(node, "transposed"))
    if transposed and groups > 1:
        return None
    depthwise = not transposed and groups > 1 and shape_of(weight)[1] == 1
    swapped = transposed or depthwise  # they have the second dimension outermost
    first, last = (1, 0) if swapped else (0, 1)
    middle = (UNIT, 2) if rank_of(weight) == _SIGNAL else (2, 3)
    return (first, *middle, last)


def _most_requested(node: Node, layouts: Sequence[Layout]) -> list[Layout]:
    """Return the layout that most readers request, the plain one of equals."""
    sizes = shape_of(node)
    counts = [
        (sum(not moves_data(sizes, one, other) for other in layouts), one == plain(len(sizes)), one)
        for one in dict.fromkeys(layouts)
    ]
    return [max(counts)[-1]] if counts else []
