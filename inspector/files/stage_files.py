"""The stages of the compile that made the program of a session."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from inspector.files.session import LoadedFile, Session
from inspector.files.stage_log import STAGES, StageLog, read_stages
from schema.errors import FormatError


@dataclass(frozen=True, slots=True, eq=False)
class FoundStages:
    """The stages found next to a program.

    Attributes:
        path: of the file, may be empty
        log: the stages, None if there are none for this program
        why: reason if there are none, one sentence; else empty
    """

    path: str = ""
    log: StageLog | None = None
    why: str = ""


def session_stages(session: Session) -> FoundStages:
    """Return the stages in the folder of a session's program, or else of its record.

    They are those of another compile when the program has changed since; then they are not used.
    """
    file = _home(session)
    if file is None:
        return FoundStages(why="stages are stored next to a program, and none is open")
    path = Path(file.path).parent / STAGES
    if not path.is_file():
        return FoundStages(why=f"no {STAGES} next to {Path(file.path).name}")
    try:
        log = read_stages(path)
    except (FormatError, OSError) as error:
        return FoundStages(str(path), why=str(error))
    program = {"pte": file.data, "bpte": session.bundled and session.bundled.program}.get(file.kind)
    if program is not None and log.program_sha256 != hashlib.sha256(program).hexdigest():
        return FoundStages(str(path), why=f"{path} belongs to another compile than {file.path}")
    return FoundStages(str(path), log)


def _home(session: Session) -> LoadedFile | None:
    kinds = ("pte", "bpte", "etrecord")
    return next((file for kind in kinds for file in session.files if file.kind == kind), None)
