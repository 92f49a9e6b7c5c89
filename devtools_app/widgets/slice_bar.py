"""Chooses which two dimensions of a tensor are shown, and the index in each of the others."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from devtools_app.appearance.theme import Theme, set_role
from devtools_app.widgets.fields import SpinBox, ToolButton
from devtools_app.widgets.toolbar_combo import ToolbarCombo
from inspector.tensors.images import SliceChoice, usual_slice


class SliceBar(QWidget):
    """Hidden for tensors of two dimensions and fewer.

    Signals:
        changed(choice): the user chose another slice
    """

    changed = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._sizes: tuple[int, ...] = ()
        self._choice = usual_slice(())
        self._filling = False
        self.rows = ToolbarCombo(theme, "down", "Dimension that goes down")
        self.columns = ToolbarCombo(theme, "right", "Dimension that goes right")
        self.tiles = ToolButton()
        self.tiles.setText("Tiles")
        self.tiles.setCheckable(True)
        self.tiles.setAccessibleName("All slices as tiles")
        self.tiles.setToolTip("All slices side by side, instead of one index in each dimension")
        self.tiles.toggled.connect(self._tiles_toggled)
        self.rows.activated.connect(lambda _at: self._axis_chosen("rows"))
        self.columns.activated.connect(lambda _at: self._axis_chosen("columns"))
        self._spins: list[SpinBox] = []
        self._labels: list[QLabel] = []
        self._layout = QHBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(6)
        for widget in (self.rows, self.columns, self.tiles):
            self._layout.addWidget(widget)
        self.hide()

    @property
    def choice(self) -> SliceChoice:
        """Return the chosen slice."""
        return self._choice

    @property
    def spins(self) -> list[SpinBox]:
        """Return the field of each dimension."""
        return self._spins

    def show_slice(self, sizes: tuple[int, ...], choice: SliceChoice) -> None:
        """Show another shape and slice; no signal is emitted."""
        self._filling = True
        if sizes != self._sizes:
            self._sizes = sizes
            self._make_spins()
        self._choice = choice
        choices = [(f"d{axis} of {size:,}", str(axis)) for axis, size in enumerate(sizes)]
        self.rows.show_choices(choices, str(choice.rows))
        self.columns.show_choices(choices, str(choice.columns))
        self.tiles.setChecked(choice.tiled)
        for axis, (spin, label) in enumerate(zip(self._spins, self._labels, strict=True)):
            spin.setValue(choice.fixed[axis])
            shown = axis not in (choice.rows, choice.columns) and not choice.tiled
            spin.setVisible(shown)
            label.setVisible(shown)
        self._filling = False
        self.setVisible(len(sizes) > 2)

    def _make_spins(self) -> None:
        for widget in (*self._spins, *self._labels):
            self._layout.removeWidget(widget)
            widget.hide()
            widget.deleteLater()
        self._spins, self._labels = [], []
        for axis, size in enumerate(self._sizes if len(self._sizes) > 2 else ()):
            label = QLabel(f"d{axis}")
            set_role(label, "role", "muted")
            spin = SpinBox()
            spin.setRange(0, max(size - 1, 0))
            spin.setAccessibleName(f"Index in dimension {axis} of {size}")
            spin.setToolTip(f"Index in dimension {axis}, 0 to {size - 1:,}")
            spin.setKeyboardTracking(False)
            spin.valueChanged.connect(lambda value, axis=axis: self._index_chosen(axis, value))
            label.setBuddy(spin)
            self._labels.append(label)
            self._spins.append(spin)
            self._layout.addWidget(label)
            self._layout.addWidget(spin)

    def _index_chosen(self, axis: int, value: int) -> None:
        fixed = (*self._choice.fixed[:axis], value, *self._choice.fixed[axis + 1 :])
        self._choose(replace(self._choice, fixed=fixed))

    def _tiles_toggled(self, on: bool) -> None:
        self._choose(replace(self._choice, tiled=on))

    def _axis_chosen(self, which: str) -> None:
        """Use a dimension for one direction; that of the other direction takes its place."""
        rows, columns = int(str(self.rows.currentData())), int(str(self.columns.currentData()))
        if rows == columns and which == "rows":
            columns = self._choice.rows or 0
        elif rows == columns:
            rows = self._choice.columns or 0
        self._choose(replace(self._choice, rows=rows, columns=columns))

    def _choose(self, choice: SliceChoice) -> None:
        if not self._filling:
            self.show_slice(self._sizes, choice)
            self.changed.emit(choice)
