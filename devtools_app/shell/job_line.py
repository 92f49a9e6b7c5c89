"""What is being done, for the status bar: every job of the window by a word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject

from devtools_app.jobs.follower import Follower


class JobLine(QObject):
    """Tells which jobs are at work, whenever one begins or ends."""

    def __init__(self, tell: Callable[[str], None], parent: QObject | None = None) -> None:
        """Watch nothing yet.

        Args:
            tell: takes what is being done, empty for nothing
            parent: owner
        """
        super().__init__(parent)
        self._tell = tell
        self._jobs: list[tuple[str, Follower[Any]]] = []
        self._files = ""
        self._told = ""

    def watch(self, word: str, job: Follower[Any]) -> None:
        """Tell of a job by a word, such as *running*."""
        self._jobs.append((word, job))
        job.changed.connect(self.look)

    def opening(self, what: str) -> None:
        """Tell of files that are read; empty when they have been."""
        self._files = what
        self.look()

    def look(self) -> None:
        """Tell if another job is at work, or one less: one that is let go of says nothing."""
        words = [self._files] if self._files else []
        words += [word for word, job in self._jobs if job.running]
        text = ", ".join(dict.fromkeys(words))
        if text != self._told:
            self._told = text
            self._tell(text)
