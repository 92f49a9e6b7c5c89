"""`etscope run`, `verify` and `bundle` as processes: files, answers, exit codes, every refusal."""

from __future__ import annotations

import json
import os
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from compiler import to_edge
from inspector.check.session import BELONG, check_session
from inspector.files.load import load_session
from inspector.findings.session import findings
from inspector.jobs import run as jobs
from inspector.jobs.executing import (
    BundleJob,
    RunJob,
    VerifyJob,
)
from inspector.jobs.messages import Log
from inspector.jobs.table import EXECUTES, kind_of
from inspector.worker import executing
from inspector.worker.tasks import Task
from runtime import Runtime
from runtime.delegates.interface import BackendRegistry
from schema import etdump
from schema.objects.codec import to_json
from schema.program import model
from tests.inspector.cli_runs import run, valid
from tests.inspector.jobs_here import Here
from tests.inspector.sessions import DATA

pytestmark = pytest.mark.slow

CONVNET = DATA / "corpus/v1.5.1/mm_portable"
STATE = DATA / "extra/counter_state/model.pte"
BUNDLE = DATA / "extra/bundled_cases/model.bpte"
SOURCES = Path(__file__).parents[1] / "compiler" / "job_sources.py"
FILES = ["inputs.pt", "outputs.pt", "run.etdp", "run.json", "values.debug", "values.etdp"]


