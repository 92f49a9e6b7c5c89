"""eval: data sets of every kind, a reference, figures, resuming, and what goes wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from inspector.experiments.evaluate.report import evaluation_report
from inspector.jobs.eval_samples import EvalSample, read_evaluation
from inspector.jobs.evaluate import EvalJob, EvalSupervisor
from inspector.jobs.executing import RunJob
from inspector.jobs.messages import Ended, Evaluated, Evaluating, Outcome
from inspector.jobs.supervisor import Setup
from tests.inspector.cli_runs import Run, run, valid
from tests.inspector.jobs_here import Here
from tests.inspector.sessions import DATA

pytestmark = pytest.mark.slow

PORTABLE, DELEGATED = DATA / "runs" / "convnet_portable", DATA / "runs" / "convnet_xnnpack"
SHAPE = (1, 3, 32, 32)
_DATA = f"""
import itertools
import torch

def images():
    generator = torch.Generator().manual_seed(5)
    for label in range(4):
        yield torch.randn({SHAPE}, generator=generator), torch.tensor([label])

def alone():
    for image, _ in images():
        yield image

def endless():
    for number in itertools.count():
        yield {{"inputs": torch.full({SHAPE}, float(number))}}

def raises():
    yield torch.zeros({SHAPE})
    raise KeyError("image 17")

def one_is_smaller():
    yield torch.ones({SHAPE})
    yield torch.ones(1, 3, 32, 31)

def nan():
    yield torch.full({SHAPE}, float("nan"))

def three():
    yield torch.ones({SHAPE}), torch.ones(1), torch.ones(1)

number = 3
several = [torch.ones({SHAPE}) * scale for scale in range(2)]

def accuracy(output, target):
    return (output.argmax(-1) == target).float().mean()

def spread(output):
    return {{"mean": output.mean(), "broken": float("nan")}}

def wrong(output):
    return 1 / 0
