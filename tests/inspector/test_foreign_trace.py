"""A trace of another program: its events keep their own names, and give no node a time."""

from __future__ import annotations

import numpy as np
import pytest

from inspector.files.load import load_session
from inspector.findings.session import findings
from inspector.graph.model_graph import model_graph
from inspector.profile.node_times import node_times
from inspector.profile.operator_rows import operator_rows
from inspector.tables.method_facts import method_group, work_facts
from inspector.tables.selection import AUTOMATIC
from tests.inspector.sessions import DATA

CORPUS = DATA / "corpus/v1.5.1"


@pytest.mark.parametrize("program", ["mm_portable", "tinygpt_xnnpack"])
@pytest.mark.parametrize("trace", ["convnet_portable", "convnet_xnnpack"])
def test_events_are_never_named_after_another_program(program: str, trace: str) -> None:
    alone = load_session([CORPUS / trace / "run.etdp"])
    beside = load_session([CORPUS / program / "model.pte", CORPUS / trace / "run.etdp"])
    wanted = [row.label for row in operator_rows(alone, "")]
    assert [row.label for row in operator_rows(beside, "forward")] == wanted
    graph = model_graph(beside, "forward")
    assert graph is not None
    times = node_times(beside, "forward", graph)
    assert np.isnan(times.node_ns).all()
    assert (times.runs, dict(times.delegate_ns)) == (0, {})


def test_events_of_the_program_have_its_names() -> None:
    session = load_session([CORPUS / "mm_portable/model.pte", CORPUS / "mm_portable/run.etdp"])
    assert operator_rows(session, "forward")[0].label == "aten.mm.out"
    graph = model_graph(session, "forward")
    assert graph is not None
    assert node_times(session, "forward", graph).runs > 0


def test_findings_beside_a_mismatch_are_of_the_program_alone() -> None:
    program, trace = CORPUS / "mm_portable/model.pte", CORPUS / "convnet_portable/run.etdp"
    mixed = findings(load_session([program, trace, CORPUS / "tinygpt_xnnpack/model.etrecord"]))
    assert mixed[0].text.startswith("The files do not belong together")
    alone = {one.text for one in findings(load_session([program]))}
    others = {one.text for one in mixed[1:]}
    assert others <= alone, others - alone


def test_facts_of_a_method_beside_a_mismatch_are_of_the_program_alone() -> None:
    program, trace = CORPUS / "mm_portable/model.pte", CORPUS / "convnet_portable/run.etdp"
    mixed = load_session([program, trace, CORPUS / "tinygpt_xnnpack/model.etrecord"])
    alone = load_session([program])
    assert method_group(mixed, "forward", AUTOMATIC) == method_group(alone, "forward", AUTOMATIC)
    assert work_facts(mixed, "forward") == work_facts(alone, "forward")
