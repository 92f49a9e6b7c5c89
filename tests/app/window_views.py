"""Small views for tests of the window: they remember what they were shown."""

from __future__ import annotations

from PySide6.QtWidgets import QLineEdit, QVBoxLayout, QWidget

from devtools_app.sample_data import SAMPLE
from devtools_app.shell.view_host import ViewHost
from devtools_app.shell.window import MainWindow
from devtools_app.state.state import State
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.empty_state import Need
from inspector.files.session import Session
from inspector.tables.selection import Selection, SelectionKind

SAMPLE_FILES = tuple(str(path) for path in sorted(SAMPLE.iterdir()) if path.is_file())


class Recorder(QWidget):
    """A view that keeps the states it was shown."""

    made: list[Recorder]

    def __init__(self, context: ViewContext) -> None:
        super().__init__()
        self.context = context
        self.shown: list[State] = []
        self.steps: list[int] = []
        self.closed = False
        self.field = QLineEdit()
        self.field.setAccessibleName("Search")
        QVBoxLayout(self).addWidget(self.field)

    def show_state(self, state: State) -> None:
        self.shown.append(state)

    def start_find(self) -> None:
        self.field.setFocus()

    def step(self, by: int) -> bool:
        self.steps.append(by)
        return True

    def shut_down(self) -> None:
        self.closed = True


class Broken(QWidget):
    """A view with a bug in some methods."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__()

    def show_state(self, state: State) -> None:
        if state.method != "fine":
            raise ZeroDivisionError("deliberate")


def no_trace(session: Session) -> Need | None:
    return None if session.dumps else Need("No trace", "Open an ETDump.")


RECORDER_VIEWS = (
    ViewSpec("one", "One", Area.CENTRE, Recorder, "overview"),
    ViewSpec("two", "Two", Area.CENTRE, Recorder, "graph"),
    ViewSpec("timed", "Timed", Area.CENTRE, Recorder, "timeline", no_trace),
    ViewSpec("broken", "Broken", Area.CENTRE, Broken, "error"),
    ViewSpec("left", "Left", Area.LEFT, Recorder, "file"),
    ViewSpec("right", "Right", Area.RIGHT, Recorder, "node"),
    ViewSpec("below", "Below", Area.BOTTOM, Recorder, "operators"),
    ViewSpec("below2", "Below two", Area.BOTTOM, Recorder, "issues"),
)


def open_sample(window: MainWindow, qtbot, paths: tuple[str, ...] = SAMPLE_FILES) -> None:
    """Open the packaged sample and wait until it is shown, also in the panels."""
    with qtbot.waitSignal(window.controller.opener.ended, timeout=20_000):
        window.controller.open(paths)
    qtbot.waitUntil(lambda: not any(host._postponed for host in window.hosts))


def host_of(window: MainWindow, name: str) -> ViewHost:
    """Return the place of a view."""
    return next(host for host in window.hosts if host.spec.name == name)


def view(window: MainWindow, name: str) -> Recorder:
    """Return the recording view of a name."""
    found = host_of(window, name).view
    assert isinstance(found, Recorder)
    return found


def node(name: str) -> Selection:
    """Return a node of the sample as a selection."""
    return Selection(SelectionKind.NODE, method="forward", node=name)