"""


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.jobs.run.Worker", Here)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.py"
    path.write_text(_DATA, "utf-8")
    return path


def _eval(data: Path, name: str, *more: str | Path, to: str = "out") -> Run:
    folder = data.parent / to
    options = ("--data", f"{data}:{name}", "-o", folder)
    return run("eval", DELEGATED, *more, *options)


def test_variants_are_compared_with_the_exported_program_by_metric_and_error(data: Path) -> None:
    metric = ("--metric", f"{data}:accuracy", "--format", "json")
    answer = _eval(data, "images", PORTABLE, *metric)
    assert answer.code == 0, answer.err
    found = valid(answer, "eval")["data"]
    assert found["reference"] == "the exported program of convnet_xnnpack"
    assert (found["samples"], found["complete"]) == (4, True)
    assert [one["name"] for one in found["variants"]] == ["convnet_xnnpack", "convnet_portable"]
    for variant in found["variants"]:
        (output,) = variant["outputs"]
        assert output["snr_db"] > 90 or output["exact"]
        assert output["top_1"] == 1.0
        assert variant["metrics"] == found["reference_metrics"]
    worst = found["variants"][0]["worst"]
    assert [one["snr_db"] for one in worst] == sorted(one["snr_db"] for one in worst)


def test_a_second_call_goes_on_and_a_changed_data_set_starts_over(data: Path) -> None:
    first = _eval(data, "endless", "--samples", "2")
    assert "2 samples of" in first.out
    again = _eval(data, "endless", "--samples", "3")
    assert "2 samples of an earlier call reused" in again.out
    folder = data.parent / "out"
    assert list(read_evaluation(folder).samples) == [0, 1, 2]
    with (folder / "samples.jsonl").open("ab") as stream:
        stream.write(b'{"index": 3, "cut')
    assert "3 samples of an earlier call reused" in _eval(data, "endless", "--samples", "4").out
    data.write_text(_DATA.replace("float(number)", "float(2 * number)"), "utf-8")
    changed = _eval(data, "endless", "--samples", "1")
    assert "starts over: the data set changed since the last call" in changed.out
    assert len(read_evaluation(folder).samples) == 1
    assert _eval(data, "endless", "--samples", "1", to=".").code == 2  # it has other files


def test_samples_that_are_other_ones_now_run_again(data: Path) -> None:
    lists = data.parent / "several.py"
    lists.write_text("from other import several", "utf-8")
    (data.parent / "other.py").write_text(_DATA, "utf-8")
    assert _eval(lists, "several").code == 0
    path = data.parent / "out/samples.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    rows[1]["digest"] = "another"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    assert "1 sample differed from the earlier call and ran again" in _eval(lists, "several").out


@pytest.mark.parametrize(
    ("name", "more", "words"),
    [
        ("raises", (), "data.py:{raise}: KeyError: 'image 17' (1 sample kept in"),
        ("three", (), "sample 0: expected 1 inputs, or a pair of them and targets; found 3"),
        ("number", (), "is of type int: expected an iterable of inputs"),
        ("missing", (), "has no function 'missing'; available: images"),
        ("alone", ("--metric", "{data}:accuracy"), "takes targets, sample 0 has none"),
        ("alone", ("--metric", "{data}:wrong"), "data.py:{wrong}: ZeroDivisionError"),
        ("alone", ("--metric", "{data}:number"), "expected a function, found int"),
    ],
)
def test_what_goes_wrong_in_the_data_is_one_sentence_with_its_line(
    data: Path, name: str, more: tuple[str, ...], words: str
) -> None:
    lines = _DATA.splitlines()
    places = {
        "raise": 1 + next(at for at, line in enumerate(lines) if "raise KeyError" in line),
        "wrong": 1 + next(at for at, line in enumerate(lines) if "1 / 0" in line),
    }
    answer = _eval(data, name, *(word.format(data=data) for word in more))
    assert answer.code != 0
    assert words.format(**places) in answer.err


def test_arguments_that_cannot_be_evaluated_are_refused_at_once(data: Path) -> None:
    for words, options in (
        ("has no end: use --samples N", ("--data", "random")),
        ("expected FILE.py:NAME, a folder", ("--data", "data.py")),
        ("expected all samples, found one", ("--data", f"{data}:images#2")),
        ("expected FILE.py:NAME", ("--data", f"{data}:images", "--metric", "accuracy")),
        (
            "nothing to compare convnet_xnnpack with: no float program",
            ("--data", "ones", "--samples", "1"),
        ),
    ):
        program = DELEGATED / "model.pte" if "compare" in words else DELEGATED
        answer = run("eval", program, "-o", data.parent / "out", *options)
        assert (answer.code, words in answer.err) == (2, True), answer.err


def test_a_sample_of_another_shape_is_refused_and_the_others_are_compared(data: Path) -> None:
    answer = _eval(data, "one_is_smaller")
    assert answer.code == 4
    assert "1 of 2 samples not compared: method 'forward': Error setting input 0" in answer.out
    assert "did not run 1 sample" in answer.out


def test_nan_and_metrics_that_are_not_finite_are_counted_not_averaged(data: Path) -> None:
    options = ("--metric", f"{data}:spread", "--format", "json")
    (found,) = valid(_eval(data, "nan", *options), "eval")["data"]["variants"]
    assert found["metrics"] == {"mean": None, "broken": None}
    assert found["outputs"][0]["not_finite"] == 0  # both are NaN at the same places


def test_a_folder_of_tensors_is_read_in_natural_order(data: Path) -> None:
    folder = data.parent / "set"
    folder.mkdir()
    for number in (10, 2):
        np.save(folder / f"{number}.npy", np.full(SHAPE, number, np.float32))
    torch.save((torch.ones(SHAPE), torch.tensor([3])), folder / "11.pt")
    out = data.parent / "out"
    assert run("eval", DELEGATED, PORTABLE, "--data", folder, "-o", out).code == 0
    table = run("table", "eval-samples", out, "--format", "tsv").out.splitlines()
    assert len(table) == 1 + 3 * 2
    (folder / "3.npy").write_bytes(b"no array")
    assert "3.npy: expected an array" in run("eval", DELEGATED, "--data", folder, "-o", out).err
    assert "eval-worst" in run("table", "nothing", out).err
    first = run("run", DELEGATED / "model.pte", "--inputs", f"{folder}#0", "-o", data.parent / "r")
    assert first.code == 0


def test_the_first_variant_is_the_reference_on_request(data: Path) -> None:
    options = ("--data", "random", "--samples", "2", "--reference", "first", "--format", "json")
    found = valid(run("eval", PORTABLE, DELEGATED, "-o", data.parent / "out", *options), "eval")
    one, two = found["data"]["variants"]
    assert (one["is_reference"], one["outputs"]) == (True, [])
    assert two["outputs"][0]["samples"] == 2


def test_a_variant_that_crashes_the_worker_is_left_out_and_the_others_go_on(
    tmp_path: Path,
) -> None:
    program = str(PORTABLE / "model.pte")
    job = EvalJob(("a", "b"), (RunJob(program), RunJob(program)), "random", samples=2)
    watched = EvalSupervisor(job, Setup(tmp_path / "out"))
    watched.note(Evaluated(EvalSample(0, "digest", ())))
    watched.note(Evaluating(1, 1))
    crash = Outcome(Ended.CRASHED, "killed by signal 11")
    assert watched.ended(crash, cancelled=False) is None
    _, options = watched.request()
    assert options == {"known": {"0": "digest"}, "lost": {"1": "killed by signal 11"}}
    watched.note(Evaluating(1, 1))
    assert watched.ended(crash, cancelled=False) is crash  # it is no variant that is left


def test_programs_of_a_workspace_are_variants_named_as_there(data: Path) -> None:
    trace = data.parent / "lone" / "run.etdp"
    trace.parent.mkdir()
    trace.write_bytes((DELEGATED / "run.etdp").read_bytes())
    sessions = [
        {"id": "A", "paths": [str(DELEGATED / "model.pte"), str(DELEGATED / "model.etrecord")]},
        {"id": "C", "paths": ["lone/run.etdp"]},
        {"id": "D", "paths": [str(PORTABLE / "model.pte")]},
    ]
    workspace = data.parent / "both.etscope"
    workspace.write_text(json.dumps({"etscope_workspace": 1, "sessions": sessions}), "utf-8")
    out = data.parent / "out"
    options = ("--data", f"{data}:images", "-o", out)
    answer = run("eval", workspace, PORTABLE, *options)
    assert answer.code == 0, answer.err
    assert list(read_evaluation(out).settings.names) == [
        f"A {DELEGATED.name}",
        f"D {PORTABLE.name}",
        PORTABLE.name,
    ]
    assert "C lone has no program and is left out" in answer.out
    for content, words in (
        ("{}", "expected a workspace of ETScope, found other JSON"),
        ('{"etscope_workspace": 1}', "expected sessions with files, found none"),
        ('{"etscope_workspace": 1, "sessions": [3]}', "both.etscope: sessions"),
        (json.dumps({"etscope_workspace": 1, "sessions": sessions[1:2]}), "C lone has no program"),
        (
            '{"etscope_workspace": 1, "sessions": [{"id": "A", "paths": ["gone.pte"]}]}',
            "gone.pte",
        ),
    ):
        workspace.write_text(content, "utf-8")
        refused = run("eval", workspace, *options)
        assert refused.code != 0
        assert words in refused.err, refused.err


def test_gates_judge_an_evaluation_and_keep_a_history(data: Path) -> None:
    assert _eval(data, "images", "--metric", f"{data}:accuracy").code == 0
    out, history = data.parent / "out", data.parent / "history.jsonl"
    own = ("--eval", out, "--history", history, "--format", "json")
    wanted = ("eval.accuracy>=0", "eval.snr>=60dB", "eval.top1>=99%", "eval.refused==0")
    options = [word for text in wanted for word in ("--require", text)]
    found: dict[str, Any] = {}
    for count in (1, 2):
        answer = run("gate", DELEGATED, *options, *own)
        assert answer.code == 0, answer.out
        found = valid(answer, "gate")["data"]["history"]
        assert found["runs"] == count
    assert found["trend"][0]["metric"] == "eval.accuracy"
    assert len(found["trend"][1]["values"]) == 2
    failed = run("gate", DELEGATED, "--require", "eval.max_abs<0", *own[:4])
    assert failed.code == 1
    assert "trend    eval.max_abs: " in failed.out
    table = run("table", "gate-history", history, "--format", "tsv").out.splitlines()
    assert [line.split("\t")[3] for line in table] == ["met", "met", "met", "not met"]
    for words, arguments in (
        ("not of the program of", (PORTABLE, "--require", "eval.snr>=1", "--eval", out)),
        ("not measured; available", (DELEGATED, "--require", "eval.loss<=1", "--eval", out)),
        ("needs --data DATA", (DELEGATED, "--require", "eval.snr>=1")),
        ("has no end", (DELEGATED, "--require", "eval.snr>=1", "--data", "ones")),
        ("eval. and one of snr", (DELEGATED, "--require", "eval.>=1")),
    ):
        assert words in run("gate", *arguments).err
    history.write_text("{", "utf-8")
    broken = run("gate", DELEGATED, "--require", "size<=1MB", "--history", history)
    assert "history.jsonl, line 1: expected a run of a gate as JSON" in broken.err


def test_a_gate_evaluates_by_itself_and_refused_samples_are_no_success(data: Path) -> None:
    options = ("--data", f"{data}:several", "--require", "eval.snr>=60")
    assert run("gate", PORTABLE, *options).code == 0
    options = ("--data", f"{data}:one_is_smaller", "--require", "eval.refused<=0")
    assert "Guard failed" in run("gate", PORTABLE, *options).err


_MODEL = """
import torch

