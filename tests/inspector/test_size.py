"""Sizes: parts in file order without gap or overlap, summing to the file, for every program."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.files.load import load_file, load_session
from inspector.size.files import PlacedParts, session_sizes
from inspector.size.owners import FilePart, cover, mark_duplicates, program_size
from schema.program import ProgramFile
from tests.inspector.sessions import DATA

PROGRAMS = sorted(DATA.rglob("*.pte"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_byte_of_a_program_has_one_owner(path: Path) -> None:
    file = load_file(str(path))
    assert isinstance(file.artifact, ProgramFile)
    size = program_size(file.artifact, file.data)
    at = 0
    for part in size.parts:
        assert part.offset == at
        assert part.nbytes > 0
        assert part.kind not in ("", "other")
        at += part.nbytes
    assert at == size.total_bytes == path.stat().st_size


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_gaps_of_stock_files_are_small(path: Path) -> None:
    file = load_file(str(path))
    assert isinstance(file.artifact, ProgramFile)
    size = program_size(file.artifact, file.data)
    slack = sum(part.nbytes for part in size.parts if part.kind == "slack")
    assert slack == 0
    assert all(part.nbytes < 4096 for part in size.parts if part.kind == "alignment")


PARTS = st.lists(
    st.builds(
        FilePart,
        st.text(min_size=1, max_size=3),
        st.just("table"),
        st.integers(0, 120),
        st.integers(0, 60),
    ),
    max_size=8,
)


@given(PARTS, st.binary(min_size=1, max_size=100))
def test_cover_fills_gaps_and_cuts_overlaps(parts: list[FilePart], data: bytes) -> None:
    at = 0
    for part in cover(parts, memoryview(data)):
        assert part.offset == at
        at += part.nbytes
    assert at == len(data)


def test_gap_with_content_is_slack() -> None:
    kinds = [
        part.kind for part in cover([FilePart("a", "table", 4, 4)], memoryview(b"\0\0\0\0abcd\0x"))
    ]
    assert kinds == ["alignment", "table", "slack"]


def test_equal_contents_are_marked_after_the_first() -> None:
    data = memoryview(bytes(range(32)) * 2)
    parts = [FilePart("one", "constant", 0, 32), FilePart("two", "constant", 32, 32)]
    assert [part.duplicate_of for part in mark_duplicates(parts, data)] == ["", "one"]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_parts_of_tables_are_below_the_vector_that_holds_them(path: Path) -> None:
    file = load_file(str(path))
    assert isinstance(file.artifact, ProgramFile)
    parts = [
        part
        for part in program_size(file.artifact, file.data).parts
        if part.kind in ("table", "vtable") and "." in part.name
    ]
    assert parts
    for part in parts:
        words = part.name.replace("execution_plan", "plan").split(".")
        assert part.group == ("program", *words)
    above = {part.name.rpartition(".")[0] for part in parts}
    assert len({id(part.shelf) for part in parts}) == len(above)


def test_parts_of_several_files_have_their_place_and_file() -> None:
    trace = next(path for path in sorted(DATA.rglob("*.etdp")) if list(path.parent.glob("*.pte")))
    session = load_session([next(trace.parent.glob("*.pte")), trace])
    sized = session_sizes(session)
    plain = [(one.file, part) for one in sized if one.size is not None for part in one.size.parts]
    placed = PlacedParts(sized)
    assert len({id(file) for file, _ in plain}) == 2
    assert list(placed) == plain
    assert [placed[at] for at in range(len(placed))] == plain
    assert placed[-1] == plain[-1]
    assert placed[2:5] == plain[2:5]
    with pytest.raises(IndexError):
        placed[len(plain)]
    assert len(PlacedParts(())) == 0
