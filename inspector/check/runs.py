"""Compares the instructions of two traces without a program or record.

A run names the operator of each instruction, but not its method or program. Runs of
one method agree in all operators. If no run of one trace agrees with a run of the other, they
belong to
two programs or two methods; the former is reported, since traces that are opened
together are assumed to be runs of one program.
"""

from __future__ import annotations

from inspector.join.facts import JoinEvidence
from inspector.join.methods import is_execution
from inspector.profile.run_kinds import names_nodes, run_kinds
from inspector.trace.blocks import Block, trace_blocks
from inspector.trace.event_kinds import OPERATOR_CALL
from schema.errors import Severity
from schema.etdump import ETDump

_WHAT = "operators of every instruction, and events inside delegates"
_UNLESS = " (two methods of one program would differ like this too)"
_Steps = dict[tuple[int, int], str]


def trace_and_trace(first: ETDump, second: ETDump) -> JoinEvidence:
    """At least one run of each trace must have the same instructions."""
    blocks = [block for block in trace_blocks((first, second)).blocks if is_execution(block)]
    kinds = run_kinds(blocks)
    sides = [
        {kind for kind, block in zip(kinds, blocks, strict=True) if block.dump == dump}
        for dump in (0, 1)
    ]
    if not all(sides):
        return JoinEvidence(_WHAT)
    shared = sides[0] & sides[1]
    if shared:
        return JoinEvidence(_WHAT, sum(_facts(blocks, kinds, kind) for kind in shared))
    if not (_is_whole(first) and _is_whole(second)):
        return JoinEvidence(_WHAT)  # the missing part may be what they have in common
    one = next(block for block in blocks if block.dump == 0)
    other = next(block for block in blocks if block.dump == 1)
    return JoinEvidence(_WHAT, 0, f"{_difference(_steps(one), _steps(other))}{_UNLESS}")


def _is_whole(dump: ETDump) -> bool:
    return all(issue.severity is Severity.INFO for issue in dump.issues)


def _facts(blocks: list[Block], kinds: list[int], kind: int) -> int:
    """Return the number of facts in which runs of a kind agree; a single call does not count."""
    alike = [block for block, its in zip(blocks, kinds, strict=True) if its == kind]
    counts = [len(_steps(block)) for block in alike]
    inner = [
        sum(block.delegate_id(event) is not None for event in range(len(block))) for block in alike
    ]
    least = min(counts)
    if len(set(map(names_nodes, alike))) == 1:  # else what is inside has two kinds of names
        least += min(inner)
    return least if least > 1 else 0


def _steps(block: Block) -> _Steps:
    """Return the operator at each chain and instruction of a run, outside of delegates."""
    found: _Steps = {}
    for event in range(len(block)):
        number = block.instruction(event)
        name = block.event_name(event)
        if number is None or block.layout.chain[event] < 0 or name == OPERATOR_CALL:
            continue
        if block.delegate_id(event) is None:
            found[int(block.layout.chain[event]), number] = name
    return found


def _difference(one: _Steps, other: _Steps) -> str:
    for place in sorted(one.keys() | other.keys()):
        here, there = one.get(place, "nothing"), other.get(place, "nothing")
        if here != there:
            return f"instruction {place[1]}: one ran {here}, the other {there}"
    return "the operators inside delegates differ"
