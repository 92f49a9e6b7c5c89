"""Disk use in the window: what is listed, what stays, what is removed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QPushButton, QTreeWidget

from devtools_app.dialogs.disk_dialog import DiskDialog

pytestmark = pytest.mark.gui

MODEL = Path(__file__).parents[1] / "data/corpus/v1.5.1/mm_portable/model.pte"


def run_folder(folder: Path, trace: Path | None = None, values: int = 0) -> Path:
    folder.mkdir(parents=True)
    if trace is not None:
        shutil.copy(trace, folder / "run.etdp")
    names = ["run.etdp", "values.debug"]
    (folder / "values.debug").write_bytes(bytes(values))
    report = {"etscope": "1", "files": [{"path": name, "bytes": 0} for name in names]}
    (folder / "run.json").write_text(json.dumps(report))
    return folder


def listed(dialog: DiskDialog) -> dict[str, QTreeWidget]:
    tree = dialog.findChild(QTreeWidget)
    items = [tree.topLevelItem(row) for row in range(tree.topLevelItemCount())]
    return {item.text(0): item for item in items}


def test_folders_are_listed_and_the_checked_ones_removed(make_window, qtbot, tmp_path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(MODEL, home)
    used = run_folder(home / "model_run", MODEL.with_name("run.etdp"))
    old = run_folder(home / "model_run_2", None, 70_000)
    (old / "notes.txt").write_text("mine")
    window = make_window()
    window.controller.open((str(home / "model.pte"), str(used / "run.etdp")))
    qtbot.waitUntil(lambda: window.store.state.session is not None, timeout=20_000)
    window.bound["disk"].trigger()
    dialog = window.findChild(DiskDialog)
    assert "2 folders" in dialog.windowTitle()
    rows = listed(dialog)
    assert set(rows) == {"model_run", "model_run_2"}
    assert [rows[one.name].text(5) for one in (used, old)] == ["open", ""]
    assert rows["model_run"].isDisabled()
    remove = next(b for b in dialog.findChildren(QPushButton) if b.text() == "Remove")
    assert not remove.isEnabled()
    rows["model_run_2"].setCheckState(0, Qt.CheckState.Checked)
    assert remove.text().startswith("Remove 1 folder, 68.")
    values = dialog.findChild(QCheckBox)
    values.setChecked(True)
    remove.click()
    assert dialog.outcome == "68.36 KiB removed."
    assert not (old / "values.debug").exists()
    assert (old / "run.json").is_file()
    values.setChecked(False)
    listed(dialog)["model_run_2"].setCheckState(0, Qt.CheckState.Checked)
    remove.click()
    assert [path.name for path in old.iterdir()] == ["notes.txt"]
    assert set(listed(dialog)) == {"model_run"}
    assert (used / "run.etdp").is_file()
    dialog.close()


def test_open_sweep_is_listed_and_stays(make_window, qtbot, tmp_path) -> None:
    sweep = tmp_path / "grid"
    run_folder(sweep / "points/a1/run", None, 50_000)
    results = {
        "sweep": 1,
        "etscope": "1",
        "recipe": str(tmp_path / "recipe.json"),
        "fields": [],
        "objectives": [],
        "points": [],
    }
    (sweep / "results.json").write_text(json.dumps(results))
    window = make_window()
    window.controller.open((str(sweep),))
    assert window.store.state.sweep
    window.bound["disk"].trigger()
    dialog = window.findChild(DiskDialog)
    (row,) = listed(dialog).values()
    assert [row.text(column) for column in (1, 5)] == ["sweep", "open"]
    assert row.isDisabled()
    dialog.close()
