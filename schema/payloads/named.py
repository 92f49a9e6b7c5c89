"""Constants outside the payload, in the program's named data or a ``.ptd``."""

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
    """Return the issues of the named blobs: how many are missing, how many too short."""
    named = [constant for constant in constants if constant.location == NAMED]
    missing = [constant.name for constant in named if constant.data is None]
    found: list[Issue] = []
    if missing:
        text = (
            f"{len(missing)} of {len(named)} named constants are not in the data at hand; "
            f"the first is {missing[0]}"
        )
        found.append(Issue(Severity.WARNING, where, text))
    short = [(one, len(one.data)) for one in named if one.data is not None and _is_short(one)]
    if short:
        first, size = short[0]
        text = (
            f"{len(short)} of {len(named)} named constants are shorter than the payload declares; "
            f"the first is {first.name} with {size} of {first.nbytes} bytes"
        )
        found.append(Issue(Severity.ERROR, where, text))
    return found


def _is_short(constant: Constant) -> bool:
    return constant.data is not None and len(constant.data) < (constant.nbytes or 0)
