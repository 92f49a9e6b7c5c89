"""The history of jobs: written, read, bounded, damaged; its table, its commands, its bug report."""

from __future__ import annotations

import argparse
import json
import logging
import os
import shlex
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from inspector.cli import backends, bisect, bundle, compare, compile, gap, run, step, verify
from inspector.cli import eval as eval_verb
from inspector.cli.compile import _options_of
from inspector.cli.run import _job
from inspector.experiments.sweeps.grid import parse_grid
from inspector.experiments.sweeps.request import SweepRequest, job_command, requested_job
from inspector.experiments.sweeps.task import SweepSettings
from inspector.files.written_folders import removed, written_by_job
from inspector.jobs import history
from inspector.jobs.backend_plan import BackendPlanJob
from inspector.jobs.bisect import BisectJob
from inspector.jobs.bug_report import report_files, write_report
from inspector.jobs.commands import command_of
from inspector.jobs.evaluate import EvalJob, EvalReference
from inspector.jobs.executing import BundleJob, MeasureJob, RunJob, StepJob, VerifyJob
from inspector.jobs.gap import GapJob
from inspector.jobs.history import (
    INTERRUPTED,
    JobEntry,
    LoggedLine,
    end_line,
    line_of,
    new_id,
    read_entries,
    reading,
    request_content,
    request_of,
    subject_of,
    write_entry,
)
from inspector.jobs.messages import Ended, Log, StageProgress, Warned
from inspector.jobs.results import result_paths
from inspector.recipes.compile_job import CompileJob, Precision, Quantization, Rules
from inspector.recipes.source import Source
from inspector.tables.jobs import job_table, output_size
from tests.inspector.cli_runs import run as run_verb

JOB = CompileJob(
    Source("/home/ada/net.py", "build"),
    partitioners=("xnnpack:force=a b", "part.py:Mine"),
    rules=Rules(deny_ops=("aten.add*",), min_nodes=3),
    quantising=Quantization(mode="dynamic"),
    precision=Precision(modules=("head=float16",)),
    external_constants=True,
    memory_planner="greedy",
    libraries=("/home/ada/ops.py",),
)


def _entry(number: int = 1, **changes: object) -> JobEntry:
    entry = JobEntry(
        new_id(1_700_000_000.0 + number, number),
        "compile",
        "ada/net.py:build",
        1_700_000_000.0 + number,
        os.getpid(),
        "/home/ada/build",
        request_content(JOB),
        2.5,
        Ended.FAILED,
        "net.py:3: no such operator",
        "/home/ada/net.py",
        3,
        "Traceback …",
        (LoggedLine(1_700_000_001.0, logging.WARNING, "odd", "warning"),),
    )
    return replace(entry, **changes)


def test_entry_is_read_as_it_was_written(tmp_path: Path) -> None:
    entry = _entry()
    write_entry(tmp_path / "jobs", entry)
    (found,) = read_entries(tmp_path / "jobs")
    assert found == entry
    assert request_of(found) == JOB
    assert found.outcome is not None
    assert (found.outcome.file, found.outcome.line) == ("/home/ada/net.py", 3)


def test_oldest_entries_go_and_damaged_ones_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(history, "KEPT_JOBS", 3)
    (tmp_path / "settings.json").write_text("{}")
    for number in range(5):
        write_entry(tmp_path, _entry(number))
    assert [one.started - 1_700_000_000 for one in read_entries(tmp_path)] == [4, 3, 2]
    newest, middle, _ = sorted(tmp_path.glob("2*.json"), reverse=True)
    newest.write_bytes(newest.read_bytes()[:100])
    middle.write_text(json.dumps({"etscope_job": 1, "entry": {"id": 5}}))
    (found,) = read_entries(tmp_path)
    assert found.started == 1_700_000_002
    assert len(caplog.messages) == 2
    assert (tmp_path / "settings.json").exists()


