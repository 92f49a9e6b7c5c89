"""Which files belong together: every committed session does, every mix of models does not."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from inspector.check.session import BELONG, CANNOT_TELL, DO_NOT_BELONG, check_session
from inspector.files.session import Session
from tests.inspector.sessions import DATA, folders, label, session

ALL = folders("model.pte")
LOST = {"dynamic"}  # its trace is damaged by the runtime that wrote it
# Sessions of different models; two releases' files of one model cannot be told apart.
MODELS = [
    DATA / "corpus/v1.5.1" / name
    for name in (
        "convnet_portable",
        "convnet_xnnpack",
        "mm_portable",
        "mm_xnnpack",
        "tinygpt_portable",
        "tinygpt_xnnpack",
    )
] + [DATA / "extra/lstm_portable", DATA / "extra/two_methods", DATA / "extra/kv_cache"]


@pytest.mark.parametrize("folder", [path for path in ALL if path.name not in LOST], ids=label)
def test_files_of_one_session_belong(folder: Path) -> None:
    loaded = session(folder)
    found = check_session(loaded)
    assert found.mismatch == ""
    assert found.verdict == (BELONG if len(loaded.files) > 1 else CANNOT_TELL)


def test_damaged_trace_contradicts_nothing() -> None:
    found = check_session(session(DATA / "corpus/special/dynamic"))
    assert found.verdict != DO_NOT_BELONG


@pytest.mark.parametrize(
    ("one", "other"),
    list(itertools.permutations(MODELS, 2)),
    ids=lambda path: path.name,
)
def test_program_with_the_files_of_another_model_is_found_out(one: Path, other: Path) -> None:
    program = next(file for file in session(one).files if file.kind == "pte")
    foreign = [file for file in session(other).files if file.kind in ("etrecord", "etdump")]
    for file in foreign:
        found = check_session(Session("mix", (program, file)))
        assert found.verdict == DO_NOT_BELONG, file.path
        assert program.path in found.mismatch
        assert file.path in found.mismatch


def test_one_foreign_file_is_the_odd_one_out() -> None:
    good, foreign = session(MODELS[0]), session(MODELS[4])
    record = next(file for file in foreign.files if file.kind == "etrecord")
    files = tuple(record if file.kind == "etrecord" else file for file in good.files)
    found = check_session(Session("mix", files))
    assert found.verdict == DO_NOT_BELONG
    assert found.odd_one_out == record.path


def test_debug_buffer_of_another_run_is_found_out() -> None:
    dump = next(file for file in session(MODELS[0]).files if file.kind == "etdump")
    buffer = next(file for file in session(MODELS[4]).files if file.kind == "debug_buffer")
    found = check_session(Session("mix", (dump, buffer)))
    assert found.verdict == DO_NOT_BELONG
    assert "byte" in found.mismatch


def test_data_nobody_asks_for_does_not_belong() -> None:
    data = next(
        file for file in session(DATA / "extra/external_weights").files if file.kind == "ptd"
    )
    program = next(file for file in session(MODELS[0]).files if file.kind == "pte")
    found = check_session(Session("mix", (program, data)))
    assert found.verdict == DO_NOT_BELONG


def test_one_file_alone_cannot_be_judged() -> None:
    only = session(MODELS[0]).files[:1]
    assert check_session(Session("one", only)).verdict == CANNOT_TELL


def test_files_of_the_packaged_sample_belong() -> None:
    sample = Path(__file__).parents[2] / "devtools_app/sample_data/keyword_net"
    found = check_session(session(sample))
    assert found.mismatch == ""
    assert found.verdict == BELONG
