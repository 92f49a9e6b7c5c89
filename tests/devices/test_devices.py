"""Devices: descriptions, the command of a runner, sentences, and a shell of this machine as one."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from inspector.devices import device as devices
from inspector.devices.device import Device, check_device, device_named, known_devices, store_device
from inspector.devices.errors import DeviceError
from inspector.devices.lock import locked
from inspector.devices.remote import RemoteFolder
from inspector.devices.runner import DEFAULT_RUNNER, printed_times, runner_words, shell_command
from inspector.devices.transport import transport_of
from inspector.experiments.sweeps import task
from inspector.experiments.sweeps.grid import Point
from inspector.experiments.sweeps.results import Status
from inspector.experiments.sweeps.task import PointTask, SweepSettings
from inspector.files.load import load_session
from inspector.files.origin import device_name
from inspector.files.user_folder import user_folder
from inspector.jobs import run as jobs
from inspector.recipes.recipe_file import read_recipe
from tests.inspector.cli_runs import run, valid
from tests.inspector.jobs_here import Here
from tests.inspector.sessions import DATA

HERE = "sh -c {command}"


@pytest.fixture(autouse=True)
def _own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def here(tmp_path: Path, runner: str = DEFAULT_RUNNER) -> Device:
    """A device that is a folder of this machine."""
    device = Device("here", "command", HERE, runner, str(tmp_path / "a place; touch oops"))
    store_device(device, new=False)
    return device


def remote_folder(device: Device) -> RemoteFolder:
    found = RemoteFolder(device, transport_of(device))
    found.open()
    return found


def script(tmp_path: Path, text: str) -> str:
    """A runner of a few lines of shell."""
    path = tmp_path / "runner.sh"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return f"{path} {{program}} {{runs}}"


@pytest.mark.skipif(sys.platform == "win32", reason="another folder")
def test_a_device_is_described_changed_and_forgotten_on_the_command_line() -> None:
    assert run("device", "list").code == 0
    added = run("device", "add", "pi", "--ssh", "pi@pi.local", "--clock", "us", "--format", "json")
    assert valid(added, "device")["data"]["devices"][0]["address"] == "pi@pi.local"
    assert "edit pi" in run("device", "add", "pi", "--ssh", "x").err
    assert run("device", "edit", "pi", "--runner", "~/r --m={program}").code == 0
    assert device_named("pi").runner == "~/r --m={program}"
    assert (device_named("pi").clock, list(known_devices())) == ("us", ["pi"])
    assert "pi.local" in run("device", "show", "pi").out
    assert run("device", "remove", "pi").code == 0
    gone = run("run", "m.pte", "-o", "x", "--device", "pi")
    assert (gone.code, "etscope device add" in gone.err) == (2, True)


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "../pi"},
        {"name": "-pi"},
        {"name": "a b"},
        {"transport": "telnet"},
        {"address": "-oProxyCommand=touch oops"},
        {"address": "host; touch oops"},
        {"address": "$(touch oops)"},
        {"transport": "adb", "address": "-a"},
        {"transport": "command", "address": "sh -c true"},
        {"runner": "r {programme}"},
        {"runner": "r '{program}"},
        {"runner": "r {inputs}"},
        {"folder": "/"},
        {"folder": "../.."},
        {"clock": "weeks"},
        {"timeout": 0.0},
    ],
)
def test_a_hostile_or_impossible_device_is_refused_before_anything_runs(
    changes: dict[str, object],
) -> None:
    fields: dict[str, object] = {"name": "pi", "transport": "ssh", "address": "pi"}
    with pytest.raises(DeviceError) as found:
        check_device(Device(**{**fields, **changes}))  # type: ignore[arg-type]
    assert found.value.blame == "usage"


def test_a_damaged_description_is_named() -> None:
    path = store_device(Device("pi", "ssh", "pi"), new=True)
    path.write_text("{}")
    with pytest.raises(DeviceError, match=r"pi\.json"):
        device_named("pi")
    assert known_devices() == {}


def test_words_without_a_value_are_left_out() -> None:
    template = "run -m {program} --t {etdump} --n={runs} --w={warmup} -v"
    assert runner_words(template, {"program": "a b", "runs": "3"}) == shlex.split(
        "run -m 'a b' --n=3 -v"
    )
    whole = {"program": "p", "etdump": "e", "runs": "1", "warmup": "2"}
    assert runner_words(template, whole) == ["run", "-m", "p", "--t", "e", "--n=1", "--w=2", "-v"]
    assert shell_command(["~/a b", "$(x)"]) == "\"$HOME\"/'a b' '$(x)'"


def test_times_are_read_as_executor_runner_prints_them() -> None:
    found = printed_times(
        "I 00:00 x.cpp:1] Model loaded in 1.5 ms.\nI x] Iteration 1 of 2: 0.25 ms\n"
        "I x] Iteration 2 of 2: 2.5e-1 ms\nModel executed successfully 2 time(s) in 0.5 ms.\n"
    )
    assert (found.each, found.runs, found.total, found.loaded) == ((0.25, 0.25), 2, 0.5, 1.5)
    assert printed_times("hello").total is None


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_a_file_is_pushed_once_and_everything_is_removed(tmp_path: Path) -> None:
    device = here(tmp_path)
    local = tmp_path / "$(touch oops) 'x"
    local.write_bytes(bytes(range(256)) * 1000)
    first, second = remote_folder(device), remote_folder(device)
    place = first.put(local, ".bin")
    second.open()
    assert (second.put(local, ".bin"), len(first.pushed), second.pushed) == (place, 1, [])
    assert run("device", "clean", "here").code == 0
    assert not Path(device.folder).exists()
    assert not list(tmp_path.rglob("oops"))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kill -9 $$", "killed (SIGKILL), most likely because memory ran out"),
        ("kill -11 $$", "crashed (SIGSEGV)"),
        ("echo no such operator; exit 3", "exit code 3: no such operator"),
        ("echo No space left on device; exit 1", "disk is full"),
        ("exec /nowhere/at-all", "is not there"),
        ("sleep 30", "did not finish within 0.5 s"),
        ("yes x | head -c 9000000", "more than"),
    ],
)
def test_a_runner_that_fails_is_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    device = here(tmp_path, script(tmp_path, text))
    device = devices.changed(device, {"timeout": 0.5 if text.startswith("sleep") else None})
    with pytest.raises(DeviceError) as found:
        remote_folder(device).run({"program": "p", "runs": "1"})
    assert words in str(found.value)
    assert "\n" not in str(found.value)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_files_of_a_run_have_names_and_sizes(tmp_path: Path) -> None:
    device = here(tmp_path, script(tmp_path, "printf abc > 'a b'; echo hi $1 $2"))
    folder = remote_folder(device)
    finished = folder.run({"program": "$(touch oops)", "runs": "7"})
    assert (finished.output.strip(), finished.sizes) == ("hi $(touch oops) 7", {"a b": 3})
    assert folder.get(finished, "a b", tmp_path / "back")
    assert (tmp_path / "back").read_text() == "abc"
    assert not folder.get(finished, "run.etdp", tmp_path / "none")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system has no /proc")
@pytest.mark.parametrize("wrapped", [False, True], ids=["alone", "in a script"])
def test_peak_of_a_runner_is_read_while_it_runs(tmp_path: Path, *, wrapped: bool) -> None:
    python = shlex.quote(sys.executable)
    code = "x = b'1' * (80 << 20); del x; import time; time.sleep(0.2)"
    start = "" if wrapped else "exec "
    device = here(tmp_path, script(tmp_path, f'{start}{python} -c "{code}"; exit $?'))
    folder = remote_folder(device)
    watched = folder.run({"program": "p", "runs": "1"}, watch_memory=True)
    assert watched.peak_bytes is not None
    assert 80 << 20 < watched.peak_bytes < 400 << 20
    assert watched.output == ""
    assert folder.run({"program": "p", "runs": "1"}).peak_bytes is None


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_runner_that_is_killed_while_its_memory_is_watched_is_one_sentence(tmp_path: Path) -> None:
    folder = remote_folder(here(tmp_path, script(tmp_path, "kill -9 $$")))
    with pytest.raises(DeviceError, match="killed"):
        folder.run({"program": "p", "runs": "1"}, watch_memory=True)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_threads_are_swept_where_the_runner_takes_their_number(tmp_path: Path) -> None:
    slow = "ms=$((16 / $3)); [ $3 -gt 4 ] && ms=9; i=0"
    loop = "while [ $i -lt $2 ]; do i=$((i + 1)); echo Iteration $i of $2: $ms.$i ms; done"
    here(tmp_path, f"{script(tmp_path, f'{slow}; {loop}')} {{threads}} {{output}}")
    program = DATA / "corpus/v1.5.1/mm_portable/model.pte"
    more = ("--device", "here", "--no-trace", "--runs", "2", "--format", "json")
    answer = run("run", program, "-o", tmp_path / "out", "--threads", "sweep", *more)
    data = valid(answer, "run")["data"]
    assert [one["threads"] for one in data["thread_sweep"]] == [1, 2, 4, 8]
    assert [one["threads"] for one in data["thread_sweep"] if one["best"]] == [data["threads"]]
    assert data["threads"] == 4


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_a_second_job_waits_for_the_device(tmp_path: Path) -> None:
    device = here(tmp_path)
    said: list[str] = []
    order: list[str] = []

    def other() -> None:
        with locked(device, said.append):
            order.append("second")

    thread = threading.Thread(target=other)
    with locked(device, said.append):
        thread.start()
        while not said:
            pass
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    assert "waiting" in said[0]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_a_description_is_json(tmp_path: Path) -> None:
    device = here(tmp_path)
    content = json.loads((devices.devices_folder() / "here.json").read_text())
    assert content["runner"] == device.runner


TRACED = DATA / "extra" / "deep_mlp"
PRINTS = """n=0; while [ $n -lt $2 ]; do n=$((n + 1)); echo "Iteration $n of $2: 0.25 ms"; done"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_programs_are_measured_in_turns_on_a_device(tmp_path: Path) -> None:
    log = tmp_path / "log"
    text = f"echo $1 >> {log}; {PRINTS}"
    here(tmp_path, script(tmp_path, text) + " {inputs} {output} {etdump}")
    other = DATA / "extra" / "wide_alignment" / "model.pte"
    programs = (TRACED / "model.pte", other)
    options = ["--measure", "6", "--device", "here", "--no-gap", "--format", "json"]
    answer = run("compare", *programs, *options)
    measured = valid(answer, "compare")["data"]["measured"]
    assert [len(one["blocks_ms"]) for one in measured["programs"]] == [6, 6]
    ran = log.read_text().split()
    assert len(set(ran)) == 2
    assert ran[2:6] == [ran[2], ran[3], ran[3], ran[2]]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_points_of_a_sweep_and_trials_of_a_bisection_run_on_a_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    here(tmp_path, script(tmp_path, f"echo ran >> {log}; {PRINTS}") + " {inputs} {output} {etdump}")
    monkeypatch.setattr(jobs, "Worker", Here)
    monkeypatch.setattr(task, "Worker", lambda kind, threads: Here(kind))
    made = tmp_path / "made"
    source = f"{Path(__file__).parents[1] / 'compiler/job_sources.py'}:good"
    assert run("compile", source, "-o", made, "--partitioner", "xnnpack").code == 0
    recipe = read_recipe(str(made / "recipe.json")).recipe
    settings = SweepSettings(runs=4, device="here")
    found = PointTask(Point(0, (), recipe.job, "a"), made, settings).run(lambda: False)
    assert (found.status, found.sentence) == (Status.DONE, "")
    assert (found.metrics["latency"], found.settings["device"]) == (0.25, "here")
    assert settings.met_by(found)
    assert not replace(settings, device="").met_by(found)
    ran = len(log.read_text().split())
    bisect = ("bisect", made / "recipe.json", "-o", tmp_path / "b", "--device", "here")
    answer = run(*bisect, "--bound", "latency<=1ms", "--runs", 3, "--format", "json")
    assert answer.code == 0, answer.err
    assert valid(answer, "bisect")["data"]["trials"][0]["value"] == 0.25
    assert len(log.read_text().split()) > ran
    refused = run(*bisect, "--bound", "loads")
    assert (refused.code, "--device: loads is not about a run" in refused.err) == (2, True)
    remote = ("--device", "here", "--cluster", "tcp://x:1")
    words = ("sweep", made / "recipe.json", "-o", tmp_path / "s", "--grid", "rules.min_nodes=1")
    far = run(*words, *remote)
    assert (far.code, "not of a --cluster" in far.err) == (2, True)