def test_job_of_a_lost_window_was_interrupted() -> None:
    running = _entry(seconds=None, ended=None, sentence="", started=time.time())
    assert running.state == "running"
    assert running.outcome is None
    later = replace(running, started=psutil.Process().create_time() - 60)  # had that number before
    for lost in (replace(running, process=2**22 + 1), later):
        assert lost.state == INTERRUPTED
        assert "its window ended before it" in str(job_table([lost]))


def test_messages_become_lines_with_levels() -> None:
    assert line_of(Log("hello"), 1.0) == LoggedLine(1.0, logging.INFO, "hello")
    warned = line_of(Warned("dropped", "net.py", 4), 1.0)
    assert warned == LoggedLine(1.0, logging.WARNING, "net.py:4: dropped", "warning")
    stage = line_of(StageProgress("export", "forward", 1.25, 12), 1.0)
    assert stage is not None
    assert stage.text == "export of forward: 1.25 s, 12 nodes"
    assert line_of(StageProgress("export"), 1.0) is None
    end = end_line(_entry(), 9.0)
    assert (end.level, end.text) == (
        logging.ERROR,
        "failed after 2.5 s: net.py:3: no such operator",
    )


def test_table_of_a_folder_a_file_and_a_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "net/model.pte"
    program.parent.mkdir()
    program.write_bytes(b"")
    kept = tmp_path / "config/jobs"
    monkeypatch.setenv("ETSCOPE_SETTINGS", str(tmp_path / "config/settings.json"))
    mine = _entry(
        1, kind="run", request=request_content(RunJob(str(program))), target=str(tmp_path / "o")
    )
    write_entry(kept, mine)
    write_entry(kept, _entry(2))
    workspace = tmp_path / "two.etscope"
    sessions = [{"id": "A", "paths": ["net/model.pte"]}]
    workspace.write_text(json.dumps({"etscope_workspace": 1, "sessions": sessions}))
    whole = run_verb("table", "jobs", kept, "--format", "tsv").out.splitlines()
    assert [line.split("\t")[1] for line in whole] == ["job", "compile", "run"]
    for place in (program, program.parent, workspace, tmp_path / "two.etscope"):
        rows = run_verb("table", "jobs", place, "--format", "tsv").out.splitlines()
        assert [line.split("\t")[:2] for line in rows[1:]] == [["failed", "run"]]


def test_size_is_that_of_files_that_the_job_wrote(tmp_path: Path) -> None:
    build = tmp_path / "build"
    inner = build / "model_run"  # of another job
    inner.mkdir(parents=True)
    for folder, name, size in ((build, "model.pte", 100), (inner, "run.etdp", 30)):
        (folder / name).write_bytes(bytes(size))
        report = {"etscope": "1", "files": [{"path": name}]}
        kind = "compile.json" if folder == build else "run.json"
        (folder / kind).write_text(json.dumps(report))
    (build / "mine.txt").write_text("mine")
    assert output_size(str(build)) == 100 + (build / "compile.json").stat().st_size
    found = written_by_job(build)
    assert found is not None
    removed(found)
    assert sorted(path.name for path in build.rglob("*.*")) == ["mine.txt", "run.etdp", "run.json"]
    assert output_size(str(build)) == output_size(str(tmp_path / "gone")) == 0


def test_jobs_that_began_with_the_files_of_another_are_known() -> None:
    made = _entry(1)
    run = _entry(2, request=request_content(RunJob("/home/ada/build/model.pte")))
    assert reading((made, run), {"/home/ada/build/model.pte"}) == (run,)
    assert reading((made, run), {"/home/ada/build/model"}) == ()


def _parsed(command: str, verb: object) -> argparse.Namespace:
    line = command.splitlines()[-1]
    words = shlex.split(line)
    parser = argparse.ArgumentParser(allow_abbrev=False)
    verb.add_arguments(parser)
    return parser.parse_args(words[2:])


def test_command_of_a_compile_compiles_the_same() -> None:
    options = _parsed(command_of(JOB, "/home/ada/build"), compile)
    assert _options_of(options) == JOB
    assert options.folder == "/home/ada/build"
    stock = CompileJob(Source("net.pt2"), python="/opt/python", toolchain="executorch")
    assert _options_of(_parsed(command_of(stock), compile)) == stock


