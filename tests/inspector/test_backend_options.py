"""Options of backends reach runs of eval, bisect and gap, and wrong ones are refused before."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.fx.passes.infra.pass_manager import PassManager
from typing_extensions import override

from compiler import export, to_edge_transform_and_lower
from compiler.partition.named_partitioners import create_partitioner, parse_partitioner
from inspector.jobs import run as jobs
from inspector.jobs.backend_options import BackendOptionError, options_by_backend, with_options
from inspector.jobs.bisect import BisectJob, key_of
from inspector.jobs.commands import command_of
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.source import Source
from inspector.worker import exporter
from inspector.worker.bisect_job import bisect
from inspector.worker.exporter import AnswerError
from runtime import ErrorCode, ExecutionError, Runtime
from runtime.delegates.interface import BackendExecutionContext, BackendInitContext
from schema.backends import BACKENDS
from tests.compiler.toy_backend import TRAITS, ToyExecutor
from tests.inspector.cli_runs import run, valid
from tests.inspector.jobs_here import Here

pytestmark = pytest.mark.slow

SOURCE = """
import torch
class Net(torch.nn.Module):
    def forward(self, x):
        return torch.sin(torch.sin(x)) + x
def net():
    return Net().eval(), (torch.ones(3),)
"""
NOTHING: dict[str, Any] = {"candidates": [], "trials": []}
DOUBLED = ("toy:gain=2",)


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(torch.sin(x)) + x


class GainExecutor(ToyExecutor):
    """Multiplies results by an option."""

    def __init__(self) -> None:
        self.gain = 1.0

    @override
    def set_options(self, options: Mapping[str, str]) -> None:
        self.gain = float(options.get("gain", "1"))

    @override
    def execute(self, context: BackendExecutionContext, handle: int, args: Sequence[Any]) -> None:
        super().execute(context, handle, args)
        context.store(args[1], args[1] * self.gain)


class RefusingExecutor(GainExecutor):
    """Runs no payload, so that a record stands in."""

    payload_is_all = False

    @override
    def init(
        self, context: BackendInitContext, processed: memoryview, compile_specs: Mapping[str, bytes]
    ) -> int:
        raise ExecutionError(ErrorCode.DelegateInvalidCompatibility, "its package is missing")


def use(monkeypatch: pytest.MonkeyPatch, executor: type) -> None:
    """Let the toy backend of this process be run by a class."""
    traits = replace(TRAITS, executor=f"{__name__}:{executor.__name__}", has_options=True)
    monkeypatch.setitem(BACKENDS, TRAITS.id, traits)
    own = Runtime()
    monkeypatch.setattr(Runtime, "get", staticmethod(lambda: own))
    monkeypatch.setattr(jobs, "Worker", Here)
    monkeypatch.setattr(exporter, "redirect_logs", lambda _say: None)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a compiled program whose sines the toy backend runs."""
    use(monkeypatch, GainExecutor)
    source = tmp_path / "net.py"
    source.write_text(SOURCE)
    made = to_edge_transform_and_lower(
        export(Net().eval(), (torch.ones(3),)),
        partitioner=create_partitioner(parse_partitioner("toy")),
        generate_etrecord=True,
    ).to_executorch()
    folder = tmp_path / "program"
    folder.mkdir()
    made.save(folder / "model.pte")
    made.get_etrecord().save(folder / "model.etrecord")
    return folder


def test_words_are_read_by_id_or_name_and_wrong_ones_tell_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use(monkeypatch, GainExecutor)
    found = options_by_backend(["TOY:gain=2", f"{TRAITS.id}:path=a:b=c"])
    assert found.pop(TRAITS.id) == {"gain": "2", "path": "a:b=c"}
    assert not any(found.values())
    assert TRAITS.id in {one.id for one in with_options()}
    for word in ("toy", "toy:gain", "toy:=2", ":gain=2", "toy:gain=", ""):
        with pytest.raises(BackendOptionError, match="expected NAME:OPTION=VALUE"):
            options_by_backend([word])
    with pytest.raises(BackendOptionError, match="XNNPACK has no options of a run; backends"):
        options_by_backend(["XNNPACK:a=b"])


@pytest.mark.parametrize("verb", ["run", "verify", "step", "eval", "bisect", "gap"])
def test_verbs_refuse_a_wrong_option_before_they_start(verb: str) -> None:
    for word, why in (
        ("nix", "expected NAME:OPTION=VALUE, found no '='"),
        ("nix:a=b", "nix has no options"),
    ):
        answer = run(verb, "nothing.pte", "--backend-option", word)
        assert answer.code == 2
        assert why in answer.err


def test_evaluation_uses_the_options_and_samples_of_others_are_not_reused(
    program: Path, tmp_path: Path
) -> None:
    def worst(*more: str) -> tuple[float, str]:
        words = ("--data", "random", "--samples", "2", "--reference", "recorded")
        out = tmp_path / "eval"
        answer = run("eval", program, *words, "-o", out, "--format", "json", *more)
        assert answer.code == 0, answer.err
        data = valid(answer, "eval")["data"]
        return data["variants"][0]["outputs"][0]["max_abs"], answer.out

    assert worst()[0] < 1e-6
    error, out = worst("--backend-option", DOUBLED[0])
    assert error > 0.1
    assert "reused" not in out
    assert worst()[0] < 1e-6


