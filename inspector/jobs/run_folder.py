"""What ``etscope run`` left beside the trace of a session: the inputs, the method."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from inspector.files.session import Session
from inspector.jobs.executing import INPUTS, REPORT, TRACE, VALUES


def kept_inputs(session: Session) -> str:
    """Return the inputs that were stored next to the only trace with values, may be empty."""
    folder = run_folder(session)
    return str(folder / INPUTS) if folder is not None and (folder / INPUTS).is_file() else ""


def kept_method(session: Session) -> str:
    """Return the method in the report of the run, or empty."""
    folder = run_folder(session)
    if folder is None:
        return ""
    try:
        report: Any = json.loads((folder / REPORT).read_bytes())
        found = report["method"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""
    return found if isinstance(found, str) else ""


def run_folder(session: Session) -> Path | None:
    """Return the folder into which ``etscope run`` wrote the only trace with values, or None."""
    files = [session.file_of(dump) for dump in session.value_dumps]
    traces = [Path(file.path) for file in files if file is not None]
    made_here = len(traces) == 1 and traces[0].name in (TRACE, VALUES)
    return traces[0].parent if made_here and traces[0].with_name(REPORT).is_file() else None
