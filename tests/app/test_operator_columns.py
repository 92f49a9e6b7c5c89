"""Operators, events and joins made in columns say what they say made one by one."""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devtools_app.viewmodels.timeline_flame import flame_timeline, has_flame
from inspector.files.session import LoadedFile, Session, SessionOptions
from inspector.join.int_maps import CodedMap, GroupMap, IntMap
from inspector.join.link_codes import link_codes
from inspector.join.links import link_block
from inspector.profile.join_index import join_index
from inspector.profile.operator_columns import UNATTRIBUTED
from inspector.profile.operator_rows import OperatorRow, operator_rows
from inspector.tables.events import all_events
from inspector.tables.grouping import GroupKey, group_rows
from inspector.tables.operators import OperatorsTable, operators_table
from inspector.tables.row_order import RowOrder
from inspector.tables.selection import Selection, Units
from inspector.trace.blocks import trace_blocks
from schema.etdump import ETDump, ProfileEvent, dump, run
from schema.etdump.build import synthetic
from tests.app import simple_operators as simple
from tests.app.sessions import folders, opened
from tests.inspector.api_traces import random_trace

pytestmark = pytest.mark.slow
AUTO = Units()
XNNPACK = "corpus/v1.5.1/tinygpt_xnnpack"
LOOPS = "corpus/special/control_flow"
NAMES = (
    "OPERATOR_CALL",
    "DELEGATE_CALL",
    "MOVE_CALL",
    "Method::execute",
    "native_call_a",
    "",
    None,
)


def _session(made: ETDump, files: tuple[LoadedFile, ...] = (), scale: str = "ns") -> Session:
    trace = LoadedFile("run.etdp", "etdump", 0, memoryview(b""), made)
    return Session("made", (*files, trace), SessionOptions(scale, False))


@lru_cache
def _programs() -> tuple[tuple[LoadedFile, ...], ...]:
    """Return nothing, a program, a record, and both of them."""
    both = opened(XNNPACK)
    program, record = both.file_of(both.program), both.file_of(both.record)
    assert program is not None
    assert record is not None
    loops = opened(LOOPS)
    looping = tuple(file for file in loops.files if file.kind != "etdump")
    return ((), (program,), (record,), (program, record), looping)


def _check(session: Session) -> None:
    for block in trace_blocks(session.dumps).blocks:
        links, coded = link_block(session, block), link_codes(session, block)
        found = [coded.links[code] for code in coded.codes.tolist()]
        assert found == [links.link(event) for event in range(len(block))]
    for method in session.methods or ("",):
        _check_joins(session, method)
        _check_operators(session, method)
        _check_events(session, method)


def _check_joins(session: Session, method: str) -> None:
    index, expected = join_index(session, method), simple.joined_events(session, method)
    assert dict(index.event_instruction) == {row: one[0] for row, one in expected.items()}
    assert dict(index.event_nodes) == {row: one[1] for row, one in expected.items()}
    steps: dict[int, list[int]] = {}
    own: dict[str, list[int]] = {}
    for row, (step, names, inner) in expected.items():
        steps.setdefault(step, []).append(row)
        for name in names if inner else ():
            own.setdefault(name, []).append(row)
    assert dict(index.instruction_events) == {step: tuple(rows) for step, rows in steps.items()}
    assert dict(index.node_events) == {name: tuple(rows) for name, rows in own.items()}


def _same_row(made: OperatorRow, expected: OperatorRow) -> None:
    for field in fields(OperatorRow):
        one, two = getattr(made, field.name), getattr(expected, field.name)
        if isinstance(two, (float, np.ndarray)):
            np.testing.assert_array_equal(one, two)  # to the last bit
        else:
            assert one == two, field.name


def _check_operators(session: Session, method: str) -> None:
    rows, expected = operator_rows(session, method), simple.operators(session, method)
    for made, wanted in zip(rows, expected, strict=True):
        _same_row(made, wanted)
    if not expected:
        return
    made = operators_table(session, method, AUTO)
    calls = simple.delegate_calls(expected)
    _check_cells(made, [simple.operator_cells(row, calls) for row in expected])
    _check_answers(made, method)
    assert has_flame(session, method) == (flame_timeline(session, method) is not None)
    assert [made.samples_of(row) is None for row in range(len(expected))] == [
        row.samples_ns is None for row in expected
    ]
    for step in {row.instruction for row in expected if row.instruction is not None}:
        own = [n for n, r in enumerate(expected) if r.instruction == step and r.kind != "inner"]
        assert made.by_step.get(step, ()) == tuple(own)
    for event in (row.event for row in expected):
        if event is not None:
            assert [row.event for row in rows.of_events((event,))] == [event]


def _check_events(session: Session, method: str) -> None:
    made = all_events(session, method, AUTO)
    _check_cells(made, simple.event_cells(session))
    _check_answers(made, method)


