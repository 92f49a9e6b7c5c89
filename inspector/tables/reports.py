"""Tables of the report that a job left in its folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from inspector.tables.table import Table
from schema.errors import FormatError
from schema.objects.codec import read_json

_LARGEST = 1 << 26  # bytes of a report


def table_of_report(
    folder: Path, name: str, what: str, table: Callable[[Mapping[str, Any]], Table]
) -> Table:
    """Return a table of a report.

    Args:
        folder: of the job, or the report itself
        name: of the report in the folder
        what: expected content, for errors
        table: returns the table of a valid report

    Raises: FormatError for another content; OSError
    """
    path = folder / name if folder.is_dir() else folder
    report = read_json(path, what, _LARGEST)
    try:
        return table(report)
    except (AttributeError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise FormatError(what, repr(error), file=str(path)) from error
