"""Issues collected while a file is read, a bounded number of them."""

from __future__ import annotations

from schema.errors import Issue, Severity

_MOST = 20


class Notes:
    """Collects issues of one file; a broken file must not fill memory with complaints.

    Attributes:
        file: what the issues are about
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self._issues: list[Issue] = []
        self._unsaid = 0

    def add(self, message: str, severity: Severity = Severity.WARNING) -> None:
        """Note something odd; beyond a screenful only the number is kept."""
        if len(self._issues) < _MOST:
            self._issues.append(Issue(severity, self.file, message))
        else:
            self._unsaid += 1

    def extend(self, other: Notes) -> None:
        """Take over what was noted elsewhere about the same file."""
        for issue in other._issues:
            self.add(issue.message, issue.severity)
        self._unsaid += other._unsaid

    @property
    def room(self) -> int:
        """Return how many more messages will be shown."""
        return _MOST - len(self._issues)

    def skip(self, count: int) -> None:
        """Note that there were more messages without wording them."""
        self._unsaid += count

    def all(self) -> tuple[Issue, ...]:
        """Return the issues, and the number of those left out."""
        if not self._unsaid:
            return tuple(self._issues)
        more = Issue(Severity.WARNING, self.file, f"{self._unsaid} more messages are not shown")
        return (*self._issues, more)
