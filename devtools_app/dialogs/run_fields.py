"""The fields of the Run panel: method, inputs, number of runs, recording."""

from __future__ import annotations

import os
from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QValidator
from PySide6.QtWidgets import (
    QComboBox,
    QGridLayout,
    QLabel,
    QLineEdit,
    QSpinBox,
    QStackedWidget,
    QWidget,
)
from typing_extensions import override

from devtools_app.appearance.theme import Theme, set_role
from devtools_app.dialogs.form_parts import beside, line
from devtools_app.state.run_form import (
    AUTO_RUNS,
    AUTO_THREADS,
    AUTO_WARMUP,
    CASE,
    ENGINES,
    EXECUTORCH,
    FILE,
    LEVELS,
    MADE,
    MOST_RUNS,
    MOST_SEED,
    MOST_THREADS,
    SEQUENCE,
    SWEEP_THREADS,
    RunForm,
    Runnable,
    default_folder,
    with_path,
)
from devtools_app.widgets.elided_label import ElidedLabel
from devtools_app.widgets.fields import NarrowComboBox, SpinBox
from inspector.devices.device import known_devices
from inspector.recipes.compile_job import BUILT_IN
from schema.backends import engine_backends

_INPUTS = {
    "random": "random values",
    "ones": "ones",
    "zeros": "zeros",
    FILE: "a file of tensors",
    CASE: "a bundled case",
    SEQUENCE: "a sequence, one call each",
}
_LEVELS = {
    "none": "times only",
    "outputs": "outputs",
    "intermediate": "every intermediate value",
}
_LETTERS = 12  # that a list shows at least
_DEVICE_ROW = 5  # below what is run and what is recorded
_HERE = "This machine"
_RUNTIMES = {"": BUILT_IN, EXECUTORCH: EXECUTORCH}  # the names of toolchains
_ENGINES = {
    "auto": f"{engine_backends()}: real kernels, else torch's",
    "native": f"{engine_backends()}: real kernels",
    "torch": f"{engine_backends()}: torch's kernels",
}
_OPTIONS = "NAME:OPTION=VALUE, several with spaces: precision, device, threads or a property"
_AUTO_RUNS = "auto: until the mean is known to 2 %, or for 3 s"
_AUTO_WARMUP = "auto: until the times are alike, or for 2 s"
_THREAD_WORDS = {SWEEP_THREADS: "sweep", AUTO_THREADS: "auto"}
_HINTS = {
    "ones": "every element is 1",
    "zeros": "every element is 0",
}


