"""Constants that live outside the payload, in the program's named data or a ``.ptd``."""

from __future__ import annotations

from collections.abc import Iterable

from schema.errors import Issue, Severity
from schema.payloads.model import NAMED, Constant, NamedData


def named_constant(
    key: str, named_data: NamedData, *, nbytes: int | None = None, role: str = "weight"
) -> Constant:
    """Return the constant of a key; without a recorded size it has that of its blob."""
    data = named_data.get(key)
    if nbytes is None and data is not None:
        nbytes = len(data)
    return Constant(key, nbytes, NAMED, data, role)


def missing_constants(constants: Iterable[Constant], where: str) -> list[Issue]:
    """Return one issue that counts the named blobs which are not at hand, or none."""
    named = [constant for constant in constants if constant.location == NAMED]
    missing = [constant.name for constant in named if constant.data is None]
    if not missing:
        return []
    text = (
        f"{len(missing)} of {len(named)} named constants are not in the data at hand; "
        f"the first is {missing[0]}"
    )
    return [Issue(Severity.WARNING, where, text)]
