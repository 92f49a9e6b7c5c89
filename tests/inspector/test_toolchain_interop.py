"""One recipe through both toolchains: same files, same outputs, reasons as they were logged."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from inspector.files.load import load_session
from inspector.files.machine import usable_cores
from inspector.jobs.bisect import BisectJob
from inspector.jobs.bisect_trials import Trial
from inspector.jobs.executing import MeasureJob, RunJob
from inspector.memory.measured import measured_memory
from inspector.profile.methods import time_of
from inspector.recipes.compile_job import EXECUTORCH, CompileJob, Quantization, Rules
from inspector.recipes.recipe import parse_recipe
from inspector.recipes.recipe_file import read_recipe
from inspector.recipes.source import Source
from inspector.toolchain.child import Interpreter, ReportedError, Response, Say, ToolchainError
from inspector.worker import toolchain_bisect
from inspector.worker.compile_job import compile_into
from inspector.worker.exporter import AnswerError
from inspector.worker.run_job import run_into
from inspector.worker.tasks import Task
from inspector.worker.thread_sweep import thread_counts
from inspector.worker.toolchain_bisect import bisect_with_executorch
from inspector.worker.toolchain_compile import compile_with_executorch, without_effect
from inspector.worker.toolchain_measure import measure_with_executorch
from inspector.worker.toolchain_run import run_with_executorch
from schema.etrecord.parts.verdicts import NodeOutcome, Verdict
from schema.objects.codec import from_json
from tests.inspector.cli_runs import run, valid, validator

# Loading the package takes a minute and more on a machine that is busy with other things.
pytestmark = [pytest.mark.slow, pytest.mark.interop, pytest.mark.timeout(900)]
SOURCES = Path(__file__).with_name("toolchain_sources.py")
PROGRAMS = ("mixed", "counter", "coder")


@dataclass
class Both:
    """One program, compiled by both and run by both."""

    ours: Path
    stock: Path
    reports: dict[str, Any]


def quiet(_kind: str, **_content: Any) -> None:
    """Take no notice."""


def job_of(name: str, **more: Any) -> CompileJob:
    return CompileJob(Source(str(SOURCES), name), partitioners=("xnnpack",), **more)


@pytest.fixture(scope="module")
def tool() -> Iterator[Interpreter]:
    with contextlib.closing(Interpreter(sys.executable)) as running:
        yield running


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, tool: Interpreter) -> dict[str, Both]:
    made: dict[str, Both] = {}
    for name in PROGRAMS:
        home = tmp_path_factory.mktemp(name)
        ours, stock = home / "ours", home / "stock"
        for folder in (ours, stock, ours / "run", stock / "run"):
            folder.mkdir()
        reports: dict[str, Any] = {}
        compile_into(job_of(name), ours, quiet)
        reports["compile"] = compile_with_executorch(
            job_of(name, toolchain=EXECUTORCH), stock, quiet, tool
        )
        given = RunJob("", runs=3, warmup=2, seed=7, debug_level="intermediate")
        reports["ours"] = run_into(
            replace(given, program=str(ours / "model.pte")), Task(ours / "run", quiet)
        )
        reports["stock"] = run_with_executorch(
            replace(given, program=str(stock / "model.pte"), toolchain=EXECUTORCH),
            stock / "run",
            quiet,
            tool,
        )
        made[name] = Both(ours, stock, reports)
    return made


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_leave_the_same_files_and_outputs(both: dict[str, Both], name: str) -> None:
    one = both[name]
    for folder in ("", "run"):
        ours = {path.name for path in (one.ours / folder).iterdir()}
        assert {path.name for path in (one.stock / folder).iterdir()} == ours
    expected, found = (torch.load(side / "run" / "outputs.pt") for side in (one.ours, one.stock))
    assert len(expected) == len(found) > 0
    for a, b in zip(expected, found, strict=True):
        torch.testing.assert_close(b, a, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", PROGRAMS)
def test_files_of_both_belong_together_and_say_who_made_them(
    both: dict[str, Both], name: str
) -> None:
    one = both[name]
    for folder, tool in ((one.ours, "built-in"), (one.stock, EXECUTORCH)):
        found = run("check", folder, folder / "run", "--format", "json")
        assert (found.code, found.json["data"]["verdict"]) == (0, "belong")
        for report in (folder / "compile.json", folder / "run" / "run.json"):
            assert json.loads(report.read_text("utf-8"))["toolchain"]["name"] == tool
        recipe = parse_recipe((folder / "recipe.json").read_bytes(), "recipe.json")
        assert recipe.job.toolchain == ("" if tool == "built-in" else tool)
        assert read_recipe(str(folder / "model.etrecord")).recipe == recipe
    version = one.reports["compile"]["toolchain"]["version"]
    assert one.reports["stock"]["where"] == f"ExecuTorch {version} on this machine"
    assert json.loads((one.stock / "recipe.json").read_text())["made_with"][EXECUTORCH] == version


@pytest.mark.parametrize("name", PROGRAMS)
def test_compare_shows_both_side_by_side(both: dict[str, Both], name: str) -> None:
    one = both[name]
    answer = run("compare", one.ours, one.stock, "--no-gap")
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert any(line.split()[:3] == ["toolchain", "—", EXECUTORCH] for line in lines), lines
    counts = [line.split() for line in lines if "nodes that changed owner" in line]
    assert counts


@pytest.mark.parametrize("name", PROGRAMS)
def test_reports_of_both_have_the_same_members(both: dict[str, Both], name: str) -> None:
    one = both[name]
    for verb, report in (("compile", one.reports["compile"]), ("run", one.reports["stock"])):
        data = {**json.loads(json.dumps(report)), "folder": "x"}
        tree = {"etscope": "1", "verb": verb, "inputs": [], "issues": [], "data": data}
        assert list(validator(verb).iter_errors(tree)) == []
    expected = json.loads((one.ours / "compile.json").read_text("utf-8"))
    assert one.reports["compile"].keys() - expected.keys() == {"reasons"}
    assert expected.keys() - one.reports["compile"].keys() == set()
    more = {"ignored", "python", "sizes"}  # options without effect on the stock runtime are named
    assert one.reports["stock"].keys() ^ one.reports["ours"].keys() == more


@pytest.mark.parametrize("name", PROGRAMS)
def test_runs_of_both_have_equal_inputs_and_only_the_measured_runs(
    both: dict[str, Both], name: str
) -> None:
    one = both[name]
    assert one.reports["stock"]["inputs"] == one.reports["ours"]["inputs"]
    assert len(one.reports["stock"]["run_ms"]) == 3
    for folder in (one.ours, one.stock):
        session = load_session([str(folder), str(folder / "run")])
        timed, values = session.dumps
        assert sum(run.name == "Execute" for run in timed.run_data) == 3
        assert sum(run.name == "Execute" for run in values.run_data) == 1
        assert (session.timed_dumps, session.value_dumps) == ((timed,), (values,))
        assert not session.times_with_values
        assert session.debug_buffer is not None
        report = one.reports[folder.name]
        time = time_of(session, report["method"])
        assert time is not None
        assert report["traced_latency_ms"]["mean"] == pytest.approx(time.method_ms)
        assert report["tracing_cost"] == pytest.approx((time.tracing_ms or 0.0) / time.latency_ms)


def test_threads_are_swept_on_the_stock_runtime(both: dict[str, Both], tmp_path: Path) -> None:
    program = both["mixed"].stock / "model.pte"
    heard = Heard()
    one = RunJob(str(program), toolchain=EXECUTORCH)
    counts = thread_counts(usable_cores())
    jobs = tuple(replace(one, threads=count) for count in counts)
    measure_with_executorch(MeasureJob(jobs, 2, seconds=0.002), Task(tmp_path, heard))
    facts = [one for one in heard.of["measured"] if one["run_ms"]]
    assert [(each["program"], each["facts"]["threads"]) for each in facts] == [
        *enumerate(counts),
        *reversed(list(enumerate(counts))),
    ]
    assert all(len(each["run_ms"]) >= 5 for each in facts)
    more = ("--runs", "2", "--warmup", "1", "--toolchain", "executorch", "--format", "json")
    answer = run("run", program, "-o", tmp_path / "out", "--threads", "sweep", *more)
    data = valid(answer, "run")["data"]
    assert [each["threads"] for each in data["thread_sweep"]] == list(counts)
    (best,) = [each["threads"] for each in data["thread_sweep"] if each["best"]]
    assert (data["threads"], data["toolchain"]["name"]) == (best, EXECUTORCH)


def test_program_that_the_stock_runtime_refuses_leaves_the_others_alone(
    both: dict[str, Both], tmp_path: Path
) -> None:
    heard = Heard()
    good = RunJob(str(both["mixed"].stock / "model.pte"), toolchain=EXECUTORCH)
    lost = replace(good, libraries=(str(tmp_path / "none.so"),))
    measure_with_executorch(MeasureJob((lost, good), 2, seconds=0.0), Task(tmp_path, heard))
    (refused,) = heard.of["refused"]
    assert refused["program"] == 0
    assert "none.so" in refused["sentence"]
    assert [one["program"] for one in heard.of["measured"] if one["run_ms"]] == [1, 1]


def test_memory_of_a_stock_run_is_that_of_its_phases(both: dict[str, Both]) -> None:
    one = both["mixed"]
    memory = one.reports["stock"]["memory"]
    assert list(memory["increase"]) == list(one.reports["ours"]["memory"]["increase"])
    assert all(peak is not None and peak >= 0 for peak in memory["increase"].values())
    assert memory["peak_bytes"] >= memory["idle_bytes"] + memory["increase"]["first_run"]
    session = load_session([one.stock / "model.pte", one.stock / "run/run.etdp"])
    rows = measured_memory(session, "forward")
    assert [row.phase for row in rows[:4]] == ["load", "prepare", "first run", "steady run"]
    assert all("process of ExecuTorch" in row.note for row in rows if not row.part)


def test_reasons_are_those_that_the_stock_tool_logged(both: dict[str, Both]) -> None:
    verdicts = {v.node: v for v in verdicts_in(both["mixed"].stock)}
    assert verdicts["aten_mean_dim"].outcome is NodeOutcome.REJECTED
    logged = "as the stock tool logged it: mean.dim only supports keepdim=True"
    assert verdicts["aten_mean_dim"].reason == logged
    assert verdicts["aten_cumsum_default"].outcome is NodeOutcome.NO_RULE
    assert verdicts["aten_convolution_default"].rule == "ConvolutionConfig"
    listed = {one["node"]: one["reason"] for one in both["mixed"].reports["compile"]["reasons"]}
    left = {v.node: v.reason for v in verdicts.values() if v.outcome is not NodeOutcome.DELEGATED}
    assert listed == left
    told = run("delegation", both["mixed"].stock)
    assert logged in told.out


# -- rules ---------------------------------------------------------------------------------------

RULES = [
    ("xnnpack", {"deny_ops": ("aten.conv*",)}, {"aten_convolution_default"}, 2),
    ("xnnpack", {"deny_modules": ("fc",)}, {"aten_addmm_default"}, 1),
    ("xnnpack", {"min_nodes": 2}, {"aten_linear_default"}, 1),
    ("xnnpack", {"granularity": "operator"}, set(), 4),
    ("vulkan", {"deny_ops": ("aten.relu",)}, {"aten_relu_default"}, 2),
]


def verdicts_in(folder: Path) -> tuple[Verdict, ...]:
    record = load_session([str(folder)]).record
    assert record is not None
    return record.verdicts()["forward"]


@pytest.mark.parametrize(("name", "rules", "out", "partitions"), RULES)
def test_rules_keep_nodes_out_of_stock_partitions(
    name: str,
    rules: dict[str, Any],
    out: set[str],
    partitions: int,
    tool: Interpreter,
    tmp_path: Path,
) -> None:
    job = replace(job_of("mixed", toolchain=EXECUTORCH), partitioners=(name,), rules=Rules(**rules))
    report = compile_with_executorch(job, tmp_path, quiet, tool)
    verdicts = verdicts_in(tmp_path)
    rule = next(iter(rules))
    assert {one.node for one in verdicts if one.rule == rule} >= out
    assert all(one.outcome is not NodeOutcome.DELEGATED for one in verdicts if one.node in out)
    tags = {one.partition for one in verdicts if one.partition}
    program = load_session([str(tmp_path)]).program
    assert program is not None
    assert len(program.plan("forward").delegates) == len(tags) == partitions
    assert report["warnings"] == []
    if name == "vulkan":
        reasons = {one.node: one.reason for one in verdicts}
        assert "[no operator implementation]" in reasons["aten_cumsum_default"]


def test_program_with_an_operator_left_whole_by_a_rule_runs(
    both: dict[str, Both], tool: Interpreter, tmp_path: Path
) -> None:
    rules = Rules(min_nodes=2, deny_ops=("aten.relu",))
    compile_with_executorch(
        job_of("mixed", toolchain=EXECUTORCH, rules=rules), tmp_path, quiet, tool
    )
    (tmp_path / "run").mkdir()
    given = RunJob(str(tmp_path / "model.pte"), seed=7, traced=False)
    report = run_with_executorch(given, tmp_path / "run", quiet, tool)
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert (names, report["trace"]["recorded"]) == ({"outputs.pt", "run.json"}, False)
    found, expected = (
        torch.load(folder / "run" / "outputs.pt")[0] for folder in (tmp_path, both["mixed"].ours)
    )
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_options_that_are_words_and_quantization_reach_the_stock_tool(
    tool: Interpreter, tmp_path: Path
) -> None:
    job = job_of("mixed", toolchain=EXECUTORCH, quantising=Quantization("static"))
    compile_with_executorch(
        replace(job, partitioners=("xnnpack:config_precisions=FP32",)), tmp_path, quiet, tool
    )
    outside = [one for one in verdicts_in(tmp_path) if one.outcome is not NodeOutcome.DELEGATED]
    operators = {one.operator for one in outside}
    assert "aten.convolution.default" in operators  # quantized, and that precision is off
    assert any(name.startswith("quantized_decomposed.quantize") for name in operators)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            {"partitioners": ("xnnpak",)},
            "unknown partitioner 'xnnpak' in this executorch; did you mean",
        ),
        ({"partitioners": ("xnnpack:nothing",)}, "'nothing': expected option=value, found no '='"),
        (
            {"partitioners": ("openvino",)},
            "openvino is not available here: the module openvino is not installed",
        ),
        ({"partitioners": ("qnn",)}, "qnn is not available here: the QNN SDK is not here"),
        ({"partitioners": ("none.py:Mine",)}, "none.py: file not found"),
        ({"quantising": Quantization("weight-only")}, "unknown mode 'weight-only'"),
        ({"methods": ("back",)}, "unknown method 'back'; available: forward"),
        ({"source": Source(str(SOURCES), "nothing")}, "has no function 'nothing'"),
    ],
)
def test_what_the_stock_tool_cannot_do_is_one_sentence(
    more: dict[str, Any], words: str, tool: Interpreter, tmp_path: Path
) -> None:
    told: list[str] = []

    def say(kind: str, **content: Any) -> None:
        if kind == "failed":
            told.append(content["sentence"])
            assert content["blame"] == "usage"

    job = replace(job_of("mixed", toolchain=EXECUTORCH), **more)
    with pytest.raises((ReportedError, ToolchainError)) as caught:
        compile_with_executorch(job, tmp_path, say, tool)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert all(words in sentence for sentence in told)


def test_parts_of_a_recipe_without_effect_are_named() -> None:
    assert without_effect(job_of("mixed", rules=Rules(deny_ops=("a",), min_nodes=2))) == []
    job = job_of(
        "mixed",
        rules=Rules(force_nodes=("x",), granularity="module"),
        quantising=Quantization("static", nodes=("linear=none",)),
    )
    found = " ".join(without_effect(job))
    assert found.count("has no effect") == 3
    for name in ("rules.force_nodes", "rules.granularity", "quantising.nodes"):
        assert name in found


def test_recipe_makes_the_same_stock_program_again_and_its_record_is_a_source(
    both: dict[str, Both], tool: Interpreter, tmp_path: Path
) -> None:
    one = both["mixed"].stock
    recipe = read_recipe(str(one / "model.etrecord")).recipe
    from_record = replace(recipe.job, source=Source(str(one / "model.etrecord")))
    for number, job in enumerate((recipe.job, from_record)):
        folder = tmp_path / str(number)
        folder.mkdir()
        compile_with_executorch(job, folder, quiet, tool)
        assert {path.name for path in folder.iterdir()} == {
            *("model.pte", "model.etrecord", "recipe.json", "compile.json")
        }
        same = (folder / "model.pte").read_bytes() == (one / "model.pte").read_bytes()
        assert same or number == 1


# -- bisection ------------------------------------------------------------------------------

NOTHING: dict[str, Any] = {"candidates": [], "trials": []}


class Shared:
    """An interpreter that outlives its users and may be told to crash at a question."""

    def __init__(self, real: Interpreter) -> None:
        self.real = real
        self.asked: list[Mapping[str, Any]] = []
        self.crashes_at = 0

    def __call__(self, _python: str) -> Shared:
        return self

    def ask(self, question: Mapping[str, Any], say: Say) -> Response:
        self.asked.append(question)
        if len(self.asked) == self.crashes_at:
            raise ToolchainError("executorch crashed (SIGSEGV)")
        return self.real.ask(question, say)

    def close(self) -> None:
        """Stay."""


@pytest.fixture
def shared(tool: Interpreter, monkeypatch: pytest.MonkeyPatch) -> Shared:
    found = Shared(tool)
    monkeypatch.setattr(toolchain_bisect, "Interpreter", found)
    return found


class Heard:
    """Keeps messages."""

    def __init__(self) -> None:
        self.of: dict[str, list[dict[str, Any]]] = {}

    def __call__(self, kind: str, **content: Any) -> None:
        self.of.setdefault(kind, []).append(content)


def bisect_of(bound: str, *partitioners: str) -> BisectJob:
    source = Source(str(SOURCES), "split")
    return BisectJob(CompileJob(source, partitioners=partitioners, toolchain=EXECUTORCH), bound)


def test_smallest_set_is_found_and_a_known_state_asks_for_nothing_anew(
    shared: Shared, tmp_path: Path
) -> None:
    heard = Heard()
    job = bisect_of("delegates<=1", "xnnpack")
    found = bisect_with_executorch(job, tmp_path, heard, NOTHING)
    nodes = heard.of["candidates"][0]["nodes"]
    assert [node["operator"] for node in nodes] == ["aten.sub.Tensor", "aten.mul.Tensor"]
    assert found["result"] == "found"
    assert len(found["nodes"]) == 1
    assert (found["before"]["value"], found["after"]["value"]) == (2.0, 1.0)
    assert [one["do"] for one in shared.asked] == ["compile"] * len(shared.asked)
    trials = [one["trial"] for one in heard.of["tried"]]
    assert all(from_json(trial, Trial, "trial").count == len(numbers_in(trial)) for trial in trials)

    later = Heard()
    again = bisect_with_executorch(job, tmp_path, later, {"candidates": nodes, "trials": trials})
    assert again == found
    assert "tried" not in later.of


def test_crash_of_the_stock_runtime_is_a_trial_that_does_not_help(
    shared: Shared, tmp_path: Path
) -> None:
    heard = Heard()
    shared.crashes_at = 4  # compile, reference, compile, run
    found = bisect_with_executorch(
        bisect_of("output.max_abs<=1", "xnnpack"), tmp_path, heard, NOTHING
    )
    first = heard.of["tried"][0]["trial"]
    assert (first["value"], first["holds"]) == (None, False)
    assert "crashed (SIGSEGV)" in first["words"]
    assert found["result"] == "found"
    assert found["after"]["holds"]


def test_gap_of_a_stock_run_is_a_bound(shared: Shared, tmp_path: Path) -> None:
    job = bisect_of("gap.max_abs<=1", "xnnpack")
    found = bisect_with_executorch(job, tmp_path, Heard(), NOTHING)
    assert found["result"] == "nothing to do"
    assert found["before"]["value"] == 0.0
    assert shared.asked[-1]["do"] == "run"


def test_recipe_without_partitioner_is_refused(shared: Shared, tmp_path: Path) -> None:
    with pytest.raises(AnswerError, match="no partitioner"):
        bisect_with_executorch(bisect_of("loads"), tmp_path, Heard(), NOTHING)
    assert not shared.asked


def numbers_in(trial: Mapping[str, Any]) -> list[int]:
    return [number for start, end in trial["removed"] for number in range(start, end)]
