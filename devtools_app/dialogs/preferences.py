"""The preferences dialog; it edits a frozen Settings and emits the new one."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QVBoxLayout,
    QWidget,
)

from devtools_app.appearance.look import LARGEST, SMALLEST, ThemeMode
from devtools_app.appearance.theme import Theme, set_role
from devtools_app.dialogs.dialog_room import fit_dialog, scrolled
from devtools_app.state.external_editor import default_template
from devtools_app.state.settings import SIZE_CHOICES, TICK_CHOICES, TIME_CHOICES, Settings
from devtools_app.widgets.dialog_buttons import dialog_buttons
from devtools_app.widgets.fields import ComboBox, SpinBox
from devtools_app.widgets.lines_field import lines_field
from inspector.tables.selection import Units

_TICK_WORDS = {"": "ns (assumed)", "cycles": "cycles (not a time)"}
_ARROW = "=>"
_SIZE = (560, 560)
_LINES, _LINES_PAD = 3, 20


class Preferences(QDialog):
    """Changes are emitted by Apply and OK; Cancel discards them.

    Signals:
        applied(settings): the new settings
    """

    applied = Signal(object)

    def __init__(self, theme: Theme, settings: Settings, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._settings = settings
        self.setWindowTitle("Preferences")
        self.setAccessibleName("Preferences")
        self._theme_box = _choice("Theme", [(mode.value, mode.value) for mode in ThemeMode])
        self._size = SpinBox()
        self._size.setRange(SMALLEST, LARGEST)
        self._size.setSuffix(" px")
        self._size.setAccessibleName("Text size")
        self._time = _choice("Unit of times", [(one, one) for one in TIME_CHOICES])
        self._bytes = _choice("Unit of sizes", [(one, one) for one in SIZE_CHOICES])
        ticks = [(_TICK_WORDS.get(one, one), one) for one in TICK_CHOICES]
        self._tick = _choice("Unit of trace ticks", ticks)
        self._roots = lines_field("Source folders", "/home/me/models")
        self._mapping = lines_field("Path mapping", "/build/agent => /home/me")
        self._editor = QLineEdit()
        self._editor.setAccessibleName("Editor command")
        self._editor.setPlaceholderText(default_template() or "code --goto {file}:{line}")
        self._lay_out(theme)
        self._show(settings)

    def chosen(self) -> Settings:
        """Return the settings as the dialog shows them."""
        return replace(
            self._settings,
            theme=ThemeMode(self._theme_box.currentData()),
            font_size=self._size.value(),
            units=Units(str(self._time.currentData()), str(self._bytes.currentData())),
            tick=str(self._tick.currentData()),
            source_roots=_filled(self._roots),
            path_mapping=_pairs(_filled(self._mapping)),
            editor=self._editor.text().strip(),
        )

    def _show(self, settings: Settings) -> None:
        for box, value in (
            (self._theme_box, settings.theme.value),
            (self._time, settings.units.time),
            (self._bytes, settings.units.size),
            (self._tick, settings.tick),
        ):
            box.setCurrentIndex(max(0, box.findData(value)))
        self._size.setValue(settings.font_size)
        self._roots.setPlainText("\n".join(settings.source_roots))
        self._mapping.setPlainText(
            "\n".join(f"{one} {_ARROW} {two}" for one, two in settings.path_mapping)
        )
        self._editor.setText(settings.editor)

    def _lay_out(self, theme: Theme) -> None:
        form = QFormLayout()
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft)
        form.setVerticalSpacing(8)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        rows: tuple[tuple[str, QWidget, str], ...] = (
            ("Theme", self._theme_box, ""),
            ("Text size", self._size, ""),
            ("Times in", self._time, "auto chooses one unit per column"),
            ("Sizes in", self._bytes, ""),
            ("Trace ticks in", self._tick, "the unit is not in the file; ETDump writers use ns"),
            ("Source folders", self._roots, "one per line; searched for files of stack traces"),
            ("Path mapping", self._mapping, "one per line: recorded prefix => folder here"),
            ("Editor", self._editor, "{file} and {line} are filled in; no shell is used"),
        )
        for label, field, hint in rows:
            name = QLabel(label)
            name.setBuddy(field)
            form.addRow(name, _hinted(field, hint) if hint else field)
        self._roots.setFont(theme.mono())
        self._mapping.setFont(theme.mono())
        self._editor.setFont(theme.mono())
        for lines in (self._roots, self._mapping):
            lines.setFixedHeight(_LINES * QFontMetrics(theme.mono()).height() + _LINES_PAD)
        kinds = QDialogButtonBox.StandardButton
        buttons = dialog_buttons(self, kinds.Ok | kinds.Apply | kinds.Cancel)
        buttons.accepted.connect(self._accept)
        buttons.button(kinds.Apply).clicked.connect(self._apply)
        area = scrolled(form, "Fields of the preferences")
        layout = QVBoxLayout(self)
        layout.addWidget(area, 1)
        layout.addWidget(buttons)
        fit_dialog(self, theme, _SIZE, area)

    def _apply(self) -> None:
        self.applied.emit(self.chosen())

    def _accept(self) -> None:
        self._apply()
        self.accept()


def _choice(name: str, entries: list[tuple[str, str]]) -> QComboBox:
    box = ComboBox()
    box.setAccessibleName(name)
    for text, value in entries:
        box.addItem(text, value)
    return box


def _filled(field: QPlainTextEdit) -> tuple[str, ...]:
    lines = (line.strip() for line in field.toPlainText().splitlines())
    return tuple(line for line in lines if line)


def _pairs(lines: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    parts = (line.partition(_ARROW) for line in lines)
    return tuple((one.strip(), two.strip()) for one, _, two in parts if one.strip() and two.strip())


def _hinted(field: QWidget, hint: str) -> QWidget:
    """Return a field with a sentence about it right below."""
    text = QLabel(hint)
    text.setWordWrap(True)
    set_role(text, "role", "muted")
    both = QWidget()
    layout = QVBoxLayout(both)
    layout.setContentsMargins(0, 0, 0, 4)
    layout.setSpacing(2)
    layout.addWidget(field)
    layout.addWidget(text)
    return both
