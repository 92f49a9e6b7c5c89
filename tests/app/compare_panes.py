"""The compare view over recorded sessions."""

from __future__ import annotations

from pathlib import Path

from devtools_app.shell.window import MainWindow
from devtools_app.state.transitions import add_session
from devtools_app.views.compare import ComparePane
from inspector.files.load import load_session

CORPUS = Path(__file__).parents[1] / "data/corpus/v1.5.1"


def open_recorded(window: MainWindow, name: str) -> None:
    """Open a recorded program with its ETRecord as one more session."""
    files = [str(CORPUS / name / file) for file in ("model.pte", "model.etrecord")]
    window.store.put(add_session(window.store.state, load_session(files), tuple(files)))


def compare_pane(window: MainWindow, *names: str) -> ComparePane:
    """Open recorded programs, a session each; return the view that compares the first two."""
    for name in names:
        open_recorded(window, name)
    window.show_view("compare")
    host = window.centre.current
    found = None if host is None else host.view
    assert isinstance(found, ComparePane)
    window.store.update(compared=("A", "B"))
    return found
