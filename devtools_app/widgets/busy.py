"""Progress: nothing for 100 ms, a small mark up to a second, then a message and Cancel."""

from __future__ import annotations

import time

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QSizePolicy, QWidget

from devtools_app.appearance.theme import set_role
from devtools_app.widgets.elided_label import ElidedLabel
from devtools_app.widgets.fields import PushButton
from inspector.units import format_elapsed

QUIET_MS = 100  # below this nothing moves
TALK_MS = 1000  # from here on: what, how long, Cancel
_TICK_MS = 200


class Busy(QWidget):
    """A line with the progress of a job; invisible without one.

    Signals:
        cancelled(): the user cancels the job
        appeared(): the job takes long enough to be shown
    """

    cancelled = Signal()
    appeared = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._what = ""
        self._share = -1.0
        self._since = 0.0
        self._text = ElidedLabel()
        set_role(self._text, "role", "muted")
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._bar.setMinimumWidth(20)  # a narrow panel has to show the button whole
        self._bar.setMaximumWidth(120)
        self._bar.setAccessibleName("Progress")
        self._cancel = PushButton("Cancel")
        self._cancel.setAccessibleName("Cancel the job")
        self._cancel.clicked.connect(self.cancelled)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        for part in (self._text, self._bar, self._cancel):
            layout.addWidget(part)
        policy = QSizePolicy.Policy
        self._text.setSizePolicy(policy.Preferred, policy.Preferred)
        self._cancel.setSizePolicy(policy.Fixed, policy.Fixed)
        self.setSizePolicy(policy.Maximum, policy.Preferred)
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._tick)
        self.setVisible(False)

    @property
    def running(self) -> bool:
        """Return whether there is a job, visible or not."""
        return self._timer.isActive()

    def start(self, what: str) -> None:
        """Start the clock of a job."""
        self._what, self._share = what, -1.0
        self._since = time.monotonic()
        self.setVisible(False)
        self._timer.start(QUIET_MS)

    def progress(self, what: str, share: float) -> None:
        """Show the current step and its progress, 0 to 1, negative if unknown."""
        self._what, self._share = what, share
        if self.isVisible():
            self._tick()

    def stop(self) -> None:
        """End the job."""
        self._timer.stop()
        self.setVisible(False)

    def _tick(self) -> None:
        waited = (time.monotonic() - self._since) * 1000.0
        talk = waited >= TALK_MS
        self._timer.setInterval(_TICK_MS)
        self._cancel.setVisible(talk)
        self._text.setText(f"{self._what} · {format_elapsed(waited / 1e3)}" if talk else self._what)
        known = talk and self._share >= 0.0
        self._bar.setRange(0, 100)  # also while unknown: a bar without an end would move
        self._bar.setValue(round(self._share * 100) if known else 0)
        seen = waited >= QUIET_MS
        appears = seen and self.isHidden()
        self.setVisible(seen)
        if appears:
            self.appeared.emit()
