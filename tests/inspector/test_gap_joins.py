"""Joins by order are said to be uncertain, everywhere, and are never called a divergence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from inspector.cli.gap import gap_answer
from inspector.cli.options import Namespace
from inspector.experiments.gates.evidence import Evidence, MissingError
from inspector.experiments.gates.gap_values import gap_value
from inspector.files.session import Session
from inspector.numerics.flat_graph import FlatNode
from inspector.numerics.grades import FLOW, HANDLE, ORDER
from inspector.numerics.metrics import Tolerance, measure
from inspector.numerics.report import INSTRUCTION, GapReport, Row, RunGap, report_from
from inspector.numerics.shared_handles import DelegateEvent, distinguished
from inspector.tables.numeric_gap import gap_table, summary
from schema.etdump import DebugTensor
from schema.graph import GraphNode, NodeKind

ONES = np.ones(4, np.float32)
UNCERTAIN = "join uncertain"


def row(number: int, grade: str, error: float) -> Row:
    found = measure(ONES, ONES + np.float32(error), "float32", Tolerance())
    differs = found.out_of_tolerance > 0
    return Row(
        INSTRUCTION,
        "forward",
        number,
        0,
        "aten::add.out",
        node=f"add_{number}",
        grade=grade,
        inferred=grade in (FLOW, ORDER),
        total=found,
        own=found,
        differs=differs,
        diverges=differs and grade != ORDER,
        note=UNCERTAIN if grade == ORDER else "",
        order=number,
    )


def report(rows: Sequence[Row]) -> GapReport:
    return GapReport((RunGap("forward", 0, 0, -1, "", "edge", tuple(rows)),))


ROWS = (row(0, HANDLE, 1e-7), row(1, ORDER, 0.5), row(2, FLOW, 1e-6))


def test_join_by_order_that_differs_is_no_divergence_in_text_json_and_window() -> None:
    found = report(ROWS)
    (run,) = found.runs
    assert run.first_divergence() is None
    assert run.doubtful() == (ROWS[1],)
    options = Namespace(run=0, sort="execution", format="text", top=9)
    answer = gap_answer(found, options)
    assert "no node exceeds the tolerance by its own error" in answer.lines
    assert any(line.startswith(f"{UNCERTAIN}: 1 ") and "add_1" in line for line in answer.lines)
    (said,) = answer.data["uncertain"]
    assert (said["node"], said["uncertain"], said["diverges"]) == ("add_1", True, False)
    assert answer.data["first_divergence"] is None
    assert f"{UNCERTAIN}: 1 differ, first add_1" in summary(run)
    states = next(column for column in gap_table(run.rows).columns if column.title == "state")
    assert [*states.values][1] == UNCERTAIN


def test_gates_judge_by_joins_that_are_certain() -> None:
    evidence = Evidence(Session("", ()), "the program", gap=report(ROWS))
    for metric in ("gap.max_abs", "gap.own.max_abs"):
        found = gap_value(metric, evidence)
        assert found.value is not None
        assert found.value < 1e-5
        assert "1 with an uncertain join skipped" in found.words
    only = replace(evidence, gap=report(ROWS[1:2]))
    with pytest.raises(MissingError, match="uncertain"):
        gap_value("gap.max_abs", only)


def test_report_keeps_what_is_uncertain() -> None:
    again = report_from(report(ROWS).content())
    assert again.runs[0].rows == ROWS


def node(place: int, name: str, operator: str, handle: int) -> FlatNode:
    made = GraphNode(name, NodeKind.CALL, operator, outputs=(name,), debug_handle=handle)
    return FlatNode(place, (), made, (), operator)


def logged(name: str, nodes: tuple[str, ...], sizes: tuple[int, ...]) -> DelegateEvent:
    return DelegateEvent(name, nodes, HANDLE, ((DebugTensor(6, sizes, sizes, 0),),))


def test_last_of_several_events_of_one_node_has_its_value() -> None:
    conv = node(0, "conv", "aten::convolution", 1)
    cast, made = logged("0", ("conv",), (1, 8)), logged("1", ("conv",), (2, 8))
    found, shared = distinguished([conv], [cast, made])
    assert not shared
    assert found["conv"].name == "1"


def test_last_event_that_is_as_large_as_its_node_has_its_value() -> None:
    conv = node(0, "conv", "aten::convolution", 1)
    events = [logged("0", ("conv",), (2, 8)), logged("1", ("conv",), (4, 8))]
    found, _ = distinguished([conv], events, fits=lambda event, _: event.name == "0")
    assert found["conv"].name == "0"
