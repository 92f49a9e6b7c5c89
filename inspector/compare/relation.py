"""Whether sessions are variants of one program, so that a difference is a gain or a loss."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from inspector.check.session import DO_NOT_BELONG, check_session
from inspector.compare.alignment import GraphAlignment
from inspector.compare.model import MethodGraphs
from inspector.files.session import Session
from inspector.graph.model_graph import ModelNode
from schema.graph import NodeKind
from schema.objects.plural import plural
from schema.program.model import ExecutionPlan, Tensor

_OF_SMALLER = 0.4  # of the operators of the smaller program
_WITH_OTHER_INPUTS = 0.7  # of the smaller one, as where a cache or a mask became an input
_OF_LARGER = 0.15  # of those of the larger; a quantized graph has up to five times as many


def relation_problems(
    sessions: Sequence[Session], names: Sequence[str], graphs: Sequence[MethodGraphs]
) -> dict[int, tuple[str, ...]]:
    """Return number of a session -> why it is not a variant of the first; others are left out."""
    mixed = [
        f"the files of {name} do not belong together"
        if len(session.files) > 1 and check_session(session).verdict == DO_NOT_BELONG
        else ""
        for session, name in zip(sessions, names, strict=True)
    ]
    found = {
        number: tuple(
            filter(None, (mixed[0], mixed[number], _other(number, sessions, names, graphs)))
        )
        for number in range(1, len(sessions))
    }
    return {number: why for number, why in found.items() if why}


def _other(
    number: int,
    sessions: Sequence[Session],
    names: Sequence[str],
    graphs: Sequence[MethodGraphs],
) -> str:
    """Return how a session is another program than the first, empty if it is not one."""
    first, own, name = sessions[0].methods, sessions[number].methods, names[number]
    if not any(method in own for method in first):
        return f"{name} has no method of {names[0]}" if first and own else ""
    known = [one.alignments[number - 1] for one in graphs if not one.note]
    aligned = [one for one in known if one is not None]
    other = _other_inputs(sessions[0], sessions[number])
    few = unrelated(aligned, other_inputs=bool(other)) if aligned else other
    return f"{name} and {names[0]} are different programs: {few}" if few else ""


def _other_inputs(one: Session, two: Session) -> str:
    """Return which inputs of two programs have other dimensions; sizes of variants may differ.

    Nodes of payloads and of recorded graphs are not counted in the same way: where no graphs are
    compared, the inputs are what all variants have in common.
    """
    if one.program is None or two.program is None:
        return ""
    old, new = (
        {plan.name: _ranks(plan) for plan in each.plans} for each in (one.program, two.program)
    )
    for method in (name for name in old if name in new):
        if old[method] != new[method]:
            counts = f"{_dimensions(new[method])}, not {_dimensions(old[method])}"
            return f"inputs of {method} have {counts} dimensions"
    return ""


def _ranks(plan: ExecutionPlan) -> list[int]:
    inputs = (plan.values[index].val for index in plan.inputs if 0 <= index < len(plan.values))
    return [len(value.sizes) for value in inputs if isinstance(value, Tensor)]


def _dimensions(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks)) or "no"


def unrelated(alignments: Sequence[GraphAlignment], *, other_inputs: bool) -> str:
    """Return how little two programs share, where they are not variants of one; else empty.

    A recompiled program has most of the operators of the smaller of the two, wherever they run and
    whatever is added around them; programs of the same family share some by chance. Operators that
    became others of the same module and line, as a layer that a backend takes whole, are shared.
    """
    paired = sum(_computes(one.old.nodes[pair.old]) for one in alignments for pair in one.pairs)
    old = _counts((one.old.nodes, [group.old for group in one.replaced]) for one in alignments)
    new = _counts((one.new.nodes, [group.new for group in one.replaced]) for one in alignments)
    (smaller, of_smaller), (larger, of_larger) = sorted((old, new))
    least = _WITH_OTHER_INPUTS if other_inputs else _OF_SMALLER
    if not smaller or (
        paired + of_smaller >= least * smaller and paired + of_larger >= _OF_LARGER * larger
    ):
        return ""
    return f"{paired:,} of {smaller:,} and {plural(larger, 'operator')} are in both"


def _counts(
    sides: Iterable[tuple[Sequence[ModelNode], Sequence[Sequence[int]]]],
) -> tuple[int, int]:
    """Return the operators of a side, and those that became others of the same line."""
    operators = replaced = 0
    for nodes, groups in sides:
        operators += _operators(nodes)
        replaced += sum(_computes(nodes[node]) for group in groups for node in group)
    return operators, replaced


def _operators(nodes: Sequence[ModelNode]) -> int:
    return sum(map(_computes, nodes))


def _computes(node: ModelNode) -> bool:
    return node.node.kind not in (NodeKind.PLACEHOLDER, NodeKind.OUTPUT)
