"""Errors of files: FormatError for one that cannot be read, Issue for an inconsistent one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

_MOST_NOTES = 20
_LONGEST = 400  # characters of a part of a sentence; names in files can be of any length


def _shown(text: str) -> str:
    """Return a string that may contain names from a file, escaped and cut to fit in one line."""
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    if cut.isprintable():
        return cut
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in cut
    )


class FormatError(ValueError):
    """Bytes that do not follow their format; the message is one sentence.

    Attributes:
        file: path or label of the file, empty while unknown
        offset: byte position of the offending datum in that file, None if it has none
        field: dotted path of the field, as in ``execution_plan[0].values[3]``
        expected: content of a valid file there
        found: content of this file there
    """

    def __init__(
        self,
        expected: str,
        found: str,
        *,
        field: str = "",
        offset: int | None = None,
        file: str = "",
    ) -> None:
        self.file = file
        self.offset = offset
        self.field = field
        self.expected = expected
        self.found = found
        super().__init__(expected, found)

    def __str__(self) -> str:
        place = [f"at byte {self.offset:#x}"] if self.offset is not None else []
        if self.field:
            place.append(f"in {_shown(self.field)}")
        where = " ".join(place)
        head = ": ".join(part for part in (self.file, where) if part)
        sentence = f"expected {_shown(self.expected)}, found {_shown(self.found)}"
        return f"{head}: {sentence}" if head else sentence

    def inside(self, outer: str) -> FormatError:
        """Return self with the field path prefixed by its container, for re-raising."""
        joint = "" if not self.field or self.field.startswith("[") else "."
        self.field = f"{outer}{joint}{self.field}"
        return self

    def in_file(self, file: str, shift: int = 0) -> FormatError:
        """Return self with the file named and the offset moved by an enclosing position."""
        self.file = self.file or file
        if self.offset is not None:
            self.offset += shift
        return self


class Severity(str, Enum):
    """How much an Issue matters to the reader of a session."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Issue:
    """An inconsistency that did not prevent reading; stored with the artifact it was found in.

    Attributes:
        severity: how much it matters
        where: file, member or field the issue is about
        message: one sentence for the user
    """

    severity: Severity
    where: str
    message: str


class Notes:
    """Collects issues of one file; limited, so that a broken file cannot fill memory.

    Attributes:
        file: path or label of the file
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self._issues: list[Issue] = []
        self._omitted = 0

    def add(self, message: str, severity: Severity = Severity.WARNING) -> None:
        """Add an issue; those after the first twenty are only counted."""
        if len(self._issues) < _MOST_NOTES:
            self._issues.append(Issue(severity, self.file, message))
        else:
            self._omitted += 1

    def extend(self, other: Notes) -> None:
        """Add the issues of another collection about the same file."""
        for issue in other._issues:
            self.add(issue.message, issue.severity)
        self._omitted += other._omitted

    @property
    def room(self) -> int:
        """Return how many more messages will be shown."""
        return _MOST_NOTES - len(self._issues)

    def skip(self, count: int) -> None:
        """Count issues without adding them."""
        self._omitted += count

    def all(self) -> tuple[Issue, ...]:
        """Return the issues, and how many more there were."""
        if not self._omitted:
            return tuple(self._issues)
        more = Issue(Severity.WARNING, self.file, f"{self._omitted} more messages are not shown")
        return (*self._issues, more)
