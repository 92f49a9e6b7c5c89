"""What drawn views share: one panel that is filtered and exported, one canvas that is saved."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from devtools_app.widgets.canvas import Canvas
from devtools_app.widgets.files import Done, unreported
from devtools_app.widgets.table_view import TableView
from devtools_app.widgets.tree_view import TreeView


class PanelActions:
    """Ctrl+F, ``.`` and ``,`` and the export of a view act on one table or tree of it."""

    table: TableView

    @property
    def panel(self) -> TableView | TreeView:
        """Return the table or tree: ``table`` unless a view has another one."""
        return self.table

    def start_find(self) -> None:
        """Focus the filter."""
        self.panel.start_find()

    def step(self, by: int) -> bool:
        """Choose the next or previous row; return whether there was one."""
        return self.panel.step(by)

    def export_to(self, path: Path, done: Done = unreported) -> bool:
        """Begin to write the rows as TSV or CSV by the suffix."""
        return self.panel.export_to(path, done)


class _Drawn(Protocol):
    @property
    def canvas(self) -> Canvas: ...


class CanvasImage:
    """The image of a view is that of its canvas."""

    def save_image(self: _Drawn, path: Path) -> None:
        """Write the drawing as PNG or SVG, by the ending of the name.

        Raises: OSError when the file cannot be written
        """
        self.canvas.write_image(path, 2.0, self.canvas.size(), extras=True)
