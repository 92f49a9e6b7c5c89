"""Asks for files of a form, and which name of a Python file is meant."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMenu, QWidget

from devtools_app.dialogs.form_parts import LIBRARY_FILES
from devtools_app.viewmodels.field_choices import may_be_in_file, names_for
from devtools_app.viewmodels.recipe_form import FormField
from devtools_app.widgets.files import PathChooser
from inspector.recipes.options import FieldNames

IN_FILE = "From a Python file…"
_INPUTS, _FOLDER = "A file of inputs…", "A folder of tensors…"
_PYTHON, _TENSORS, _ALL = "Python (*.py)", "Tensors (*.pt *.npy)", "All (*)"
_FILTERS = {
    "source.path": "Sources of programs (*.py *.pt2 *.etrecord *.yaml *.yml);;All (*)",
    "libraries": LIBRARY_FILES,
}


def actions_of(one: FormField) -> tuple[str, ...]:
    """Return the ways to choose a value of a field that is in no list."""
    if one.names is FieldNames.DATA:
        return (_INPUTS, _FOLDER, IN_FILE)
    return (IN_FILE,) if may_be_in_file(one) else ()


class FormFiles:
    """Chooses files for the fields of a form."""

    def __init__(self, paths: PathChooser) -> None:
        """Use dialogs for paths; replaced in tests."""
        self._paths = paths

    def choose(self, one: FormField, parent: QWidget) -> tuple[str, ...]:
        """Return files for a field that takes paths, empty if the user cancels."""
        return self._paths.open_files(parent, f"Choose: {one.label}", _FILTERS.get(one.path, _ALL))

    def ask(
        self, one: FormField, action: str, parent: QWidget, done: Callable[[str], object]
    ) -> None:
        """Ask for a value in a way that ``actions_of`` has.

        Args:
            one: the field
            action: the way
            parent: of the dialogs
            done: takes the value, unless the user cancels
        """
        if action == _FOLDER:
            found = self._paths.open_folder(parent, f"Choose: {one.label}")
        else:
            kinds = _TENSORS if action == _INPUTS else _PYTHON
            found = next(iter(self._paths.open_files(parent, f"Choose: {one.label}", kinds)), "")
        if not found:
            return
        if action == IN_FILE:
            self._ask_name(one, found, parent, done)
        else:
            done(found)

    def _ask_name(
        self, one: FormField, path: str, parent: QWidget, done: Callable[[str], object]
    ) -> None:
        """Take the only name of a file, or let the user choose; the check reports a bad file."""
        try:
            names = names_for(one, path)
        except (OSError, SyntaxError, ValueError):
            names = ()
        if len(names) < 2:
            done(names[0] if names else f"{path}:")
            return
        menu = QMenu(parent)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.setAccessibleName("Names in the file")
        for name in names:
            menu.addAction(name.rpartition(":")[2]).triggered.connect(
                lambda _on=False, name=name: done(name)
            )
        menu.popup(parent.mapToGlobal(parent.rect().bottomLeft()))
