"""Opening files: by content, in folders, partly unreadable, paired, without a signature."""

from __future__ import annotations

import json
import os
import shutil
import threading
import zipfile
from pathlib import Path

import pytest
import torch

from devtools_app.sample_data import SAMPLE
from inspector.files.load import (
    LoadCancelled,
    expand,
    load_file,
    load_session,
    pair,
    siblings,
)
from inspector.files.session_groups import split_sessions
from schema import etdump
from schema.errors import FormatError, Severity
from schema.files import formats
from tests.fuzz.run import time_limit
from tests.inspector.cli_runs import run
from tests.inspector.sessions import DATA, folders, label

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


def _run_into(folder: Path, written: float, *, report: bool = True) -> Path:
    """Copy a trace to where `etscope run` writes it."""
    folder.mkdir()
    trace = folder / "run.etdp"
    shutil.copy(SESSION / "run.etdp", trace)
    files = [{"path": "run.etdp", "bytes": trace.stat().st_size}]
    if report:
        (folder / "run.json").write_text(json.dumps({"etscope": "1", "files": files}))
        os.utime(folder / "run.json", (written, written))
    return folder


def _home(tmp_path: Path) -> Path:
    home = tmp_path / "net"
    home.mkdir()
    for name in ("model.pte", "model.etrecord"):
        shutil.copy(SESSION / name, home)
    return home


def _traces(*paths: Path) -> list[str]:
    return [str(Path(one).relative_to(paths[0])) for one in expand(paths) if one.endswith("etdp")]


def test_folder_of_a_program_includes_its_newest_run(tmp_path: Path) -> None:
    home = _home(tmp_path)
    _run_into(home / "run", 200)
    _run_into(home / "model_run_2", 300)
    _run_into(home / "model_run_3", 100)
    _run_into(home / "other_run", 900)  # of another program
    _run_into(home / "model_runs", 901)
    _run_into(home / "run_by_hand", 902, report=False)
    assert _traces(home) == ["model_run_2/run.etdp"]
    found = load_session([home])
    assert (found.name, len(found.dumps)) == ("net", 1)
    assert "run.etdp" in run("summary", home).out


def test_folder_with_a_trace_does_not_look_further(tmp_path: Path) -> None:
    home = _home(tmp_path)
    last = _run_into(home / "run", 200)
    first = _run_into(home / "run_1", 100)
    assert _traces(home, first) == ["run_1/run.etdp"]
    shutil.copy(last / "run.etdp", home / "own.etdp")
    assert _traces(home) == ["own.etdp"]


def test_run_in_the_folder_of_one_program_includes_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = _home(tmp_path)
    _run_into(home / "run", 200)
    older = _run_into(home / "model_run_1", 100)
    found = load_session([older])
    assert [Path(file.path).name for file in found.files][:2] == ["model.pte", "model.etrecord"]
    assert [Path(file.path).parent.name for file in found.files][-1] == "model_run_1"
    monkeypatch.chdir(older)
    assert [Path(name).name for name in expand(["."])].count("model.pte") == 1
    other = _run_into(home / "other_run", 300)  # of another program
    assert not any(name.endswith(".pte") for name in expand([other]))
    shutil.copy(home / "model.pte", home / "second.pte")
    assert not any(name.endswith(".pte") for name in expand([older]))


def test_folder_of_several_programs_includes_no_run(tmp_path: Path) -> None:
    home = _home(tmp_path)
    _run_into(home / "model_run", 100)
    shutil.copy(home / "model.pte", home / "other.pte")
    assert _traces(home) == []


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


@pytest.mark.parametrize("folder", folders("run.debug"), ids=label)
@pytest.mark.parametrize("rest", [0, 1 << 16])
def test_debug_buffer_of_any_run_is_taken_for_one(folder: Path, rest: int) -> None:
    # Bools, small integers and leading zeros too, cut after the last tensor or as it was written.
    data = (folder / "run.debug").read_bytes() + bytes(rest)
    assert formats.recognise(memoryview(data)) is None
    assert formats.looks_like_debug_buffer(memoryview(data))


@pytest.mark.parametrize("identifier", [b"ET99", b"XXXX", b"AB12"])
def test_program_with_a_wrong_identifier_is_no_debug_buffer(identifier: bytes) -> None:
    data = bytearray((SESSION / "model.pte").read_bytes() + bytes(64))
    data[4:8] = identifier
    assert not formats.looks_like_debug_buffer(memoryview(data))


