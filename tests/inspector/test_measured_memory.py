"""Memory as measured: rows of run.json in tables, the verb and comparisons."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import inspector
from inspector.compare.sessions import compare_sessions
from inspector.compare.weighing import weigh
from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.memory.measured import measured_memory
from inspector.tables.compare import summary_table, tone_of
from inspector.tables.query import column_index
from tests.inspector.cli_runs import run, valid
from tests.inspector.sessions import DATA

MIB = 1 << 20
RUN = DATA / "runs/convnet_xnnpack"


def measured_run(folder: Path, steady: int, *, separate: bool = True) -> Path:
    """Return a copy of a recorded run whose report has measured memory."""
    shutil.copytree(RUN, folder)
    path = next(folder.rglob("run.json"))
    report = json.loads(path.read_text("utf-8"))
    report["memory"] = {
        "increase": {"load": MIB, "prepare": 3 * MIB, "first_run": None, "steady_run": steady},
        "separate": separate,
        "steady_parts": {
            "program_file": 9000,
            "planned_buffers": 28736,
            "delegates": None,
            "other": steady - 9000 - 28736,
        },
    }
    path.write_text(json.dumps(report), "utf-8")
    return folder


def _session(folder: Path, steady: int) -> Session:
    return load_session([measured_run(folder, steady)])


def test_phases_come_in_order_and_parts_add_up_to_a_steady_run(tmp_path: Path) -> None:
    rows = measured_memory(_session(tmp_path / "a", 32 * MIB), "forward")
    assert [row.phase for row in rows if not row.part] == [
        *("load", "prepare", "first run", "steady run"),
    ]
    parts = [row for row in rows if row.part]
    assert sum(row.nbytes or 0 for row in parts) == 32 * MIB
    assert {row.part for row in parts if row.nbytes is None} == {"delegates"}
    assert rows[2].nbytes is None
    assert measured_memory(load_session([RUN / "model.pte"]), "forward") == ()


def test_memory_of_a_device_is_all_of_the_process_of_its_runner(tmp_path: Path) -> None:
    folder = measured_run(tmp_path / "a", MIB)
    path = next(folder.rglob("run.json"))
    report = json.loads(path.read_text("utf-8"))
    report |= {
        "memory": {"planned_bytes": [1], "peak_bytes": 50 * MIB},
        "device": {"name": "pi"},
        "where": "ExecuTorch on pi",
    }
    path.write_text(json.dumps(report), "utf-8")
    (row,) = measured_memory(load_session([folder]), "forward")
    assert (row.nbytes, row.note) == (
        50 * MIB,
        "all of the process of the runner: ExecuTorch on pi",
    )
    frame = inspector.table(folder, "measured-memory").dataframe()
    assert list(frame.columns) == ["phase", "part", "all_of_the_process", "note"]
    report["memory"]["peak_bytes"] = None
    path.write_text(json.dumps(report), "utf-8")
    assert measured_memory(load_session([folder]), "forward") == ()


def test_verb_and_table_show_the_same_rows(tmp_path: Path) -> None:
    folder = measured_run(tmp_path / "a", 32 * MIB, separate=False)
    tree = valid(run("memory", folder, "--format", "json"), "memory")
    rows = tree["data"]["methods"]["forward"]["measured"]
    frame = inspector.table(folder, "measured-memory").dataframe()
    shown = [None if value != value else int(value) for value in frame.iloc[:, 2]]
    assert shown == [row["nbytes"] for row in rows]
    assert "increase over the idle worker" in run("memory", folder).out
    assert "cannot reset a peak" in rows[0]["note"]
    missing = inspector.table(RUN / "model.pte", "measured-memory").dataframe()
    assert missing.iloc[:, 2].isna().all()
    assert missing["note"].str.contains("run.json").all()


@pytest.mark.parametrize(
    ("steady", "word", "text"),
    [
        (33 * MIB, "not distinguishable", "same peak memory, measured memory not distinguishable"),
        (64 * MIB, "worse", "same peak memory, measured memory 2.0 times more (+32 MiB)"),
    ],
)
def test_comparison_weighs_measured_memory_beyond_what_runs_differ_by(
    tmp_path: Path, steady: int, word: str, text: str
) -> None:
    pair = [_session(tmp_path / "a", 32 * MIB), _session(tmp_path / "b", steady)]
    found = compare_sessions(pair)
    (memory,) = [one for one in weigh(found, 1) if one.area == "memory"]
    assert (memory.word, memory.text) == (word, text)
    assert len([one for one in found.memory if one.what.startswith("measured memory")]) == 6
    table = summary_table(found, ("A", "B"))
    names = [table.text(row, 0) for row in range(table.length)]
    place = names.index("measured memory, steady run")
    certainty = column_index(table, "certainty")
    assert table.text(place, certainty) == "increase over the idle worker"
    steady_run = next(one for one in found.summary if one.what == names[place])
    assert tone_of(steady_run, 1) == ("bad" if word == "worse" else "muted")


def test_memory_that_different_runtimes_took_is_no_gain_or_loss_of_the_program(
    tmp_path: Path,
) -> None:
    other = measured_run(tmp_path / "b", 64 * MIB)
    path = next(other.rglob("run.json"))
    report = json.loads(path.read_text("utf-8")) | {"where": "executorch 1.5.1 on this machine"}
    path.write_text(json.dumps(report), "utf-8")
    found = compare_sessions([_session(tmp_path / "a", 32 * MIB), load_session([other])])
    (memory,) = [one for one in weigh(found, 1) if one.area == "memory"]
    assert (memory.word, memory.text) == (
        "not distinguishable",
        "same peak memory, measured memory not comparable",
    )
    table = summary_table(found, ("A", "B"))
    names = [table.text(row, 0) for row in range(table.length)]
    place = names.index("measured memory, steady run")
    words = table.text(place, column_index(table, "certainty"))
    assert words.startswith("not comparable; process of executorch 1.5.1")
    assert tone_of(next(one for one in found.summary if one.what == names[place]), 1) == "muted"
