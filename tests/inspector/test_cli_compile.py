"""`etscope compile` as a process: answers, exit codes, terminals, Ctrl+C, folders."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from inspector.cli import main
from tests.inspector.cli_runs import Run, run, valid
from tests.inspector.sessions import DATA

pytestmark = pytest.mark.slow

SOURCES = Path(__file__).parents[1] / "compiler" / "job_sources.py"
COMMAND = (sys.executable, "-m", "devtools_app", "compile")


def compile_(function: str, folder: Path, *options: str) -> Run:
    return run("compile", f"{SOURCES}:{function}", "-o", folder, *options)


def test_compile_answers_as_the_contract_says(tmp_path: Path) -> None:
    answer = compile_("every_form", tmp_path / "out", "--format", "json")
    assert answer.code == 0
    data = valid(answer, "compile")["data"]
    assert data["folder"] == str(tmp_path / "out")
    report = json.loads((tmp_path / "out" / "compile.json").read_text("utf-8"))
    assert {**report, "folder": data["folder"]} == data
    names = {"model.pte", "model.etrecord", "recipe.json"}
    assert {one["path"] for one in data["files"]} == names
    checked = run("check", tmp_path / "out", "--format", "json")
    assert (checked.code, checked.json["data"]["verdict"]) == (0, "belong")


@pytest.mark.parametrize(("function", "named"), [("good", ""), ("sorts", "aten::sort.values")])
def test_operator_that_the_stock_runtime_has_no_kernel_for_is_warned_of_and_runs_here(
    function: str, named: str, tmp_path: Path
) -> None:
    assert compile_(function, tmp_path / "out").code == 0
    report = json.loads((tmp_path / "out" / "compile.json").read_text("utf-8"))
    texts = [one["text"] for one in report["warnings"] if "no kernel" in one["text"]]
    assert len(texts) == bool(named)
    assert all(named in text and "this runtime runs" in text for text in texts)
    ran = run("run", tmp_path / "out", "-o", tmp_path / "run")
    assert ran.code == 0


def test_compile_in_text_names_files_and_stages_and_prints_only_what_the_code_prints(
    tmp_path: Path,
) -> None:
    answer = compile_("prints", tmp_path / "out")
    assert answer.code == 0
    assert answer.err.splitlines() == [
        "printed by python",
        "printed by a descriptor",
        "printed by a child",
        "printed to stderr",
    ]
    assert answer.out.startswith(f"{tmp_path / 'out'}: model.etrecord (")
    assert all(stage in answer.out for stage in ("load", "export", "edge", "plan", "emit", "write"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--min-nodes", "2"], "rules for partitioners need a --partitioner"),
        (["--min-nodes", "0"], "expected an integer of at least 1"),
        (["--per-tensor"], "options about quantization need --quantize MODE"),
        (
            ["--quantize", "static", "--quantize-op", "aten.mm"],
            "'aten.mm': expected NAME=MODE, found no '='; available: static",
        ),
        (["--quantize", "xnnpack:often"], "--quantize xnnpack:often: expected one of static"),
        (["--quantize", "8da4w:group=16"], "; N one of 32, 64, 128, 256"),
        (["--timeout", "soon"], "expected seconds"),
        (["--memory-planner", "best"], "unknown memory planner 'best'; available: naive"),
        (["--partitioner", "nobody"], "unknown partitioner 'nobody'"),
        (
            ["--partitioner", "xnnpack", "--deny-dtype", "f32"],
            "unknown dtype 'f32'; available: bfloat16",
        ),
        (["--method", "backward"], "unknown method 'backward'; available: forward"),
        (["--python", "/not/there"], "/not/there cannot be started"),
    ],
)
def test_compile_with_wrong_options_is_wrong_usage(
    options: list[str], words: str, tmp_path: Path
) -> None:
    answer = compile_("good", tmp_path / "out", *options)
    assert answer.code == 2
    assert words in answer.err
    assert answer.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "mode"), [("xnnpack", "static"), ("xnnpack:dynamic", "dynamic"), ("static", "static")]
)
def test_quantizer_of_xnnpack_is_the_built_in_one(words: str, mode: str, tmp_path: Path) -> None:
    answer = compile_("good", tmp_path / "out", "--partitioner", "xnnpack", "--quantize", words)
    assert answer.code == 0, answer.err
    recipe = json.loads((tmp_path / "out/recipe.json").read_text())
    assert recipe["job"]["quantising"]["mode"] == mode


def test_compile_with_wrong_sources_is_said_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    text = tmp_path / "text.etrecord"
    text.write_text("no record", "utf-8")
    program = DATA / "corpus/v1.5.1/mm_portable/model.pte"
    out = tmp_path / "out"
    for source, code, words in (
        ("", 2, "nothing to compile: pass SOURCE or --recipe FILE"),
        ("model.py", 2, "expected model.py:function"),
        (tmp_path / "none.pt2", 3, "No such file"),
        (tmp_path / "dir", 3, "is not a file"),
        (text, 3, "expected a .pt2 file or an ETRecord, found neither"),
        (program, 3, "expected a .pt2 file or an ETRecord, found program"),
    ):
        answer = run("compile", source, "-o", out)
        assert (answer.code, out.exists()) == (code, False)
        assert words in answer.err
        assert answer.err.count("\n") == 1
    assert run("compile", f"{SOURCES}:good").code == 2  # without a folder
    assert run("compile", text, "-o", out, "--python", sys.executable).code == 2


def test_compile_of_damaged_sources_is_an_unreadable_file(tmp_path: Path) -> None:
    archive, odd = tmp_path / "archive.pt2", tmp_path / "odd.etrecord"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("weights", b"1")
    shutil.copy(archive, tmp_path / "other.etrecord")
    record = DATA / "extra/two_methods/model.etrecord"
    odd.write_bytes(record.read_bytes().replace(b'"graph_module"', b'"graph_modulo"'))
    for source, words in (
        (archive, "cannot read this exported program: torch.export.save has not written it"),
        (tmp_path / "other.etrecord", "expected a member ETRECORD_V0 of an ETRecord"),
        (odd, f"{odd}: torch cannot read "),
    ):
        answer = run("compile", source, "-o", tmp_path / "out")
        assert answer.code == 3, answer.err
        assert words in answer.err
        assert not (tmp_path / "out").exists()


def test_compile_that_fails_shows_a_traceback_only_when_asked(tmp_path: Path) -> None:
    quiet = compile_("raises", tmp_path / "out", "--format", "json")
    assert quiet.code == 4
    assert quiet.err.startswith(f"etscope: {SOURCES}:")
    assert quiet.err.endswith("ValueError: deliberate: no weights\n")
    assert quiet.err.count("\n") == 1
    assert valid(quiet, "compile")["error"] in quiet.err
    loud = compile_("wrong_input", tmp_path / "out", "-v")
    assert loud.code == 4
    assert "Traceback (most recent call last)" in loud.err


def test_compile_writes_into_a_full_folder_only_by_force(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine", "utf-8")
    refused = compile_("good", folder)
    assert (refused.code, sorted(path.name for path in folder.iterdir())) == (2, ["notes.txt"])
    assert "not empty; --force" in refused.err
    assert compile_("good", folder, "--force").code == 0
    assert (folder / "notes.txt").read_text("utf-8") == "mine"
    before = (folder / "model.pte").read_bytes()
    assert compile_("raises", folder, "--force").code == 4
    assert (folder / "model.pte").read_bytes() == before
    assert len(list(folder.iterdir())) == 5


def test_compile_of_exported_and_recorded_programs(tmp_path: Path) -> None:
    code = (
        "import sys, torch; sys.path.insert(0, sys.argv[1]); import job_sources as s;"
        "m, i = s.products(); torch.export.save(torch.export.export(m, i), sys.argv[2])"
    )
    saved = str(tmp_path / "net.pt2")
    subprocess.run([sys.executable, "-c", code, str(SOURCES.parent), saved], check=True)
    assert run("compile", saved, "-o", tmp_path / "one").code == 0
    record = tmp_path / "one" / "model.etrecord"
    assert run("compile", record, "-o", tmp_path / "two").code == 0
    one, two = ((tmp_path / name / "model.pte").read_bytes() for name in ("one", "two"))
    assert one == two
    damaged = tmp_path / "damaged.pt2"
    damaged.write_bytes(Path(saved).read_bytes()[:-200])
    answer = run("compile", damaged, "-o", tmp_path / "three")
    assert answer.code == 3
    assert "torch cannot read this exported program" in answer.err


@pytest.mark.parametrize(
    "record",
    [
        "corpus/v1.5.1/tinygpt_xnnpack",
        "extra/two_methods",
    ],
)
def test_compile_of_stock_records_gives_the_same_methods(record: str, tmp_path: Path) -> None:
    path = DATA / record / "model.etrecord"
    answer = run("compile", path, "-o", tmp_path / "out", "--format", "json")
    assert answer.code == 0, answer.err
    stock = run("summary", path, "--format", "json").json["data"]
    assert set(answer.json["data"]["methods"]) == set(stock["methods"])


@pytest.mark.parametrize("function", ["never", "stubborn"])
def test_interrupt_ends_with_130_and_leaves_nothing(function: str, tmp_path: Path) -> None:
    command = [*COMMAND, f"{SOURCES}:{function}", "-o", str(tmp_path / "deep" / "out")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert process.stdout is not None
    with process:
        assert process.stderr.readline() == "begun\n"
        asked = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "etscope: interrupted\n")
    assert time.monotonic() - asked < 20
    assert list(tmp_path.iterdir()) == []


def test_terminal_sees_what_will_run_and_one_line_a_stage(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    command = [*COMMAND, f"{SOURCES}:good", "-o", str(tmp_path / "out")]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=follower, env=environment
    ) as process:
        os.close(follower)
        shown = _all_of(leader).replace("\r\x1b[K", "\x1b[K")
    assert process.returncode == 0
    assert f"this runs the code in {SOURCES}" in shown.splitlines()[0]
    assert "Ctrl+C cancels" in shown  # on the line that is drawn again and again
    lines = [line.split("\x1b[K")[-1] for line in shown.splitlines()]
    kept = [line.split()[0] for line in lines if " s" in line and "Ctrl+C" not in line]
    assert kept == ["load", "export", "edge", "plan", "emit", "write", "record"]


def _all_of(descriptor: int) -> str:
    data = b""
    while True:
        try:
            piece = os.read(descriptor, 65536)
        except OSError:
            piece = b""
        if not piece:
            os.close(descriptor)
            return data.decode("utf-8")
        data += piece


def test_help_says_what_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "--help"]) == 0
    help_text = capsys.readouterr().out
    assert "file.py:function" in help_text
    assert "8da4w[:group=N],8da8w[:group=N]" in help_text
    assert "group=32" not in help_text
