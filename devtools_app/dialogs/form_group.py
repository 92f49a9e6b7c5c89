"""A group of fields below a heading that opens and closes it."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFormLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from devtools_app.appearance.theme import Theme, set_role
from devtools_app.dialogs.group_stops import GroupStops
from devtools_app.widgets.fields import ToolButton
from schema.objects.plural import plural

_INDENT = 6


class FormGroup(QWidget):
    """Rows of label and field, with a line for an error below each."""

    def __init__(self, theme: Theme, title: str, rows: Iterator[object], *, opened: bool) -> None:
        """Show the heading.

        Args:
            theme: the look
            title: the heading
            rows: adds a field with each step; used by ``fill`` or when the group is first opened
            opened: whether the fields are shown
        """
        super().__init__()
        self._theme = theme
        self._title = title
        self._rows = self._all_of(rows)
        self._set = 0
        self._opened = opened
        self._labels: list[QLabel] = []
        self._problems: dict[str, QLabel] = {}
        self._stops: GroupStops | None = None
        self.head = ToolButton()
        self.head.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.head.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.head.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.head.clicked.connect(lambda: self.open(on=not self._opened))
        self._body = QWidget()
        self.form = QFormLayout(self._body)
        self.form.setContentsMargins(_INDENT, 2, 0, 8)
        self.form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        self.form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        self.form.setHorizontalSpacing(16)
        self.form.setVerticalSpacing(4)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addWidget(self._body)
        self._body.setVisible(opened)
        self.restyle()

    def stop_once(self) -> None:
        """Let Tab stop at the heading only; the arrow down enters the fields."""
        if self._stops is None:
            self._stops = GroupStops(self.head, self._body)
            self.head.setAccessibleDescription("Arrow down goes to its fields")
        self._stops.settle()

    def fill(self) -> None:
        """Build the fields that are not there yet; each takes a millisecond."""
        for _ in self._rows:
            pass

    def filling(self) -> Iterator[object]:
        """Return the steps that build the fields, one at a time."""
        return self._rows

    def _all_of(self, rows: Iterator[object]) -> Iterator[object]:
        yield from rows
        self.settle()

    def settle(self) -> None:
        """Take widgets in that its fields built meanwhile, where Tab goes and whether it stops."""
        self._follow_the_heading()
        if self._stops is not None:
            self._stops.settle()

    def _follow_the_heading(self) -> None:
        """Put the fields behind the heading: Tab would reach new ones last in the window."""
        before: QWidget = self.head
        for field in self._body.findChildren(QWidget):
            takes = field.focusPolicy() != Qt.FocusPolicy.NoFocus and field.focusProxy() is None
            if takes and field.window() is self.window():  # an open list is a window of its own
                self.setTabOrder(before, field)
                before = field

    def add(self, path: str, label: QLabel | None, field: QWidget) -> None:
        """Add a row.

        Args:
            path: of the field
            label: None for a field that has its own text
            field: the field, or a widget around it
        """
        problem = QLabel()
        problem.setWordWrap(True)
        problem.setTextFormat(Qt.TextFormat.PlainText)
        problem.setObjectName(f"problem {path}")
        set_role(problem, "role", "bad")
        problem.hide()
        self._problems[path] = problem
        whole = QWidget()
        column = QVBoxLayout(whole)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(1)
        column.addWidget(field)
        column.addWidget(problem)
        if label is None:
            self.form.addRow(whole)
        else:
            self._labels.append(label)
            self.form.addRow(label, whole)

    def show_problem(self, path: str, sentence: str) -> None:
        """Show the error of a field below it; open the group for it."""
        label = self._problems[path]
        if sentence != label.text() or label.isHidden() != (not sentence):
            label.setText(sentence)
            label.setVisible(bool(sentence))
            if sentence:
                self.open()

    def problem(self, path: str) -> str:
        """Return the error shown at a field, may be empty."""
        return self._problems[path].text() if path in self._problems else ""

    def set_count(self, count: int) -> None:
        """Show in the heading how many fields differ from their defaults."""
        if count != self._set:
            self._set = count
            self.restyle()

    def set_narrow(self, label_width: int, *, on: bool) -> None:
        """Put labels above their fields, or beside them in a column of a width."""
        policies = QFormLayout.RowWrapPolicy
        self.form.setRowWrapPolicy(policies.WrapAllRows if on else policies.DontWrapRows)
        for label in self._labels:
            label.setMinimumWidth(0 if on else label_width)

    def restyle(self) -> None:
        """Use the fonts and icons of the theme."""
        more = f"   {plural(self._set, 'field')} set" if self._set else ""
        self.head.setText(f"{self._title}{more}")
        self.head.setFont(self._theme.sans(strong=True))
        state = "open" if self._opened else "closed"
        self.head.setAccessibleName(f"{self._title}{more}, {state}")
        arrow = Qt.ArrowType.DownArrow if self._opened else Qt.ArrowType.RightArrow
        self.head.setArrowType(arrow)

    @property
    def opened(self) -> bool:
        """Return whether its fields are shown."""
        return self._opened

    def open(self, *, on: bool = True) -> None:
        """Show its fields, or hide them."""
        if on != self._opened:
            self._opened = on
            self.fill()
            self._body.setVisible(on)
            self.restyle()