def test_run_writes_what_the_runtime_gives_and_answers_as_the_contract_says(
    tmp_path: Path,
) -> None:
    inputs = [torch.arange(4.0).reshape(2, 2) + place / 3 for place in range(3)]
    torch.save([inputs[0], (inputs[1], [inputs[2]])], tmp_path / "in.pt")
    answer = run(
        *("run", CONVNET / "model.pte", "-o", tmp_path / "out", "--inputs", tmp_path / "in.pt"),
        *("--runs", "3", "--warmup", "2", "--debug-level", "intermediate", "--threads", "1"),
        *("--record", CONVNET / "model.etrecord", "--format", "json"),
    )
    assert (answer.code, answer.err) == (0, "")
    data = valid(answer, "run")["data"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == FILES
    report = json.loads((tmp_path / "out/run.json").read_text("utf-8"))
    assert {**report, "folder": str(tmp_path / "out")} == data
    assert (len(data["run_ms"]), data["threads"]) == (3, 1)
    assert data["latency_ms"]["min"] <= data["latency_ms"]["mean"] <= data["latency_ms"]["max"]
    assert data["latency_ms"]["median"] is None  # of three runs
    found = torch.load(tmp_path / "out/outputs.pt", weights_only=True)
    method = Runtime.get().load_program(CONVNET / "model.pte").load_method("forward")
    assert all(map(torch.equal, found, method.execute(inputs)))
    dump = etdump.decode((tmp_path / "out/run.etdp").read_bytes())
    assert [one.name for one in dump.run_data] == ["Default", *["Execute"] * 3]
    session = load_session([str(CONVNET / "model.pte"), str(tmp_path / "out")])
    assert check_session(session).verdict == BELONG
    assert session.debug_buffer is not None


def test_run_without_values_leaves_no_debug_buffer_and_verbs_say_why(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = run("run", CONVNET / "model.pte", "-o", out, "--debug-level", "intermediate")
    assert (first.code, (out / "values.debug").stat().st_size > 0) == (0, True)
    again = run("run", CONVNET / "model.pte", "-o", out, "--force")
    assert again.code == 0
    assert not (out / "run.debug").exists()  # nor that of the run before
    for empty in (False, True):
        if empty:
            (out / "run.debug").touch()  # as other runtimes leave it
        named = (CONVNET / "model.pte", out / "run.etdp", out / "run.debug")
        for verb in ("summary", "tensors", "check"):
            answer = run(verb, *named)
            assert answer.code == 0, (verb, answer.err)
            assert "no values were logged in this run" in answer.out + answer.err
            assert "--debug-level intermediate" in answer.out + answer.err
    lost = run("summary", CONVNET / "model.pte", tmp_path / "run.debug")
    assert lost.code != 0  # without a trace beside it, it is a file that is not there


def test_empty_trace_says_that_tracing_was_off(tmp_path: Path) -> None:
    shutil.copy(CONVNET / "model.pte", tmp_path)
    (tmp_path / "run.etdp").touch()
    for named in ((tmp_path,), (tmp_path / "model.pte", tmp_path / "run.etdp")):
        answer = run("profile", *named)
        assert "the runner writes one when event tracing was off" in answer.out + answer.err
        assert "EXECUTORCH_ENABLE_EVENT_TRACER=ON" in answer.out + answer.err
    alone = run("summary", tmp_path / "run.etdp")
    assert alone.code == 3
    assert "run.etdp: at byte 0x0: expected an ETDump, found an empty file; the runner" in alone.err


def test_every_run_and_case_begins_from_the_state_that_was_loaded(
    here: None, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    asked = ("--inputs", "ones", "--runs", "2", "--warmup", "1", "--debug-level", "outputs")
    answer = run("run", STATE, "-o", out, *asked)
    assert answer.code == 0
    found = torch.load(out / "outputs.pt", weights_only=True)
    method = Runtime.get().load_program(STATE).load_method("forward")
    meta = method.metadata
    ones = [torch.ones(meta.input_tensor_meta(at).sizes()) for at in range(meta.num_inputs())]
    wanted = [method.execute(ones) for _ in range(2)]
    assert all(map(torch.equal, found, wanted[0]))
    assert not all(map(torch.equal, found, wanted[1]))
    shown = run("tensors", out / "values.etdp", out / "values.debug", "--format", "json")
    logged = [one for one in valid(shown, "tensors")["data"]["logged"] if one["output"]]
    means = [one["statistics"]["mean"] for one in logged]
    assert means == [float(one.mean()) for one in wanted[0]]
    torch.save(wanted[0], tmp_path / "first.pt")
    case = ("--inputs", "ones", "--expected", tmp_path / "first.pt")
    assert run("bundle", STATE, *case, *case, "-o", tmp_path / "b.bpte").code == 0
    checked = run("verify", tmp_path / "b.bpte", "--format", "json")
    assert checked.code == 0
    assert valid(checked, "verify")["data"]["passed"] == 2


def test_run_of_a_bundled_case_names_it_in_the_trace(here: None, tmp_path: Path) -> None:
    out = tmp_path / "out"
    answer = run("run", "--bundled", BUNDLE, "--case", "1", "-o", out, "--format", "json")
    assert answer.code == 0, answer.err
    data = valid(answer, "run")["data"]
    assert (data["options"]["inputs"], data["options"]["case"]) == ("bundled", 1)
    dump = etdump.decode((out / "run.etdp").read_bytes())
    assert dump.run_data[-1].bundled_input_index == 1
    plain = run("run", BUNDLE, "--bundled", "1", "-o", tmp_path / "b", "--no-trace")
    assert plain.code == 0
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == ["outputs.pt", "run.json"]
    one, two = (torch.load(path / "outputs.pt") for path in (out, tmp_path / "b"))
    assert all(map(torch.equal, one, two))


def test_bundle_of_a_module_passes_and_of_wrong_outputs_fails(here: None, tmp_path: Path) -> None:
    made = run("bundle", f"{SOURCES}:good", "-o", tmp_path / "m.bpte", "--format", "json")
    assert made.code == 0, made.err
    data = valid(made, "bundle")["data"]
    assert [(one["method"], len(one["expected"])) for one in data["cases"]] == [("forward", 1)]
    refused = run("bundle", f"{SOURCES}:good", "-o", tmp_path / "m.bpte")
    assert refused.code == 2
    assert "--force replaces it" in refused.err
    shape = data["cases"][0]["inputs"][0]["shape"]
    torch.save([torch.zeros(shape)], tmp_path / "in.pt")
    torch.save([torch.full(data["cases"][0]["expected"][0]["shape"], 77.0)], tmp_path / "out.pt")
    again = run(
        *("bundle", tmp_path / "m.bpte", "--inputs", tmp_path / "in.pt"),
        *("--expected", tmp_path / "out.pt", "-o", tmp_path / "wrong.bpte"),
    )
    assert again.code == 0, again.err
    checked = run("verify", tmp_path / "wrong.bpte", "--format", "json")
    assert checked.code == 1
    (case,) = valid(checked, "verify")["data"]["cases"]
    assert case["verdict"] == "failed"
    assert case["outputs"][0]["mismatched"] == case["outputs"][0]["elements"] > 0


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let jobs be done in this process, where torch is loaded already."""
    threads = torch.get_num_threads()
    monkeypatch.setattr(jobs, "Worker", Here)
    yield
    torch.set_num_threads(threads)


def test_delegates_of_backends_that_are_not_here_are_emulated_with_a_record(
    here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = DATA / "corpus/v1.5.1/mm_xnnpack"
    known = run("run", folder / "model.pte", "-o", tmp_path / "a", "--engine", "torch")
    assert known.code == 0
    monkeypatch.setattr(Runtime.get(), "backend_registry", BackendRegistry({}))
    refused = run("run", folder / "model.pte", "-o", tmp_path / "b")
    assert refused.code == 4
    assert "the program needs XnnpackBackend" in refused.err
    assert "(NotFound 0x20)" in refused.err
    answer = run(
        *("run", folder / "model.pte", "-o", tmp_path / "b", "--format", "json"),
        *("--record", folder / "model.etrecord"),
    )
    assert answer.code == 0, answer.err
    data = valid(answer, "run")["data"]
    assert {one["engine"] for one in data["partitions"]} == {"emulated"}
    one, two = (torch.load(tmp_path / name / "outputs.pt") for name in ("a", "b"))
    assert all(torch.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("emulated", [True, False])
@pytest.mark.parametrize("level", ["none", "intermediate"])
def test_profile_and_summary_say_whether_delegates_were_emulated(
    emulated: bool, level: str, here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = DATA / "corpus/special/xnnpack_two_delegates"
    if emulated:
        monkeypatch.setattr(Runtime.get(), "backend_registry", BackendRegistry({}))
    asked = ("run", folder / "model.pte", "-o", tmp_path, "--debug-level", level, "--runs", "2")
    assert run(*asked, "--force", "--record", folder / "model.etrecord").code == 0
    files = (folder / "model.pte", folder / "model.etrecord", tmp_path / "run.etdp")
    words = "emulated by the recorded graph: not what the payload computes"
    data = valid(run("profile", *files, "--format", "json"), "profile")["data"]
    assert [one["emulated"] for one in data["methods"].values()] == [emulated]
    for verb in ("profile", "summary"):
        assert (words in run(verb, *files).out) is emulated, verb
    alone = run("profile", tmp_path / "run.etdp").out  # the trace itself says it
    assert (words in alone) is emulated
    clean = tmp_path / "clean"
    assert run("export", "--as", "anonymous", *files, "-o", clean).code in (0, 2)


FILTERS = {
    ("--debug-module", "stem"): {"convolution", "native_batch_norm_legit_no_training", "hardtanh"},
    ("--debug-module", r"stem\.[02]"): {"convolution", "hardtanh"},
    ("--debug-module", "fc"): {"permute_copy", "addmm"},
    ("--debug-handle", "1"): {"convolution"},
    ("--debug-handle", "1", "--debug-handle", "10"): {"convolution", "log_softmax"},
    ("--debug-module", "stem", "--debug-op", "aten::hard.*"): {"hardtanh"},
}


@pytest.mark.parametrize("words", FILTERS, ids=" ".join)
def test_values_of_modules_and_handles_alone_are_recorded(
    words: tuple[str, ...], here: None, tmp_path: Path
) -> None:
    folder = DATA / "corpus/v1.5.1/convnet_portable"
    files = ("--record", folder / "model.etrecord", "-o", tmp_path / "out")
    answer = run("run", folder / "model.pte", *files, *words, "--format", "json")
    assert answer.code == 0, answer.err
    valid(answer, "run")
    dump = etdump.decode((tmp_path / "out/values.etdp").read_bytes())
    plan = Runtime.get().load_program(folder / "model.pte").file.plans[0]
    steps = [step.instr_args for step in plan.chains[0].instructions]
    logged: set[str] = set()
    for event in dump.run_data[-1].events:
        if isinstance(event, etdump.DebugEvent) and event.chain_index == 0:
            call = steps[event.instruction_id]
            assert isinstance(call, model.KernelCall)
            logged.add(plan.operators[call.op_index].name.removeprefix("aten::").lstrip("_"))
    assert logged == FILTERS[words]


def test_filter_by_module_that_chooses_nothing_names_what_there_is(
    here: None, tmp_path: Path
) -> None:
    folder = DATA / "corpus/v1.5.1/convnet_portable"
    asked = ("run", folder / "model.pte", "-o", tmp_path / "out", "--debug-level", "intermediate")
    alone = run(*asked, "--debug-module", "stem")
    assert (alone.code, "--record" in alone.err) == (2, True)
    record = ("--record", folder / "model.etrecord")
    none = run(*asked, *record, "--debug-module", "head")
    assert none.code != 0
    assert "no instruction of forward belongs to module head" in none.err
    assert "modules: stem, stem.0" in none.err
    assert "handles: 1 to 10" in run(*asked, *record, "--debug-handle", "99").err


class Large(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.reshape(5, 9) * 0.5, x[:3] > 20, x.sum().to(torch.int32)


def test_outputs_are_printed_in_the_form_of_the_stock_runner(here: None, tmp_path: Path) -> None:
    exported = torch.export.export(Large(), (torch.arange(45.0),))
    large = tmp_path / "large.pte"
    large.write_bytes(to_edge(exported).to_executorch().buffer)
    torch.save([torch.arange(45.0) / 2], tmp_path / "in.pt")
    asked = ("run", large, "--inputs", tmp_path / "in.pt", "--runs", "3", "--force")
    off = run(*asked, "-o", tmp_path / "o")
    assert "Model executed successfully 3 time(s) in " in off.out
    assert " ms: forward on " in off.out
    assert "tensor(sizes" not in off.out
    summary = run(*asked, "-o", tmp_path / "o", "--print-output", "summary").out
    assert (
        "output 0: float32 [5, 9]\n"
        "tensor(sizes=[5, 9], [\n"
        "  0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.25, \n"
        "  ..., \n"
        "  8.75, 9, 9.25, 9.5, 9.75, 10, 10.25, 10.5, 10.75, 11, \n"
        "])\n"
    ) in summary
    assert "tensor(sizes=[3], [\n  False, False, False, \n])" in summary
    assert "tensor(sizes=[], [\n  495, \n])" in summary
    answer = run(*asked, "-o", tmp_path / "o", "--print-output", "all", "--format", "json")
    text = valid(answer, "run")["data"]["outputs"][0]["text"]
    assert len(text.splitlines()) == 2 + 5
    assert "..." not in text
    numbers = [float(word) for line in text.splitlines()[1:-1] for word in line.split(",")[:-1]]
    assert numbers == [value / 4 for value in range(45)]


def test_threads_without_a_core_each_are_a_warning(
    here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from inspector.worker import run_job

    monkeypatch.setattr(run_job, "usable_cores", lambda: 2)
    monkeypatch.setattr(run_job, "busy_cores", lambda _windows: 0.0)
    asked = ("run", CONVNET / "model.pte", "-o", tmp_path / "out", "--force", "--format", "json")
    idle = run(*asked, "--threads", "2")
    assert valid(idle, "run")["data"]["warnings"] == []
    many = valid(run(*asked, "--threads", "5"), "run")["data"]["warnings"]
    assert len(many) == 1
    assert many[0].startswith("5 threads share 2 cores")
    monkeypatch.setattr(run_job, "busy_cores", lambda _windows: 1.5)
    busy = run(*asked, "--threads", "2")
    assert "other processes, which kept 1.5 of them busy" in busy.json["data"]["warnings"][0]
    assert "--threads 1" in json.loads((tmp_path / "out/run.json").read_text())["warnings"][0]
    plain = run(*asked[:-2], "--threads", "2")
    assert "share 2 cores with other processes" in plain.out + plain.err
    trace = tmp_path / "out/run.etdp"
    words = "2 threads share 2 cores with other processes"
    assert words in run("summary", CONVNET / "model.pte", trace).out
    other = tmp_path / "other"
    other.mkdir()
    (other / "run.json").write_bytes((tmp_path / "out/run.json").read_bytes())
    (other / "run.etdp").write_bytes((CONVNET / "run.etdp").read_bytes())
    assert words not in run("summary", CONVNET / "model.pte", other / "run.etdp").out
    assert run(*asked, "--threads", "1").json["data"]["warnings"] == []
    assert words not in run("summary", CONVNET / "model.pte", trace).out


def test_lines_that_the_runtime_logs_are_messages_of_the_worker(tmp_path: Path) -> None:
    worker = Here(EXECUTES)

    def send(job: RunJob) -> None:
        worker.send({"kind": "run", "job": to_json(job), "folder": str(tmp_path), "options": {}})

    send(RunJob(str(CONVNET / "model.pte")))
    logged = [one for one in worker.take() if isinstance(one, Log) and one.logger == "runtime"]
    assert [(one.text, one.level) for one in logged] == [("method 'forward' is loaded", 20)]
    assert all(one.library for one in logged)
    torch.save([torch.ones(2, 2)], tmp_path / "few.pt")
    bad = RunJob(str(DATA / "extra/kv_cache/model.pte"), inputs=str(tmp_path / "few.pt"))
    send(bad)
    assert worker.outcome is not None
    said = run("run", CONVNET / "model.pte", "-o", tmp_path / "v", "--verbose").err
    assert "runtime: method 'forward' is loaded" in said


class _Code:
    """Something that runs code when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch stolen",)


def test_inputs_that_would_run_code_are_refused(
    here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save([_Code()], tmp_path / "evil.pt")
    answer = run("run", CONVNET / "model.pte", "-o", "out", "--inputs", "evil.pt")
    assert answer.code == 3
    assert "without running code of it" in answer.err
    assert answer.err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["evil.pt"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (
            (CONVNET / "model.pte", "--method", "backward"),
            2,
            "unknown method 'backward'; available:",
        ),
        ((CONVNET / "model.pte", "--inputs", "one.pt"), 2, "(1) must be same as the number"),
        ((CONVNET / "model.pte", "--inputs", "double.pt"), 2, "expected torch.float32"),
        ((DATA / "corpus/v1.5.1/mm_portable/model.etrecord",), 3, "expected"),
        ((BUNDLE, "--bundled", "7"), 2, "case 7 not found"),
        ((DATA / "corpus/payloads/ethosu_q.pte",), 4, "runs on its hardware only"),
    ],
)
def test_run_that_cannot_be_done_is_one_sentence_and_leaves_nothing(
    arguments: tuple[str | Path, ...],
    code: int,
    words: str,
    here: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save([torch.ones(2, 2)], "one.pt")
    torch.save([torch.ones(2, 2, dtype=torch.float64)] * 3, "double.pt")
    answer = run("run", *arguments, "-o", "out")
    assert (answer.code, answer.err.count("\n")) == (code, 1), answer.err
    assert words in answer.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["double.pt", "one.pt"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 2, "which program?"),
        ((CONVNET / "model.pte",), 2, "-o DIR is missing"),
        ((CONVNET / "none.pte", "-o", "out"), 3, "No such file"),
        (
            (CONVNET / "model.pte", "-o", "out", "--runs", "0"),
            2,
            "expected an integer of at least 1",
        ),
        ((CONVNET / "model.pte", "-o", "out", "--debug-op", "("), 2, "no regular expression"),
        (
            (CONVNET / "model.pte", "-o", "out", "--debug-op", "x", "--debug-level", "none"),
            2,
            "choose among recorded values, --debug-level none records none",
        ),
        (
            (CONVNET / "model.pte", "-o", "out", "--debug-op", "x", "--no-trace"),
            2,
            "choose among recorded values, --no-trace records none",
        ),
        ((CONVNET / "model.pte", "-o", "out", "--inputs", "none.pt"), 3, "No such file"),
        ((BUNDLE, "-o", "out", "--inputs", "ones", "--bundled"), 2, "both name inputs"),
        (
            (CONVNET / "model.pte", "-o", "o", "--record", DATA / "extra/identity/model.etrecord"),
            3,
            "the record is not one of this program",
        ),
    ],
)
def test_run_that_is_asked_wrongly_starts_nothing(
    arguments: tuple[str | Path, ...],
    code: int,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = run("run", *arguments)
    assert (answer.code, answer.err.count("\n")) == (code, 1), answer.err
    assert words in answer.err
    assert list(tmp_path.iterdir()) == []


def test_verify_with_a_record_runs_what_no_backend_does(
    here: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = DATA / "corpus/special/xnnpack_two_delegates"
    monkeypatch.setattr(Runtime.get(), "backend_registry", BackendRegistry({}))
    alone = run("verify", folder / "model.bpte", "--format", "json")
    assert alone.code == 1
    assert "0x20" in valid(alone, "verify")["data"]["cases"][0]["error"]
    record = folder / "model.etrecord"
    asked = ("verify", folder / "model.bpte", "--record", record)
    found = run(*asked, "--rtol", "1e-4", "--atol", "1e-5", "--format", "json")
    assert found.code == 0, found.out
    for case in valid(found, "verify")["data"]["cases"]:
        assert {one["engine"] for one in case["partitions"]} == {"emulated"}
    assert "2 delegates of XnnpackBackend: emulated by the recorded graph" in run(*asked).out
    other = run(*asked[:2], "--record", DATA / "corpus/v1.5.1/mm_portable/model.etrecord")
    assert (other.code, "not one of this program" in other.err) == (3, True)


def test_bundle_of_a_file_of_cases_has_them_all(here: None, tmp_path: Path) -> None:
    program = DATA / "corpus/v1.5.1/mm_portable/model.pte"
    cases = [[torch.full((2, 2), float(at + one)) for one in range(3)] for at in range(4)]
    torch.save(cases, tmp_path / "in.pt")
    method = Runtime.get().load_program(program).load_method("forward")
    torch.save([tuple(method.execute(case)) for case in cases], tmp_path / "out.pt")
    torch.save(cases[0], tmp_path / "one.pt")
    several = ("--inputs", tmp_path / "in.pt", "--expected", tmp_path / "out.pt")
    made = run("bundle", program, *several, "-o", tmp_path / "m.bpte", "--format", "json")
    assert made.code == 0, made.err
    assert [one["case"] for one in valid(made, "bundle")["data"]["cases"]] == [0, 1, 2, 3]
    assert "4 of 4 cases passed" in run("verify", tmp_path / "m.bpte").out
    uneven = run(
        *("bundle", program, "--inputs", tmp_path / "one.pt", "--expected", tmp_path / "out.pt"),
        *("-o", tmp_path / "n.bpte"),
    )
    assert (uneven.code, "outputs of 4 cases" in uneven.err) == (2, True), uneven.err


def test_verify_and_bundle_asked_wrongly_are_one_sentence(here: None) -> None:
    program = CONVNET / "model.pte"
    for arguments, code, words in (
        (("verify", program), 3, "expected"),
        (("verify", BUNDLE, "--method", "backward"), 2, "available: forward"),
        (("verify", BUNDLE, "--rtol", "x"), 2, "expected a number of at least 0"),
        (("bundle", program), 2, "is missing: it names"),
        (("bundle", program, "-o", program, "--force"), 2, "is one of the files being read"),
        (("bundle", "model.py", "-o", "x.bpte"), 2, "expected model.py:function"),
    ):
        answer = run(*arguments)
        assert (answer.code, answer.err.count("\n")) == (code, 1), answer.err
        assert words in answer.err


@pytest.fixture
def largest_file(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Let no file become larger than this."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
    yield 200_000
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_outputs_survive_a_disk_that_fills_up_while_recording(
    here: None, largest_file: int, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    folder = DATA / "corpus/v1.5.1/tinygpt_portable"
    options = ("-o", out, "--debug-level", "intermediate", "--format", "json", "--runs", "1")
    answer = run("run", folder / "model.pte", *options, "--warmup", "0")
    assert answer.code == 4
    tree = valid(answer, "run")
    assert tree["data"]["trace"]["failure"] == (
        "values.debug ends early, inputs.pt is missing: File too large"
    )
    assert [issue["severity"] for issue in tree["issues"]] == ["error"]
    assert sorted(path.name for path in out.iterdir()) == [
        one for one in FILES if one != "inputs.pt"
    ]
    (logits,) = torch.load(out / "outputs.pt", weights_only=True)
    assert bool(logits.isfinite().all())
    assert 0 < (out / "values.debug").stat().st_size < largest_file
    session = load_session([str(folder / "model.pte"), str(out)])
    assert check_session(session).verdict == BELONG
    assert session.debug_buffer is not None
    assert session.issues == ()


def test_outputs_survive_a_disk_that_takes_nothing_logged(tmp_path: Path) -> None:
    (tmp_path / "values.debug").symlink_to("/dev/full")
    job = RunJob(str(CONVNET / "model.pte"), debug_level="intermediate", runs=1, warmup=0)
    report = executing.execute(job, Task(tmp_path, lambda *_said, **_content: None))
    assert "No space left" in report["trace"]["failure"]
    assert len(torch.load(tmp_path / "outputs.pt")) == 1
    dump = etdump.decode((tmp_path / "values.etdp").read_bytes())
    assert not any(isinstance(event, etdump.DebugEvent) for event in dump.events)


def test_outputs_survive_a_trace_that_is_larger_than_files_may_be(
    here: None, tmp_path: Path
) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6_000, before[1]))
    try:
        folder, out = DATA / "corpus/v1.5.1/tinygpt_portable", tmp_path / "out"
        answer = run("run", folder / "model.pte", "-o", out, "--runs", 20, "--format", "json")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert answer.code == 4
    assert valid(answer, "run")["data"]["trace"]["failure"] == "run.etdp is missing: File too large"
    assert not (out / "run.etdp").exists()
    (logits,) = torch.load(out / "outputs.pt", weights_only=True)
    assert bool(logits.isfinite().all())


@pytest.mark.parametrize(
    "job",
    [
        RunJob("a.pte", case=3, data_files=("a.ptd", "b.ptd"), only="aten::.*"),
        VerifyJob("a.bpte", rtol=0.5),
        BundleJob("a.pte", inputs=("ones",), expected=("e.pt",)),
    ],
)
def test_job_survives_its_journey(job: RunJob | VerifyJob | BundleJob) -> None:
    assert kind_of(job).read(json.loads(json.dumps(to_json(job)))) == job


@pytest.mark.interop
def test_the_stock_runtime_is_given_no_record_that_nobody_named(tmp_path: Path) -> None:
    stock = ("--toolchain", "executorch", "--runs", "1", "--warmup", "0")
    answer = run("run", CONVNET, *stock, "-o", tmp_path / "out")
    assert (answer.code, "has no effect" in answer.err + answer.out) == (0, False)
    record = CONVNET / "model.etrecord"
    answer = run("run", CONVNET, *stock, "--record", record, "-o", tmp_path / "two")
    assert "--record has no effect" in answer.err + answer.out
    report = json.loads((tmp_path / "two/run.json").read_text())
    assert [text.split(":")[0] for text in report["ignored"]] == ["--record has no effect"]
    found = findings(load_session([CONVNET / "model.pte", tmp_path / "two/run.etdp"]))
    assert not any("has no effect" in one.text for one in found)  # it makes no figure uncertain


def test_folder_of_a_compile_runs_like_its_files(tmp_path: Path) -> None:
    answer = run("run", CONVNET, "-o", tmp_path / "out", "--format", "json")
    assert answer.code == 0
    assert valid(answer, "run")["inputs"] == [
        *(str(CONVNET / name) for name in ("model.pte", "model.etrecord"))
    ]
    assert (tmp_path / "out/run.etdp").is_file()
    (net := tmp_path / "net").mkdir()
    empty = run("run", net, "-o", tmp_path / "none")
    assert (empty.code, "expected one program in the folder, found none" in empty.err) == (2, True)
    (net / "stock.pte").write_bytes((CONVNET / "model.pte").read_bytes())  # of any name
    assert run("run", net, "-o", tmp_path / "any", "--runs", "1").code == 0