def test_bisection_uses_the_options_in_its_trials_and_in_its_identity(
    program: Path, tmp_path: Path
) -> None:
    job = CompileJob(Source(str(tmp_path / "net.py"), "net"), partitioners=("toy",))
    for bound in ("output.max_abs<=1e-3", "gap.max_abs<=1e-3"):
        plain = BisectJob(job, bound)
        doubled = replace(plain, backend_options=DOUBLED)
        assert bisect(plain, tmp_path, _ignore, NOTHING)["result"] == "nothing to do"
        found = bisect(doubled, tmp_path, _ignore, NOTHING)
        assert found["result"] == "found"
        assert {node["operator"] for node in found["nodes"]} == {"aten.sin.default"}
        assert key_of(plain) != key_of(doubled)
        assert "backend_options" not in json.loads(key_of(plain))  # older states go on
        assert "--backend-option=toy:gain=2" in command_of(doubled)


def _ignore(*_content: Any, **_more: Any) -> None:
    """Ignore messages."""


def test_gap_with_an_option_compares_a_run_of_its_own(program: Path) -> None:
    without = valid(run("gap", program, "--format", "json"), "gap")["data"]
    assert without["notes"][0].startswith("gap needs an ETDump")
    answer = run("gap", program, "--backend-option", DOUBLED[0], "--format", "json")
    assert answer.code == 0, answer.err
    data = valid(answer, "gap")["data"]
    assert data["notes"][0] == "a run of its own with toy:gain=2"
    assert data["first_divergence"] is not None
    same = run("gap", program, "--backend-option", "toy:gain=1", "--format", "json")
    assert valid(same, "gap")["data"]["first_divergence"] is None


def test_gap_with_an_option_runs_on_the_inputs_of_the_trace(program: Path, tmp_path: Path) -> None:
    torch.save([torch.full((3,), 0.25)], tmp_path / "x.pt")
    level = ("--debug-level", "intermediate", "--runs", "1", "--warmup", "0")
    model = program / "model.pte"
    done = run("run", model, "--inputs", tmp_path / "x.pt", *level, "-o", program / "run")
    assert done.code == 0, done.err
    files = [program / "model.pte", program / "model.etrecord", program / "run"]
    answer = run("gap", *files, "--backend-option", DOUBLED[0], "--format", "json")
    data = valid(answer, "gap")["data"]
    found = [row["max_abs"] for row in data["rows"] if row["compared"]]
    expected = float(torch.sin(torch.sin(torch.tensor(0.25))))  # doubled, it is off by itself
    assert max(found) == pytest.approx(expected, rel=1e-5)


def test_bisection_of_payloads_that_only_a_record_stands_in_for_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, RefusingExecutor)
    source = tmp_path / "net.py"
    source.write_text(SOURCE)
    job = CompileJob(Source(str(source), "net"), partitioners=("toy",))
    for bound in ("output.max_abs<=1e-9", "gap.max_abs<=1e-9", "latency<=1ns"):
        with pytest.raises(AnswerError, match=r"does not run here \(.*its package is missing"):
            bisect(BisectJob(job, bound), tmp_path, _ignore, NOTHING)
    found = bisect(BisectJob(job, "delegates<=0"), tmp_path, _ignore, NOTHING)
    assert found["result"] == "found"


def test_long_error_of_cplusplus_code_keeps_its_cause() -> None:
    checks = "\n".join(f"Check 'step {n}' failed at src/file{n}.cpp:{n}:" for n in range(40))
    text = f"Exception from src/core.cpp:1:\n{checks}\nelement types differ: i8 and f32"
    found = exporter.sentence_of(RuntimeError(text))
    assert found.startswith("RuntimeError: Exception from src/core.cpp:1:")
    assert found.endswith("element types differ: i8 and f32")
    assert " … " in found
    assert len(found) < 640
    plain = exporter.sentence_of(ValueError("wrong:\none\ntwo\nthree\nfour"))
    assert plain == "ValueError: wrong: one two three"


class _Wrapping:
    """A pass that runs others by a pass manager, as vendors do."""

    def __init__(self, inner: Callable[[Any], Any]) -> None:
        self._inner = inner

    def __call__(self, module: Any) -> Any:
        return PassManager(passes=[self._inner])(module)


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_error_of_a_pass_is_its_own_not_that_of_the_pass_manager(depth: int) -> None:
    def failing(_module: Any) -> Any:
        raise RuntimeError("Must set persistent_buffer when creating a new buffer.")

    run: Callable[[Any], Any] = failing
    for _ in range(depth):
        run = _Wrapping(run)
    module = torch.fx.symbolic_trace(torch.nn.ReLU())
    with pytest.raises(Exception, match="An error occurred when running") as caught:
        run(module)
    told = exporter.sentence_of(caught.value)
    assert told == "RuntimeError: Must set persistent_buffer when creating a new buffer."
    assert "An error occurred" in exporter.failure(caught.value)["details"]
    alone = RuntimeError("An error occurred when running the 'x' pass")
    assert exporter.sentence_of(alone) == f"RuntimeError: {alone}"
