"""The messages of the program."""

from __future__ import annotations

from devtools_app.state.state import State
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.log_panel import LogPanel


class LogView(LogPanel):
    """The log panel as a view; it follows the log, not the state."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__(context.theme, context.log)

    def show_state(self, state: State) -> None:
        """Do nothing: messages arrive by signals."""


SPEC = ViewSpec("log", "Log", Area.BOTTOM, LogView, "log", without_session=True)