def test_the_unit_of_a_trace_comes_from_its_report_or_from_memory(tmp_path: Path) -> None:
    trace = tmp_path / "run.etdp"
    shutil.copy(TRACED / "run.etdp", trace)
    assert load_session([trace]).options.time_scale_assumed
    assert run("profile", trace, "--remember-time-scale").code == 2
    chosen = ["--source-time-scale", "us", "--remember-time-scale"]
    assert run("profile", trace, *chosen).code == 0
    copied = tmp_path / "elsewhere.etdp"
    trace.rename(copied)
    options = load_session([copied]).options
    assert (options.source_time_scale, options.time_scale_assumed) == ("us", False)
    (user_folder() / "clocks.json").write_text("damaged")
    assert load_session([copied]).options.time_scale_assumed
    files = [{"path": copied.name, "bytes": copied.stat().st_size}]
    report = {"method": "forward", "files": files, "clock": "ms", "device": {"name": "pi"}}
    (tmp_path / "run.json").write_text(json.dumps(report))
    session = load_session([copied])
    assert (session.options.source_time_scale, device_name(session)) == ("ms", "pi")


def test_sessions_of_two_devices_have_ratios_by_operator(tmp_path: Path) -> None:
    folders: list[Path] = []
    for name in ("one", "two"):
        folder = tmp_path / name
        shutil.copytree(TRACED, folder, ignore=shutil.ignore_patterns("run.json"))
        dump = folder / "run.etdp"
        files = [{"path": dump.name, "bytes": dump.stat().st_size}]
        clock = {"one": "ns", "two": "us"}[name]
        report = {"method": "forward", "files": files, "clock": clock, "device": {"name": name}}
        (folder / "run.json").write_text(json.dumps(report))
        folders.append(folder)
    table = run("table", "compare-devices", *folders, "--format", "json").json["data"]["tables"][0]
    assert table["columns"][-1]["title"] == "two / one"
    ratios = [row["values"][-1] for row in table["rows"]]
    assert ratios == pytest.approx([1000] * len(ratios))
    assert "ratios by operator" in run("compare", *folders, "--no-gap").out


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_a_run_that_waits_for_a_device_says_so_and_for_how_long(tmp_path: Path) -> None:
    """The time limit holds while another job has the device, and nothing is left behind."""
    device = here(tmp_path, f"{script(tmp_path, 'exit 1')} {{output}}")
    program = DATA / "corpus/v1.5.1/mm_portable/model.pte"
    with locked(device, print):
        options = ("-o", tmp_path / "out", "--device", "here", "--no-trace", "--timeout", "4")
        answer = run("run", program, *options)
    assert answer.code == 4
    waiting, ended = answer.err.splitlines()[-2:]
    assert "another job uses here (process " in waiting
    assert ended == "etscope: stopped: timed out after 4.0 s in stage wait for here"
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".etscope-*"))
