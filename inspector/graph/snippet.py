"""A few lines of source around a frame of a stack trace, from the file or as recorded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from inspector.files.session import Session
from inspector.graph.source import SourceFrame, find_source, read_source

_AROUND = 3


@dataclass(frozen=True, slots=True)
class Snippet:
    """Lines of code.

    Attributes:
        frame: the frame
        lines: the code
        first: number of the first line
        path: file they were read from, None if only the recorded line is known
    """

    frame: SourceFrame
    lines: tuple[str, ...]
    first: int
    path: Path | None


def snippet(frame: SourceFrame, session: Session, around: int = _AROUND) -> Snippet | None:
    """Return the code around a frame; or the recorded line if the file is missing, else None."""
    path = find_source(frame.file, session)
    if path is not None:
        try:
            lines = read_source(path)
        except OSError:
            lines = ()
        if 0 < frame.line <= len(lines):
            first = max(1, frame.line - around)
            return Snippet(frame, _dedented(lines[first - 1 : frame.line + around]), first, path)
    return Snippet(frame, (frame.code,), frame.line, None) if frame.code else None


def _dedented(lines: tuple[str, ...]) -> tuple[str, ...]:
    margins = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    margin = min(margins, default=0)
    return tuple(line[margin:] for line in lines)


def file_name(recorded: str) -> str:
    """Return the last part of a recorded path of any system."""
    return recorded.replace("\\", "/").rsplit("/", 1)[-1]
