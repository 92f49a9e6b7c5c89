"""etscope port: diffs that apply, files written in place or elsewhere, exit codes."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.inspector.cli_runs import run, valid

SCRIPT = "# é\nfrom executorch.devtools import Inspector, BundledProgram\nx = 1\n"
PORTED = "# é\nfrom inspector import Inspector\nfrom runtime.bundled import BundledProgram\nx = 1\n"
OPEN = "from executorch.exir import nosuch\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "inner").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    (folder / "a.py").write_text(SCRIPT, "utf-8")
    (folder / "inner" / "b.py").write_bytes(SCRIPT.replace("\n", "\r\n").encode())
    (folder / "inner" / "plain.py").write_text("import os\n")
    (folder / ".hidden" / "c.py").write_text(SCRIPT, "utf-8")
    cells = [{"cell_type": "code", "source": SCRIPT.splitlines(keepends=True)}]
    (folder / "n.ipynb").write_text(json.dumps({"cells": cells}, indent=1))
    return folder


def test_default_is_a_diff_and_nothing_is_written(project: Path) -> None:
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    shown = run("port", project)
    assert shown.code == 0
    assert "+from runtime.bundled import BundledProgram" in shown.out
    assert shown.out.endswith("4 files: 6 ported\n")
    assert {path: path.read_bytes() for path in before} == before
    assert ".hidden" not in shown.out


@pytest.mark.skipif(shutil.which("patch") is None, reason="there is no patch")
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_diff_applies(tmp_path: Path, end: str) -> None:
    script = tmp_path / "a.py"
    text = SCRIPT.replace("1\n", "'\t'").replace("\n", end)
    script.write_bytes(text.encode())
    shown = run("port", script).out.replace(f"{tmp_path}/", "/")
    command = ["patch", "--binary", "-p1", "a.py"]
    subprocess.run(command, cwd=tmp_path, input=shown.encode(), check=True, capture_output=True)
    assert script.read_bytes().decode() == PORTED.replace("1\n", "'\t'").replace("\n", end)


def test_write_changes_in_place_and_a_second_time_nothing(project: Path) -> None:
    (project / "a.py").chmod(0o755)
    assert run("port", project, "--write").code == 0
    assert (project / "a.py").read_text("utf-8") == PORTED
    assert (project / "a.py").stat().st_mode & 0o777 == 0o755
    assert (project / "inner" / "b.py").read_bytes() == PORTED.replace("\n", "\r\n").encode()
    cell = json.loads((project / "n.ipynb").read_text())["cells"][0]
    assert "".join(cell["source"]) == PORTED
    again = run("port", project, "--write")
    assert (again.code, again.out) == (0, "4 files: no imports of executorch\n")


def test_output_is_a_file_of_one_and_a_folder_of_several(project: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.py"
    assert run("port", project / "a.py", "-o", target).code == 0
    assert target.read_text("utf-8") == PORTED
    refused = run("port", project / "a.py", "-o", target)
    assert (refused.code, "--force" in refused.err) == (2, True)
    assert run("port", project / "a.py", "-o", target, "--force").code == 0
    assert run("port", project / "a.py", "-o", project / "a.py", "--force").code == 2
    folder = tmp_path / "ported"
    assert run("port", project, "-o", folder).code == 0
    found = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*"))
    assert found == ["a.py", "inner/b.py", "inner/plain.py", "n.ipynb"]
    both = run("port", project / "a.py", "--write", "-o", target)
    assert both.code == 2


def test_what_is_left_is_named_and_the_code_is_one(tmp_path: Path) -> None:
    script = tmp_path / "a.py"
    script.write_text(f"import os\n{OPEN}{SCRIPT}", "utf-8")
    shown = run("port", script)
    assert shown.code == 1
    assert f"{script}:2: executorch.exir.nosuch: no counterpart" in shown.out
    data = valid(run("port", script, "--format", "json"), "port")["data"]
    assert data["open"] == 1
    assert [(one["line"], one["verdict"], one["ours"]) for one in data["names"]] == [
        (2, "no counterpart", None),
        (4, "ported", "runtime.bundled.BundledProgram"),
        (4, "ported", "inspector.Inspector"),
    ]
    (file,) = data["files"]
    assert (file["changed"], file["written"]) == (True, None)
    changed = [line for line in file["diff"].splitlines()[2:] if line[0] in "+-"]
    assert changed == [f"-{SCRIPT.splitlines()[1]}", *(f"+{x}" for x in PORTED.splitlines()[1:3])]
    table = run("port", script, "--format", "tsv").out.splitlines()
    assert table[0].split("\t")[:4] == ["file", "cell", "line", "name"]
    assert len(table) == 4


@pytest.mark.parametrize(
    ("name", "data", "word"),
    [
        ("a.py", b"print 'python 2'\n", "line 1"),
        ("b.py", b"x = '\xff'\n", "found"),
        ("c.ipynb", b"[1]", "notebook"),
        ("d.ipynb", b"no json", "notebook"),
        ("e.ipynb", b'{"cells": [{"cell_type": "code"}]}', "notebook"),
    ],
)
def test_unreadable_file_is_named_and_the_others_are_ported(
    project: Path, name: str, data: bytes, word: str
) -> None:
    (project / "inner" / name).write_bytes(data)
    shown = run("port", project)
    assert shown.code == 3
    assert f"{project}/inner/{name}" in shown.err
    assert word in shown.err
    assert "+from inspector import Inspector" in shown.out


def test_encoding_of_a_script_is_kept(tmp_path: Path) -> None:
    for number, (head, encoding) in enumerate(
        [("# -*- coding: latin-1 -*-\n", "latin-1"), ("", "utf-8-sig")]
    ):
        script = tmp_path / f"{number}.py"
        script.write_bytes((head + SCRIPT).encode(encoding))
        assert run("port", script, "--write").code == 0
        assert script.read_bytes() == (head + PORTED).encode(encoding)


def test_folder_without_scripts_is_a_usage_error(tmp_path: Path) -> None:
    assert run("port", tmp_path).code == 2
    assert run("port", tmp_path / "nothing.py").code == 3
