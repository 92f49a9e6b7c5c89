"""The fields of a recipe as widgets, generated from its dataclasses: panel and dialog show them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import chain

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QLabel, QLineEdit, QScrollArea, QVBoxLayout, QWidget
from typing_extensions import override

from devtools_app.appearance.look import FORM_WIDTH
from devtools_app.appearance.slices import Slices
from devtools_app.appearance.theme import Theme, set_role
from devtools_app.dialogs.choice_fields import (
    Editor,
    FlagField,
    NameField,
    NumberField,
    OptionField,
    TextField,
)
from devtools_app.dialogs.form_files import FormFiles
from devtools_app.dialogs.form_group import FormGroup
from devtools_app.dialogs.form_parts import beside
from devtools_app.dialogs.list_field import ListField
from devtools_app.viewmodels.field_choices import Vocabulary
from devtools_app.viewmodels.recipe_form import (
    FieldKind,
    FormField,
    Section,
    sections,
    without_meaning,
)
from devtools_app.widgets.files import PathChooser
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.options import MEMORY, OUTPUT, PARTITION, QUANTIZE, SOURCE, FieldNames

_OPENED = (SOURCE, QUANTIZE, PARTITION, MEMORY, OUTPUT)
_CHOSEN = (FieldNames.FILE, FieldNames.INTERPRETER)  # by a button beside the field
_NARROW = 26  # widths of an M below which labels are above their fields


class _Widgets(dict[str, Editor | ListField]):
    """The fields by path; the first access to one builds its group."""

    def __init__(self, build: Callable[[str], object]) -> None:
        super().__init__()
        self._build = build

    def __missing__(self, path: str) -> Editor | ListField:
        self._build(path)
        return dict.__getitem__(self, path)


class RecipeFields(QScrollArea):
    """A form with one field per recipe field, in groups; those at their default are muted.

    Signals:
        edited(path, value): the user changed a field; a text on every key if the form is live, else
            when the field is left

    Attributes:
        widgets: the fields by path; those of a group that was never open are built on access
    """

    edited = Signal(str, object)

    def __init__(self, theme: Theme, paths: PathChooser, *, live: bool = False) -> None:
        """Show no recipe yet.

        Args:
            theme: the look
            paths: asks for files
            live: whether what is typed is reported on every key; if not, Tab goes from group to
                group, and arrow down into the fields of one
        """
        super().__init__()
        self._theme = theme
        self._files = FormFiles(paths)
        self._live = live
        self._shown: dict[str, FormField] = {}
        self._without: Collection[str] = ()
        self._known: Vocabulary | None = None
        self._labels: dict[str, QWidget] = {}
        self._groups: dict[str, FormGroup] = {}
        self._titles: dict[str, str] = {}
        self._filling = Slices(self)
        self._touched: set[str] = set()
        self._problems: Mapping[str, str] = {}
        self.widgets = _Widgets(lambda path: self._group_of(path).fill())
        self._page = QWidget()
        self._page.setObjectName("page")
        self._column = QVBoxLayout(self._page)
        self._column.setContentsMargins(0, 4, 8, 8)
        self._column.setSpacing(2)
        self.setObjectName("panel")
        self.setAccessibleName("Recipe as form")
        self.setWidgetResizable(True)
        self.setWidget(self._page)  # what is added later need not be styled anew with it
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        theme.follow(self._restyle)

    @property
    def touched(self) -> frozenset[str]:
        """Return the fields that the user has changed here."""
        return frozenset(self._touched)

    def show_job(self, job: CompileJob) -> None:
        """Show the fields of a recipe."""
        found = sections(job)
        self._without = without_meaning(job)
        if not self._groups:
            self._build(found)
        for section in found:
            for one in section.fields:
                self._show(one)
            changed = sum(not one.is_default for one in section.fields)
            self._groups[section.title].set_count(changed if section.title != SOURCE else 0)
        for path, widget in self.widgets.items():
            widget.setEnabled(path not in self._without)
        if not self._live:
            for group in self._groups.values():
                group.stop_once()

    def _show(self, one: FormField) -> None:
        if self._shown.get(one.path) != one:
            self._shown[one.path] = one
            if one.path in self.widgets:
                self.widgets[one.path].show_value(one.value)
                set_role(self._labels[one.path], "role", "muted" if one.is_default else "")

    def offer(self, known: Vocabulary) -> None:
        """Offer names in the fields that take them."""
        self._known = known
        for widget in self.widgets.values():
            widget.offer(known)

    def show_problems(self, problems: Mapping[str, str], *, ask: Collection[str] = ()) -> None:
        """Show the errors of fields below them, as soon as the user has changed something.

        Args:
            problems: sentences by field
            ask: fields whose problem is shown though they were not changed
        """
        self._problems = problems
        for path in self._titles:
            told = path in self._touched or path in ask
            sentence = problems.get(path, "") if told else ""
            if sentence or path in self.widgets:
                self._show_problem(path, sentence)

    def forget_input(self) -> None:
        """Forget the changes of the user: another recipe is shown."""
        self._touched.clear()

    def problem(self, path: str) -> str:
        """Return the error shown at a field, may be empty."""
        return self._group_of(path).problem(path)

    def _show_problem(self, path: str, sentence: str) -> None:
        widget = self.widgets[path]
        self._group_of(path).show_problem(path, sentence)
        if isinstance(widget, QLineEdit):
            set_role(widget, "wrong", "true" if sentence else "false")
        widget.setAccessibleDescription(sentence or self._shown[path].help)

    def _group_of(self, path: str) -> FormGroup:
        return self._groups[self._titles[path]]

    def _build(self, found: tuple[Section, ...]) -> None:
        self._titles = {one.path: section.title for section in found for one in section.fields}
        self._shown = {one.path: one for section in found for one in section.fields}
        for section in found:
            changed = any(not one.is_default for one in section.fields)
            opened = changed or section.title in _OPENED
            group = FormGroup(self._theme, section.title, self._rows(section), opened=opened)
            self._groups[section.title] = group
            self._column.addWidget(group)
        self._column.addStretch(1)
        self._restyle()
        if self._live:  # Tab goes through all fields
            for group in self._groups.values():
                group.fill()
        else:  # all at once would keep the window for 90 ms, a group for up to 95
            opened = [group for group in self._groups.values() if group.opened]
            self._filling.start(chain.from_iterable(group.filling() for group in opened))

    def _rows(self, section: Section) -> Iterator[object]:
        """Add the fields of a section to its group, one at a time."""
        for one in section.fields:
            yield self._add(self._groups[section.title], self._shown[one.path])
        self._arrange()

    def _add(self, group: FormGroup, one: FormField) -> None:
        label = QLabel(one.title)
        widget = self.widgets[one.path] = self._widget(one)
        widget.setAccessibleName(label.text())
        widget.setAccessibleDescription(one.help)
        for part in (label, widget):
            part.setToolTip(one.help)
        self._set_font(widget)
        widget.show_value(one.value)
        widget.setEnabled(one.path not in self._without)
        if self._known is not None:
            widget.offer(self._known)
        widget.edited.connect(lambda value: self._edited(one.path, value))
        if isinstance(widget, ListField):
            widget.rebuilt.connect(group.settle)
        flag = isinstance(widget, FlagField)
        self._labels[one.path] = widget if flag else label
        set_role(self._labels[one.path], "role", "muted" if one.is_default else "")
        if flag:
            label.deleteLater()  # the box has the text
            group.add(one.path, None, widget)
            return
        label.setBuddy(widget)
        group.add(one.path, label, self._with_button(one, widget, label.text()))

    def _with_button(self, one: FormField, widget: Editor | ListField, label: str) -> QWidget:
        if not isinstance(widget, TextField) or one.names not in _CHOSEN:
            return widget

        def choose() -> None:
            files = self._files.choose(one, self)
            if files:
                widget.setText(files[0])
                if not self._live:
                    widget.edited.emit(files[0])

        return beside(widget, f"Choose: {label}", choose)

    def _edited(self, path: str, value: object) -> None:
        before = self._shown[path]
        if value != before.value:
            self._touched.add(path)
            self.edited.emit(path, value)

    def _widget(self, one: FormField) -> Editor | ListField:
        if one.kind is FieldKind.FLAG:
            return FlagField(one)
        if one.kind is FieldKind.CHOICE:
            return OptionField(one)
        if one.kind is FieldKind.NUMBER:
            return NumberField(one, live=self._live)
        if one.kind is FieldKind.LINES:
            return ListField(self._theme, one, self._files)
        if one.names in _CHOSEN:
            return TextField(one, live=self._live)
        return NameField(one, self._files, live=self._live)

    # -- look ------------------------------------------------------------------------------

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._restyle()  # the style sheet takes a font away that was set before it is applied

    @override
    def resizeEvent(self, arg__1: QResizeEvent) -> None:
        super().resizeEvent(arg__1)
        self._arrange()

    def _arrange(self) -> None:
        """Put labels above their fields where both beside one another have no room."""
        narrow = self.viewport().width() < _NARROW * self.fontMetrics().horizontalAdvance("M")
        width = self._label_width()
        for group in self._groups.values():
            group.set_narrow(width, on=narrow)

    def _label_width(self) -> int:
        """Return the width of the longest label, also of groups that were never open."""
        metrics = (self.findChild(QLabel) or self).fontMetrics()
        beside_fields = (one for one in self._shown.values() if one.kind is not FieldKind.FLAG)
        return max((metrics.horizontalAdvance(one.title) for one in beside_fields), default=0)

    def _restyle(self) -> None:
        if not self._live:  # a dialog has a width of its own
            self._page.setMaximumWidth(round(FORM_WIDTH * self._theme.scale))
        for group in self._groups.values():
            group.restyle()
        for widget in self.widgets.values():
            self._set_font(widget)
        self._arrange()

    def _set_font(self, widget: Editor | ListField) -> None:
        if isinstance(widget, QLineEdit | NameField):
            widget.setFont(self._theme.mono())
