"""A time below a step of its clock is bounded wherever it is shown, never zero."""

from __future__ import annotations

import re

import numpy as np
from pytestqt.qtbot import QtBot

from devtools_app.appearance.theme import Theme
from devtools_app.sample_data import LOOP
from devtools_app.viewmodels.node_facts import node_facts
from devtools_app.widgets.sample_plot import SamplePlot
from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.graph.model_graph import COMPILED, model_graph
from inspector.profile.operator_rows import operator_rows
from inspector.tables.device_ratios import device_ratios
from inspector.tables.grouping import GroupKey, group_rows
from inspector.tables.operators import operators
from inspector.tables.query import column_index
from inspector.tables.row_order import RowOrder
from inspector.tables.selection import Selection, SelectionKind, Units
from inspector.tables.source_lines import source_tree
from inspector.units import Quantity, below, format_total
from tests.inspector.sessions import DATA

RUN = DATA / "runs/convnet_xnnpack"

_ZERO = re.compile(r"(?<![\d.,])0(\.0+)? (ns|µs|ms|s|%)")


def test_sum_below_a_tick_is_bounded_by_all_ticks() -> None:
    assert format_total([0.0, 0.0], [1000.0, 1000.0]) == "< 2 µs"
    assert format_total([600.0, 600.0], [1000.0, 1000.0]) == "1.2 µs"
    assert format_total([0.0], [0.0]) == "0 ns"  # a difference of times may be none
    assert format_total([], []) == "0 ns"
    assert below(0.0001, Quantity.SHARE) == "<0.1 %"  # one sign, however small the bound is


def _selections(session: Session) -> list[Selection]:
    graph = model_graph(session, "forward")
    assert graph is not None
    events = [row.event for row in operator_rows(session, "forward")]
    return [
        *[Selection(SelectionKind.DELEGATE, "forward", delegate=at) for at in range(5)],
        *[Selection(SelectionKind.EVENT, "forward", event=event) for event in events],
        *[Selection(SelectionKind.NODE, "forward", COMPILED, node.name) for node in graph.nodes],
    ]


def test_node_panel_of_the_sample_never_shows_zero_for_a_measured_time() -> None:
    session = load_session(LOOP[:2])
    bounded = 0
    for chosen in _selections(session):
        for group in node_facts(session, "forward", chosen, Units()).groups:
            if group.title.startswith(("Time", "Delegate", "Boundary")):
                for fact in group.facts:
                    assert not _ZERO.search(fact.value), (chosen, fact)
                    bounded += fact.value.startswith("< ")
    assert bounded > 10


def test_lines_of_source_of_the_sample_never_take_zero() -> None:
    table = source_tree(load_session(LOOP[:2]), "forward", Units()).rows
    columns = {one.title: one for one in table.columns}
    for title, unit in (("time", " ns"), ("share of method", "")):
        cells = [columns[title].cell(row) for row in range(table.length)]
        assert not any(_ZERO.search(f"{cell}{unit}") for cell in cells), cells
        assert any(cell.startswith("< ") for cell in cells)


def test_trace_alone_bounds_times_by_the_clock_that_they_agree_with() -> None:
    rows = list(operator_rows(load_session([RUN / "run.etdp"]), "forward"))
    inner = [row for row in rows if row.kind == "inner"]
    assert inner
    assert not any(row.link.backend for row in inner)
    assert {row.tick_ns for row in inner} == {1000.0}


def test_groups_and_sums_below_a_step_are_bounded() -> None:
    table = operators(load_session([RUN]), "forward", Units())
    by = column_index(table, "operator")
    rows = group_rows(RowOrder(table), by, np.arange(table.length)).rows
    groups = [row for row in range(rows.length) if isinstance(rows.key(row), GroupKey)]
    bounded = 0
    for title in ("mean", "share of method"):
        column = next(one for one in rows.columns if one.title == title)
        cells = [column.cell(row) for row in groups]
        assert not any(cell in ("0", "0 %") for cell in cells), cells
        bounded += sum(cell.startswith("<") for cell in cells)
        assert not any("< <" in cell for cell in cells)
    assert bounded > 2


def test_plot_of_runs_bounds_what_is_below_a_step(qtbot: QtBot, theme: Theme) -> None:
    plot = SamplePlot(theme)
    qtbot.addWidget(plot)
    plot.show_samples("conv", np.array([0.0, 0.0, 1000.0, 0.0]), tick_ns=1000.0)
    drawn = "conv, 4 runs: < 1 µs, < 1 µs, 1 µs, < 1 µs"
    assert plot.accessibleDescription().partition(". As a table:")[0] == drawn


def test_ratios_of_devices_are_missing_where_a_time_is_below_its_clock() -> None:
    """The same program with its own times: XNNPACK counts in steps of a microsecond."""
    session = load_session([str(RUN)])
    table = device_ratios([session, session], "forward", Units())
    cells = [[column.cell(row) for column in table.columns] for row in range(table.length)]
    assert not any(_ZERO.search(cell) for row in cells for cell in row)
    short = [row for row in cells if row[1].startswith("< ")]
    assert short
    assert {row[-1] for row in short} == {"missing"}
    assert {row[-1] for row in cells if row not in short} == {"1"}
