"""The status bar: the time of the method and its parts, planned memory, running jobs."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QStackedWidget,
    QStatusBar,
    QWidget,
)
from typing_extensions import override

from devtools_app.appearance.theme import FontSize, Theme
from devtools_app.jobs.computed import Computed
from devtools_app.state.state import State
from devtools_app.viewmodels.status_part import StatusPart
from devtools_app.widgets.badge import Badge
from devtools_app.widgets.busy import Busy
from devtools_app.widgets.elided_label import ElidedLabel
from inspector.units import MINUS

if TYPE_CHECKING:  # the window is on the screen before anything of the readers is needed
    from devtools_app.viewmodels.status import StatusFacts
    from inspector.files.session import Session

_SAY_MS = 6000
_BESIDE = 28  # margins around the sum

_TAGS = (
    "values logged: the timed runs logged values, so these are not the program's times.\n"
    "assumed: the tick unit of this trace is unknown; choose it in Preferences.\n"
    "parts: the time of the method is of runs without a trace, which this does not concern."
)

_PARTS = (
    "time",
    "time in delegates",
    "time in operators",
    "time in control",
    "unattributed",
    "tracing",
    "logging of values",
)


class StatusLine(QStatusBar):
    """Shows the method of the state; computes its values in a thread.

    Attributes:
        busy: progress of opening files
        recompile: progress of a variant being compiled
    """

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._state = State()
        self._computed: Computed[StatusFacts] = Computed("status", self)
        self._time = _label()
        self._arena = _label()
        self._job = _label()
        self._unit = Badge(theme)
        self.busy = Busy()
        self.recompile = Busy()
        self._message = ElidedLabel()
        # not what a status bar does by itself: it draws its words over parts that show themselves
        self._parts: Sequence[StatusPart] = ()
        self._time.setMinimumWidth(1)  # a long sum does not widen the window
        self._left = QStackedWidget()
        self._left.installEventFilter(self)
        self._left.addWidget(_together(self._time, self._unit))
        self._left.addWidget(_padded(self._message))
        self._quiet = QTimer(self)
        self._quiet.setSingleShot(True)
        self._quiet.setInterval(_SAY_MS)
        self._quiet.timeout.connect(self.clear_message)
        self._running = ""
        self.setSizeGripEnabled(False)
        self.addWidget(self._left, 1)
        for part in (self.busy, self.recompile, self._arena, self._job):
            self.addPermanentWidget(part)
        self._computed.ready.connect(self._known)
        self._computed.failed.connect(self._failed)
        theme.follow(self._refresh)
        self._refresh()

    def show_state(self, state: State) -> None:
        """Show the values of the method of a state."""
        self._state = state
        self._refresh()

    def show_job(self, text: str) -> None:
        """Show the running job; empty for none."""
        self._running = text
        self._job.setText(self._markup([StatusPart("", f"job: {text or 'idle'}")]))

    def show_message(self, text: str) -> None:
        """Show a sentence for a few seconds in place of the values."""
        self._message.setText(text)
        self._left.setCurrentIndex(1)
        self._quiet.start()

    @property
    def message(self) -> str:
        """Return the displayed sentence, may be empty."""
        return self._message.text() if self._left.currentIndex() == 1 else ""

    def clear_message(self) -> None:
        """Show the values again."""
        self._left.setCurrentIndex(0)

    def shut_down(self) -> None:
        """Stop computing."""
        self._computed.close()

    def _refresh(self) -> None:
        font = self._theme.sans(FontSize.SMALL)
        self.setFixedHeight(max(self.busy.sizeHint().height(), QFontMetrics(font).height() + 10))
        for label in (self._time, self._arena, self._job, self._message):
            label.setFont(font)
        self.show_job(self._running)
        one, method = self._state.open_session, self._state.method
        if one is None:
            self._parts = ()
            self._time.clear()
            self._arena.clear()
            self._unit.set_badge("")
            return
        session = one.session
        key = (one.id, one.revision, method)
        facts = self._computed.ask(key, lambda _token: _facts(session, method))
        if facts is not None:
            self._show(facts)

    def _known(self, _key: object) -> None:
        self._refresh()

    def _show(self, facts: StatusFacts) -> None:
        from devtools_app.viewmodels.status import memory_part, time_parts
        from inspector.tables.glossary import definition, with_definition

        self._parts = time_parts(facts, self._state.units)
        self._fit_parts()
        arena = memory_part(facts, self._state.units)
        self._arena.setText(self._markup([arena] if arena else []))
        self._arena.setToolTip(definition("planned"))
        explained = (with_definition(one, one) for one in _PARTS)
        self._time.setToolTip("\n".join((self._words(), "", *explained)))
        self._unit.set_badge(", ".join(facts.tags), "", _TAGS)

    def _fit_parts(self) -> None:
        """Show the sum if all of its parts fit, else the time alone; hovering has them in words.

        The last part is subtracted where tracing took time: without it the others exceed the sum.
        """
        room = self._left.width() - self._unit.sizeHint().width() - _BESIDE
        fits = len(self._parts) < 2 or self._wide() <= room
        parts = self._parts if fits else (self._parts[0], StatusPart("", "…"))
        self._time.setText(self._markup(parts))
        self._time.setAccessibleName(self._words())

    def _words(self) -> str:
        pieces: list[str] = []
        for number, part in enumerate(self._parts):
            if number:
                pieces.append(_sign(self._parts, number))
            pieces.append(f"{part.value.removeprefix(MINUS)} {part.label}".strip())
        return " ".join(pieces)

    def _wide(self) -> int:
        mono = QFontMetrics(self._theme.mono(FontSize.SMALL))
        sans = QFontMetrics(self._theme.sans(FontSize.SMALL))
        return sum(
            mono.horizontalAdvance(one.value) + sans.horizontalAdvance(f"{one.label}      = ")
            for one in self._parts
        )

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and self._parts:
            self._fit_parts()
        return super().eventFilter(watched, event)

    def _failed(self, error: BaseException) -> None:
        self._time.setText(self._markup([StatusPart("", f"times cannot be shown: {error}")]))
        self._arena.setText("")

    def _markup(self, text: Sequence[StatusPart]) -> str:
        palette = self._theme.palette
        mono = self._theme.mono(FontSize.SMALL).families()[0]
        pieces: list[str] = []
        for number, part in enumerate(text):
            if number:
                pieces.append(_sign(text, number))
            weight = "600" if part.strong else "400"
            value = (
                f'<span style=\'font-family:"{mono}";color:{palette.text};'
                f"font-weight:{weight}'>{escape(part.value.removeprefix(MINUS))}</span> "
                if part.value
                else ""
            )
            pieces.append(value + escape(part.label))
        joined = "&nbsp;&nbsp; ".join(pieces)
        return f"<span style='color:{palette.muted}'>{joined}</span>"


def _sign(parts: Sequence[StatusPart], number: int) -> str:
    if number == 1 and parts[0].strong:
        return "="
    return MINUS if parts[number].value.startswith(MINUS) else "+"


def _facts(session: Session, method: str) -> StatusFacts:
    from devtools_app.viewmodels.status import status_facts

    return status_facts(session, method)


def _together(*parts: QWidget) -> QWidget:
    """Return a widget that contains several side by side."""
    whole = QWidget()
    line = QHBoxLayout(whole)
    line.setContentsMargins(0, 0, 0, 0)
    for part in parts:
        line.addWidget(part)
    line.addStretch(1)
    return whole


def _padded(label: QLabel) -> QWidget:
    whole = QWidget()
    line = QHBoxLayout(whole)
    line.setContentsMargins(8, 3, 8, 3)
    line.addWidget(label)
    return whole


def _label() -> QLabel:
    label = QLabel()
    label.setTextFormat(Qt.TextFormat.RichText)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    label.setContentsMargins(8, 3, 8, 3)
    return label