class RunFields(QWidget):
    """Edits a RunForm for one program.

    Signals:
        edited(): a field has changed
        file_requested(): the user wants to choose a file of inputs
        sequence_requested(): the user wants to choose a folder of inputs
        folder_requested(): the user wants to choose a folder
        library_requested(): the user wants to choose a library of operators
    """

    edited = Signal()
    file_requested = Signal()
    sequence_requested = Signal()
    folder_requested = Signal()
    library_requested = Signal()

    def __init__(self, theme: Theme, form: RunForm) -> None:
        super().__init__()
        self._theme = theme
        self._what: Runnable | None = None
        self._method = _combo("Method")
        self._inputs = _combo("Inputs")
        self._file = line("File of inputs", "inputs.pt: torch.save of the list of inputs")
        self._sequence = line("Sequence of inputs", "folder of .pt and .npy files, or file.py:name")
        self._case = _spin("Bundled case", 0, 0)
        self._runs = _spin("Runs", AUTO_RUNS, MOST_RUNS)
        self._runs.setSpecialValueText("auto")
        self._runs.setToolTip(_AUTO_RUNS)
        self._warmup = _spin("Warm-up runs", AUTO_WARMUP, MOST_RUNS)
        self._warmup.setSpecialValueText("auto")
        self._warmup.setToolTip(_AUTO_WARMUP)
        self._level = _combo("Values to record")
        self._logged = QLabel()
        set_role(self._logged, "role", "muted")
        self._logged.hide()
        self._threads = _ThreadSpin()
        self._seed = _spin("Seed of random inputs", 0, MOST_SEED)
        self._seed.setPrefix("seed ")
        self._seed.setGroupSeparatorShown(False)
        self._seed.setToolTip("The same seed gives the same inputs.")
        self._engine = _combo("Engine of delegates")
        self._engine_label = _label("Delegates", self._engine)
        self._options = line("Options of backends", "")
        self._options_label = _label("Options", self._options)
        self._device = _combo("Device", _DeviceBox(self._refresh_devices))
        self._toolchain = _combo("Runtime")
        self._toolchain_label = _label("Runtime", self._toolchain)
        self._python = line("Interpreter with executorch", "the one ETScope runs in")
        self._libraries = line("Operator libraries", "")
        self._loading = beside(
            self._libraries, "Choose a library, whose code will be run", self.library_requested.emit
        )
        self._loading_label = _label("Operators", self._libraries)
        self._folder = line("Output folder", "")
        self._hint = ElidedLabel()
        set_role(self._hint, "role", "muted")
        self._about = QStackedWidget()
        self._lay_out()
        self._fill(form)
        self._wire()
        theme.follow(self._restyle)
        self._restyle()

    def form(self) -> RunForm:
        """Return the form as entered."""
        return RunForm(
            method=str(self._method.currentData() or ""),
            inputs=str(self._inputs.currentData() or MADE[0]),
            file=self._file.text().strip(),
            case=self._case.value(),
            runs=self._runs.value(),
            warmup=self._warmup.value(),
            level=str(self._level.currentData() or LEVELS[0]),
            threads=self._threads.value(),
            seed=self._seed.value(),
            engine=str(self._engine.currentData() or ENGINES[0]),
            folder=self._folder.text().strip(),
            toolchain=str(self._toolchain.currentData() or ""),
            python=self._python.text().strip(),
            libraries=self._libraries.text().strip(),
            device=str(self._device.currentData() or ""),
            options=self._options.text().strip(),
            sequence=self._sequence.text().strip(),
        )

    def show_program(self, what: Runnable | None) -> None:
        """Show the choices of another program; does nothing for the same one."""
        if what == self._what:
            return
        new = self._what is None or what is None or what.program != self._what.program
        self._what = what
        before = self.form()
        self._offer(self._method, [(name, name) for name in what.methods] if what else [])
        method = before.method_of(what) if what is not None else ""
        self._method.setCurrentIndex(max(0, self._method.findData(method)))
        if new and what is not None:
            self.show_devices(what.device if what.traces else before.device)
        self._show_place()
        if new:
            self._folder.clear()
            self._level.setCurrentIndex(0)  # chosen for each run: it costs time and space
        self._show_engines()
        self._show_foreign()
        self._offer_inputs(CASE if new and what and what.bundled else before.inputs)

    def show_devices(self, chosen: str) -> None:
        """Show this machine and the devices that are described, with one chosen."""
        names = {"": _HERE, **{name: one.describe() for name, one in known_devices().items()}}
        self._offer(self._device, [(text, name) for name, text in names.items()])
        self._device.setCurrentIndex(max(0, self._device.findData(chosen)))
        self._show_place()

    def _refresh_devices(self) -> None:
        self.show_devices(str(self._device.currentData() or ""))

    def set_file(self, path: str) -> None:
        """Use a file of inputs."""
        self._file.setText(path)

    def set_sequence(self, path: str) -> None:
        """Use a folder whose files are the inputs of one call each."""
        self._sequence.setText(path)

    def add_library(self, path: str) -> None:
        """Add an operator library."""
        self._libraries.setText(with_path(self._libraries.text(), path))

    def set_folder(self, path: str) -> None:
        """Use a folder."""
        self._folder.setText(path)

    def _fill(self, form: RunForm) -> None:
        self._offer(self._level, [(_LEVELS[name], name) for name in LEVELS])
        self._level.setCurrentIndex(max(0, self._level.findData(form.level)))
        self._offer(self._toolchain, [(text, key) for key, text in _RUNTIMES.items()])
        self._toolchain.setCurrentIndex(max(0, self._toolchain.findData(form.toolchain)))
        self._python.setText(form.python)
        self._libraries.setText(form.libraries)
        self._options.setText(form.options)
        self._show_foreign()
        self.show_devices(form.device)
        self._offer(self._engine, [(_ENGINES[name], name) for name in ENGINES])
        self._engine.setCurrentIndex(max(0, self._engine.findData(form.engine)))
        self._show_engines()
        self._seed.setValue(form.seed)
        self._file.setText(form.file)
        self._sequence.setText(form.sequence)
        self._runs.setValue(form.runs)
        self._warmup.setValue(form.warmup)
        self._threads.setValue(form.threads)
        self._offer_inputs(form.inputs)

    def _offer_inputs(self, chosen: str) -> None:
        what = self._what
        cases = what.cases_of(self.form().method_of(what)) if what is not None else 0
        names = [name for name in _INPUTS if name != CASE or cases]
        self._offer(self._inputs, [(_INPUTS[name], name) for name in names])
        self._inputs.setCurrentIndex(max(0, self._inputs.findData(chosen)))
        self._case.setMaximum(max(0, cases - 1))
        self._show_about()

    def _offer(self, box: QComboBox, choices: list[tuple[str, str]]) -> None:
        blocked = box.blockSignals(True)
        box.clear()
        for text, key in choices:
            box.addItem(text, key)
        box.blockSignals(blocked)

    def _wire(self) -> None:
        self._method.currentIndexChanged.connect(self._method_changed)
        self._inputs.currentIndexChanged.connect(self._inputs_changed)
        self._level.currentIndexChanged.connect(self._report)
        self._toolchain.currentIndexChanged.connect(self._toolchain_changed)
        self._engine.currentIndexChanged.connect(self._report)
        self._device.currentIndexChanged.connect(self._place_changed)
        for field in self._lines():
            field.textChanged.connect(self._report)
        for spin in (self._case, self._seed, self._runs, self._warmup, self._threads):
            spin.valueChanged.connect(self._report)

    def _method_changed(self) -> None:
        self._offer_inputs(self.form().inputs)
        self._report()

    def _toolchain_changed(self) -> None:
        self._show_place()
        self._report()

    def _place_changed(self) -> None:
        self._show_place()
        self._report()

    def _show_place(self) -> None:
        """Show the runtime and its interpreter where it runs on this machine, and the folder."""
        here = not self._device.currentData()
        for widget in (self._toolchain, self._toolchain_label):
            widget.setVisible(here)
        self._python.setVisible(here and bool(self._toolchain.currentData()))
        self._show_engines()
        self.show_folder()

    def forget_choices_of_a_run(self) -> None:
        """Reset what costs time and space, and is therefore chosen for each run."""
        self._level.setCurrentIndex(0)
        if self._threads.value() == SWEEP_THREADS:
            self._threads.setValue(RunForm().threads)

    def show_logged(self, text: str) -> None:
        """Show how much the recorded values will take, empty for none."""
        self._logged.setText(text)
        self._logged.setVisible(bool(text))

    def show_folder(self) -> None:
        """Show the folder of the next run."""
        if self._what is not None:
            device = str(self._device.currentData() or "")
            self._folder.setPlaceholderText(default_folder(self._what.program, device))

    def _show_engines(self) -> None:
        """Show engines and options of backends only where the choice matters."""
        what = self._what
        own = not self._toolchain.currentData() and not self._device.currentData()
        for widget in (self._engine, self._engine_label):
            widget.setVisible(own and what is not None and what.engines)
        names = what.options_of if what is not None else ()
        for widget in (self._options, self._options_label):
            widget.setVisible(own and bool(names))
        self._options.setPlaceholderText("".join(f"{name}:precision=f32" for name in names[:1]))
        self._options.setToolTip(_OPTIONS)

    def _show_foreign(self) -> None:
        """Show libraries only if the program calls operators that need one."""
        what = self._what
        foreign = what.foreign if what is not None else ()
        for widget in (self._loading, self._loading_label):
            widget.setVisible(bool(foreign))
        known = RunForm().loaded(what) if what is not None else ()
        text = os.pathsep.join(known) or f"library that registers {', '.join(foreign)}"
        self._libraries.setPlaceholderText(text)
        self._libraries.setToolTip("\n".join(foreign))

    def _inputs_changed(self) -> None:
        self._show_about()
        self._report()

    def _report(self) -> None:
        self.edited.emit()

    def _show_about(self) -> None:
        kind = self.form().inputs
        self._about.setCurrentIndex({FILE: 1, CASE: 2, MADE[0]: 3, SEQUENCE: 4}.get(kind, 0))
        for spin in (self._runs, self._warmup):
            spin.setEnabled(kind != SEQUENCE)  # its calls are made once, in order
        self._hint.setText(_HINTS.get(kind, ""))

    def _lay_out(self) -> None:
        grid = QGridLayout(self)
        grid.setContentsMargins(12, 8, 12, 8)
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(6)
        self._about.addWidget(self._hint)
        self._about.addWidget(beside(self._file, "Choose inputs", self.file_requested.emit))
        self._about.addWidget(self._case)
        self._about.addWidget(self._seed)
        chooser = beside(self._sequence, "Choose the inputs", self.sequence_requested.emit)
        self._about.addWidget(chooser)
        folder = beside(self._folder, "Choose the output folder", self.folder_requested.emit)
        rows: tuple[tuple[str, QWidget, str, QWidget], ...] = (
            ("Method", self._method, "Runs", self._runs),
            ("Inputs", self._inputs, "Warm-up", self._warmup),
            ("Device", self._device, "Threads", self._threads),
        )
        for row, (left, one, right, other) in zip((0, 1, _DEVICE_ROW), rows, strict=True):
            grid.addWidget(_label(left, one), row, 0)
            grid.addWidget(one, row, 1)
            grid.addWidget(_label(right, other), row, 2)
            grid.addWidget(other, row, 3)
        # a path has all the width
        above: tuple[tuple[QLabel | None, QWidget], ...] = (
            (None, self._about),
            (_label("Record", self._level), self._level),
            (None, self._logged),
        )
        below: tuple[tuple[QLabel | None, QWidget], ...] = (
            (self._toolchain_label, self._toolchain),
            (None, self._python),
            (self._engine_label, self._engine),
            (self._options_label, self._options),
            (self._loading_label, self._loading),
            (_label("Folder", self._folder), folder),
        )
        for row, (label, field) in (*enumerate(above, 2), *enumerate(below, _DEVICE_ROW + 1)):
            if label is not None:
                grid.addWidget(label, row, 0)
            grid.addWidget(field, row, 1, 1, 3)
        grid.setColumnStretch(1, 1)
        grid.setRowStretch(_DEVICE_ROW + 1 + len(below), 1)

    def _restyle(self) -> None:
        for field in self._lines():
            field.setFont(self._theme.mono())

    def _lines(self) -> tuple[QLineEdit, ...]:
        others = self._folder, self._python, self._libraries, self._options
        return self._file, self._sequence, *others


