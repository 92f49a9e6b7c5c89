"""Sessions side by side: nothing between equal ones, each made difference found and placed."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from inspector.cli import compare
from inspector.compare.model import Comparison, Delta
from inspector.compare.output_errors import ERROR, NOISE, OutputErrors
from inspector.compare.sessions import compare_sessions
from inspector.compare.weights import weight_changes
from inspector.files.load import load_session
from inspector.files.session import Session, SessionOptions
from inspector.jobs.executing import RunJob
from inspector.jobs.measure import Measurement, ProgramTimes
from inspector.numerics.metrics import Metrics
from inspector.numerics.report import GapReport, Row, RunGap
from inspector.recipes.compile_job import CompileJob, Rules
from inspector.recipes.recipe import Recipe
from inspector.recipes.source import Source
from inspector.render.comparison import comparison_html
from inspector.render.html import MOST_BYTES
from inspector.tables.compare import difference_text, summary_table, tone_of
from inspector.tables.compare_lists import detail_table
from inspector.tables.figures import Figure, figure_column
from schema import etdump
from schema.etrecord.torch_file.tensor_data import TensorData
from tests.inspector.cli_runs import FORMATS, LONE, SESSIONS, loaded_once, run, valid
from tests.inspector.sessions import DATA, label, session

pytestmark = pytest.mark.slow

CORPUS = DATA / "corpus/v1.5.1"
PORTABLE, XNNPACK = CORPUS / "convnet_portable", CORPUS / "convnet_xnnpack"
NETS = ("convnet_portable", "convnet_xnnpack")
RUNS = DATA / "runs"  # without values, so that times are compared


PAIRS = list(itertools.pairwise([*SESSIONS, *LONE[:8]]))[::2]


@pytest.fixture(autouse=True)
def _shared(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded_once(monkeypatch)


def _delta(found: Comparison, what: str) -> Delta:
    return next(delta for delta in found.summary if delta.what == what)


@pytest.mark.parametrize("path", [*SESSIONS, *LONE], ids=label)
def test_session_beside_itself_differs_in_nothing(path: Path) -> None:
    answer = run("compare", path, path, "--no-gap", "--format", "json")
    assert (answer.code, answer.err) == (0, "")
    data = valid(answer, "compare")["data"]
    for name in ("owners", "partitions", "weights"):
        assert data[name] == []
    for delta in (*data["summary"], *data["memory"], *data["sizes"]):
        assert delta["differences"] in ([0], [0.0], [None])
    for graph in data["graphs"]:
        names = ("removed", "added", "changed", "moved", "replaced")
        assert [graph[name] for name in names] == [[], [], [], [], []]
    for rows in (data["operators"], data["modules"], data["nodes"]):
        assert all(row["differences"] in ([0], [0.0], [None]) for row in rows)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: label(pair[0]))
def test_any_two_sessions_are_compared_in_every_format(pair: tuple[Path, Path]) -> None:
    for form in FORMATS:
        answer = run("compare", *pair, "--no-gap", "--format", form)
        assert (answer.code, answer.err) == (0, "")
        if form == "json":
            data = valid(answer, "compare")["data"]
            assert {len(delta["values"]) for delta in data["summary"]} <= {2}
        elif form in ("tsv", "csv"):
            split = csv.reader(io.StringIO(answer.out), delimiter="\t" if form == "tsv" else ",")
            assert len({len(row) for row in split}) == 1


def test_times_by_operator_add_up_to_the_method() -> None:
    found = compare_sessions([session(RUNS / name) for name in NETS])
    whole = _delta(found, "recorded runs").values
    for number in range(2):
        parts = [row.ms[number] for row in found.operators]
        known = sum(ms for ms in parts if ms is not None)
        assert known == pytest.approx(whole[number], rel=1e-9)


@pytest.mark.parametrize("names", [NETS, NETS[::-1]])
def test_operator_of_one_program_alone_differs_by_its_whole_time(names: tuple[str, ...]) -> None:
    found = compare_sessions([session(RUNS / name) for name in names])
    whole = _delta(found, "recorded runs").difference(1)
    assert sum(row.difference(1) or 0.0 for row in found.operators) == pytest.approx(whole)
    alone = [row for row in found.operators if row.ms[1] and not row.calls[0] and not row.note]
    assert alone
    table = detail_table(found, "operators", ("A", "B"))
    columns = {
        column.title: [column.cell(row) for row in range(table.length)] for column in table.columns
    }
    notes = dict(zip(columns["name"], columns["note"], strict=True))
    assert all(notes[row.name] == "none in A" for row in alone)
    assert all(row.difference(1) == row.ms[1] for row in alone)


def test_owner_changes_are_named_placed_and_counted() -> None:
    found = compare_sessions([session(PORTABLE), session(XNNPACK)])
    assert _delta(found, "nodes that changed owner").values == (0, 8)
    assert _delta(found, "delegated").values == (0.0, 0.8)
    assert {one.new_owner for one in found.owners} == {"XNNPACK"}
    alignment = found.graph("forward", 1)
    assert alignment is not None
    names = {node.name for node in alignment.new.nodes}
    assert {one.new_node for one in found.owners} <= names
    place = _delta(found, "nodes that changed owner").places[1]
    assert place is not None
    assert place.node in names
    assert [(part.old, part.new, part.new_nodes) for part in found.partitions] == [
        (None, 0, 7),
        (None, 1, 1),
    ]


def test_node_groups_take_the_same_nodes_on_both_sides() -> None:
    found = compare_sessions([session(RUNS / name) for name in NETS])
    fused = next(row for row in found.nodes if "aten_linear_default" in row.nodes[1])
    assert set(fused.nodes[0]) == {"aten_permute_copy_default", "aten_addmm_default"} or (
        fused.ms[0] is None
    )
    row = next(row for row in found.nodes if row.nodes[0] == ("aten_convolution_default",))
    assert row.nodes[1] == ("aten_convolution_default",)
    assert None not in row.ms
    gaps = [abs(row.difference(1) or 0.0) for row in found.nodes if row.difference(1) is not None]
    assert gaps == sorted(gaps, reverse=True)


def test_three_sessions_are_held_to_the_first() -> None:
    names = ("convnet_portable", "convnet_xnnpack", "convnet_portable")
    found = compare_sessions([session(CORPUS / name) for name in names])
    assert _delta(found, "nodes that changed owner").values == (0, 8, 0)
    assert _delta(found, ".pte file").difference(2) == 0
    assert len(set(found.names)) == 3
    assert len(found.changes) == 2


def test_session_without_record_is_counted_as_programs() -> None:
    lone = load_session([XNNPACK / "model.pte"])
    found = compare_sessions([session(RUNS / "convnet_portable"), lone])
    delta = _delta(found, "nodes in delegates")
    assert None not in delta.values
    assert "since not all have a record" in delta.note
    assert any("no ETRecord" in note for note in found.notes)
    assert any("no trace" in note for note in found.notes)
    assert _delta(found, "recorded runs").values[1] is None
    assert found.graphs[0].note


def test_cycles_are_never_compared_with_times() -> None:
    cycles = load_session([XNNPACK], SessionOptions(source_time_scale="cycles"))
    found = compare_sessions([session(RUNS / "convnet_portable"), cycles])
    assert _delta(found, "recorded runs").values[1] is None
    assert all(row.ms[1] is None for row in found.operators)
    assert any("cycles" in note for note in found.notes)


def test_times_of_runs_that_logged_tensors_are_not_held_to_those_of_others(tmp_path: Path) -> None:
    quick = tmp_path / "quick"
    shutil.copytree(PORTABLE, quick)
    (trace,) = (path for path in quick.iterdir() if etdump.sniff(path.read_bytes()[:64]))
    dump = etdump.decode(trace.read_bytes())
    logged = etdump.DebugEvent
    runs = [
        replace(one, events=etdump.table([e for e in one.events if not isinstance(e, logged)]))
        for one in dump.run_data
    ]
    trace.write_bytes(etdump.encode(replace(dump, run_data=tuple(runs))))
    slow, fast = load_session([PORTABLE]), load_session([quick])
    found = compare_sessions((slow, fast))
    mixed = _delta(found, "recorded runs")
    assert mixed.values[0] is None
    assert mixed.values[1] is not None
    assert difference_text(mixed, 1) == ""
    assert any("values were logged" in note for note in found.notes)
    assert all(one.what != "recorded runs" for one in compare_sessions((slow, slow)).summary)
    assert None not in _delta(compare_sessions((fast, fast)), "recorded runs").values


def test_other_weight_is_found_by_name_and_by_how_much() -> None:
    other = CORPUS.parent / "v1.0.1/convnet_portable"
    found = compare_sessions([session(PORTABLE), session(other)])
    same = {one.name for one in found.weights}
    record = session(PORTABLE).record
    assert record is not None
    names = set(record.state_dict(record.roles.edge["forward"]))
    assert same <= names | {one.name for one in found.weights if one.old is None}
    assert all(
        one.share is None or 0 < one.share <= 1 for one in found.weights if one.old == one.new
    )
    assert _delta(found, "changed weights").values == (0, len(found.weights))


def _number(value: float, dtype: type = np.float32) -> TensorData:
    code = {np.float32: 6, np.int64: 4, np.float16: 5}[dtype]
    return TensorData(code, (), (), data=memoryview(np.array(value, dtype).tobytes()))


NUMBERED = ("_lifted_tensor_constant{}", "lifted_tensor_{}", "block.lifted_tensor_{}",
            "_tensor_constant_{}", "_tensor_constant{}", "_prop_tensor_constant{}")  # fmt: skip


@pytest.mark.parametrize("name", NUMBERED)
def test_constants_that_compilers_number_are_the_same_by_value(name: str) -> None:
    shared = {name.format(0): _number(0.5), name.format(1): _number(49.0)}
    each_its_own = {
        name.format(7): _number(0.5),
        name.format(8): _number(0.5),
        name.format(9): _number(49, np.int64),
        name.format(10): _number(math.nan),
    }
    found = weight_changes({**shared, name.format(2): _number(math.nan)}, each_its_own, "run", 1)
    assert found == ()
    (change,) = weight_changes(shared, {**shared, name.format(1): _number(48.0)}, "run", 1)
    assert (change.name, change.largest) == (name.format(1), 1.0)
    (gone,) = weight_changes(shared, {name.format(0): _number(49.0)}, "run", 1)
    assert (gone.name, gone.new) == (name.format(0), None)


def test_weights_of_the_users_are_the_same_by_name_only() -> None:
    old, new = {"tensor_of.weight1": _number(1.0)}, {"tensor_of.weight2": _number(1.0)}
    assert len(weight_changes(old, new, "run", 1)) == 2
    (change,) = weight_changes({"scale": _number(1.0)}, {"scale": _number(1, np.int64)}, "run", 1)
    assert (change.old, change.new) == ("float32 []", "int64 []")


def _times(base: float) -> ProgramTimes:
    blocks = tuple(tuple(base * (1 + 0.001 * run) for run in range(9)) for _ in range(12))
    facts = {"method": "forward", "threads": 1, "clock": "processor time of one thread"}
    return ProgramTimes(RunJob("model.pte"), blocks, facts)


def test_measured_times_come_first_with_their_verdict() -> None:
    sessions = [session(PORTABLE), session(XNNPACK), session(PORTABLE)]
    lost = ProgramTimes(RunJob("model.pte"), failure="model.pte: it crashed")
    found = compare_sessions(sessions, Measurement((_times(2.0), _times(1.0), lost)))
    first = found.summary[0]
    assert first.what == "latency, measured here"
    there = [replace(one, job=replace(one.job, device="pi")) for one in (_times(2.0), _times(1.0))]
    on_device = compare_sessions(sessions[:2], Measurement(tuple(there)))
    assert on_device.summary[0].what == "latency, measured on pi"
    assert first.values == (pytest.approx(2.0), pytest.approx(1.0), None)
    assert first.values[1] / first.values[0] == pytest.approx(first.verdicts[1].ratio, rel=1e-12)
    assert [one.word if one else None for one in first.verdicts] == [
        None,
        "faster",
        "not distinguishable",
    ]
    assert (tone_of(first, 1), tone_of(first, 2)) == ("good", "muted")
    assert difference_text(first, 1) == "−50 %"
    shown = summary_table(found, "ABC")
    certainty = next(one for one in shown.columns if one.title == "certainty B")
    assert certainty.values[0].startswith("95 %: −50 … ")
    assert any("could not be measured: model.pte: it crashed" in note for note in found.notes)
    assert "processor time of one thread" in first.note


def _report(node: str, error: float, *, diverges: bool = False) -> GapReport:
    metrics = Metrics(4, error, error, error, error, None, None, None, 0.0, 0, 0, 0, 0)
    row = Row(
        "instruction",
        "forward",
        0,
        0,
        "aten::convolution",
        node=node,
        total=metrics,
        own=metrics,
        diverges=diverges,
    )
    return GapReport((RunGap("forward", 0, 0, -1, "", "edge", (row,)),))


def test_errors_are_joined_by_node_and_the_divergence_is_named() -> None:
    node = "aten_convolution_default_1"
    gaps = [_report(node, 1e-6), _report(node, 0.5, diverges=True)]
    found = compare_sessions([session(PORTABLE), session(XNNPACK)], None, gaps)
    (row,) = found.gaps
    assert (row.node, row.output, row.max_abs) == (node, 0, (1e-6, 0.5))
    delta = _delta(found, "largest error")
    assert delta.note == f"first divergence: none, {node}"
    assert delta.places[1] is not None
    assert delta.places[1].node == node
    assert tone_of(delta, 1) == "bad"


def test_wrong_numbers_of_anything_are_an_error() -> None:
    one = session(PORTABLE)
    with pytest.raises(ValueError, match="two sessions or more"):
        compare_sessions([one])
    with pytest.raises(ValueError, match="programs of 2 sessions, found 1"):
        compare_sessions([one, one], Measurement((_times(1.0),)))
    with pytest.raises(ValueError, match="errors of 2 sessions, found 1"):
        compare_sessions([one, one], None, [None])


def _with_recipe(folder: Path, job: CompileJob) -> Session:
    folder.mkdir()
    shutil.copy(PORTABLE / "model.pte", folder)
    (folder / "recipe.json").write_text(Recipe(job).text, "utf-8")
    return load_session([folder])


def test_fields_of_recipes_that_differ_are_named(tmp_path: Path) -> None:
    job = CompileJob(Source("model.py", "build"))
    other = replace(
        job, partitioners=("xnnpack",), rules=Rules(deny_ops=("aten.mean*", "aten.mm*"))
    )
    sides = [_with_recipe(tmp_path / "old", job), _with_recipe(tmp_path / "new", other)]
    found = compare_sessions([*sides, session(PORTABLE)])
    changes = {(one.session, one.field): (one.old, one.new) for one in found.recipes}
    assert changes == {
        (1, "partitioners"): ("", "xnnpack"),
        (1, "rules.deny_ops"): ("", "aten.mean*, aten.mm*"),
    }


def test_program_that_cannot_be_measured_is_a_failed_job(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = ProgramTimes(RunJob("model.pte"), failure="model.pte: it crashed")
    times = Measurement((_times(1.0), lost))
    monkeypatch.setattr(compare, "_measured", lambda *_arguments: times)
    words = ("compare", PORTABLE, XNNPACK, "--no-gap", "--measure", "9", "--format", "json")
    answer = run(*words)
    assert answer.code == 4
    tree = valid(answer, "compare")
    assert [issue["message"] for issue in tree["issues"]] == ["model.pte: it crashed"]
    assert tree["data"]["measured"]["programs"][1]["median_ms"] is None


def test_report_is_one_bounded_file_without_script(tmp_path: Path) -> None:
    path = tmp_path / "compare.html"
    answer = run("compare", PORTABLE, XNNPACK, "--no-gap", "--html", path)
    assert (answer.code, answer.err) == (0, "")
    text = path.read_text("utf-8")
    assert len(text.encode()) < MOST_BYTES
    assert not re.search(r"<script|<link|src=|href=|@import|url\(", text)
    for words in ("Summary", "Nodes that changed owner", "Memory", "Size", "convnet_xnnpack"):
        assert words in text
    again = run("compare", PORTABLE, XNNPACK, "--no-gap", "--html", path)
    assert again.code == 2
    assert "--force" in again.err


def test_report_escapes_names() -> None:
    files = session(PORTABLE).files
    bad = Session("<script>alert(1)</script>", files)
    text = comparison_html(compare_sessions([bad, session(XNNPACK)]), [bad, session(XNNPACK)])
    assert "<script" not in text


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((PORTABLE,), 2, "two or more"),
        ((PORTABLE, DATA / "nothing.pte"), 3, "nothing.pte"),
        ((PORTABLE, XNNPACK, "--method", "nowhere"), 2, "nowhere"),
        ((PORTABLE, XNNPACK, "--inputs", "nothing.pt"), 3, "nothing.pt"),
        ((PORTABLE / "model.etrecord", PORTABLE, "--measure", "2"), 2, "needs a program"),
        ((PORTABLE, XNNPACK, "--measure", "0"), 2, "integer of at least 1"),
    ],
)
def test_wrong_use_is_one_sentence(arguments: tuple[object, ...], code: int, words: str) -> None:
    answer = run("compare", *map(str, arguments), "--no-gap")
    assert answer.code == code
    assert words in answer.err
    assert answer.err.count("\n") == 1


def test_files_with_commas_are_one_side() -> None:
    side = f"{PORTABLE / 'model.pte'},{PORTABLE / 'model.etrecord'}"
    answer = run("compare", side, XNNPACK, "--no-gap", "--format", "json")
    assert answer.code == 0
    assert valid(answer, "compare")["data"]["graphs"][0]["source"] == "record"


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (None, "ms", "missing"),
        (0.0003, "ms", "300 ns"),
        (0.25, "ms", "250 µs"),
        (12.5, "ms", "12.5 ms"),
        (2500.0, "ms", "2.5 s"),
        (0.0, "ms", "0 ns"),
        (2048, "bytes", "2 KiB"),
        (0.984, "share", "98.4 %"),
        (1234, "", "1,234"),
        (1.5e-7, "", "1.5e-07"),
    ],
)
def test_values_have_their_unit(value: float | None, unit: str, words: str) -> None:
    figure = None if value is None else Figure(value, unit)
    assert figure_column("A", [figure]).text(figure) == words


def test_verb_measures_here_and_compares_errors() -> None:
    answer = run("compare", PORTABLE, XNNPACK, "--measure", "2", "--format", "json")
    assert (answer.code, answer.err) == (0, "")
    tree = valid(answer, "compare")
    data = tree["data"]
    assert data["summary"][0]["what"] == "latency, measured here"
    assert [len(one["blocks_ms"]) for one in data["measured"]["programs"]] == [2, 2]
    assert [one["threads"] for one in data["measured"]["programs"]] == [1, 1]
    assert data["gaps"]
    assert any(delta["what"] == "largest error" for delta in data["summary"])
    (weighed,) = data["weighed"]
    error = next(one for one in weighed if one["area"] == "error")
    assert error["text"] == "outputs equal within rounding"
    assert any("2 blocks are few" in issue["message"] for issue in tree["issues"])
    json.dumps(data, allow_nan=False)


@pytest.mark.parametrize(("beyond", "tone"), [((0.0, 0.0), "muted"), ((0.0, 0.2), "bad")])
def test_errors_within_rounding_are_neither_better_nor_worse(
    beyond: tuple[float, float], tone: str
) -> None:
    found = OutputErrors("forward", "the exported program", (1e-7, 2e-7), (137.0, 130.0), beyond)
    tones = {one.what: tone_of(one, 1) for one in found.deltas()}
    assert (tones[ERROR], tones[NOISE]) == (tone, tone)
