"""The Compile dialog; it names the files whose code will be run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePath

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from devtools_app.appearance.theme import Theme, set_role
from devtools_app.state.compile_form import EXECUTORCH, MODES, CompileForm, with_path
from devtools_app.widgets.dialog_buttons import dialog_buttons
from devtools_app.widgets.files import PathChooser
from devtools_app.widgets.problem_label import problem_label
from inspector.jobs.messages import Ready
from inspector.recipes.python_file import functions_of
from schema.backends import BACKENDS

_SOURCES = "Python, exported programs, records (*.py *.pt2 *.etrecord);;All (*)"
LIBRARIES = "Python, shared libraries (*.py *.so *.dylib *.dll);;All (*)"
NO_LIBRARIES = "none: the operators of torch"
_SMALLEST_OF_ALL = "the smallest of all plans"
_SIZE, _FRAME = (640, 820), 64  # pixels; what the frame of a window and a task bar may take


class CompileDialog(QDialog):
    """Edits a CompileForm; Compile emits it, Cancel changes nothing.

    Signals:
        wanted(form): compile this
    """

    wanted = Signal(object)

    def __init__(
        self, theme: Theme, form: CompileForm, dialogs: PathChooser, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._dialogs = dialogs
        self.setWindowTitle("Compile")
        self.setAccessibleName("Compile")
        self._source = line("Source", "model.py, model.pt2 or model.etrecord")
        self._function = QComboBox()
        self._function.setEditable(True)
        self._function.setAccessibleName("Function")
        self._python = line("Interpreter", "the one ETScope runs in")
        self._toolchain = QComboBox()
        self._toolchain.setAccessibleName("Toolchain")
        self._toolchain.addItem("built-in", "")
        self._toolchain.addItem("ExecuTorch of the interpreter", EXECUTORCH)
        self._libraries = line("Operator libraries", NO_LIBRARIES)
        self._own_names = ""
        self._methods = line("Methods", "all")
        self._partitioners = QPlainTextEdit()
        self._partitioners.setAccessibleName("Partitioners")
        self._partitioners.setPlaceholderText("none: portable kernels only")
        self._partitioners.setTabChangesFocus(True)
        self._partitioners.setMaximumHeight(58)
        self._hint = _muted(
            "one per line, in order of preference: NAME, NAME:option=value, file.py:Class"
        )
        self._deny_ops = line("Operators to keep out", "aten.convolution.default aten.mean.*")
        self._deny_nodes = line("Nodes to keep out", "")
        self._min_nodes = QSpinBox()
        self._min_nodes.setRange(1, 1_000_000)
        self._min_nodes.setAccessibleName("Smallest partition")
        self._planner = QComboBox()
        self._planner.setAccessibleName("Memory planner")
        self._planner.addItem(_SMALLEST_OF_ALL, "")
        self._planner.setEditable(True)
        self._planner.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self._passes = line("Passes", "duplicates views file.py:NAME")
        self._edge_config = line("Edge config", "preserve_ops=aten.linear.default")
        self._external = QCheckBox("Constants in a .ptd beside the program")
        self._make_quantization()
        self._folder = line("Output folder", "")
        self._replace = QCheckBox("Replace files in the folder")
        for box in (self._external, self._per_tensor, self._replace):
            box.setAccessibleName(box.text())
        self._runs = Notice(theme)
        self._problem = problem_label()
        self._lay_out()
        self._fill(form)
        self._wire()
        self._changed()

    def _make_quantization(self) -> None:
        self._quantize = QComboBox()
        self._quantize.setAccessibleName("Quantize")
        self._quantize.addItem("no", "")
        for mode in MODES:
            self._quantize.addItem(mode, mode)
        self._calibration = line("Calibration inputs", "the example inputs")
        self._overrides = line("Other modes", "blocks.0=none aten.linear=dynamic")
        self._per_tensor = QCheckBox("Per-tensor scales of weights")
        self._quantizer = line("Quantizer", "file.py:NAME instead of a mode")

    @property
    def runs(self) -> str:
        """Return the warning about code that will be run, empty if none."""
        return self._runs.text

    @property
    def problem(self) -> str:
        """Return why it cannot be started, empty when it can."""
        return self._problem.text()

    def form(self) -> CompileForm:
        """Return the form as entered."""
        return CompileForm(
            source=self._source.text().strip(),
            function=self._function.currentText().strip(),
            python=self._python.text().strip(),
            methods=self._methods.text().strip(),
            partitioners=self._partitioners.toPlainText().strip(),
            deny_ops=self._deny_ops.text().strip(),
            deny_nodes=self._deny_nodes.text().strip(),
            min_nodes=self._min_nodes.value(),
            planner=self._planner_name(),
            passes=self._passes.text().strip(),
            edge_config=self._edge_config.text().strip(),
            quantizer=self._quantizer.text().strip(),
            external_constants=self._external.isChecked(),
            quantize=str(self._quantize.currentData()),
            calibration=self._calibration.text().strip(),
            overrides=self._overrides.text().strip(),
            per_tensor=self._per_tensor.isChecked(),
            toolchain=str(self._toolchain.currentData()),
            libraries=self._libraries.text().strip(),
            folder=self._folder.text().strip(),
            replace=self._replace.isChecked(),
        )

    def _planner_name(self) -> str:
        """Return a planner of the list, or the user's input."""
        written = self._planner.currentText().strip()
        at = self._planner.findText(written)
        return written if at < 0 else str(self._planner.itemData(at))

    def show_names(self, ready: Ready) -> None:
        """Offer the names that a worker knows."""
        for name in ready.planners:
            if self._planner.findData(name) < 0:
                self._planner.addItem(name, name)
        if ready.partitioners:
            self._own_names = ", ".join(name for name in ready.partitioners if name.islower())
            self._show_hint()

    def _show_hint(self) -> None:
        """List the available partitioners; those of another toolchain are not known yet."""
        names = self._own_names or "NAME, NAME:option=value"
        if self._toolchain.currentData() == EXECUTORCH:
            known = ", ".join(one.name.lower() for one in [*BACKENDS.values()][:3])
            names = f"{known}, … as executorch names them"
        self._hint.setText(f"one per line, in order of preference: {names}, or file.py:Class")

    def show_problem(self, sentence: str) -> None:
        """Show why it cannot be started."""
        self._problem.setText(sentence)

    def _fill(self, form: CompileForm) -> None:
        self._source.setText(form.source)
        self._offer_functions()
        self._function.setCurrentText(form.function)
        self._python.setText(form.python)
        self._toolchain.setCurrentIndex(max(0, self._toolchain.findData(form.toolchain)))
        self._libraries.setText(form.libraries)
        self._methods.setText(form.methods)
        self._partitioners.setPlainText(form.partitioners)
        self._deny_ops.setText(form.deny_ops)
        self._deny_nodes.setText(form.deny_nodes)
        self._min_nodes.setValue(form.min_nodes)
        if form.planner:
            self._planner.addItem(form.planner, form.planner)
            self._planner.setCurrentIndex(self._planner.count() - 1)
        self._passes.setText(form.passes)
        self._edge_config.setText(form.edge_config)
        self._quantizer.setText(form.quantizer)
        self._external.setChecked(form.external_constants)
        self._quantize.setCurrentIndex(max(0, self._quantize.findData(form.quantize)))
        self._calibration.setText(form.calibration)
        self._overrides.setText(form.overrides)
        self._per_tensor.setChecked(form.per_tensor)
        self._folder.setText(form.folder)
        self._replace.setChecked(form.replace)

    def _wire(self) -> None:
        self._source.textChanged.connect(self._source_changed)
        for field in (self._python, self._methods, self._deny_ops, self._deny_nodes, self._folder):
            field.textChanged.connect(self._changed)
        for field in (self._calibration, self._overrides, self._libraries):
            field.textChanged.connect(self._changed)
        for field in (self._passes, self._edge_config, self._quantizer):
            field.textChanged.connect(self._changed)
        self._planner.currentTextChanged.connect(self._changed)
        self._quantize.currentIndexChanged.connect(self._changed)
        self._toolchain.currentIndexChanged.connect(self._changed)
        self._function.currentTextChanged.connect(self._changed)
        self._partitioners.textChanged.connect(self._changed)
        self._replace.toggled.connect(self._changed)
        self._per_tensor.toggled.connect(self._changed)

    def _lay_out(self) -> None:
        rows = QFormLayout()
        rows.setLabelAlignment(Qt.AlignmentFlag.AlignLeft)
        rows.setVerticalSpacing(8)
        rows.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        rows.addRow("Source", beside(self._source, "Choose the source", self._choose_source))
        rows.addRow("Function", self._function)
        rows.addRow(
            "Interpreter", beside(self._python, "Choose the interpreter", self._choose_python)
        )
        rows.addRow("Toolchain", self._toolchain)
        libraries = beside(self._libraries, "Choose a library", self._choose_library)
        rows.addRow("Operator libraries", libraries)
        rows.addRow("Methods", self._methods)
        rows.addRow("Partitioners", self._partitioners)
        rows.addRow("", self._hint)
        rows.addRow("Keep operators out", self._deny_ops)
        rows.addRow("Keep nodes out", self._deny_nodes)
        rows.addRow("Smallest partition", self._min_nodes)
        rows.addRow("Passes", self._passes)
        rows.addRow("Edge config", self._edge_config)
        rows.addRow("Memory planner", self._planner)
        rows.addRow("Constants", self._external)
        rows.addRow("Quantize", self._quantize)
        calibration = beside(self._calibration, "Choose the inputs", self._choose_calibration)
        rows.addRow("Calibration", calibration)
        rows.addRow("Other modes", self._overrides)
        rows.addRow("", self._per_tensor)
        rows.addRow("Quantizer", self._quantizer)
        rows.addRow("Output folder", beside(self._folder, "Choose the folder", self._choose_folder))
        rows.addRow("", self._replace)
        own = (self._source, self._python, self._deny_ops, self._deny_nodes, self._folder)
        for field in (*own, self._libraries, self._passes, self._edge_config, self._quantizer):
            field.setFont(self._theme.mono())
        self._partitioners.setFont(self._theme.mono())
        kinds = QDialogButtonBox.StandardButton
        buttons = dialog_buttons(self, kinds.Ok | kinds.Cancel)
        self._ok = buttons.button(kinds.Ok)
        self._ok.setText("Compile")
        self._ok.setAccessibleName("Compile")
        buttons.accepted.connect(self._accept)
        layout = QVBoxLayout(self)
        layout.setSpacing(10)
        layout.addWidget(_scrolled(rows), 1)
        layout.addWidget(self._runs)
        layout.addWidget(self._problem)
        layout.addWidget(buttons)
        room = self.screen().availableGeometry().height() - _FRAME
        self.resize(_SIZE[0], min(_SIZE[1], max(room, self.minimumSizeHint().height())))

    def _source_changed(self) -> None:
        self._offer_functions()
        self._changed()

    def _offer_functions(self) -> None:
        source = self._source.text().strip()
        names = functions_of(source) if source.endswith(".py") else ()
        written = self._function.currentText()
        blocked = self._function.blockSignals(True)
        self._function.clear()
        self._function.addItems(names)
        self._function.setCurrentText(written if written and not names else "")
        if names:
            self._function.setCurrentText(written if written in names else names[0])
        self._function.blockSignals(blocked)

    def _changed(self) -> None:
        form = self.form()
        self._function.setEnabled(form.is_python)
        self._python.setEnabled(form.needs_interpreter)
        self._show_hint()
        self._quantize.setEnabled(not form.quantizer)
        self._calibration.setEnabled(bool(form.quantize or form.quantizer))
        for field in (self._overrides, self._per_tensor):
            field.setEnabled(bool(form.quantize) and not form.quantizer)
        self._runs.say(form.runs())
        problem = form.problem()
        self._ok.setEnabled(not problem)
        self.show_problem(problem if form.source else "")

    def _choose_source(self) -> None:
        paths = self._dialogs.open_files(self, "What to compile", _SOURCES)
        if not paths:
            return
        self._source.setText(paths[0])
        if not self._folder.text():
            self._folder.setText(str(Path(paths[0]).with_name(f"{PurePath(paths[0]).stem}_build")))

    def _choose_python(self) -> None:
        paths = self._dialogs.open_files(
            self, "A Python interpreter with torch or executorch", "All (*)"
        )
        if paths:
            self._python.setText(paths[0])

    def _choose_library(self) -> None:
        for path in self._dialogs.open_files(self, "Libraries that register operators", LIBRARIES):
            self._libraries.setText(with_path(self._libraries.text(), path))

    def _choose_calibration(self) -> None:
        paths = self._dialogs.open_files(self, "Inputs saved by torch.save", "All (*)")
        if paths:
            self._calibration.setText(paths[0])

    def _choose_folder(self) -> None:
        folder = self._dialogs.open_folder(self, "Folder for the compiled files")
        if folder:
            self._folder.setText(folder)

    def _accept(self) -> None:
        if not self.form().problem():
            self.wanted.emit(self.form())


