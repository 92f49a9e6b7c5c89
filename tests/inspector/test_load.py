"""Opening files: by content, in folders, partly unreadable, paired, without a signature."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from inspector.load import Cancelled, expand, load_file, load_session, pair, siblings
from schema.errors import FormatError
from tests.inspector.sessions import DATA

SESSION = DATA / "corpus/v1.5.1/convnet_xnnpack"
KINDS = {"model.pte": "pte", "model.etrecord": "etrecord", "run.etdp": "etdump"}


@pytest.mark.parametrize("name", KINDS)
def test_format_is_found_without_the_name(name: str, tmp_path: Path) -> None:
    hidden = tmp_path / "no-suffix"
    shutil.copy(SESSION / name, hidden)
    assert load_file(str(hidden)).kind == KINDS[name]
    assert load_file(str(hidden)).artifact == load_file(str(SESSION / name)).artifact


def test_folder_is_its_recognised_files_programs_first() -> None:
    names = [Path(name).name for name in expand([SESSION])]
    assert names == ["model.pte", "run.etdp", "model.etrecord", "run.debug"]


def test_folder_may_hold_other_files(tmp_path: Path) -> None:
    shutil.copy(SESSION / "model.pte", tmp_path)
    (tmp_path / "notes.txt").write_text("nothing of ours")
    assert [Path(name).name for name in siblings(tmp_path)] == ["model.pte"]


def test_debug_buffer_is_what_is_left_beside_a_trace(tmp_path: Path) -> None:
    for name in ("run.etdp", "run.debug"):
        shutil.copy(SESSION / name, tmp_path)
    raw = (tmp_path / "run.debug").read_bytes().rstrip(b"\0")
    (tmp_path / "run.debug").write_bytes(raw + b"\1")  # not recognisable on its own
    loaded = load_session([tmp_path / "run.etdp", tmp_path / "run.debug"])
    assert [file.kind for file in loaded.files] == ["etdump", "debug_buffer"]


def test_debug_buffer_alone_is_taken_for_one() -> None:
    assert load_file(str(SESSION / "run.debug")).kind == "debug_buffer"


@pytest.mark.parametrize(
    "content", [b"", b"hello world, this is text\n" * 9, bytes(range(256)) * 4]
)
def test_foreign_file_is_refused_with_its_name(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "strange.bin"
    path.write_bytes(content)
    with pytest.raises(FormatError) as caught:
        load_session([path])
    assert str(path) in str(caught.value)


def test_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nothing"):
        load_session([tmp_path / "nothing.pte"])


def test_readable_files_are_kept_beside_an_unreadable_one(tmp_path: Path) -> None:
    broken = tmp_path / "broken.ptd"
    broken.write_bytes((SESSION / "run.etdp").read_bytes()[:40])
    loaded = load_session([SESSION / "model.pte", broken])
    assert loaded.program is not None
    assert [issue.where for issue in loaded.issues] == [str(broken)]
    with pytest.raises(FormatError):
        load_session([SESSION / "model.pte", broken], strict=True)


def test_cancel_stops_between_files() -> None:
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Cancelled):
        load_session([SESSION], cancel=cancel)


def test_progress_names_each_file() -> None:
    seen: list[str] = []
    load_session([SESSION], progress=lambda path, share: seen.append(Path(path).name))
    assert seen == ["model.pte", "run.etdp", "model.etrecord", "run.debug"]


def test_files_of_one_stem_are_paired(tmp_path: Path) -> None:
    for stem, source in (("a", SESSION), ("b", DATA / "corpus/v1.5.1/mm_portable")):
        shutil.copy(source / "model.pte", tmp_path / f"{stem}.pte")
        shutil.copy(source / "run.etdp", tmp_path / f"{stem}.etdp")
    names = {Path(name).name for name in pair(str(tmp_path / "a.etdp"))}
    assert names == {"a.pte", "a.etdp"}


def test_lone_program_takes_all_beside_it() -> None:
    names = {Path(name).name for name in pair(str(SESSION / "run.etdp"))}
    assert names == {"model.pte", "model.etrecord", "run.etdp", "run.debug"}


def test_program_inside_a_bundle_serves_when_there_is_no_other() -> None:
    loaded = load_session([DATA / "corpus/special/xnnpack_two_delegates/model.bpte"])
    assert loaded.program is not None
    assert loaded.methods == ("forward",)
