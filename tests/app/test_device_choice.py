"""Devices in the window: chosen in the Run panel, described in a dialog, units asked for once."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QComboBox, QPushButton

from devtools_app.dialogs.devices_dialog import DevicesDialog
from devtools_app.dialogs.run_fields import RunFields
from devtools_app.shell.window import MainWindow
from devtools_app.state.run_form import RunForm, default_folder, runnable
from inspector.devices.device import Device, device_named, known_devices, store_device
from inspector.files.load import load_session

pytestmark = [
    pytest.mark.slow,
    pytest.mark.gui,
    pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell"),
]
DATA = Path(__file__).parents[1] / "data"
MODEL = DATA / "extra" / "deep_mlp"


@pytest.fixture(autouse=True)
def _own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def stored(tmp_path: Path) -> Device:
    """A device that is a folder of this machine, with a runner that only prints a line."""
    runner = tmp_path / "runner.sh"
    runner.write_text("#!/bin/sh\necho ran\n")
    runner.chmod(0o755)
    device = Device(
        "box", "command", "sh -c {command}", f"{runner} {{program}}", str(tmp_path / "d")
    )
    store_device(device, new=True)
    return device


def traced(tmp_path: Path, report: str = "") -> Path:
    """A program with its trace, in a folder of their own."""
    folder = tmp_path / "files"
    folder.mkdir()
    for name in ("model.pte", "run.etdp"):
        shutil.copy(MODEL / name, folder)
    if report:
        size = (folder / "run.etdp").stat().st_size
        (folder / "run.json").write_text(
            f'{{"method": "forward", "files": [{{"path": "run.etdp", "bytes": {size}}}], {report}}}'
        )
    return folder


def test_a_device_is_chosen_in_the_panel_and_kept_with_the_session(
    theme, qtbot, tmp_path: Path
) -> None:
    stored(tmp_path)
    fields = RunFields(theme, RunForm(engine="torch", toolchain="executorch"))
    qtbot.addWidget(fields)
    folder = traced(tmp_path, '"device": {"name": "box"}, "clock": "us"')
    session = load_session([folder])
    what = runnable("A", session)
    assert what is not None
    assert (session.name, what.device) == ("files on box", "box")
    fields.show_program(what)
    box = next(one for one in fields.findChildren(QComboBox) if one.accessibleName() == "Device")
    assert [box.itemText(at) for at in range(box.count())] == ["This machine", "box (a command)"]
    assert (box.currentData(), fields.form().device) == ("box", "box")
    job = fields.form().job(what)
    assert (job.device, job.toolchain, job.engine) == ("box", "", "auto")
    assert fields.form().target(what) == default_folder(what.program, "box")
    box.setCurrentIndex(0)
    job = fields.form().job(what)
    assert (job.device, job.toolchain) == ("", "executorch")
    fields.show_program(replace(what, program="other.pte", device="gone"))
    assert fields.form().device == ""


def test_a_device_is_described_tried_and_forgotten_in_the_dialog(
    theme, qtbot, make_window, tmp_path: Path
) -> None:
    window: MainWindow = make_window()
    device = stored(tmp_path)
    window.bound["devices"].trigger()
    dialog = window.findChild(DevicesDialog)
    assert dialog is not None
    chosen, name, transport = dialog._chosen, dialog._name, dialog._transport
    name.setText("../pi")
    dialog.save()
    assert "is not a name of a device" in dialog.outcome
    name.setText("pi")
    transport.setCurrentText("ssh")
    dialog._address.setText("pi@pi.local")
    buttons = {one.accessibleName(): one for one in dialog.findChildren(QPushButton)}
    buttons["Save the device"].click()
    assert device_named("pi").address == "pi@pi.local"
    chosen.setCurrentIndex(chosen.findData("box"))
    buttons["Test the connection; the device is saved first"].click()
    qtbot.waitUntil(lambda: dialog.outcome.startswith("Reached"), timeout=10_000)
    assert dialog.outcome.endswith("The runner is there.")
    assert device_named("box") == device
    buttons["Remove the device from the list"].click()
    assert list(known_devices()) == ["pi"]
    dialog.reject()


def test_the_unit_of_a_trace_from_elsewhere_is_asked_for_once(
    make_window, qtbot, tmp_path: Path
) -> None:
    window: MainWindow = make_window()
    path = str(traced(tmp_path))
    window.controller.open((path,))
    qtbot.waitUntil(lambda: bool(window.strip.text), timeout=20_000)
    assert "unit of its ticks" in window.strip.text
    next(one for one in window.strip.findChildren(QPushButton) if one.text() == "us").click()
    options = window.store.state.session.options
    assert (options.source_time_scale, options.time_scale_assumed) == ("us", False)
    assert window.strip.text == ""
    window.controller.put_settings(replace(window.controller.settings, font_size=15))
    assert window.store.state.session.options == options
    window.controller.open((path,))
    qtbot.waitUntil(lambda: len(window.store.state.sessions) == 2, timeout=20_000)
    assert window.strip.text == ""
    assert window.store.state.session.options == options
