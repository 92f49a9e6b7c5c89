"""Two traces without a program or record that could judge them: do they run the same instructions?

A run has the operator at which instruction, not of which method or program it is. Runs of
one method agree in all of that. Where no run of one trace agrees with one of the other, they are of
two programs or of two methods of one; the first is reported, since traces that are opened
together are taken for runs of one thing.
"""

from __future__ import annotations

from inspector.join.facts import Evidence
from inspector.join.methods import is_execution
from inspector.profile.run_kinds import run_kinds
from inspector.trace.blocks import Block, trace_blocks
from inspector.trace.event_kinds import OPERATOR_CALL
from schema.errors import Severity
from schema.etdump import ETDump

_WHAT = "operators of every instruction, and what ran inside delegates"
_UNLESS = " (two methods of one program would differ like this too)"
_Steps = dict[tuple[int, int], str]


def trace_and_trace(first: ETDump, second: ETDump) -> Evidence:
    """Some run of one trace must run what some run of the other runs."""
    blocks = [block for block in trace_blocks((first, second)).blocks if is_execution(block)]
    kinds = run_kinds(blocks)
    sides = [
        {kind for kind, block in zip(kinds, blocks, strict=True) if block.dump == dump}
        for dump in (0, 1)
    ]
    if not all(sides):
        return Evidence(_WHAT)
    shared = sides[0] & sides[1]
    if shared:
        return Evidence(_WHAT, sum(_facts(blocks, kinds, kind) for kind in shared))
    if not (_is_whole(first) and _is_whole(second)):
        return Evidence(_WHAT)  # what is missing may be what they have in common
    one = next(block for block in blocks if block.dump == 0)
    other = next(block for block in blocks if block.dump == 1)
    return Evidence(_WHAT, 0, f"{_difference(_steps(one), _steps(other))}{_UNLESS}")


def _is_whole(dump: ETDump) -> bool:
    return all(issue.severity is Severity.INFO for issue in dump.issues)


def _facts(blocks: list[Block], kinds: list[int], kind: int) -> int:
    """Return in how many facts the runs of a kind agree; a lone delegate call is none."""
    alike = [block for block, its in zip(blocks, kinds, strict=True) if its == kind]
    counts = [len(_steps(block)) for block in alike]
    inner = [
        sum(block.delegate_id(event) is not None for event in range(len(block))) for block in alike
    ]
    least = min(counts) + min(inner)
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
    return "the delegates of one ran other operators than those of the other"
