"""Every way a verb can fail: one sentence, the right exit code, nothing else touched."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inspector.cli.main import VERBS, main
from inspector.jobs.executing import RunJob
from inspector.jobs.messages import Ended
from inspector.jobs.run import JobRun
from schema import etdump
from schema.version import __version__
from tests.inspector.cli_runs import FORMATS, READING, Run, run, valid
from tests.inspector.sessions import DATA

pytestmark = pytest.mark.slow

ROOT = DATA.parents[1]
SESSION = DATA / "corpus/v1.5.1/convnet_xnnpack"
PROGRAM = SESSION / "model.pte"
OTHER = DATA / "corpus/v1.5.1/tinygpt_portable"
COMMAND = (sys.executable, "-c", "import sys; from inspector.cli import main; sys.exit(main())")
UNREADABLE = {
    "missing": "no such file",
    "empty": "an empty file",
    "text": "text that begins with",
    "json": "as flatc prints it, `etscope json` writes the .pte",
    "cut": "expected",
    "folder": "at least one ExecuTorch file",
}


def _unreadable(kind: str, folder: Path) -> Path:
    path = folder / kind
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "text":
        path.write_bytes(b"print('not a program')\n" * 10)
    elif kind == "json":
        path.write_text('{"version": 0, "execution_plan": []}')
    elif kind == "cut":
        path.write_bytes(PROGRAM.read_bytes()[:100])
    elif kind == "folder":
        path.mkdir()
    return path


def _is_one_sentence(answer: Run) -> None:
    assert answer.err.startswith("etscope: ")
    assert answer.err.count("\n") == 1
    assert "Traceback" not in answer.err


def _environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


@pytest.mark.parametrize("kind", UNREADABLE)
@pytest.mark.parametrize("verb", READING)
def test_unreadable_file_is_named_in_one_sentence(verb: str, kind: str, tmp_path: Path) -> None:
    path = _unreadable(kind, tmp_path)
    answer = run(verb, path)
    assert (answer.code, answer.out) == (3, "")
    _is_one_sentence(answer)
    assert str(path) in answer.err
    assert UNREADABLE[kind].lower() in answer.err.lower()
    told = run(verb, path, "--format", "json")
    assert told.code == 3
    assert str(path) in valid(told, verb)["error"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads all")
def test_file_without_permission_is_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "model.pte"
    shutil.copy(PROGRAM, path)
    path.chmod(0)
    answer = run("summary", path)
    assert answer.code == 3
    _is_one_sentence(answer)


def test_refused_permission_is_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> memoryview:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("inspector.files.load.open_bytes", refuse)
    answer = run("summary", PROGRAM, "--format", "json")
    assert answer.code == 3
    assert "Permission denied" in valid(answer, "summary")["error"]
    _is_one_sentence(answer)


@pytest.mark.parametrize("verb", READING)
def test_readable_files_beside_an_unreadable_one_are_shown(verb: str, tmp_path: Path) -> None:
    bad = _unreadable("text", tmp_path)
    answer = run(verb, PROGRAM, bad, "--format", "json")
    assert answer.code == 3
    tree = valid(answer, verb)
    assert str(bad) in tree["error"]
    assert tree["data"]
    assert any(issue["severity"] == "error" for issue in tree["issues"])
    _is_one_sentence(answer)


@pytest.mark.parametrize("kind", ["etrecord", "etdp"])
def test_mixed_files_are_judged(kind: str) -> None:
    foreign = next(OTHER.glob(f"*.{kind}"))
    answer = run("check", PROGRAM, foreign, "--format", "json")
    assert (answer.code, answer.err) == (1, "")
    data = valid(answer, "check")["data"]
    assert data["verdict"] == "do_not_belong"
    assert str(foreign) in data["mismatch"]
    assert run("summary", PROGRAM, foreign).code == 0


def test_different_programs_differ() -> None:
    answer = run("diff", PROGRAM, OTHER / "model.pte", "--format", "json")
    assert answer.code == 1
    assert valid(answer, "diff")["data"]["different"] is True


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("sumary", PROGRAM), "did you mean summary?"),
        (("inspector_cli",), "did you mean inspector-cli?"),
        (("qqqq",), "--help"),
        (("summary",), "FILE"),
        (("summary", PROGRAM, "--format", "xml"), "xml"),
        (("summary", PROGRAM, "--formt", "json"), "--formt"),
        (("profile", SESSION, "--method", "nope"), "available: forward"),
        (("profile", SESSION, "--source-time-scale", "hours"), "hours"),
        (("graph", PROGRAM, "--graph", "nope"), "nope"),
        (("diff", PROGRAM), "B"),
        (("export", PROGRAM, "--as", "anonymised"), "--to"),
        (("export", PROGRAM, "--to", "x"), "--to"),
        (("inspector-cli",), "--etdump_path"),
    ],
    ids=str,
)
def test_wrong_usage_is_one_sentence_with_a_hint(arguments: tuple[str, ...], said: str) -> None:
    answer = run(*arguments)
    assert (answer.code, answer.out) == (2, "")
    _is_one_sentence(answer)
    assert said in answer.err


def test_wrong_usage_has_its_error_in_json() -> None:
    answer = run("profile", SESSION, "--format", "json", "--method", "nope")
    assert answer.code == 2
    assert "nope" in valid(answer, "profile")["error"]


def test_fault_of_the_program_is_a_failed_job(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("inspector.cli.check.check_session", fail)
    answer = run("check", SESSION, "--format", "json")
    assert answer.code == 4
    _is_one_sentence(answer)
    assert "boom" in valid(answer, "check")["error"]
    assert "Traceback" in run("check", SESSION, "-v").err


# ---- outputs


@pytest.mark.parametrize("form", FORMATS)
def test_output_is_replaced_only_with_force(form: str, tmp_path: Path) -> None:
    target = tmp_path / "new" / "out.txt"
    wanted = run("size", PROGRAM, "--format", form).out
    assert run("size", PROGRAM, "--format", form, "-o", target).code == 0
    assert target.read_text("utf-8") == wanted
    target.write_text("precious", "utf-8")
    answer = run("size", PROGRAM, "--format", form, "-o", target)
    assert answer.code == 2
    assert "--force" in answer.err
    assert target.read_text("utf-8") == "precious"
    assert run("size", PROGRAM, "--format", form, "-o", target, "--force").code == 0
    assert target.read_text("utf-8") == wanted
    assert [path.name for path in target.parent.iterdir()] == ["out.txt"]


def test_an_input_is_never_the_output(tmp_path: Path) -> None:
    path = tmp_path / "model.pte"
    shutil.copy(PROGRAM, path)
    assert run("size", path, "-o", path, "--force").code == 2
    assert path.read_bytes() == PROGRAM.read_bytes()


def test_nothing_else_in_a_folder_is_touched(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine", "utf-8")
    assert run("extract", SESSION, "-o", tmp_path).code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert run("extract", SESSION, "-o", tmp_path, "--force").code == 0
    assert (tmp_path / "mine.txt").read_text("utf-8") == "mine"
    assert len(list(tmp_path.rglob("*"))) > 1


@pytest.mark.parametrize("failing", ["replace", "write"])
@pytest.mark.parametrize("verb", ["size", "report", "export", "trace"])
def test_full_disk_leaves_the_old_file(
    verb: str, failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out.txt"
    target.write_text("precious", "utf-8")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    if failing == "replace":
        monkeypatch.setattr(os, "replace", refuse)
    else:
        monkeypatch.setattr(os, "fdopen", _full(os.fdopen))
    answer = run(verb, SESSION, "-o", target, "--force")
    monkeypatch.undo()
    assert answer.code == 4
    _is_one_sentence(answer)
    assert "No space left on device" in answer.err
    assert target.read_text("utf-8") == "precious"
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


def _full(fdopen: Callable[..., Any]) -> Callable[..., Any]:
    def opened(*arguments: Any) -> Any:
        stream = fdopen(*arguments)
        stream.close()
        return open("/dev/full", "wb", buffering=0)

    return opened


# ---- terminals and pipes


def test_reader_that_goes_away_is_no_error() -> None:
    script = f'"{sys.executable}" -c "{COMMAND[2]}" trace "{OTHER}" ; echo "code $?" >&2'
    done = subprocess.run(
        ["sh", "-c", f"({script}) | head -c 10"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=_environment(),
        timeout=60,
        check=True,
    )
    assert done.stderr == "code 0\n"


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_interrupt_is_quiet_and_has_its_own_code() -> None:
    reading_takes_long = (
        "import inspector.files.load, sys, time\n"
        "def load(*_what, **_how):\n"
        "    print('reading', file=sys.stderr, flush=True)\n"
        "    time.sleep(60)\n"
        "inspector.files.load.load_session = load\n"
        "from devtools_app.__main__ import main\n"
        "sys.exit(main())\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", reading_takes_long, "summary", str(PROGRAM)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=_environment(),
    )
    assert child.stderr is not None
    assert child.stderr.readline() == "reading\n"
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    assert (child.returncode, out, err) == (130, "", "etscope: interrupted\n")


@pytest.mark.parametrize("signals", [1, 2])
def test_interrupted_run_keeps_the_runs_there_are_and_twice_interrupted_nothing(
    tmp_path: Path, signals: int
) -> None:
    command = [
        sys.executable,
        "-m",
        "devtools_app",
        "run",
        str(DATA / "extra/counter_state/model.pte"),
        "-v",
        "--warmup",
        "0",
    ]
    command += ["-o", str(tmp_path / "out"), "--runs", "999999999", "--debug-level", "outputs"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        while not process.stderr.readline().startswith(b"run "):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.stderr.readline().startswith(b"stopping after this run; Ctrl+C again")
        if signals == 2:
            process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=100)[0]
    if signals == 2 and process.returncode == 130:  # the first signal may have been enough
        assert list(tmp_path.iterdir()) == []
        return
    assert process.returncode == 0
    report = json.loads((tmp_path / "out/run.json").read_text("utf-8"))
    done = len(report["run_ms"]) + len(report["traced_run_ms"])
    assert report["stopped"] == {"runs": done, "of": 2 * 999_999_999}
    words = f"stopped after {done:,} of 1,999,999,998 runs, before values were logged"
    assert report["warnings"] == [words]
    assert words.encode() in said
    assert [one["path"] for one in report["files"]] == ["outputs.pt", "run.etdp"]
    dump = etdump.decode((tmp_path / "out/run.etdp").read_bytes())
    assert len(dump.run_data) == 1 + len(report["traced_run_ms"])


def test_a_run_that_times_out_keeps_the_runs_there_are(tmp_path) -> None:
    out = tmp_path / "out"
    running = JobRun(RunJob(str(DATA / "extra/counter_state/model.pte"), runs=999_999_999), out)
    try:
        while not any(getattr(one, "stage", "") == "run" for one in running.take(0.1)):
            assert running.outcome is None
        running._until = 0.0
        outcome = running.wait(60)
    finally:
        running.close()
    assert outcome is not None
    assert outcome.ended is Ended.FINISHED
    report = json.loads((out / "run.json").read_text("utf-8"))
    assert report["stopped"]["of"] == 2 * 999_999_999  # how many there are depends on the machine


@pytest.mark.skipif(os.name == "nt", reason="pseudo-terminals of POSIX")
@pytest.mark.parametrize(("more", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colour_is_for_terminals_that_want_it(more: dict[str, str], coloured: bool) -> None:
    import pty

    ours, theirs = pty.openpty()
    environment = {**_environment(TERM="xterm"), **more}
    if coloured:
        environment.pop("NO_COLOR", None)
    with subprocess.Popen(
        [*COMMAND, "size", str(PROGRAM), "--top", "3"], stdout=theirs, cwd=ROOT, env=environment
    ) as child:
        os.close(theirs)
        told = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            told += piece
        assert child.wait(timeout=30) == 0
    os.close(ours)
    assert b"total" in told
    assert (b"\x1b[" in told) is coloured


def test_control_characters_of_a_file_never_reach_the_terminal(tmp_path: Path) -> None:
    evil = b"\x1b[2Jw\x07\x08"
    data = (DATA / "extra/external_weights/model.pte").read_bytes()
    name = b"shared.weight"
    assert name in data
    path = tmp_path / "model.pte"
    path.write_bytes(data.replace(name, (evil + name)[: len(name)]))
    for verb in (*READING, "extract"):
        for form in FORMATS:
            answer = run(verb, path, "--format", form)
            assert answer.code == 0
            assert not _controls(answer), (verb, form)


def test_control_characters_of_arguments_never_reach_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "\x1b[2J\x9b"
    assert not _controls(run("summary", path))
    assert not _controls(run("summary", path, "--format", "json"))
    path.write_bytes(PROGRAM.read_bytes())
    for form in FORMATS:
        assert not _controls(run("summary", path, "--format", form))


def _controls(answer: Run) -> set[str]:
    told = set(answer.out + answer.err)
    return {char for char in told if unicodedata.category(char) == "Cc"} - {"\n", "\t"}


# ---- start


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_every_verb(verb: str) -> None:
    answer = run(verb, "--help")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith(f"usage: etscope {verb}")


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",), ("help",)])
def test_overview_lists_every_verb(arguments: tuple[str, ...]) -> None:
    answer = run(*arguments)
    assert answer.code == 0
    assert all(f"  {verb} " in answer.out for verb in VERBS)


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"etscope {__version__}\n"


@pytest.mark.parametrize("verb", [*READING, "extract", "diff"])
def test_verbs_do_not_import_what_is_heavy(verb: str) -> None:
    files = (str(PROGRAM), str(PROGRAM)) if verb == "diff" else (str(SESSION),)
    code = (
        "import sys, io, contextlib\nfrom inspector.cli import main\n"
        f"with contextlib.redirect_stdout(io.StringIO()): code = main({[verb, *files]!r})\n"
        "heavy = {'torch', 'pandas', 'PySide6', 'executorch'} & set(sys.modules)\n"
        "print(code, sorted(heavy))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=_environment(),
        timeout=60,
        check=True,
    )
    assert done.stdout == "0 []\n"


def test_start_costs_little_beside_numpy() -> None:
    code = (
        "import time, numpy, argparse\nstart = time.process_time()\n"
        "import inspector.cli\nprint(time.process_time() - start)"
    )
    times = [
        float(
            subprocess.run(
                [sys.executable, "-c", code],
                capture_output=True,
                text=True,
                cwd=ROOT,
                env=_environment(),
                timeout=60,
                check=True,
            ).stdout
        )
        for _ in range(3)
    ]
    assert min(times) < 0.3