def _check_cells(made: OperatorsTable, expected: list[dict[str, Any]]) -> None:
    assert made.table.length == len(expected)
    columns = {column.title: column for column in made.table.columns}
    for title in expected[0] if expected else ():
        column = columns[title]
        values = [cells[title] for cells in expected]
        if column.is_text:
            assert list(column.values) == values, title
        else:
            numbers = [np.nan if value is None else value for value in values]
            np.testing.assert_array_equal(column.values, np.array(numbers, np.float64))


def _check_answers(made: OperatorsTable, method: str) -> None:
    """Keys are found where they are, in the table and in a tree of it."""
    table = made.table
    find = table.finder()
    keys = [table.key(row) for row in range(table.length)]
    for row, key in enumerate(keys):
        assert find(key) == keys.index(key)
        if isinstance(key, Selection):
            assert key.method == method
            assert made.by_event[key.event or 0] == row
    assert find(Selection()) == find("nothing") == -1
    if not table.length:
        return
    tree = group_rows(RowOrder(table), 0, np.arange(table.length)[::2])
    place = tree.rows.finder()
    for node in range(tree.rows.length):
        key = tree.rows.key(node)
        assert isinstance(key, GroupKey) or tree.rows.key(place(key)) == key
    assert place(GroupKey("no such group")) == -1


@pytest.mark.parametrize("folder", folders())
def test_columns_of_recorded_sessions_equal_rows_made_one_by_one(folder: str) -> None:
    _check(opened(folder))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("scale", ["ns", "us", "cycles"])
def test_columns_of_random_traces_equal_rows_made_one_by_one(seed: int, scale: str) -> None:
    trace = random_trace(seed)
    for files in _programs():
        _check(_session(trace, files, scale))


_EVENT = st.tuples(
    st.sampled_from(NAMES),
    st.sampled_from((-1, 0, 0, 0, 1)),
    st.sampled_from((-1, 0, 1, 2, 3, 10**6)),
    st.sampled_from((-1, -1, -1, 0, 5)),
    st.sampled_from((None, None, "", "conv", "Method::execute", "OPERATOR_CALL")),
)


@given(
    st.lists(_EVENT, max_size=14),
    st.lists(st.integers(0, 2**33), min_size=1, max_size=9),
    st.integers(0, 4),
    st.sampled_from(("ns", "ms", "cycles")),
)
@settings(max_examples=60, deadline=None)
def test_columns_of_any_events_equal_rows_made_one_by_one(
    events: list[tuple[Any, ...]], times: list[int], files: int, scale: str
) -> None:
    def timed(offset: int) -> list[ProfileEvent]:
        ends = [times[(place + offset) % len(times)] for place in range(len(events))]
        return [
            ProfileEvent(name, chain, number, 1000, end, inner, text)
            for (name, chain, number, inner, text), end in zip(events, ends, strict=True)
        ]

    runs = [run("Execute", timed(0)), run("Execute", timed(1)), run("Default", timed(2)[:3])]
    _check(_session(dump(runs), _programs()[files], scale))


def test_trace_alone_names_its_kernels() -> None:
    session = opened(f"{XNNPACK}/run.etdp")
    labels = {row.label for row in operator_rows(session, "")}
    assert {"embedding.out", "native_layer_norm.out", UNATTRIBUTED} <= labels
    assert not {"OPERATOR_CALL"} & labels


def test_tables_of_many_events_ask_for_few_links_and_make_no_key() -> None:
    session = _session(synthetic(60_000, runs=1, shared_names=True))
    block = trace_blocks(session.dumps).blocks[0]
    assert len(link_codes(session, block).links) <= 3
    for made in (operators_table(session, "", AUTO), all_events(session, "", AUTO)):
        assert made.table.length >= 30_000
        assert not isinstance(made.table.keys, (list, tuple))
        last = made.table.key(made.table.length - 1)
        assert made.table.finder()(last) == made.table.length - 1


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 9)), max_size=20))
@settings(max_examples=60, deadline=None)
def test_int_maps_answer_as_dictionaries_do(pairs: list[tuple[int, int]]) -> None:
    groups: dict[int, tuple[int, ...]] = {}
    for key, value in pairs:
        groups[key] = (*groups.get(key, ()), value)
    keys = np.array([key for key, _ in pairs], np.int64)
    values = np.array([value for _, value in pairs], np.int64)
    assert dict(GroupMap(keys, values)) == groups
    single = {key: found[0] for key, found in sorted(groups.items())}
    unique = np.array(list(single), np.int64)
    firsts = np.array(list(single.values()), np.int64)
    assert dict(IntMap(unique, firsts)) == single
    assert dict(CodedMap(unique, firsts, "abcdefghij")) == {
        key: "abcdefghij"[code] for key, code in single.items()
    }
    for missing in (99, "x", None):
        assert missing not in IntMap(unique, firsts)
