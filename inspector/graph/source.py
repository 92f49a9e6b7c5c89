"""Source lines: frames of a stack trace, and the file they are in on this machine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from inspector.files.session import Session, SessionOptions
from inspector.units import format_bytes

_FRAME = re.compile(r'^\s*File "(?P<file>[^"]*)", line (?P<line>\d+), in (?P<function>.*)$')
# the last is code that torch made of a body of control flow: no file holds it
_TORCH = re.compile(r"(^|/)torch/(nn|_\w+|export|utils)/|^<eval_with_key>")
# that a model calls, or that calls a package's model for the user
_LIBRARY = re.compile(
    r"(^|/)(site-packages|dist-packages|compiler/llm|torch/(nn|_\w+|export))/|^<eval_with_key>"
)
_MAX_SOURCE_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class SourceFrame:
    """One frame of a traceback.

    Attributes:
        file: as recorded
        line: 1-based
        function: name of the function
        code: the source line as recorded, empty when it was not
    """

    file: str
    line: int
    function: str
    code: str

    @property
    def label(self) -> str:
        """Return ``file:line``."""
        return f"{self.file}:{self.line}"


def frames(stack_trace: str) -> tuple[SourceFrame, ...]:
    """Return the frames of a traceback text, innermost last; lines of other forms are skipped."""
    found: list[SourceFrame] = []
    lines = stack_trace.splitlines()
    for index, line in enumerate(lines):
        match = _FRAME.match(line)
        if match is None:
            continue
        following = lines[index + 1].strip() if index + 1 < len(lines) else ""
        code = "" if _FRAME.match(following) or following.startswith('File "') else following
        found.append(
            SourceFrame(match["file"], int(match["line"]), match["function"].strip(), code)
        )
    return tuple(found)


def user_frame(stack_trace: str) -> SourceFrame | None:
    """Return the line of the model that created the node: the innermost frame outside of libraries.

    Where every frame is in a library, as of a model of a package, it is the innermost one outside
    of torch, and inside of it only without any.
    """
    found = frames(stack_trace)
    for place in (_LIBRARY, _TORCH):
        own = [frame for frame in found if not place.search(frame.file.replace("\\", "/"))]
        if own:
            return own[-1]
    return found[-1] if found else None


def find_file(recorded: str, options: SessionOptions) -> Path | None:
    """Return the source file on this machine, None if not found.

    Tried in order: the path mapping, each source root with ever shorter tails of the recorded
    path, the recorded path itself if it is absolute. A root is never left through ``..``.
    """
    for prefix, folder in options.path_mapping.items():
        if recorded.startswith(prefix):
            mapped = Path(folder) / recorded[len(prefix) :].lstrip("/\\")
            if mapped.is_file():
                return mapped
    parts = _parts(recorded)
    for root in options.source_roots:
        for start in range(len(parts)):
            candidate = Path(root, *parts[start:])
            if candidate.is_file():
                return candidate
    itself = Path(recorded)
    return itself if itself.is_absolute() and itself.is_file() else None


def find_source(recorded: str, session: Session) -> Path | None:
    """Return the source file on this machine as ``find_file`` does, else next to the session.

    That is: a recorded relative path, complete, below the folder of one of the files.
    """
    found = find_file(recorded, session.options)
    parts = _parts(recorded)
    absolute = any(kind(recorded).is_absolute() for kind in (PurePosixPath, PureWindowsPath))
    if found is not None or not parts or absolute:
        return found
    folders = dict.fromkeys(Path(file.path).parent for file in session.files)
    candidates = (folder.joinpath(*parts) for folder in folders)
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _parts(recorded: str) -> tuple[str, ...]:
    windows = "\\" in recorded or re.match(r"^[A-Za-z]:", recorded) is not None
    pure = PureWindowsPath(recorded) if windows else PurePosixPath(recorded)
    return tuple(part for part in pure.parts if part not in ("..", ".", pure.anchor))


def read_source(path: Path) -> tuple[str, ...]:
    """Return the lines of a source file.

    Raises: OSError if it cannot be read or is larger than 4 MiB
    """
    if path.stat().st_size > _MAX_SOURCE_BYTES:
        raise OSError(f"{path} is larger than {format_bytes(_MAX_SOURCE_BYTES)}")
    return tuple(path.read_text(encoding="utf-8", errors="replace").splitlines())
