"""gate on committed files: values as the other verbs tell them, exit codes, JSON and JUnit."""

from __future__ import annotations

import json
import shutil
import statistics
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest

from inspector.experiments.gates.times import trace_times
from inspector.files.load import load_session
from inspector.graph.delegation import analyse_delegation
from inspector.profile.methods import analyse_profile
from tests.inspector.cli_runs import FORMATS, LONE, SESSIONS, Run, loaded_once, run, valid
from tests.inspector.sessions import DATA, folders, label, session, without_values

pytestmark = pytest.mark.slow

CONVNET = DATA / "corpus/v1.5.1/convnet_xnnpack"
PORTABLE = DATA / "corpus/v1.5.1/convnet_portable"
STATIC = ("delegated>=0%", "arena>=0B", "size>0", "delegates>=0")
TRACED = [path for path in folders("model.pte", "run.etdp") if trace_times(session(path))]
PROGRAMS = [path for path in LONE if path.suffix == ".pte"]


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session whose timed runs logged nothing."""
    return without_values(CONVNET, tmp_path_factory.mktemp("timed") / "session")


def gate(*arguments: object, require: tuple[str, ...]) -> Run:
    wanted = [word for text in require for word in ("--require", text)]
    return run("gate", *map(str, arguments), *wanted)


def found(answer: Run) -> dict[str, dict[str, Any]]:
    data = valid(answer, "gate")["data"]
    assert data["met"] is (answer.code == 0)
    return {one["metric"]: one for one in data["requirements"]}


@pytest.mark.parametrize(
    "path", [*[folder / "model.pte" for folder in SESSIONS], *PROGRAMS], ids=label
)
def test_gate_of_a_lone_program_agrees_with_the_other_verbs(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded_once(monkeypatch)
    if not path.exists():
        pytest.skip("no program")
    answer = gate(path, "--format", "json", require=STATIC)
    values = found(answer)
    counted = run("delegation", path, "--format", "json").json["data"]["methods"].values()
    inside = sum(one["honest"]["compute_delegated"] for one in counted)
    total = inside + sum(one["honest"]["compute_non_delegated"] for one in counted)
    assert values["delegated"]["value"] == (100 * inside / total if total else None)
    assert values["delegates"]["value"] == sum(one["num_delegated_subgraphs"] for one in counted)
    plans = run("memory", path, "--format", "json").json["data"]["methods"].values()
    planned = sum(arena["planned_bytes"] for plan in plans for arena in plan["arenas"])
    assert values["arena"]["value"] == planned
    assert values["size"]["value"] == path.stat().st_size
    assert answer.code == (0 if total else 1)


@pytest.mark.parametrize("path", folders("model.pte", "model.etrecord"), ids=label)
def test_gate_with_a_record_counts_as_delegation_does(path: Path) -> None:
    entries = analyse_delegation(session(path))
    inside = sum(one.compute_delegated for one in entries)
    total = inside + sum(one.compute_non_delegated for one in entries)
    value = found(gate(path, "--format", "json", require=("delegated>=0%",)))["delegated"]
    assert value["value"] == (100 * inside / total if total else None)


@pytest.mark.parametrize(
    ("require", "met"),
    [
        ("delegated>=80%", True),
        ("delegated>80%", False),
        ("delegated==80%", True),
        ("delegated!=80%", False),
        ("delegated<80.1%", True),
        ("delegates==2", True),
        ("delegates<2", False),
        ("arena<=1B", False),
        ("arena<=1GiB", True),
        ("size<=9000", True),
        ("size<9000B", False),
        ("size<=8.7KiB", False),
        ("size<=9kB", True),
        ("latency<=1h baseline", None),
        ("latency<=10s", True),
        ("latency<1ns", False),
    ],
)
def test_exit_code_is_that_of_the_requirement(require: str, met: bool | None, timed: Path) -> None:
    answer = gate(timed, require=(require,))
    assert answer.code == (2 if met is None else 0 if met else 1)
    if met is not None:
        assert answer.out.startswith("met " if met else "not met ")
        assert answer.out.splitlines()[0].count(require) == 1


def test_text_has_one_line_for_each_requirement_in_their_order(timed: Path) -> None:
    require = ("size<=1B", "delegated>=80%", "latency<=10s", "delegates==0")
    answer = gate(timed, require=require)
    assert (answer.code, answer.err) == (1, "")
    lines = answer.out.splitlines()
    assert [text in line for text, line in zip(require, lines, strict=True)] == [True] * 4
    assert [line.startswith("met") for line in lines] == [False, True, True, False]
    assert "8.789 KiB (9,000 bytes)" in lines[0]


@pytest.mark.parametrize("path", TRACED, ids=label)
def test_latency_is_the_median_of_the_runs_of_a_trace_without_values(
    path: Path, tmp_path: Path
) -> None:
    if session(path).times_with_values:
        for metric in ("latency<=1s", "latency.mean<=1s", "latency<=1x baseline"):
            refused = gate(path, "--baseline", path, require=(metric,))
            assert (refused.code, refused.out) == (2, "")
            assert "values were logged in the timed runs of" in refused.err
            assert "--measure N runs it here" in refused.err
        path = without_values(path, tmp_path / "session")
    value = found(gate(path, "--format", "json", require=("latency<=1s",)))["latency"]
    times = trace_times(session(path))
    medians = [statistics.median(t for block in blocks for t in block) for blocks in times.values()]
    assert value["value"] == pytest.approx(max(medians))
    assert value["unit"] == "ms"
    assert "a tick assumed to be a nanosecond" in value["basis"]


@pytest.mark.parametrize("name", ["convnet_portable", "convnet_xnnpack"])
def test_latency_mean_is_that_of_the_steady_runs(name: str) -> None:
    folder = DATA / "runs" / name
    require = ("latency.mean<=1s", "latency<=1s")
    values = found(gate(folder, "--format", "json", require=require))
    (time,) = analyse_profile(session(folder)).methods
    assert values["latency.mean"]["value"] == time.latency_ms
    assert "steady of 20 runs without a trace" in values["latency.mean"]["basis"]
    assert values["latency.mean"]["value"] != values["latency"]["value"]


def test_unit_of_the_trace_is_what_the_user_says(timed: Path) -> None:
    require = ("latency<=1s",)
    here = found(gate(timed, "--format", "json", require=require))["latency"]["value"]
    scaled = gate(timed, "--format", "json", "--source-time-scale", "us", require=require)
    assert found(scaled)["latency"]["value"] == pytest.approx(here * 1000)
    cycles = gate(timed, "--source-time-scale", "cycles", require=require)
    assert (cycles.code, cycles.out) == (2, "")


def test_requirement_beside_itself_is_met_with_a_ratio_of_one(timed: Path) -> None:
    require = ("latency<=1x baseline", "arena<=baseline", "size==baseline", "delegated>=baseline")
    answer = gate(timed, "--format", "json", "--baseline", timed, require=require)
    values = found(answer)
    assert answer.code == 0
    assert {one["ratio"] for one in values.values()} == {1.0}
    assert values["latency"]["statistics"]["word"] == "not distinguishable"
    assert values["size"]["baseline"] == values["size"]["value"] == 9000


def test_requirement_beside_another_program_has_the_ratio_of_the_values() -> None:
    require = ("size<=1x baseline", "delegates<=1x baseline", "arena<=1x baseline")
    answer = gate(CONVNET, "--format", "json", "--baseline", PORTABLE, require=require)
    values = found(answer)
    other = (PORTABLE / "model.pte").stat().st_size
    assert values["size"]["ratio"] == pytest.approx(9000 / other)
    assert values["delegates"]["met"] is False  # any number is infinitely more than none
    assert values["delegates"]["ratio"] is None
    text = gate(CONVNET, "--baseline", PORTABLE, require=("delegates<=1x baseline",)).out
    assert "infinitely more than the baseline of 0" in text


def test_gate_of_methods_judges_all_or_the_one_asked_for() -> None:
    path = DATA / "extra/two_methods_xnnpack/model.pte"
    every = found(gate(path, "--format", "json", require=STATIC))
    names = load_session([path]).methods
    assert every["arena"]["judged"] == f"all methods: {', '.join(names)}"
    ones = [
        found(gate(path, "--format", "json", "--method", name, require=STATIC)) for name in names
    ]
    for metric in ("arena", "delegates"):
        assert every[metric]["value"] == sum(one[metric]["value"] for one in ones)
    assert [one["delegated"]["judged"] for one in ones] == [f"method {name}" for name in names]
    wrong = gate(path, "--method", "nothing", require=STATIC)
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("name", "require", "missing"),
    [
        ("model.etrecord", "arena<=1", "the program (.pte)"),
        ("model.etrecord", "size<=1", "the program (.pte)"),
        ("run.etdp", "delegated>=1%", "a program (.pte) or its ETRecord"),
        ("run.etdp", "delegates>=1", "a program (.pte) or its ETRecord"),
        ("model.pte", "latency<=1ms", "the ETDump of runs"),
        ("model.etrecord", "latency<=1ms", "the ETDump of runs"),
        ("model.pte", "gap.max_abs<=1", "the ETRecord"),
        ("model.etrecord", "gap.max_abs<=1", "the program (.pte)"),
        ("run.etdp", "gap.snr_db>=1", "the program (.pte)"),
        ("model.pte", "latency<=1x baseline", "the files of the baseline"),
    ],
)
def test_missing_file_is_named(name: str, require: str, missing: str) -> None:
    answer = gate(CONVNET / name, require=(require,))
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert missing in answer.err


def test_gap_names_the_third_and_fourth_file() -> None:
    files = [CONVNET / name for name in ("model.pte", "model.etrecord", "run.etdp")]
    two = gate(*files[:2], require=("gap.mse<=1",))
    assert "the ETDump" in two.err
    three = gate(*files, require=("gap.mse<=1",))
    assert "the debug buffer" in three.err
    assert (two.code, three.code) == (2, 2)


@pytest.fixture
def unread(tmp_path: Path) -> Path:
    """A program with payloads that nobody can read: their marks are gone."""
    data = (CONVNET / "model.pte").read_bytes()
    path = tmp_path / "model.pte"
    path.write_bytes(data.replace(b"XH00", bytes(4)).replace(b"XN01", bytes(4)))
    return path


def test_payload_that_cannot_be_read_bounds_from_below_only(unread: Path) -> None:
    answer = gate(unread, require=("delegated<=50%",))
    assert (answer.code, answer.out) == (2, "")
    assert "payloads of XnnpackBackend are known from the ETRecord only" in answer.err
    least = gate(unread, "--format", "json", require=("delegated>=0%", "delegated>1%"))
    data = valid(least, "gate")["data"]
    assert [one["met"] for one in data["requirements"]] == [True, False]
    assert all("known from the ETRecord only" in one["note"] for one in data["requirements"])
    record = gate(unread, CONVNET / "model.etrecord", require=("delegated==80%", "delegates==2"))
    assert record.code == 0, record.err


@pytest.mark.parametrize("arguments", [[], ["--require", "delegated>=98"], ["--require", ""]])
def test_malformed_requirement_is_wrong_usage(arguments: list[str]) -> None:
    answer = run("gate", CONVNET, *arguments)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert "--require" in answer.err


@pytest.mark.parametrize("form", FORMATS)
def test_gate_answers_in_every_format(form: str) -> None:
    answer = gate(CONVNET, "--format", form, require=STATIC)
    assert (answer.code, answer.err) == (0, "")
    if form in ("tsv", "csv"):
        assert len(answer.out.splitlines()) == 1 + len(STATIC)


def test_junit_has_a_case_for_each_requirement(tmp_path: Path) -> None:
    require = ("delegated>=80%", "size<=1B", "arena<=1x baseline")
    target = tmp_path / "made" / "gate.xml"
    answer = gate(
        CONVNET, "--format", "junit", "--junit", target, "--baseline", CONVNET, require=require
    )
    assert answer.code == 1
    assert target.read_text("utf-8") == answer.out
    suites = Xml.fromstring(answer.out.split("\n", 1)[1])
    suite = suites[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "0")
    assert [case.get("name") for case in suite] == list(require)
    assert [case[0].tag for case in suite] == ["system-out", "failure", "system-out"]
    assert "9,000 bytes" in (suite[1][0].get("message") or "")
    again = gate(CONVNET, "--junit", target, require=require[:2])
    assert again.code == 2
    assert f"{target} exists; --force replaces it" in again.err


def test_junit_never_replaces_a_file_that_is_read(tmp_path: Path) -> None:
    program = tmp_path / "model.pte"
    program.write_bytes((CONVNET / "model.pte").read_bytes())
    answer = gate(program, "--junit", program, "--force", require=STATIC)
    assert answer.code == 2
    assert program.read_bytes() == (CONVNET / "model.pte").read_bytes()


@pytest.mark.parametrize(
    ("content", "require", "code"),
    [
        (b"no program", STATIC, 3),
        (b"", STATIC[:1], 3),
        (None, STATIC, 3),
        (CONVNET, ("gap.max_abs<=1",), 2),
        (CONVNET, ("latency<=1s", "size<=1MiB"), 2),
        (CONVNET, ("nonsense<=1",), 2),
        (CONVNET, ("size<=1x baseline",), 2),
        (CONVNET, (), 2),
    ],
)
def test_junit_of_a_gate_that_cannot_judge_has_an_error_for_each_requirement(
    content: Any, require: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    program, target = tmp_path / "model.pte", tmp_path / "gate.xml"
    if content is not None:
        data = (content / "model.pte").read_bytes() if isinstance(content, Path) else content
        program.write_bytes(data)
    answer = gate(program, "--format", "junit", "--junit", target, require=require)
    assert (answer.code, answer.err.count("\n")) == (code, 1)
    assert target.read_text("utf-8") == answer.out
    (suite,) = Xml.fromstring(answer.out.split("\n", 1)[1])
    count = str(max(len(require), 1))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == (count, "0", count)
    assert [case.get("name") for case in suite] == list(require or ("etscope gate",))
    for case in suite:
        assert case[0].tag == "error"
        assert case[0].text is not None
        assert case[0].text in answer.err


def test_unreadable_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.pte").write_bytes(b"no program")
    answer = gate(tmp_path / "model.pte", require=STATIC)
    assert (answer.code, answer.out, answer.err.count("\n")) == (3, "", 1)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"recipe": 99, "job": {}}', "recipe: expected version 1, found 99"),
        ('{"recipe": 1, "job": {"source": {"path": "a.py"}}, "colour": 1}', "unknown colour"),
        ('{"recipe": 1, "job": {"source": {"path": "a.py", "speed": 1}}}', "unknown speed"),
        ('{"recipe": 1, "job": {}}', "source is missing"),
        ("{", "expected a recipe as JSON"),
    ],
)
def test_recipe_of_another_version_or_with_unknown_fields_is_said(
    content: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / "recipe.json").write_text(content)
    answer = gate(tmp_path / "recipe.json", require=STATIC)
    assert (answer.code, answer.out, answer.err.count("\n")) == (3, "", 1)
    assert words in answer.err


def test_recipe_beside_other_files_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "recipe.json").write_text("{}")
    answer = gate(tmp_path / "recipe.json", CONVNET / "model.pte", require=STATIC)
    assert answer.code == 2
    assert "is a recipe, which is judged without other files" in answer.err


def test_means_beside_a_baseline_are_of_the_runs_without_a_trace(tmp_path: Path) -> None:
    """The same figure as without a baseline: a trace takes time itself."""
    source = DATA / "runs/convnet_xnnpack"
    shutil.copytree(source, tmp_path / "new")
    report = json.loads((source / "run.json").read_text())
    report["run_ms"] = [1.5 * time for time in report["run_ms"]]
    (tmp_path / "new/run.json").write_text(json.dumps(report))
    require = ("latency.mean<=1.2x baseline", "latency.mean<=1s")
    answer = gate(tmp_path / "new", "--format", "json", "--baseline", source, require=require)
    relative, alone = valid(answer, "gate")["data"]["requirements"]
    assert relative["value"] == pytest.approx(alone["value"])
    assert relative["ratio"] == pytest.approx(1.5)
    assert relative["value"] / relative["baseline"] == pytest.approx(1.5)
    assert "means of the steady runs" in relative["basis"]
