"""A program whose payloads are damaged says so, and its delegates stay delegates."""

from __future__ import annotations

import pytest

from inspector.files.load import load_session
from inspector.findings.session import findings
from inspector.graph.model_graph import model_graph
from inspector.tables.files import all_issues
from schema.errors import Severity
from schema.program import decode
from tests.app.sessions import DATA

MODEL = DATA / "corpus/v1.5.1/tinygpt_xnnpack/model.pte"


@pytest.fixture(params=[1, 3, 12])
def damaged(request, tmp_path):
    data = bytearray(MODEL.read_bytes())
    program = decode(memoryview(bytes(data)), file="model.pte")
    plan = program.plan("forward")
    for delegate in plan.delegates[: request.param]:
        payload = bytes(program.delegate_data(delegate))
        at = data.find(payload)
        data[at + 4 : at + 8] = b"\xff" * 4
    path = tmp_path / "model.pte"
    path.write_bytes(data)
    return load_session([path]), request.param


def test_damaged_payloads_are_the_first_finding_and_listed_as_issues(damaged) -> None:
    session, count = damaged
    first = findings(session)[0]
    assert first.text.startswith(f"{count} delegate payload")
    assert first.view == "issues"
    errors = [one for one in all_issues(session) if one.severity is Severity.ERROR]
    assert len(errors) == count
    assert len({one.where for one in errors}) == count


def test_a_delegate_that_cannot_be_read_is_still_drawn_as_one(damaged) -> None:
    session, count = damaged
    graph = model_graph(session, "forward")
    assert graph is not None
    calls = [node for node in graph.nodes if node.node.target == "XnnpackBackend"]
    assert sorted(node.delegate for node in calls) == list(range(count))
    assert all(node.backend == "XnnpackBackend" for node in calls)
    assert all(node.regions[0].kind == "delegate" for node in calls)


def test_readable_payloads_give_no_issue() -> None:
    session = load_session([MODEL])
    assert not [one for one in all_issues(session) if "delegate" in one.where]
