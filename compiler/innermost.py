"""The cause of an error: what a vendor's tool has to report, without what was wrapped around it."""

from __future__ import annotations

_SHOWN = 400  # characters


def innermost(error: BaseException) -> str:
    """Return the first cause of an error as one line, with its class."""
    found: BaseException = error
    seen = {id(found)}
    while True:
        cause = found.__cause__ or (None if found.__suppress_context__ else found.__context__)
        if cause is None or id(cause) in seen:
            break
        seen.add(id(cause))
        found = cause
    text = " ".join(str(found).split())
    return f"{type(found).__name__}: {text[:_SHOWN]}".rstrip(": ")
