"""Numbers in views are those the command line gives for the same files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from devtools_app.viewmodels.scene import graph_scene
from devtools_app.viewmodels.size_map import size_map
from inspector.cli.main import main as cli
from inspector.compare.sessions import compare_sessions
from inspector.experiments.gates.evidence import Evidence, static_value
from inspector.files.session import Session
from inspector.findings.session import findings
from inspector.graph.delegation import analyse_delegation
from inspector.tables.events import all_events
from inspector.tables.memory import culprits, memory_plan
from inspector.tables.operators import operators_table
from inspector.tables.partitions import counts_text, partitions
from inspector.tables.runs import times_table
from inspector.tables.selection import Selection, SelectionKind, Units
from inspector.tables.size import parts_table
from inspector.tables.table import Table, number_column
from inspector.units import Quantity
from schema.objects.plural import plural
from tests.app.sessions import opened

FOLDERS = [
    "corpus/v1.5.1/convnet_portable",
    "corpus/v1.5.1/tinygpt_xnnpack",
    "corpus/v1.5.1/mm_xnnpack",
    "corpus/special/xnnpack_two_delegates",
    "corpus/special/control_flow",
    "extra/two_methods",
]


@pytest.fixture(params=FOLDERS)
def one(request, capsys) -> tuple[Session, Any]:
    """A session, and what answers verbs for its files."""

    def told(verb: str) -> Any:
        session = opened(request.param)
        files = [file.path for file in session.files]
        assert cli([verb, *files, "--format", "json"]) == 0
        return json.loads(capsys.readouterr().out)["data"]

    return opened(request.param), told


def _column(table: Table, title: str) -> np.ndarray:
    column = next(one for one in table.columns if one.title == title)
    return np.array([np.nan if v is None else float(v) for v in column.values])


def test_events_have_the_times_and_shares_of_the_profile_verb(one) -> None:
    session, told = one
    rows = told("profile")["rows"]
    table = all_events(session, session.methods[0], Units()).table
    assert table.length == len(rows)
    for title, key in (("mean", "avg_ms"), ("p50", "p50_ms"), ("p10", "p10_ms"), ("max", "max_ms")):
        wanted = [np.nan if row[key] is None else row[key] * 1e6 for row in rows]
        np.testing.assert_allclose(_column(table, title), wanted, rtol=1e-6, atol=1e-3)
    wanted = [np.nan if row["share"] is None else row["share"] for row in rows]
    np.testing.assert_allclose(_column(table, "share of method"), wanted, rtol=1e-6, atol=1e-9)


def test_operators_add_up_to_the_method_of_the_profile_verb(one) -> None:
    session, told = one
    if len(session.methods) != 1:
        pytest.skip("totals are of all methods together")
    totals = told("profile")["totals"]
    table = operators_table(session, session.methods[0], Units()).table
    means = _column(table, "mean")
    assert np.nansum(means) / 1e6 == pytest.approx(totals["method_ms"], rel=1e-6)
    rest = [row for row in range(table.length) if table.text(row, 0) == "unattributed"]
    assert means[rest].sum() / 1e6 == pytest.approx(totals["unattributed_ms"], rel=1e-6)


def test_partitions_count_as_the_delegation_verb(one) -> None:
    session, told = one
    for method, wanted in told("delegation")["methods"].items():
        made = partitions(session, method)
        assert made is not None
        assert made.facts.num_delegated_nodes == wanted["num_delegated_nodes"]
        assert made.facts.num_non_delegated_nodes == wanted["num_non_delegated_nodes"]
        heads = [row for row in range(made.tree.rows.length) if made.tree.parents[row] < 0]
        nodes = _column(made.tree.rows, "nodes")[heads]
        delegates = wanted["delegates"]
        assert nodes[: len(delegates)].tolist() == [len(entry["nodes"]) for entry in delegates]


def test_memory_lists_the_values_of_the_memory_verb(one) -> None:
    session, told = one
    for method, wanted in told("memory")["methods"].items():
        plan = memory_plan(session, method)
        assert plan is not None
        for arena, entry in zip(plan.arenas, wanted["arenas"], strict=True):
            table = culprits(session, method, arena, peak_only=False)
            names = next(column.values for column in table.columns if column.title == "value")
            shown = sorted(
                zip(names, _column(table, "size"), _column(table, "address"), strict=True)
            )
            values = entry["values"]
            assert shown == sorted((v["name"], v["bytes"], v["offset"]) for v in values)


def test_size_lists_the_parts_of_the_size_verb(one) -> None:
    session, told = one
    wanted = told("size")
    made = size_map(session, "", "auto")
    kept = [(f, part) for f, part in made.parts if f.kind in ("pte", "ptd", "bpte")]
    table = parts_table(kept)
    # the verb says which of several files a part is in
    parts = next(column.values for column in table.columns if column.title == "part")
    names = [name.split(": ")[-1] for name in parts]
    shown = sorted(zip(names, _column(table, "bytes"), strict=True))
    assert shown == sorted(
        (part["name"].split(": ")[-1], part["bytes"]) for part in wanted["parts"]
    )
    assert _column(table, "bytes").sum() == wanted["total_bytes"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_nodes_of_a_delegate_are_counted_alike(folder: str) -> None:
    session = opened(folder)
    for facts in analyse_delegation(session):
        counts = {each.index: (len(each.nodes), each.computing) for each in facts.delegates}
        assert sum(nodes for nodes, _ in counts.values()) == facts.num_delegated_nodes
        assert sum(computing for _, computing in counts.values()) == facts.compute_delegated
        drawn = graph_scene(session, facts.method)
        assert drawn is not None
        for path, region in drawn.clusters.regions.items():
            if region.delegate is not None:
                words = drawn.scene.cluster_info(path).detail
                assert words.startswith(plural(counts[region.delegate][1], "computing node"))
        found = partitions(session, facts.method)
        assert found is not None
        for row in range(found.tree.rows.length):
            key = found.tree.rows.key(row)
            if isinstance(key, Selection) and key.kind is SelectionKind.DELEGATE:
                shown = [found.tree.rows.text(row, column) for column in (1, 2)]
                assert shown == [f"{count:,}" for count in counts[key.delegate or 0]]


_OF = re.compile(r"([\d,]+) of ([\d,]+) (?:computing nodes?|nodes that compute)\b")


@pytest.mark.parametrize("folder", FOLDERS)
def test_computing_nodes_are_counted_alike_wherever_they_are_named(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    session = opened(folder)
    wanted = {
        facts.method: (
            facts.compute_delegated,
            facts.compute_delegated + facts.compute_non_delegated,
        )
        for facts in analyse_delegation(session)
    }
    for method, (inside, total) in wanted.items():
        found = partitions(session, method)
        assert found is not None
        said = [counts_text(found), *_found_of(session, method, len(wanted) > 1)]
        assert len(said) == 1 + any(one.delegates for one in [found.facts])
        assert {_OF.findall(text)[0] for text in said} == {(f"{inside:,}", f"{total:,}")}
        shares = [
            one.values
            for one in compare_sessions([session, session], method=method).summary
            if (one.area, one.what) == ("delegation", "delegated")
        ]
        assert shares == ([(inside / total,) * 2] if total else [])
    files = [file.path for file in session.files]
    assert cli(["delegation", *files]) == 0
    printed = capsys.readouterr().out
    told = re.findall(r"Of the nodes that compute: (\d+) of (\d+) delegated", printed)
    assert [(int(inside), int(total)) for inside, total in told] == list(wanted.values())
    inside, total = (sum(counts) for counts in zip(*wanted.values(), strict=True))
    value = static_value("delegated", Evidence(session, "it"))
    assert value.value == pytest.approx(100 * inside / total)


def _found_of(session: Session, method: str, named: bool) -> list[str]:
    """Return the findings that count the computing nodes of a method."""
    texts = [one.text for one in findings(session) if _OF.search(one.text)]
    return [text for text in texts if not named or f" of {method} " in text]


@pytest.mark.parametrize("load_ms", [0.01, 184.0, 60_000.0])
@pytest.mark.parametrize("mean_ms", [0.0031, 0.2345, 84.0])
def test_times_of_a_run_keep_their_digits_beside_the_time_to_load(
    load_ms: float, mean_ms: float
) -> None:
    latency = {"min": 0.811 * mean_ms, "median": 0.987 * mean_ms, "mean": mean_ms}
    report = {"load_ms": 0.1, "init_ms": load_ms, "run_ms": [1.0] * 9, "latency_ms": latency}
    table = times_table(report)
    _tell_apart(table, "time", latency)
    shown = {str(table.key(row)): table.text(row, 1) for row in range(table.length)}
    unit = {"ns": 1e-6, "µs": 1e-3, "ms": 1.0}[table.columns[1].unit]
    for name, word in (("fastest", "min"), ("median", "median")):
        known = float(shown[name].replace(",", "")) * unit
        assert known == pytest.approx(latency[word], rel=6e-3)


@pytest.mark.parametrize("others", [20.0, 900.0, 31_000.0])
def test_times_of_a_column_keep_their_digits_beside_a_long_one(others: float) -> None:
    times = [5e9, *(others * (1 + number / 9) for number in range(9))]
    column = number_column("mean", times, Quantity.TIME)
    _tell_apart(Table((column,), len(times)), "mean", dict(zip(range(10), times, strict=True)))


def _tell_apart(table: Table, title: str, times: Mapping[Any, float]) -> None:
    """Assert that different times of a column are shown as such, to a hundredth."""
    at = [column.title for column in table.columns].index(title)
    texts = [table.text(row, at) for row in range(table.length)]
    shown = [text for text in texts if not text.startswith("<")]
    assert len(shown) == len(texts)
    assert len(set(shown)) >= len(set(times.values()))