def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU()).eval(), (torch.ones(2, 8),)

def batches():
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(2, 8, generator=generator) for _ in range(6)]
"""


def test_a_quantized_program_is_calibrated_by_a_data_set_and_compared_with_its_float_one(
    tmp_path: Path,
) -> None:
    model = tmp_path / "model.py"
    model.write_text(_MODEL, "utf-8")
    own = ("--partitioner", "xnnpack", "--quantize", "static")
    for name, more in (("one", ()), ("all", ("--calibration", f"{model}:batches"))):
        answer = run("compile", f"{model}:net", "-o", tmp_path / name, *own, *more)
        assert answer.code == 0, answer.err
    options = ("--data", f"{model}:batches", "-o", tmp_path / "out")
    assert run("eval", tmp_path / "one", tmp_path / "all", *options).code == 0
    report = evaluation_report(read_evaluation(tmp_path / "out"))
    assert report.settings.reference == "the float program in the record of one"
    one, all_of_them = (variant.figure("snr") or 0.0 for variant in report.variants)
    assert all_of_them > one + 6
    options = ("--data", f"{model}:batches", "--ranges", "-o", tmp_path / "ranges")
    answer = run("eval", tmp_path / "one", tmp_path / "all", *options, "--format", "json")
    one, better = (
        {row["made_by"]: row for row in variant["ranges"]}
        for variant in valid(answer, "eval")["data"]["variants"]
    )
    assert list(one) == list(better)
    first = next(iter(one.values()))
    assert first["clipped_share"] > 0.1
    assert first["advice"].startswith("clips: calibrate with this data set")
    for row in better.values():
        assert row["clipped_share"] < 0.05
        assert 0 <= row["unused_share"] < 0.3
    table = run("table", "eval-ranges", tmp_path / "ranges", "--format", "tsv").out
    assert len(table.splitlines()) == 1 + 2 * len(one)
    compared = run("compare", tmp_path / "one", tmp_path / "all", "--format", "json")
    data = valid(compared, "compare")["data"]
    (errors,) = [row for row in data["summary"] if row["what"] == "error of outputs"]
    assert 0 < min(errors["values"]) < max(errors["values"])
    assert errors["note"].startswith("beside the float program in the record of one")
    model.unlink()
    options = ("--data", "ones", "--samples", "1", "-o", tmp_path / "ones")
    answer = run("eval", tmp_path / "one", *options, "--reference", "float")
    assert answer.code == 0, answer.err  # of the record: its source is gone


_CLASSES = """
import torch

