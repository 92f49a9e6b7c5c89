"""What runs, variants, bisections and sweeps take on the disk, and removing the chosen ones."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QDialogButtonBox,
    QHBoxLayout,
    QLabel,
    QTreeWidget,
    QVBoxLayout,
    QWidget,
)

from devtools_app.appearance.theme import Theme, set_role
from devtools_app.dialogs.dialog_room import fit_dialog
from devtools_app.state.run_form import default_folder
from devtools_app.state.variant_places import variants_place
from devtools_app.widgets.dialog_buttons import dialog_buttons
from devtools_app.widgets.push_button import push_button
from devtools_app.widgets.row_list import show_rows
from inspector.files.written_folders import WrittenFolder, removed, written_folders
from inspector.tables.disk import disk_table
from inspector.units import format_bytes
from schema.objects.plural import plural

_SIZE = (720, 420)
_ABOUT = (
    "Folders that jobs wrote beside the programs that are open. Only files that a job wrote are"
    " removed; what is open stays."
)


class DiskDialog(QDialog):
    """A list of folders with boxes to check; the button shows how much it frees."""

    def __init__(
        self,
        theme: Theme,
        programs: Iterable[str],
        in_use: Iterable[str],
        parent: QWidget,
        sweep: str = "",
    ) -> None:
        """List the folders.

        Args:
            theme: of the window
            programs: paths of the programs whose folders are listed
            in_use: files and folders that stay
            parent: the window
            sweep: results file of the sweep that is open, empty for none
        """
        super().__init__(parent)
        self.setWindowTitle("Disk use")
        self.setAccessibleName("Disk use")
        self._places = _places(programs) + ([Path(sweep).parent] if sweep else [])
        self._in_use = tuple(os.path.abspath(path) for path in (*in_use, sweep) if path)
        self._folders: tuple[WrittenFolder, ...] = ()
        self._list = QTreeWidget()
        self._list.setAccessibleName("Folders of runs and variants")
        self._list.setRootIsDecorated(False)
        self._list.setFont(theme.mono())
        self._values = QCheckBox("Remove logged values only")
        self._result = QLabel()
        self._result.setWordWrap(True)
        set_role(self._result, "role", "muted")
        self._remove = push_button("Remove", "Remove the checked folders", self.remove)
        self._lay_out(theme)
        self._list.itemChanged.connect(lambda _item, _column: self._refresh())
        self._values.toggled.connect(lambda _on: self._refresh())
        self._read()
        self._result.setText(_ABOUT)

    @property
    def outcome(self) -> str:
        """Return the last message."""
        return self._result.text()

    def chosen(self) -> list[WrittenFolder]:
        """Return the checked folders."""
        items = (self._list.topLevelItem(row) for row in range(self._list.topLevelItemCount()))
        pairs = zip(self._folders, items, strict=True)
        return [one for one, item in pairs if item and item.checkState(0) is Qt.CheckState.Checked]

    def remove(self) -> None:
        """Remove the checked folders, or their logged values."""
        freed, problems = 0, list[str]()
        for one in self.chosen():
            try:
                freed += removed(one, values_only=self._values.isChecked())
            except OSError as error:
                problems.append(f"{one.path}: {error.strerror or error}.")
        self._read()
        self._result.setText(" ".join((f"{format_bytes(freed)} removed.", *problems)))

    def _read(self) -> None:
        found = {one.path: one for place in self._places for one in _written(place)}
        self._folders = tuple(sorted(found.values(), key=lambda one: (-one.size, one.path)))
        blocked = self._list.blockSignals(True)
        used = [self._is_used(one) for one in self._folders]
        table = disk_table(self._folders, _common(self._folders), used=used)
        items = show_rows(self._list, table)
        for one, item, on in zip(self._folders, items, used, strict=True):
            item.setToolTip(0, str(one.path))
            item.setCheckState(0, Qt.CheckState.Unchecked)
            item.setDisabled(on)
        self._list.blockSignals(blocked)
        for column in range(self._list.columnCount()):
            self._list.resizeColumnToContents(column)
        self._refresh()

    def _is_used(self, one: WrittenFolder) -> bool:
        names = {str(one.path / name) for name in one.files} | {str(one.path)}
        return any(path in names for path in self._in_use)

    def _refresh(self) -> None:
        chosen = self.chosen()
        values = self._values.isChecked()
        size = sum(one.values_size if values else one.size for one in chosen)
        what = f"{plural(len(chosen), 'folder')}, {format_bytes(size)}" if chosen else ""
        self._remove.setText(f"Remove {what}" if what else "Remove")
        self._remove.setEnabled(bool(chosen) and size > 0)
        total = format_bytes(sum(one.size for one in self._folders))
        self.setWindowTitle(f"Disk use: {plural(len(self._folders), 'folder')}, {total}")

    def _lay_out(self, theme: Theme) -> None:
        buttons = QHBoxLayout()
        buttons.addWidget(self._values)
        buttons.addStretch(1)
        buttons.addWidget(self._remove)
        buttons.addWidget(dialog_buttons(self, QDialogButtonBox.StandardButton.Close))
        layout = QVBoxLayout(self)
        layout.addWidget(self._list, 1)
        layout.addWidget(self._result)
        layout.addLayout(buttons)
        fit_dialog(self, theme, _SIZE)


def _places(programs: Iterable[str]) -> list[Path]:
    """Return where the jobs of programs write."""
    found: dict[Path, None] = {}
    for program in programs:
        run = Path(default_folder(program)).parent
        cached = (run,) if run != Path(program).absolute().parent else ()
        found |= dict.fromkeys((Path(program), variants_place(program), *cached))
    return list(found)


def _written(place: Path) -> tuple[WrittenFolder, ...]:
    try:
        return written_folders(place)
    except OSError:  # nothing was written yet
        return ()


def _common(folders: Sequence[WrittenFolder]) -> Path:
    """Return the folder that all folders are in."""
    return Path(os.path.commonpath([one.path.parent for one in folders])) if folders else Path()
