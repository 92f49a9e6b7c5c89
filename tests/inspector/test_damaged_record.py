"""Records with damaged members: each is named once, with its cause; good records have no issue."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from devtools_app.viewmodels.below import below_facts
from inspector.cli.main import main
from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.findings.session import findings
from inspector.tables.files import all_issues
from inspector.tables.selection import Units
from schema.errors import Severity
from schema.etrecord import RecordFile, decode, record
from tests.inspector.sessions import DATA

FOLDER = DATA / "corpus/v1.5.1/convnet_xnnpack"
EDGE = "edge_dialect_exported_program/forward"
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "half": lambda old: old[: len(old) // 2],
    "text": lambda _old: b"not what it should be",
    "holed": lambda old: old[:100] + b"\xff" * 60 + old[160:],
}
GRAPHS = ("exported_program", EDGE)
TENSORS = tuple(f"{name}{end}" for name in GRAPHS for end in ("_state_dict", "_constants"))


def written(path: Path, member: str, change: Callable[[bytes], bytes]) -> Path:
    """Write the record with a changed member, whose checksum is that of the change."""
    with zipfile.ZipFile(FOLDER / "model.etrecord") as old, zipfile.ZipFile(path, "w") as new:
        for one in old.infolist():
            data = old.read(one)
            new.writestr(one.filename, change(data) if one.filename == member else data)
    return path


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("member", [*GRAPHS, *TENSORS])
def test_a_damaged_member_is_one_issue_that_names_it_and_the_cause(
    tmp_path: Path, member: str, damage: str
) -> None:
    path = written(tmp_path / "model.etrecord", member, DAMAGES[damage])
    session = load_session([path])
    (issue,) = session.unread()
    assert issue.where == str(path)
    assert issue.severity is Severity.ERROR
    assert f"in {member}" in issue.message
    assert "expected" in issue.message or "is not read: " in issue.message
    assert [one for one in all_issues(session) if member in one.message] == [issue]
    assert issue.message in [one.text.split(" and ")[0] for one in findings(session)]


@pytest.mark.parametrize("member", [EDGE, f"{EDGE}_state_dict"])
def test_check_says_so_once_and_summary_begins_with_it(
    tmp_path: Path, member: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "model.etrecord", member, DAMAGES["half"])
    main(["check", str(FOLDER / "model.pte"), str(path)])
    told = "".join(capsys.readouterr())
    assert told.count(f"{path}: in {member}") == 1
    assert told.count(member) <= 2  # the one that a graph begins with is in its own name
    main(["summary", str(FOLDER / "model.pte"), str(path)])
    first = next(line for line in capsys.readouterr().out.splitlines() if "problem" in line)
    assert f"in {member}" in first


def test_the_window_counts_what_cannot_be_read(tmp_path: Path) -> None:
    good = load_session([FOLDER / "model.etrecord"])
    bad = load_session([written(tmp_path / "model.etrecord", EDGE, DAMAGES["half"])])
    assert _count(bad) == _count(good) + 1


def _count(session: Session) -> int:
    return below_facts(session, "forward", Units()).issues


def test_no_good_record_has_an_issue() -> None:
    """Also not one of a program in 4 bits, whose tensors are of a class of another library."""
    paths = [*DATA.glob("corpus/*/*/model.etrecord"), *DATA.glob("extra/*/model.etrecord")]
    assert DATA / "extra/xnnpack_8da4w/model.etrecord" in paths
    for path in paths:
        assert load_session([path]).unread() == (), path


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_strict_json_lacks_are_no_damage(tmp_path: Path, number: str) -> None:
    path = written(
        tmp_path / "model.etrecord",
        "exported_program",
        lambda old: old.replace(b'"as_int": 1}', f'"as_float": {number}}}'.encode(), 1),
    )
    assert number.encode() in path.read_bytes()
    assert load_session([path]).unread() == ()


def test_changed_bytes_of_a_graph_are_told_from_those_that_cannot_be_read(tmp_path: Path) -> None:
    data = bytearray((FOLDER / "model.etrecord").read_bytes())
    place = data.index(b"aten.convolution")
    data[place : place + 4] = b"ATEN"
    path = tmp_path / "model.etrecord"
    path.write_bytes(data)
    (issue,) = load_session([path]).unread()
    assert issue.severity is Severity.WARNING
    assert "checksum" in issue.message


@pytest.mark.parametrize("damaged", [False, True])
def test_large_graphs_are_not_built_for_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, damaged: bool
) -> None:
    monkeypatch.setattr(record, "_SMALL", 0)
    change = DAMAGES["half"] if damaged else lambda old: old
    path = written(tmp_path / "model.etrecord", EDGE, change)
    found = decode(path.read_bytes(), file=str(path))
    built: list[str] = []
    plain = RecordFile.program
    monkeypatch.setattr(
        RecordFile, "program", lambda self, name: built.append(name) or plain(self, name)
    )
    assert len(found.unread()) == damaged
    assert built == ([EDGE] if damaged else [])
