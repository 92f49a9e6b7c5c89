"""Where the float program of a session is: in its record, or in the source of its recipe."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from inspector.files.session import Session
from inspector.recipes.recipe import RecipeError
from inspector.recipes.session_recipe import session_recipe
from inspector.recipes.source import Source, SourceKind
from schema.errors import FormatError
from schema.etrecord import RecordFile

FLOAT_PROGRAM = "float"  # name of the programs in a record that were quantized, before a method
# namespaces of quantized operators, and parts of their names: vendors have namespaces of their own
_QUANTIZED = re.compile(r"(quantized_decomposed|quantized|torchao)\b|.*(quantize|int[48]pack)")


@dataclass(frozen=True, slots=True)
class ProgramSource:
    """A program that can be run by torch.

    Attributes:
        source: its file
        words: description
        note: what is uncertain about it, a sentence or empty
    """

    source: Source
    words: str
    note: str = ""


def recorded_program(session: Session, method: str) -> ProgramSource | None:
    """Return the recorded program of a method, exported or else edge; None if missing."""
    record = _record(session)
    member = _member(record[0], method) if record is not None else ""
    if record is None or not member:
        return None
    kind = "exported" if member == record[0].roles.exported else "edge"
    return ProgramSource(Source(record[1]), f"the {kind} program of {session.name}")


def float_program(session: Session, method: str) -> ProgramSource | str:
    """Return the float program of a method, or a sentence why it is unknown."""
    recorded, record = recorded_program(session, method), _record(session)
    quantized = record is not None and is_quantized(record[0], method)
    if recorded is not None and not quantized:
        return recorded
    if (kept := _kept(session, method)) is not None:
        return kept
    unknown = f"no float program of {session.name} is known"
    try:
        recipe = session_recipe(session).recipe
    except RecipeError as error:
        words = str(error).removeprefix(f"{session.name}: ")
        return f"{unknown}: {words}"
    source = recipe.job.source
    if not recipe.job.quantising.requested:
        if source.kind is SourceKind.RECORD or recorded is None:
            return f"{unknown}: its source is not on this machine or not in its recipe"
        return f"{unknown}: the source {source} returns a program that is quantized already"
    if not Path(source.path).is_file():
        return f"{unknown}: its source {source} is not on this machine"
    note = f"{source.path} has changed since the compile" if recipe.changed_source() else ""
    return ProgramSource(source, f"the float program {source}", note)


def _kept(session: Session, method: str) -> ProgramSource | None:
    """Return the float program that the record of a quantized one has, None without one."""
    found = _record(session)
    if found is None or f"{FLOAT_PROGRAM}/{method}" not in found[0].roles.extra:
        return None
    source = Source(found[1], FLOAT_PROGRAM)
    return ProgramSource(source, f"the float program in the record of {session.name}")


def is_quantized(record: RecordFile, method: str) -> bool:
    """Return whether the recorded program of a method has quantized operators."""
    member = _member(record, method)
    try:
        calls = record.graph(member).calls() if member else ()
        return any(_QUANTIZED.match(node.target) for node in calls)
    except FormatError:
        return False  # it cannot be run either, which is said then


def _record(session: Session) -> tuple[RecordFile, str] | None:
    for file in session.files:
        if isinstance(file.artifact, RecordFile):
            return file.artifact, str(Path(file.path).absolute())
    return None


def _member(record: RecordFile, method: str) -> str:
    """Return the member with the program of a method as a compile would read it, or empty."""
    roles = record.roles
    if method == "forward" and roles.exported:
        return roles.exported
    return roles.edge.get(method, "")