@pytest.mark.parametrize(
    "job",
    [
        RunJob("m.pte"),
        RunJob("m.pte", "forward", "in.pt", runs=2, warmup=0, debug_level="outputs", threads=4),
        RunJob("m.bpte", case=0, record="m.etrecord", data_files=("a.ptd",), traced=False),
        RunJob("m.pte", case=2, bundle="m.bpte", engine="torch", sweep_threads=True, seed=7),
        RunJob("m.pte", toolchain="executorch", python="/opt/python", print_output="all"),
        RunJob("m.pte", sequence="data.py:words"),
    ],
)
def test_command_of_a_run_runs_the_same(job: RunJob) -> None:
    assert _job(_parsed(command_of(job, "out"), run)) == job


def test_other_commands_are_understood_by_their_verbs() -> None:
    jobs = (
        (VerifyJob("m.bpte", "forward", 1e-3), verify),
        (StepJob("m.pte", call=1, case=0, stop=0), step),
        (BundleJob("m.pte", "net.py:build", inputs=("random",)), bundle),
        (GapJob(("m.pte", "m.etrecord"), relative=1e-3, libraries=("ops.py",)), gap),
        (BisectJob(JOB, "output.max_abs<=1e-3", runs=5), bisect),
    )
    for job, verb in jobs:
        _parsed(command_of(job, "out"), verb)
    assert command_of(jobs[-1][0], "out").startswith("cat > job-recipe.json <<")
    assert command_of(object()) == ""


def test_zero_is_a_tolerance_of_a_command() -> None:
    strict = command_of(GapJob(("m.pte",), relative=0.0))
    assert _parsed(strict, gap).rtol == 0.0
    checked = _parsed(command_of(VerifyJob("m.bpte", rtol=0.0, atol=0.0)), verify)
    assert (checked.rtol, checked.atol) == (0.0, 0.0)


def test_command_of_a_step_uses_its_threads() -> None:
    assert _parsed(command_of(StepJob("m.pte", threads=3)), step).threads == 3


def test_files_of_a_job_do_not_stop_its_command() -> None:
    """The folder is full: the job that the command repeats wrote into it."""
    found = _parsed(command_of(JOB, "out"), compile), _parsed(command_of(RunJob("m.pte"), "o"), run)
    assert all(one.force for one in found)
    resumed = _parsed(command_of(BisectJob(JOB, "loads"), "out"), bisect)
    assert not resumed.force


@pytest.mark.parametrize(
    ("reference", "word"),
    [
        (EvalReference("", variant=0), "first"),
        (EvalReference("", Source("m.etrecord")), "recorded"),
        (EvalReference("", Source("m.etrecord", "float")), "float"),
        (EvalReference("", Source("net.py", "build")), "float"),
    ],
)
def test_command_of_an_evaluation_has_its_reference(reference: EvalReference, word: str) -> None:
    job = EvalJob(("m",), (RunJob("m.pte", record="m.etrecord"),), "random", reference, samples=2)
    assert _parsed(command_of(job, "out"), eval_verb).reference == word


def test_command_of_a_measurement_runs_the_same_or_there_is_none() -> None:
    one = RunJob("m.pte", backend_options=("openvino:device=CPU",))
    options = _parsed(command_of(MeasureJob((one, one))), compare)
    assert tuple(options.backend_options) == one.backend_options
    for other in (RunJob("m.pte", case=0), RunJob("m.pte", toolchain="executorch")):
        assert command_of(MeasureJob((other, other))) == ""


def test_plan_of_backends_is_planned_again_by_its_whole_recipe(tmp_path: Path) -> None:
    source = tmp_path / "net.py"
    source.write_text("def build(): ...\n")
    job = replace(JOB, source=Source(str(source), "build"))
    text = command_of(BackendPlanJob(job, ("xnnpack",)))
    assert "> recipe.json" not in text  # which may be one of the user
    lines = text.splitlines()
    file = tmp_path / lines[0].split()[2]
    file.write_text("\n".join(lines[1:-2]))
    options = _parsed(text.replace(file.name, str(file)), backends)
    assert backends._job(options) == (job, [])
    assert options.backend == ["xnnpack"]


