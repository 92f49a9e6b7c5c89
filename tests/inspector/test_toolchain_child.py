"""Interpreters that are none, end, hang or talk nonsense: one sentence each, by real processes."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from inspector.toolchain import child
from inspector.toolchain.child import ReportedError, ToolchainError, ask
from inspector.toolchain.crashes import last_error
from inspector.toolchain.stock.nodes import operator_name


def script(folder: Path, text: str) -> str:
    """Write something executable that is started as if it were Python."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def refused(python: str) -> ToolchainError:
    heard: list[Any] = []
    with pytest.raises(ToolchainError) as caught:
        ask(python, {"do": "list"}, lambda kind, **content: heard.append((kind, content)))
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("exit 0", "it ended with exit code 0"),
        ("exit 3", "it ended with exit code 3"),
        ("echo 'no such option' >&2; exit 1", "it ended with exit code 1: no such option"),
        ("kill -SEGV $$", "it crashed (SIGSEGV)"),
        ("echo hello; echo '{\"type\": 3}'; echo '[1]'; exit 0", "it ended with exit code 0"),
        ('echo \'{"type": "finished", "result": {}}\'', "it ended with exit code 0"),
        ("while :; do echo 0123456789012345678901234567890123456789; done", "endlessly"),
        ("head -c 3000000 /dev/zero; exec sleep 600", "endlessly"),
    ],
)
def test_program_that_is_no_python_is_named_with_what_it_did(
    text: str, words: str, tmp_path: Path
) -> None:
    python = script(tmp_path, text)
    error = refused(python)
    assert error.blame == "usage"
    assert str(error).startswith(f"{python} is not a Python interpreter that can run executorch: ")
    assert words in str(error)


_NOISE = "Failed to load /x/site-packages/torchao/_C_mxfp8.abi3.so: could not load this library"
_ERROR = "E 00:00:01.234567 executorch:program.cpp:7] the runtime's own error"


@pytest.mark.parametrize("signal", ["SIGSEGV", "SIGABRT", "SIGFPE"])
@pytest.mark.parametrize("printed", [(_NOISE,), (_ERROR, _NOISE), ("terminate: what(): bad",)])
def test_crash_is_told_with_its_innermost_calls(
    signal: str, printed: tuple[str, ...], tmp_path: Path
) -> None:
    """Lines that other packages print as they are loaded are no reasons."""
    lines = [
        "import faulthandler, os, signal, sys",
        "faulthandler.enable()",
        f"print(*{printed!r}, sep=chr(10), file=sys.stderr, flush=True)",
        f"def inner(): os.kill(os.getpid(), signal.{signal})",
        "def outer(): inner()",
        "outer()",
    ]
    (tmp_path / "crashing.py").write_text("\n".join(lines), "utf-8")
    text = str(refused(script(tmp_path, f"exec {sys.executable} {tmp_path}/crashing.py")))
    place = "in inner (crashing.py, line 4), called by outer (crashing.py, line 5)"
    assert f"it crashed ({signal}) {place}" in text
    assert "Failed to load" not in text
    assert ("the runtime's own error" in text) is (_ERROR in printed)
    assert ("what(): bad" in text) is (signal == "SIGABRT" and "what" in printed[0])


def test_frames_of_packages_keep_the_folder_of_their_package() -> None:
    """As Vela's own, which crashes without a word."""
    folder = "/home/x/lib/python3.11/site-packages/ethosu/vela"
    printed = [
        *("Network Tops/s", "", "Fatal Python error: Segmentation fault", "", "Thread 0x1 (most"),
        '  File "/usr/lib/python3.11/threading.py", line 3 in wait',
        *("", "Current thread 0x2 (most recent call first):"),
        f'  File "{folder}/vela.py", line 137 in process_regor',
        f'  File "{folder}/vela.py", line 1296 in main',
    ]
    told = " in process_regor (ethosu/vela/vela.py, line 137), called by main (ethosu/vela/vela.py"
    assert last_error(printed) == f"{told}, line 1296)"
    assert last_error(printed[:2]) == ": Network Tops/s"


def test_program_that_never_answers_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "GREETING_SECONDS", 0.2)
    error = refused(script(tmp_path, "exec sleep 600"))
    assert "no output for" in str(error)


@pytest.mark.parametrize("kind", ["missing", "folder", "not executable", "no name"])
def test_interpreter_that_cannot_be_started_is_named(kind: str, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program", "utf-8")
    paths = {
        "missing": tmp_path / "none",
        "folder": tmp_path,
        "not executable": plain,
        "no name": tmp_path / ("x" * 5000),
    }
    error = refused(str(paths[kind]))
    assert error.blame == "usage"
    assert "cannot be started: " in str(error)


def test_python_without_packages_is_told_how_to_get_them(tmp_path: Path) -> None:
    python = script(tmp_path, f'exec {sys.executable} -S "$@"')
    error = refused(python)
    assert error.blame == "usage"
    assert str(error).startswith(f"{python} has no torch and no executorch; install it with `")
    assert "-m pip install executorch`" in str(error)


def test_python_whose_output_is_closed_early_is_no_answer(tmp_path: Path) -> None:
    error = refused(script(tmp_path, f'exec {sys.executable} "$@" >&-'))
    assert "is not a Python interpreter that can run executorch" in str(error)


def test_operators_have_their_namespace_in_and_outside_of_the_edge_dialect() -> None:
    assert operator_name(torch.ops.aten.sym_size.int) == "aten.sym_size.int"
    assert operator_name(torch.ops.aten.add.Tensor) == "aten.add.Tensor"


@pytest.mark.parametrize("report", ["[method.cpp:1739] Instruction limit exceeded", ""])
def test_an_error_code_has_the_reason_that_the_runtime_printed(report: str, tmp_path: Path) -> None:
    lines = [
        '{"type": "hello"}',
        '{"type": "failed", "sentence": "execute() failed with error 0x23"}',
    ]
    printed = f"echo '[threadpool.cpp:66] Resetting' >&2; echo '{report}' >&2"
    python = script(tmp_path, f"{printed}; echo '{lines[0]}'; echo '{lines[1]}'; cat")
    heard: list[dict[str, Any]] = []
    with pytest.raises(ReportedError) as caught:
        ask(python, {"do": "run"}, lambda _kind, **content: heard.append(content))
    assert heard[-1]["sentence"] == str(caught.value)
    assert str(caught.value) == lines[1].split('"')[-2] + (f": {report}" if report else "")
