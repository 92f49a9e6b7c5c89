"""Operators, overview, facts of a node and source lines as view-models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devtools_app.viewmodels.below import operators_line
from devtools_app.viewmodels.node_facts import node_facts
from devtools_app.viewmodels.overview import overview
from inspector.files.session import Session
from inspector.profile.methods import analyse_profile
from inspector.profile.operator_columns import TRACING, UNATTRIBUTED
from inspector.profile.operator_rows import operator_rows
from inspector.tables.events import all_events
from inspector.tables.facts import FactSheet
from inspector.tables.operators import operators_table, sample_points
from inspector.tables.selection import Selection, SelectionKind, Units
from inspector.tables.source_lines import source_files
from tests.app.sessions import DATA, chain_session, folders, opened

pytestmark = pytest.mark.slow

AUTO = Units()
CONVNET = "corpus/v1.5.1/convnet_xnnpack"
TINY = "corpus/v1.5.1/tinygpt_xnnpack"


def _sheets(session: Session, method: str) -> list[tuple[Selection, FactSheet]]:
    keys = operators_table(session, method, AUTO).table.keys or ()
    selections = [key for key in keys if isinstance(key, Selection)]
    return [(one, node_facts(session, method, one, AUTO)) for one in selections]


@pytest.mark.parametrize("folder", folders())
def test_operators_add_up_to_the_method(folder: str) -> None:
    session = opened(folder)
    for time in analyse_profile(session).methods:
        rows = operator_rows(session, time.method)
        if sum(row.kind == UNATTRIBUTED for row in rows) != 1:
            continue  # several blocks of runs: the method's time is their mean
        total = sum(row.mean_ns for row in rows if row.mean_ns is not None and row.kind != TRACING)
        missing = any(row.samples_ns is None for row in rows)
        assert missing or total / 1e6 == pytest.approx(time.method_ms)


@pytest.mark.parametrize("folder", folders())
def test_every_operator_has_facts_and_every_event_a_row(folder: str) -> None:
    session = opened(folder)
    for method in session.methods:
        for selection, sheet in _sheets(session, method):
            assert sheet.title, selection
        events = all_events(session, method, AUTO)
        assert events.table.length == len(analyse_profile(session).rows)


@pytest.mark.parametrize("folder", folders())
def test_overview_of_every_session_adds_up(folder: str) -> None:
    session = opened(folder)
    made = overview(session, session.methods[0] if session.methods else "", AUTO)
    assert made.title
    assert len(made.files.facts) == len(session.files)
    assert len(made.methods) == len(session.methods)
    assert len(made.entries) == len(made.findings) <= 7
    if made.time.slices:
        shares = [part.share for part in made.time.slices if part.share is not None]
        assert made.time.hatched is (not shares)
        assert not shares or sum(shares) == pytest.approx(1.0)
        assert sum(part.nanoseconds for part in made.time.slices) > 0


def test_overview_of_a_record_alone_claims_no_bytes() -> None:
    made = overview(opened(f"{CONVNET}/model.etrecord"), "forward", AUTO)
    words = " ".join(fact.value for fact in made.methods[0].facts)
    assert "0 B" not in words
    assert {one.what for one in made.missing} == {"program (.pte)", "trace (ETDump)"}


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 5)), max_size=4), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_sample_points_equal_those_of_each_row_alone(
    blocks: list[tuple[bool, int]], seed: int
) -> None:
    made = np.random.default_rng(seed)
    (rows,) = operator_rows(opened(CONVNET), "forward").parts
    samples = [np.zeros((0, 3)), *(made.uniform(0, 1e12, (3, runs)) for _, runs in blocks)]
    parts = [
        replace(rows, samples=one, mean_ns=one.mean(axis=1), steady=np.ones(one.shape[1], np.bool_))
        for one in samples
    ]
    timed = np.repeat([there for there, _ in blocks], 3).astype(np.bool_)
    points = sample_points(parts, timed)
    for number, sample in enumerate(row for block in samples for row in block):
        if not timed[number]:
            assert all(np.isnan(values[number]) for values in points)
            continue
        expected = [sample.mean(), *np.percentile(sample, (50, 10, 90, 0, 100))]
        if len(sample) < 5:
            expected[1:4] = [np.nan] * 3
        np.testing.assert_array_equal([values[number] for values in points], expected)


def test_call_of_a_delegate_shows_the_delegate() -> None:
    session = opened(CONVNET)
    rest = next(row for row in operator_rows(session, "forward") if row.kind == "rest")
    selection = Selection(SelectionKind.EVENT, "forward", event=rest.event)
    sheet = node_facts(session, "forward", selection, AUTO)
    assert sheet.title == "XNNPACK · delegate 0"
    labels = [fact.label for group in sheet.groups for fact in group.facts]
    assert {"operators inside", "delegate overhead"} <= set(labels)


def test_node_facts_show_the_line_and_the_values_of_a_node() -> None:
    session = opened(TINY)
    selection = Selection(SelectionKind.NODE, "forward", "compiled", "aten_linear_default")
    sheet = node_facts(session, "forward", selection, AUTO)
    assert sheet.title == "aten.linear"
    titles = [group.title for group in sheet.groups]
    assert {"Tensors", "Weights", "Memory", "Source"} <= set(titles)
    code = next(group for group in sheet.groups if group.title == "Source")
    assert any("qkv" in line for line in code.code)
    assert sheet.as_text().startswith("aten.linear\n")


def test_node_facts_of_nothing_known_are_empty() -> None:
    session = opened(TINY)
    for selection in (
        Selection(),
        Selection(SelectionKind.NODE, "forward", "compiled", "nobody"),
        Selection(SelectionKind.DELEGATE, "forward", delegate=-1),
        Selection(SelectionKind.VALUE, "forward", value=10**6),
        Selection(SelectionKind.PART, part="x@1+1"),
    ):
        assert node_facts(session, "forward", selection, AUTO) == FactSheet()


def test_kernel_event_has_the_facts_of_its_operator() -> None:
    session = opened(CONVNET)
    rows = analyse_profile(session).rows
    kernel = next(n for n, row in enumerate(rows) if row.event_name.startswith("native_call_"))
    sheet = node_facts(
        session, "forward", Selection(SelectionKind.EVENT, "forward", event=kernel), AUTO
    )
    assert sheet.groups[1].title.startswith("Time")


def test_source_lines_hold_each_node_once_and_their_time() -> None:
    session = opened(TINY)
    made = source_files(session, "forward", AUTO)
    names = [
        name for lines in made.files.values() for line in lines.values() for name in line.nodes
    ]
    assert len(names) == len(set(names)) == len(made.line_of)
    assert made.times is not None
    spent = sum(
        line.nanoseconds
        for lines in made.files.values()
        for line in lines.values()
        if not np.isnan(line.nanoseconds)
    )
    assert 0 < spent <= float(np.nansum(made.times.node_ns)) * (1 + 1e-9)


def test_source_lines_of_a_program_alone_are_none() -> None:
    made = source_files(chain_session(3), "forward", AUTO)
    assert not made.files
    assert made.unplaced == 5


def test_trace_alone_does_not_claim_that_its_delegates_are_none() -> None:
    session = opened(f"{CONVNET}/run.etdp")
    for made in (operators_table(session, "", AUTO), all_events(session, "", AUTO)):
        titles = [column.title for column in made.table.columns]
        backends = made.table.columns[titles.index("backend")].values
        assert "unknown" in list(backends)


@pytest.mark.parametrize("case", [CONVNET, TINY, "corpus/v1.5.1/mm_xnnpack"])
def test_trace_alone_numbers_the_calls_of_its_delegates(case: str) -> None:
    alone = opened(f"{case}/run.etdp")
    table = operators_table(alone, "forward", AUTO).table
    columns = {column.title: column for column in table.columns}
    whole = opened(*(f"{case}/{name}" for name in ("model.pte", "run.etdp")))
    joined = operators_table(whole, "forward", AUTO).table
    known = {column.title: column for column in joined.columns}
    pairs = set(zip(known["delegate"].values, columns["delegate"].values, strict=True))
    named = {one for one, _ in pairs if one != "—"}
    numbers = {f"delegate call {place}" for place in range(1, len(named) + 1)}
    assert {number for one, number in pairs if one != "—"} == numbers
    assert len(pairs - {("—", "—")}) == len(named)  # one number for each delegate, and no other
    assert "unknown" not in operators_line(table, AUTO)


def test_overview_names_files_without_their_paths_unless_they_share_a_name() -> None:
    session = opened(f"{CONVNET}/model.pte", f"{TINY}/model.pte", f"{TINY}/run.etdp")
    made = overview(session, "forward", AUTO)
    words = " ".join(entry.title + entry.detail for entry in made.entries)
    assert "do not belong" in words
    assert str(DATA) not in words
    assert "convnet_xnnpack/model.pte" in words
    assert made.verdict is not None
    assert str(DATA) not in made.verdict.entry.detail
