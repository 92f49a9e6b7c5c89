"""The devices that programs run on besides this machine: described, tried, forgotten."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from devtools_app.appearance.theme import Theme, set_role
from devtools_app.dialogs.dialog_room import fit_dialog, scrolled
from devtools_app.dialogs.form_parts import line
from devtools_app.jobs.latest import Latest, Token
from devtools_app.widgets.dialog_buttons import dialog_buttons
from devtools_app.widgets.fields import ComboBox
from devtools_app.widgets.push_button import push_button
from inspector.devices.device import (
    ADB,
    COMMAND,
    KINDS,
    SSH,
    Device,
    check_device,
    device_named,
    forget_device,
    known_devices,
    store_device,
)
from inspector.devices.errors import DeviceError
from inspector.devices.remote import probe
from inspector.devices.runner import DEFAULT_RUNNER
from inspector.units import TICK_UNITS

_NEW = "A new device"
_SIZE = (640, 420)
_EXAMPLES = {
    SSH: "pi@raspberrypi.local",
    ADB: "serial, or host:port",
    COMMAND: "docker exec -i box sh -c {command}",
}


class DevicesDialog(QDialog):
    """Edits one device at a time; Test connects in a thread."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Devices")
        self.setAccessibleName("Devices")
        self._chosen = _combo("Device")
        self._name = line("Name of the device", "pi")
        self._transport = _combo("Reached by")
        self._transport.addItems(list(KINDS))
        self._address = line("Address", _EXAMPLES[SSH])
        self._runner = line("Runner command", DEFAULT_RUNNER)
        self._folder = line("Folder on the device", "")
        self._clock = _combo("Unit of trace ticks")
        self._clock.addItems(list(TICK_UNITS))
        self._result = QLabel()
        self._result.setWordWrap(True)
        self._trial = Latest("device test", self)
        self._lay_out(theme)
        self._trial.ready.connect(self._tried)
        self._trial.failed.connect(self._failed)
        self._transport.currentTextChanged.connect(self._show_example)
        self._chosen.currentIndexChanged.connect(self._show_device)
        self._list("")

    @property
    def outcome(self) -> str:
        """Return the last message."""
        return self._result.text()

    def device(self) -> Device:
        """Return the device as entered; what the dialog does not show stays as it was.

        Raises: DeviceError
        """
        known = known_devices().get(self._name.text().strip())
        fields = {
            "name": self._name.text().strip(),
            "transport": self._transport.currentText(),
            "address": self._address.text().strip(),
            "runner": self._runner.text().strip() or DEFAULT_RUNNER,
            "folder": self._folder.text().strip(),
            "clock": self._clock.currentText(),
        }
        return check_device(replace(known or Device("", SSH, ""), **fields))

    def save(self) -> bool:
        """Store the device; return whether that worked."""
        try:
            device = self.device()
            store_device(device, new=False)
        except DeviceError as error:
            self._report(f"Not saved: {error}.", good=False)
            return False
        self._list(device.name)
        self._report(f"{device.describe()} is saved.", good=True)
        return True

    def try_out(self) -> None:
        """Store the device and connect to it."""
        if not self.save():
            return
        device = device_named(self._name.text().strip())
        self._report(f"Connecting to {device.describe()} …", good=True)

        def work(_token: Token) -> object:
            return probe(device, lambda _sentence: None)

        self._trial.submit(work)

    def forget(self) -> None:
        """Remove the description of the device."""
        name = self._name.text().strip()
        try:
            forget_device(name)
        except DeviceError as error:
            self._report(f"Not removed: {error}.", good=False)
            return
        self._list("")
        self._report(f"{name} is forgotten.", good=True)

    @override
    def done(self, code: int) -> None:
        self._trial.close()
        super().done(code)

    def _tried(self, found: tuple[dict[str, str], bool]) -> None:
        facts, has_runner = found
        text = ", ".join(facts[name] for name in ("model", "system") if name in facts)
        if has_runner:
            self._report(f"Reached: {text}. The runner is there.", good=True)
        else:
            self._report(f"Reached: {text}, but the runner is not there.", good=False)

    def _failed(self, error: object) -> None:
        self._report(f"{error}.", good=False)

    def _report(self, text: str, *, good: bool) -> None:
        self._result.setText(text)
        set_role(self._result, "role", "muted" if good else "problem")

    def _list(self, chosen: str) -> None:
        blocked = self._chosen.blockSignals(True)
        self._chosen.clear()
        self._chosen.addItem(_NEW, "")
        for name, device in known_devices().items():
            self._chosen.addItem(device.describe(), name)
        self._chosen.setCurrentIndex(max(0, self._chosen.findData(chosen)))
        self._chosen.blockSignals(blocked)
        self._show_device()

    def _show_device(self) -> None:
        name = str(self._chosen.currentData() or "")
        device = known_devices().get(name) or Device("", SSH, "")
        self._name.setText(device.name)
        self._transport.setCurrentText(device.transport)
        self._address.setText(device.address)
        self._runner.setText("" if device.runner == DEFAULT_RUNNER else device.runner)
        self._folder.setText(device.folder)
        self._clock.setCurrentText(device.clock)
        self._show_example()

    def _show_example(self) -> None:
        kind = self._transport.currentText()
        self._address.setPlaceholderText(_EXAMPLES[kind])
        self._folder.setPlaceholderText(Device("", kind, "").place)

    def _lay_out(self, theme: Theme) -> None:
        form = QFormLayout()
        form.setVerticalSpacing(8)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        rows: tuple[tuple[str, QWidget], ...] = (
            ("Device", self._chosen),
            ("Name", self._name),
            ("Reached by", self._transport),
            ("Address", self._address),
            ("Runner", self._runner),
            ("Folder there", self._folder),
            ("Ticks in", self._clock),
        )
        for label, field in rows:
            form.addRow(label, field)
        for field in (self._address, self._runner, self._folder):
            field.setFont(theme.mono())
        actions = QHBoxLayout()
        actions.addWidget(push_button("Save", "Save the device", self.save))
        actions.addWidget(
            push_button("Test", "Test the connection; the device is saved first", self.try_out)
        )
        actions.addWidget(push_button("Remove", "Remove the device from the list", self.forget))
        actions.addStretch(1)
        layout = QVBoxLayout(self)
        area = scrolled(form, "Fields of the device")
        layout.addWidget(area, 1)
        layout.addLayout(actions)
        layout.addWidget(self._result)
        layout.addWidget(dialog_buttons(self, QDialogButtonBox.StandardButton.Close))
        fit_dialog(self, theme, _SIZE, area)


def _combo(name: str) -> QComboBox:
    box = ComboBox()
    box.setAccessibleName(name)
    return box
