"""Where a recorded source file is looked for beside the files of a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.files.session import LoadedFile, Session, SessionOptions
from inspector.graph.source import find_source


def _session(folder: Path, *roots: Path) -> Session:
    file = LoadedFile(str(folder / "model.pte"), "pte", 0, memoryview(b""), None)
    return Session("s", (file,), SessionOptions(source_roots=tuple(map(str, roots))))


@pytest.mark.parametrize("recorded", ["zoo/net.py", "./zoo/net.py", "zoo\\net.py"])
def test_source_relative_path_is_found_beside_the_files(tmp_path: Path, recorded: str) -> None:
    (tmp_path / "zoo").mkdir()
    (tmp_path / "zoo/net.py").write_text("pass\n")
    assert find_source(recorded, _session(tmp_path)) == tmp_path / "zoo/net.py"


@pytest.mark.parametrize("recorded", ["/home/user/net.py", "C:\\code\\net.py", "other/net.py", ""])
def test_source_of_another_place_is_not_taken_for_the_one_beside(
    tmp_path: Path, recorded: str
) -> None:
    (tmp_path / "code").mkdir()
    for path in ("net.py", "code/net.py"):
        (tmp_path / path).write_text("pass\n")
    assert find_source(recorded, _session(tmp_path)) is None


def test_source_is_never_left_through_dots(tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text("pass\n")
    (tmp_path / "s").mkdir()
    assert find_source("../secret.py", _session(tmp_path / "s")) is None


def test_source_root_goes_before_what_is_beside(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "net.py").write_text("pass\n")
    assert find_source("net.py", _session(tmp_path / "a", tmp_path / "b")) == tmp_path / "b/net.py"