class _ThreadSpin(SpinBox):
    """A number of threads, ``auto`` for torch's default, or ``sweep``."""

    def __init__(self) -> None:
        super().__init__()
        self.setRange(SWEEP_THREADS, MOST_THREADS)
        self.setAccessibleName("Threads")
        self.lineEdit().setAccessibleName("Threads")
        self.setToolTip("sweep: measure 1, 2, 4, … side by side and run with the best number")

    @override
    def textFromValue(self, val: int) -> str:
        return _THREAD_WORDS.get(val, str(val))

    @override
    def valueFromText(self, text: str) -> int:
        known = {word: number for number, word in _THREAD_WORDS.items()}
        return known[text] if text in known else int(text or 1)

    @override
    def validate(self, input: str, pos: int) -> tuple[QValidator.State, str, int]:
        if any(word.startswith(input) for word in _THREAD_WORDS.values()):
            whole = input in _THREAD_WORDS.values()
            state = QValidator.State.Acceptable if whole else QValidator.State.Intermediate
            return state, input, pos
        return super().validate(input, pos)


class _DeviceBox(NarrowComboBox):
    """A list that is read again whenever it is opened, since devices are added elsewhere."""

    def __init__(self, refresh: Callable[[], object]) -> None:
        super().__init__(_LETTERS)
        self._refresh = refresh

    @override
    def showPopup(self) -> None:
        self._refresh()
        super().showPopup()


def _combo(name: str, box: QComboBox | None = None) -> QComboBox:
    box = box or NarrowComboBox(_LETTERS)
    box.setAccessibleName(name)
    return box


def _spin(name: str, least: int, most: int) -> QSpinBox:
    spin = SpinBox()
    spin.setRange(least, most)
    spin.setGroupSeparatorShown(True)
    spin.setAccessibleName(name)
    return spin


def _label(text: str, field: QWidget) -> QLabel:
    label = QLabel(text)
    set_role(label, "role", "muted")
    label.setAlignment(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft)
    label.setBuddy(field)
    return label
