"""The list of cases of a bundled program: inputs and expected outputs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QStackedWidget,
    QTreeWidget,
    QVBoxLayout,
    QWidget,
)

from devtools_app.appearance.theme import set_role
from devtools_app.widgets.fields import ComboBox
from devtools_app.widgets.push_button import push_button
from devtools_app.widgets.row_list import show_rows
from inspector.jobs.executing import MADE_INPUTS
from inspector.tables.runs import requested_cases

_FILE = "file"
_WORDS = {_FILE: "files of tensors…", "random": "random values", "ones": "ones", "zeros": "zeros"}
_LEAST_HEIGHT = 96


@dataclass(frozen=True, slots=True)
class Case:
    """A row of the list.

    Attributes:
        inputs: random, ones, zeros or a file, which may hold several cases
        expected: file of outputs, empty to compute them with the module
    """

    inputs: str
    expected: str = ""


class CaseList(QWidget):
    """Lists cases; if empty, names the module whose inputs are used.

    Signals:
        edited(): the list has changed
    """

    edited = Signal()

    def __init__(self, choose: Callable[[str], Sequence[str]]) -> None:
        """Create an empty list.

        Args:
            choose: asks the user for files of tensors, for a purpose
        """
        super().__init__()
        self._choose = choose
        self._cases: list[Case] = []
        self._none = QLabel()
        self._none.setWordWrap(True)
        self._none.setAlignment(Qt.AlignmentFlag.AlignCenter)
        set_role(self._none, "role", "muted")
        self._kind = ComboBox()
        self._kind.setAccessibleName("Inputs")
        for key, text in _WORDS.items():
            self._kind.addItem(text, key)
        self._rows = QTreeWidget()
        self._pages = QStackedWidget()
        self._lay_out()
        self.show_cases(())

    @property
    def cases(self) -> tuple[Case, ...]:
        """Return the cases."""
        return tuple(self._cases)

    def show_empty(self, sentence: str) -> None:
        """Show the behaviour without cases."""
        self._none.setText(sentence)

    def show_cases(self, cases: Sequence[Case]) -> None:
        """Replace the cases."""
        self._cases = list(cases)
        rows = [(_named(one.inputs), _named(one.expected) or None) for one in self._cases]
        items = show_rows(self._rows, requested_cases(rows))
        for case, item in zip(self._cases, items, strict=True):
            item.setToolTip(0, case.inputs)
            item.setToolTip(1, case.expected)
        self._pages.setCurrentIndex(1 if cases else 0)
        self._chosen()
        self.edited.emit()

    def problem(self, *, has_module: bool) -> str:
        """Return the first problem of the cases as one sentence, empty if none."""
        if not self._cases and not has_module:
            return "Add a case, or name the module whose example inputs are used."
        for case in self._cases:
            for path in (case.inputs, case.expected):
                if path and path not in MADE_INPUTS and not os.path.isfile(path):
                    return f"{path} not found."
        if not has_module and len({bool(case.expected) for case in self._cases}) > 1:
            return "Set expected outputs for all cases or none: no module computes them."
        return ""

    def _lay_out(self) -> None:
        self._rows.setRootIsDecorated(False)
        self._rows.setUniformRowHeights(True)
        self._rows.setAccessibleName("Cases")
        self._rows.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self._rows.header().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        self._rows.itemSelectionChanged.connect(self._chosen)
        self._pages.addWidget(self._none)
        self._pages.addWidget(self._rows)
        self._pages.setMinimumHeight(_LEAST_HEIGHT)
        self._add = push_button("Add", "Add a case with these inputs", self._added)
        self._expect = push_button(
            "Expected…", "Choose the expected outputs of the selected cases", self._expected
        )
        self._remove = push_button("Remove", "Remove the selected cases", self._removed)
        bar = QHBoxLayout()
        bar.setSpacing(8)
        bar.addWidget(self._kind, 1)
        for button in (self._add, self._expect, self._remove):
            button.setAutoDefault(False)
            bar.addWidget(button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        layout.addLayout(bar)
        layout.addWidget(self._pages, 1)

    def _chosen(self) -> None:
        some = bool(self._rows.selectedItems())
        self._expect.setEnabled(some)
        self._remove.setEnabled(some)

    def _selected(self) -> list[int]:
        return sorted(self._rows.indexOfTopLevelItem(item) for item in self._rows.selectedItems())

    def _added(self) -> None:
        kind = str(self._kind.currentData())
        found = self._choose("Inputs of the cases") if kind == _FILE else (kind,)
        if found:
            self.show_cases((*self._cases, *(Case(text) for text in found)))

    def _expected(self) -> None:
        """Assign outputs to the selected cases: one file per case, in order, or one for all."""
        places = self._selected()
        found = self._choose("Expected outputs")
        if not found:
            return
        cases = list(self._cases)
        files = list(found) if len(found) == len(places) else [found[0]] * len(places)
        for place, path in zip(places, files, strict=True):
            cases[place] = Case(cases[place].inputs, path)
        self.show_cases(cases)

    def _removed(self) -> None:
        gone = set(self._selected())
        self.show_cases([case for at, case in enumerate(self._cases) if at not in gone])


def _named(text: str) -> str:
    return _WORDS.get(text, PurePath(text).name) if text else ""
