"""The parts of a job that run in the parent, without torch: folders, sources, messages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.jobs.messages import message_from
from inspector.jobs.output_folder import FolderError, check_folder, prepare_folder
from inspector.jobs.process import _crash_place, _crash_text
from inspector.recipes.python_file import functions_of
from inspector.recipes.source import Source, SourceError, SourceKind, parse_source

NAMES = ("compile.json", "model.etrecord", "model.pte")


def fill(folder: Path, text: str, names: tuple[str, ...] = NAMES) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(text, "utf-8")


def content(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text("utf-8") for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("depth", [1, 3])
def test_folder_that_is_new_appears_with_all_its_files(depth: int, tmp_path: Path) -> None:
    target = tmp_path.joinpath(*(["new"] * depth))
    output = prepare_folder(target, force=False)
    assert not (tmp_path / "new").exists()
    fill(output.working, "new")
    output.commit()
    assert content(target) == dict.fromkeys(NAMES, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
    mask = os.umask(0)
    os.umask(mask)
    assert target.stat().st_mode & 0o777 == 0o777 & ~mask


def test_folder_that_is_discarded_was_never_there(tmp_path: Path) -> None:
    output = prepare_folder(tmp_path / "a" / "b", force=False)
    fill(output.working, "new")
    output.discard()
    assert list(tmp_path.iterdir()) == []


def test_folder_with_content_needs_force_and_keeps_what_it_does_not_replace(tmp_path: Path) -> None:
    fill(tmp_path, "old", ("model.pte", "notes.txt"))
    with pytest.raises(FolderError, match=r"not empty; --force") as refused:
        prepare_folder(tmp_path, force=False)
    assert refused.value.usage
    output = prepare_folder(tmp_path, force=True)
    fill(output.working, "new")
    output.commit()
    assert content(tmp_path) == {**dict.fromkeys(NAMES, "new"), "notes.txt": "old"}


def test_folder_whose_files_cannot_be_moved_is_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, "old", ("compile.json", "model.pte"))
    output = prepare_folder(tmp_path, force=True)
    fill(output.working, "new")
    move = os.replace

    def fails_at_the_program(source: Path, target: Path) -> None:
        if Path(target) == tmp_path / "model.pte" and Path(source).parent == output.working:
            raise OSError(28, "No space left on device")
        move(source, target)

    monkeypatch.setattr(os, "replace", fails_at_the_program)
    with pytest.raises(FolderError, match="No space left on device"):
        output.commit()
    assert content(tmp_path) == {"compile.json": "old", "model.pte": "old"}


def test_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", "utf-8")
    with pytest.raises(FolderError, match="is a file, not a folder"):
        check_folder(tmp_path / "file", force=True)


def test_folder_that_is_a_link_to_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(FolderError, match=r"is a link to .*gone, which is not there"):
        check_folder(tmp_path / "link", force=True)


def test_folder_in_the_place_of_a_file_is_not_lost(tmp_path: Path) -> None:
    inner = tmp_path / "model.pte" / "inner"
    inner.parent.mkdir()
    inner.write_text("mine", "utf-8")
    (tmp_path / "compile.json").write_text("old", "utf-8")
    output = prepare_folder(tmp_path, force=True)
    fill(output.working, "new", ("compile.json", "model.pte"))
    with pytest.raises(FolderError, match=r"cannot be written: model\.pte in it is a folder"):
        output.commit()
    assert inner.read_text("utf-8") == "mine"
    assert (tmp_path / "compile.json").read_text("utf-8") == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["compile.json", "model.pte"]


AS_NOBODY = """
import os, sys
from pathlib import Path
from inspector.jobs.output_folder import FolderError, prepare_folder
if os.geteuid() == 0:
    os.setuid(65534)  # root may write anywhere
for name in sys.argv[1:]:
    try:
        prepare_folder(Path(name), force=True)
    except FolderError as error:
        print(error)
"""


def test_folder_without_permission_is_refused(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    (tmp_path / "unseen" / "deep").mkdir(parents=True)
    closed.chmod(0o500)
    (tmp_path / "unseen").chmod(0)
    names = [str(closed / "new"), str(tmp_path / "unseen" / "deep" / "new")]
    try:
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, *names], capture_output=True, text=True, check=True
        )
    finally:
        (tmp_path / "unseen").chmod(0o700)
    assert done.stdout.splitlines() == [
        f"{name} cannot be written: Permission denied" for name in names
    ]


def test_folder_whose_name_is_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="cannot be written: File name too long"):
        prepare_folder(tmp_path / ("x" * 300), force=False)


def test_folder_on_a_read_only_file_system_is_refused() -> None:
    with pytest.raises(FolderError, match="cannot be written"):
        prepare_folder(Path("/proc/etscope/new"), force=False)


@pytest.mark.parametrize(
    ("text", "source", "kind"),
    [
        ("model.py:build", Source("model.py", "build"), SourceKind.PYTHON),
        ("C:\\models\\net.py:f", Source("C:\\models\\net.py", "f"), SourceKind.PYTHON),
        ("model.pt2", Source("model.pt2"), SourceKind.EXPORTED),
        ("a:b/model.etrecord", Source("a:b/model.etrecord"), SourceKind.RECORD),
        ("anything", Source("anything"), SourceKind.RECORD),
    ],
)
def test_source_is_parsed(text: str, source: Source, kind: SourceKind) -> None:
    found = parse_source(text)
    assert found == source
    assert found.kind is kind
    assert str(found) == text


@pytest.mark.parametrize("text", ["model.py", "model.py:", "model.py:a b", "dir/x.py:1f"])
def test_source_without_a_function_is_refused(text: str) -> None:
    with pytest.raises(SourceError, match=r"expected .*\.py:function"):
        parse_source(text)


def test_functions_of_a_file_are_found_without_running_it(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(
        "raise SystemExit\ndef _own(): ...\ndef a(): ...\ndef b(x): ...\n"
        "def c(x=1, *y, z=2, **w): ...\ndef d(*, z): ...\n"
        "class E:\n    def f(self): ...\nasync def g(): ...\n",
        "utf-8",
    )
    assert functions_of(str(file)) == ("a", "c", "_own")


@given(st.binary(max_size=200))
def test_functions_of_any_bytes_never_fail(data: bytes) -> None:
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"etscope_functions_{os.getpid()}.py"
    path.write_bytes(data)
    try:
        assert isinstance(functions_of(str(path)), tuple)
    finally:
        path.unlink()


def test_message_of_unknown_kind_is_none() -> None:
    assert message_from({"type": "other"}) is None


def test_crash_names_the_innermost_line_of_the_user() -> None:
    lines = [
        'File "/home/me/other.py", line 1, in early',
        "Fatal Python error: Segmentation fault",
        "Current thread 0x00007f (most recent call first):",
        '  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at',
        '  File "/home/me/model.py", line 33 in build',
        '  File "/home/me/main.py", line 2 in main',
    ]
    assert _crash_place(lines) == ("/home/me/model.py", 33)
    assert _crash_place(lines[:1]) == ("", 0)
    assert _crash_text(-11) == "the process crashed (SIGSEGV)"
    assert _crash_text(7) == "the process was ended from inside (exit code 7)"


def test_parts_of_the_parent_load_neither_torch_nor_the_compiler() -> None:
    code = "import inspector.jobs.run, inspector.cli.compile, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert loaded.isdisjoint({"torch", "compiler", "PySide6", "pandas"})
