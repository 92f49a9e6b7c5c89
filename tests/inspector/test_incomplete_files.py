"""Files that are cut short, alone or of no kind: what is said of them is true and helps."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from inspector.check.session import check_words
from inspector.files.load import load_session
from inspector.findings.next_steps import NextAction, next_steps
from inspector.findings.session import findings
from inspector.profile.methods import unit_assumed, why_no_events
from schema.errors import FormatError
from tests.inspector.cli_runs import run
from tests.inspector.sessions import DATA

NET = DATA / "corpus/v1.5.1/convnet_xnnpack"
NAMES = {"model.pte": "model.pte", "model.etrecord": "model.etrecord"}
NAMES |= {"run.etdp": "values.etdp", "run.debug": "values.debug"}


def folder_of(folder: Path, *names: str, half: str = "") -> Path:
    """Copy files of a run with values as `etscope run` names them, one of them cut in half."""
    for name in names:
        data = (NET / name).read_bytes()
        kept = data[: len(data) // 2] if name == half else data
        (folder / NAMES[name]).write_bytes(kept)
    return folder


def texts(*paths: Path) -> list[str]:
    return [finding.text for finding in findings(load_session(list(paths)))]


@pytest.mark.parametrize("beside", [(), ("model.pte",), ("model.pte", "model.etrecord")])
def test_a_trace_cut_short_is_not_said_to_be_without_tracing(
    tmp_path: Path, beside: tuple[str, ...]
) -> None:
    found = texts(folder_of(tmp_path, "run.etdp", *beside, half="run.etdp"))
    if any("no event" in text for text in found):
        assert "The trace is damaged: no event of it can be read; record the run again" in found
    assert not any("without tracing" in text for text in found)


def test_nothing_is_asked_of_a_trace_whose_events_cannot_be_read(tmp_path: Path) -> None:
    trace = (DATA / "corpus/v1.5.1/convnet_xnnpack/run.etdp").read_bytes()
    (tmp_path / "run.etdp").write_bytes(trace[: len(trace) // 8])
    session = load_session([tmp_path / "run.etdp"])
    assert why_no_events(session)
    assert not unit_assumed(session)
    assert NextAction.CALIBRATE not in {one.action for one in next_steps(session)}


@pytest.mark.parametrize("extra", ["run.etdp", None])  # a second trace, of times
def test_a_debug_buffer_cut_short_is_not_left_out(tmp_path: Path, extra: str | None) -> None:
    folder = folder_of(tmp_path, "model.pte", "run.etdp", "run.debug", half="run.debug")
    if extra:
        shutil.copy(DATA / "runs/convnet_xnnpack/run.etdp", tmp_path / "run.etdp")
    session = load_session([folder])
    assert "debug_buffer" in [file.kind for file in session.files]
    done = run("check", folder)
    assert done.code == 1
    assert "a logged tensor ends at byte" in done.out


WORDS = {
    "one file": (("model.pte",), "", "There is one file, so that nothing can contradict it."),
    "all": (("model.pte", "model.etrecord", "run.etdp"), "", "The files belong together."),
    "a record cut short": (
        ("model.pte", "model.etrecord", "run.etdp", "run.debug"),
        "model.etrecord",
        "The others belong together; nothing shows whether model.etrecord does.",
    ),
    "two files": (
        ("model.pte", "model.etrecord"),
        "model.etrecord",
        "Nothing in the files shows whether they belong together.",
    ),
}


@pytest.mark.parametrize("case", WORDS)
def test_the_verdict_names_what_nothing_is_known_of(tmp_path: Path, case: str) -> None:
    names, half, words = WORDS[case]
    folder = folder_of(tmp_path, *names, half=half)
    assert check_words(load_session([folder])) == words
    assert words in run("check", folder).out
    run("report", folder, "-o", tmp_path / "report.html")
    assert (words in (tmp_path / "report.html").read_text("utf-8")) == (len(names) > 1)


@pytest.mark.parametrize("name", ["values.debug", "buffer.bin"])
def test_a_folder_of_a_debug_buffer_says_what_it_needs(tmp_path: Path, name: str) -> None:
    shutil.copy(NET / "run.debug", tmp_path / name)
    with pytest.raises(FormatError, match=f"none beside {name}, whose values need the ETDump"):
        load_session([tmp_path])


OTHERS = {
    "net.py": (b"import torch\n", "text that begins with 'import torch'; `etscope compile FILE.py"),
    "notes.txt": (b"\n\nTo do: \xc3", "bytes that begin with"),
    "run.sh": (b"#!/bin/sh\nls\n", "text that begins with '#!/bin/sh'"),
    "long.txt": (b"word " * 4000, f"text that begins with '{('word ' * 8)[:40]}'"),
    "escapes.txt": (b"\x1b[31mred\n", "bytes that begin with 1b 5b"),
    "blank.txt": (b" \n \n", "bytes that begin with"),
    "cut.pt2": (b"PK\x03\x04" + bytes(99), "a zip archive that is cut short, as of a .pt2"),
    "other.zip": (b"PK\x03\x04" + bytes(99) + b"PK\x05\x06" + bytes(18), "another zip archive"),
    "random.pte": (bytes(range(1, 250)), "bytes that begin with 01 02"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_file_of_no_kind_is_known_by_its_beginning(tmp_path: Path, name: str) -> None:
    data, words = OTHERS[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(FormatError) as caught:
        load_session([tmp_path / name])
    assert words in str(caught.value)