class Classes(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scores = torch.nn.Linear(8, 40)

    def forward(self, x):
        scores = torch.softmax(self.scores(x), -1)
        return scores, scores.argmax(-1)

def net():
    torch.manual_seed(0)
    return Classes().eval(), (torch.randn(64, 8),)

def coarse():
    net_, inputs = net()
    net_.scores.weight.data = (net_.scores.weight.data * 4).round() / 4
    return net_, inputs
"""


@pytest.mark.slow
def test_indices_that_differ_are_counted_and_are_no_error_of_the_scores(tmp_path: Path) -> None:
    model = tmp_path / "model.py"
    model.write_text(_CLASSES, "utf-8")
    for name in ("net", "coarse"):
        assert run("compile", f"{model}:{name}", "-o", tmp_path / name).code == 0
    compared = run("compare", tmp_path / "net", tmp_path / "coarse", "--format", "json")
    summary = {row["what"]: row["values"] for row in valid(compared, "compare")["data"]["summary"]}
    assert 0 < summary["error of outputs"][1] <= 1  # of probabilities; indices differ by up to 39
    assert 0 < summary["integer outputs that differ"][1] < 1
    assert summary["integer outputs that differ"][0] == 0
    text = run("compare", tmp_path / "net", tmp_path / "coarse").out
    assert "of an integer output differs, before 0 %" in text
    options = ("--data", "random", "--samples", "3", "-o", tmp_path / "out", "--reference", "first")
    answer = run("eval", tmp_path / "net", tmp_path / "coarse", *options, "--format", "json")
    outputs = valid(answer, "eval")["data"]["variants"][1]["outputs"]
    assert [one["floating"] for one in outputs] == [True, False]
    assert 0 < outputs[1]["differing"] < 1
    figures = evaluation_report(read_evaluation(tmp_path / "out")).variants[1]
    assert (figures.figure("max_abs") or 9) <= 1
    assert {one.output for one in figures.worst} == {0}