class Notice(QFrame):
    """Warns that code will be run."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("notice")
        icon = QLabel()
        icon.setPixmap(theme.icon("warning", "warn").pixmap(16, 16))
        self._text = QLabel()
        self._text.setWordWrap(True)
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(12, 6, 12, 6)
        layout.addWidget(icon)
        layout.addWidget(self._text, 1)

    @property
    def text(self) -> str:
        """Return its text, empty while it is hidden."""
        return "" if self.isHidden() else self._text.text()

    def say(self, files: tuple[str, ...]) -> None:
        """Name the files whose code will be run; hide when there are none."""
        self.setVisible(bool(files))
        words = f"This runs the code in {' and '.join(files)}, with your rights."
        self._text.setText(words if files else "")
        self.setAccessibleName(self._text.text())


def _scrolled(rows: QFormLayout) -> QScrollArea:
    """Return fields that can be scrolled where a screen is too low for all of them."""
    page = QWidget()
    page.setLayout(rows)
    rows.setContentsMargins(0, 0, 0, 0)
    area = QScrollArea()
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setWidgetResizable(True)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    bar = area.verticalScrollBar().sizeHint().width()
    area.setMinimumWidth(page.minimumSizeHint().width() + bar)
    area.setWidget(page)
    return area


def line(name: str, example: str) -> QLineEdit:
    """Return a field with an accessible name and an example of what goes into it."""
    made = QLineEdit()
    made.setAccessibleName(name)
    made.setPlaceholderText(example)
    return made


def _muted(text: str) -> QLabel:
    label = QLabel(text)
    label.setWordWrap(True)
    set_role(label, "role", "muted")
    return label


def beside(field: QLineEdit, name: str, pressed: Callable[[], object]) -> QWidget:
    """Return a line with a button that chooses what goes into it."""
    button = QPushButton("Choose…")
    button.setAccessibleName(name)
    button.setAutoDefault(False)
    button.clicked.connect(lambda: pressed())
    box = QWidget()
    layout = QHBoxLayout(box)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.addWidget(field, 1)
    layout.addWidget(button)
    return box