def test_sweep_of_the_history_is_the_request_again() -> None:
    grid = {"rules.min_nodes": [1, 5], "partitioners": [[], ["xnnpack"]], "memory_planner": ["a,b"]}
    request = SweepRequest("/home/ada/recipe.json", grid, SweepSettings(20, True), 2)
    entry = _entry(kind="sweep", request=request_content(request))
    found = requested_job(entry)
    assert found == request
    words = shlex.split(job_command(found, "out"))
    axes = [word.removeprefix("--grid=") for word in words if word.startswith("--grid=")]
    again = parse_grid(axes)
    assert dict(zip(again.fields, again.rows[0], strict=True)) == {
        "rules.min_nodes": 1,
        "partitioners": [],
        "memory_planner": "a,b",
    }
    assert len(again.rows) == 4
    assert {"--runs=20", "--gap", "--workers=2"} <= set(words)


def test_bug_report_has_versions_and_log_but_no_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    folder = tmp_path / "build"
    folder.mkdir()
    (folder / "model.pte").write_bytes(b"WEIGHTS")
    (folder / "compile.json").write_text('{"torch": "2"}')
    entry = _entry(target=str(folder))
    texts = report_files(entry)
    assert {*texts} == {"report.txt", "job.json", "log.txt", "compile.json"}
    assert str(tmp_path) not in "".join(texts.values())
    assert "~/build" in texts["report.txt"]
    assert "no such operator" in texts["report.txt"]
    assert "Traceback …" in texts["report.txt"]
    assert "torch:" in texts["report.txt"]
    assert "warning: odd" in texts["log.txt"]
    write_report(tmp_path / "bug.zip", entry)
    with zipfile.ZipFile(tmp_path / "bug.zip") as archive:
        assert {*archive.namelist()} == {*texts}
        assert all(b"WEIGHTS" not in archive.read(name) for name in archive.namelist())
    write_report(tmp_path / "bug.txt", entry)
    assert "xnnpack" in (tmp_path / "bug.txt").read_text("utf-8")


def test_home_folder_is_in_no_report_however_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "ho me\\ada"  # with a character that JSON escapes
    home.mkdir()
    (tmp_path / "link").symlink_to(home)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "link")
    request = request_content(RunJob(str(home / "m.pte"), record=str(tmp_path / "link/m.etrecord")))
    entry = _entry(kind="run", request=request, sentence=f"{home}/m.pte: damaged")
    texts = report_files(entry)
    assert "~/m.pte" in texts["job.json"]
    assert "~/m.etrecord" in texts["job.json"]
    assert "~/m.pte: damaged" in texts["report.txt"]
    assert not any("ada/m" in text for text in texts.values())


def test_report_has_the_version_of_the_window() -> None:
    (line,) = (one for one in report_files(_entry())["report.txt"].splitlines() if "PySide6" in one)
    assert "not installed" not in line


def test_result_of_a_run_is_the_program_with_its_trace(tmp_path: Path) -> None:
    program, out = tmp_path / "m.pte", tmp_path / "out"
    out.mkdir()
    program.write_bytes(b"")
    (out / "run.etdp").write_bytes(b"")
    (out / "run.json").write_text(json.dumps({"files": [{"path": "run.etdp"}]}))
    entry = _entry(kind="run", request=request_content(RunJob(str(program))), target=str(out))
    assert result_paths(entry) == ()  # what is there is of a run before the one that failed
    entry = replace(entry, ended=Ended.FINISHED)
    assert result_paths(entry) == (str(program), str(out / "run.etdp"))
    (out / "run.json").write_text("[]")
    assert result_paths(entry) == ()


def test_subject_names_the_last_parts_of_paths() -> None:
    assert subject_of(JOB) == "ada/net.py:build"
    assert subject_of(RunJob("/a/b/m.pte")) == "b/m.pte"
    assert subject_of(GapJob(("/a/b/m.pte", "/a/b/x"))) == "b/m.pte"
