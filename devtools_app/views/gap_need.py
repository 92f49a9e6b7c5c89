"""Requirements of the numeric gap."""

from __future__ import annotations

import shlex
from dataclasses import replace

from devtools_app.widgets.empty_state import Need
from inspector.files.session import Session

_MISSING = Need(
    "No run to compare",
    "A program (.pte), its ETRecord, and the ETDump and debug buffer of a run that logged"
    " intermediate outputs: with them every output of every instruction is compared with the"
    " recorded program.",
    "etscope gap model.pte model.etrecord run.etdp run.debug",
)
NO_VALUES = Need(
    "No values to compare",
    "No run of this session has logged its values. One run that logs all of them is enough; its "
    "files are kept separately, because logging distorts the times.",
    "etscope run model.pte -o run --debug-level intermediate",
)
_NO_BUFFER = "The debug buffer is missing"


def needs(session: Session) -> Need | None:
    """Return the missing requirements of a comparison."""
    if (missing := without_program(session)) is not None:
        return missing
    if session.dumps and session.debug_buffer is not None:
        return None
    unread = "\n".join(session.missing_buffers)
    return replace(NO_VALUES, title=_NO_BUFFER, text=unread) if unread else NO_VALUES


def ready(session: Session | None) -> Need:
    """Return what is shown before values are compared."""
    paths = [file.path for file in session.files] if session is not None else []
    return Need(
        "Not compared yet",
        "The recorded graph is run by torch, in a process of its own, on the inputs of the run.",
        shlex.join(["etscope", "gap", *paths]),
    )


def without_program(session: Session) -> Need | None:
    """Return the missing requirements for running and comparing the program."""
    has_values = bool(session.dumps) and session.debug_buffer is not None
    wanted = (
        ("the program", session.program is not None),
        ("its ETRecord", session.record is not None),
        ("a run with values", has_values),  # which can be made of the others
    )
    absent = [word for word, there in wanted if not there]
    if not absent or absent == ["a run with values"]:
        return None
    return replace(_MISSING, text=f"{_MISSING.text} Missing here: {', '.join(absent)}.")
