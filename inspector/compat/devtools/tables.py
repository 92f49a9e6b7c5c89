"""Frames as strings, with the rows and columns of the stock tool."""

from __future__ import annotations

import sys
from typing import IO

from inspector.export.pandas_bridge import DataFrame, Pandas
from inspector.trace.event_kinds import OPERATOR_CALL

_HIDDEN_COLUMNS = (
    "raw",
    "delegate_debug_identifier",
    "stack_traces",
    "module_hierarchy",
    "debug_data",
)


def printable(frame: Pandas) -> Pandas:
    """Return the rows and columns of a frame that are worth printing."""
    shown = frame.drop(columns=list(_HIDDEN_COLUMNS))
    kept = [OPERATOR_CALL not in str(name) for name in shown["event_name"]]
    return shown.loc[kept].reset_index(drop=True)


def show(frame: DataFrame, file: IO[str]) -> None:
    """Show a frame in a notebook if this is one, else print it."""
    notebook = sys.modules.get("IPython")
    if notebook is not None and notebook.get_ipython() is not None:
        notebook.display.display(frame)
    else:
        print(grid(frame), file=file)


def grid(frame: DataFrame) -> str:
    """Return a frame as a table drawn with box characters."""
    import tabulate

    table: Pandas = frame
    if not len(table):
        return f"no rows of {', '.join(table.columns)}"
    return tabulate.tabulate(table, headers="keys", tablefmt="fancy_grid")
