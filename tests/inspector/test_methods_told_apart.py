"""Which method a run is of: told by the program, by the record alone, or by nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from inspector.cli.summary import method_json
from inspector.files.session import Session
from inspector.join.links import Grade, link_block
from inspector.join.methods import is_execution
from inspector.trace.blocks import trace_blocks
from schema.program import ProgramFile
from tests.inspector.sessions import DATA, label, session

SINGLE = [
    DATA / "corpus/v1.5.1" / name for name in ("convnet_portable", "convnet_xnnpack", "mm_portable")
]
SEVERAL = [DATA / "extra/two_methods", DATA / "extra/shared_state"]


def _twice(folder: Path, operator: str = "") -> Session:
    """Return the trace with a program that has its method twice, the second changed."""
    files = session(folder).files
    file = next(file for file in files if file.kind == "pte")
    assert isinstance(file.artifact, ProgramFile)
    plan = file.artifact.plans[0]
    again = replace(plan, name="again")
    if operator:
        first = replace(plan.operators[-1], name=operator)
        again = replace(again, operators=(*plan.operators[:-1], first))
    table = replace(file.artifact.table, execution_plan=(plan, again))
    doubled = replace(file, artifact=replace(file.artifact, table=table))
    trace = next(file for file in files if file.kind == "etdump")
    return Session("twice", (doubled, trace))


@pytest.mark.parametrize("folder", SINGLE, ids=label)
def test_run_of_one_of_two_equal_methods_is_linked_but_not_named(folder: Path) -> None:
    twice = _twice(folder)
    blocks = [b for b in trace_blocks(twice.dumps).blocks if is_execution(b)]
    alone = session(folder)
    own = [b for b in trace_blocks(alone.dumps).blocks if is_execution(b)]
    for block, before in zip(blocks, own, strict=True):
        links, wanted = link_block(twice, block), link_block(alone, before)
        assert links.method is None
        assert wanted.method == "forward"
        for event in range(len(block)):
            one, two = links.link(event), wanted.link(event)
            assert one.instruction == two.instruction
            assert one.backend == two.backend


def test_run_of_the_method_that_fits_is_named() -> None:
    twice = _twice(SINGLE[0], "aten::another")
    for block in trace_blocks(twice.dumps).blocks:
        assert link_block(twice, block).method == ("forward" if is_execution(block) else None)


@pytest.mark.parametrize("folder", SEVERAL, ids=label)
def test_record_alone_tells_which_method_ran(folder: Path) -> None:
    whole = session(folder)
    files = tuple(file for file in whole.files if file.kind in ("etrecord", "etdump"))
    alone = Session("alone", files)
    for block, same in zip(
        trace_blocks(alone.dumps).blocks, trace_blocks(whole.dumps).blocks, strict=True
    ):
        links = link_block(alone, block)
        assert links.method == link_block(whole, same).method
        for event in range(len(block)):
            name = block.event_name(event)
            # The write-back of state is in no record.
            if name.startswith("native_call_") and name != "native_call_copy_":
                assert links.link(event).grade is not Grade.NONE


def test_time_of_an_unnamed_run_is_of_no_method_when_several_could_have_run() -> None:
    twice = _twice(SINGLE[0])
    assert [method_json(twice, name)["method_ms"] for name in twice.methods] == [None, None]


def test_time_of_a_run_without_instructions_is_of_the_only_method() -> None:
    found = method_json(session(DATA / "extra/identity"), "forward")
    assert found["method_ms"] > 0
    assert found["runs"] == 2