@pytest.mark.parametrize("name", ["io.pt", "model.etrecord"])
def test_archive_is_no_debug_buffer(name: str) -> None:
    data = (SESSION / name).read_bytes() + bytes(64)
    assert not formats.looks_like_debug_buffer(memoryview(data))


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
    with pytest.raises(LoadCancelled):
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


@pytest.mark.parametrize("damage", [b"\x07garbage" * 40, b"plain text of nothing\n"])
def test_a_file_of_no_kind_brings_only_files_of_its_name(tmp_path: Path, damage: bytes) -> None:
    for name in ("model.pte", "model.etrecord", "run.etdp"):
        shutil.copy(SESSION / name, tmp_path / name)
    (tmp_path / "random.bin").write_bytes(damage)
    assert pair(str(tmp_path / "random.bin")) == (str(tmp_path / "random.bin"),)
    (tmp_path / "model.pte").write_bytes(damage)
    found = [Path(name).name for name in pair(str(tmp_path / "model.pte"))]
    assert found == ["model.pte", "model.etrecord"]


@pytest.mark.parametrize("chosen", ["net.pt2", "random.bin"])
def test_exported_programs_are_brought_by_no_other_file(tmp_path: Path, chosen: str) -> None:
    for name in ("net.pt2", "other.pt2"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("net/models/model.json", "{}")
    (tmp_path / "random.bin").write_bytes(b"\x07garbage")
    assert pair(str(tmp_path / chosen)) == (str(tmp_path / chosen),)


def test_lone_program_takes_all_beside_it() -> None:
    names = {Path(name).name for name in pair(str(SESSION / "run.etdp"))}
    assert names == {"model.pte", "model.etrecord", "run.etdp", "run.debug"}


def test_program_inside_a_bundle_serves_when_there_is_no_other() -> None:
    loaded = load_session([DATA / "corpus/special/xnnpack_two_delegates/model.bpte"])
    assert loaded.program is not None
    assert loaded.methods == ("forward",)


def test_saved_tensors_beside_a_trace_are_not_its_debug_buffer(tmp_path: Path) -> None:
    folder = DATA / "corpus" / "v1.5.1" / "mm_portable"
    saved = tmp_path / "io.pt"
    with zipfile.ZipFile(saved, "w") as archive:
        archive.writestr("io/data.pkl", bytes(64))
    session = load_session([str(folder / "model.pte"), str(folder / "run.etdp"), str(saved)])
    assert session.debug_buffer is None
    assert [file.kind for file in session.files] == ["pte", "etdump", "unknown"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_nobody_writes_to_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with time_limit(5), pytest.raises(FormatError, match="a pipe or device"):
        load_session([pipe])


@pytest.mark.parametrize(("name", "said"), [("run.etdp", True), ("run.etdump", True), ("a", False)])
def test_empty_trace_says_that_tracing_was_off(name: str, said: bool, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    with pytest.raises(FormatError, match="an empty file") as caught:
        load_file(str(tmp_path / name))
    assert ("event tracing was off" in str(caught.value)) is said


def test_folders_with_a_program_or_record_are_a_session_each_and_others_join(
    tmp_path: Path,
) -> None:
    places: dict[str, tuple[str, ...]] = {
        "a": ("model.pte", "model.etrecord", "run.etdp"),
        "b": ("model.etrecord",),
        "runs": ("run.etdp", "run.debug"),
        "empty": (),
    }
    for name, files in places.items():
        (tmp_path / name).mkdir()
        for file in files:
            shutil.copy(SESSION / file, tmp_path / name / file)
    a, b, runs, empty = (str(tmp_path / name) for name in places)
    loose = str(SESSION / "model.pte")
    assert split_sessions([a, b]) == ((a,), (b,))
    assert split_sessions([a, runs, b, empty]) == ((a, runs), (b, empty))
    assert split_sessions([runs, a, b, loose]) == ((runs, a), (b, loose))
    assert split_sessions([loose, runs]) == ((loose, runs),)
    assert split_sessions([loose, str(SESSION / "run.etdp"), b]) == (
        (loose, str(SESSION / "run.etdp"), b),
    )
    assert split_sessions([runs, empty]) == ((runs, empty),)
    answer = run("profile", a, runs, b)
    assert answer.code == 2
    assert f"this verb expects one session, found 2: {a} + {runs}, {b}" in answer.err
    assert "compare A B" in answer.err


def test_a_folder_of_several_programs_is_a_session_for_each(tmp_path: Path) -> None:
    for name in ("small.pte", "small.etrecord", "large.pte", "large.etdp"):
        shutil.copy(
            SESSION / f"{'run' if name[-4:] == 'etdp' else 'model'}{Path(name).suffix}",
            tmp_path / name,
        )
    small, record, large, trace = (
        str(tmp_path / name) for name in ("small.pte", "small.etrecord", "large.pte", "large.etdp")
    )
    assert split_sessions([str(tmp_path)]) == ((large, trace), (small, record))
    (tmp_path / "small").mkdir()
    shutil.copy(SESSION / "run.etdp", tmp_path / "small")
    assert split_sessions([str(tmp_path)]) == ((large, trace), (small, record))
    shutil.copy(SESSION / "model.pte", tmp_path / "small")
    inner = str(tmp_path / "small")
    assert split_sessions([str(tmp_path)]) == ((large, trace), (inner, small, record))
    assert split_sessions([small]) == ((small,),)
    assert "A large, B small" in run("compare", str(tmp_path), "--no-gap").out
    shutil.copy(SESSION / "run.etdp", tmp_path / "other.etdp")  # of which program, no name says
    assert split_sessions([str(tmp_path)]) == ((str(tmp_path),),)


def test_trace_as_json_is_a_trace_like_its_binary_form(tmp_path: Path) -> None:
    events = [{"profile_event": {"name": "Method::execute", "start_time": 5, "end_time": 1005}}]
    text = json.dumps({"run_data": [{"name": "Execute", "events": events}]})
    (tmp_path / "printed.txt").write_text(text)
    session = load_session([SESSION / "model.pte", tmp_path])
    loaded = session.files[1]
    assert (loaded.kind, loaded.size, loaded.error) == ("etdump", len(text), "")
    assert isinstance(loaded.artifact, etdump.ETDump)
    assert etdump.decode(loaded.data).run_data == loaded.artifact.run_data
    assert [issue.message for issue in session.all_issues()] == [
        "read from JSON, as flatc prints an ETDump; places are those in its binary form"
    ]
    answer = run("profile", tmp_path / "printed.txt")
    assert (answer.code, ", 1 µs mean of 1 run" in answer.out) == (0, True)


@pytest.mark.parametrize("count", [0, 1, 3, 5])
def test_folder_without_files_names_the_folders_that_have_some(tmp_path: Path, count: int) -> None:
    (tmp_path / "empty").mkdir()
    for number in range(count):
        inner = tmp_path / f"net_{number}"
        inner.mkdir()
        shutil.copy(DATA / "corpus/v1.5.1/mm_portable/model.pte", inner)
    with pytest.raises(FormatError) as caught:
        load_session([tmp_path])
    assert "at least one ExecuTorch file, found none" in str(caught.value)
    named = [number for number in range(count) if f"net_{number}" in str(caught.value)]
    assert len(named) == min(count, 3)
    assert ("and 2 more" in str(caught.value)) == (count == 5)
    assert "empty" not in str(caught.value)


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ("generation.json", "in Calls opens its generation.json"),
        ("run.json", "The run in this folder has no trace"),
        ("notes.md", "ExecuTorch files in this folder: none"),
    ],
)
def test_a_folder_without_files_beside_a_program_is_named(
    tmp_path: Path, there: str, said: str
) -> None:
    folder = tmp_path / "text"
    folder.mkdir()
    (folder / there).write_text("{}", "utf-8")
    session = load_session([DATA / "corpus/v1.5.1/mm_portable", folder])
    (issue,) = (one for one in session.all_issues() if one.where == str(folder))
    assert issue.severity is Severity.WARNING
    assert said in issue.message


def test_folder_of_nothing_but_exported_programs_opens_them(tmp_path: Path) -> None:
    exported = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    torch.export.save(exported, tmp_path / "net.pt2")
    session = load_session([tmp_path])
    assert [file.kind for file in session.files] == ["pt2"]
    assert session.record is not None
    shutil.copy(tmp_path / "net.pt2", tmp_path / "other.pt2")
    assert split_sessions([str(tmp_path)]) == tuple(
        (str(tmp_path / name),) for name in ("net.pt2", "other.pt2")
    )
    shutil.copy(SAMPLE / "model.pte", tmp_path / "net.pte")  # what it was compiled to
    assert expand([tmp_path]) == [str(tmp_path / "net.pte")]
