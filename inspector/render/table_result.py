"""Any table of the window as a value: ``inspector.table(session, "operators")``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inspector.export.pandas_bridge import DataFrame, load_pandas
from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.files.session_groups import split_sessions
from inspector.profile.time_range import range_from
from inspector.render.html import paragraph, selected_html
from inspector.render.text import lines_of, selected_text
from inspector.render.values import plain_value
from inspector.tables.query import Query, Selected, column_names, select
from inspector.tables.registry import TableSubject, build, entry_named
from inspector.tables.time_tags import tag_line, time_tags

Path_ = str | os.PathLike[str]
_MOST_ROWS = 60  # that a notebook shows


class TableResult:
    """Rows of a table; prints as text and shows itself in notebooks.

    Attributes:
        selected: the rows with their columns
        tags: remarks to show with its times
    """

    def __init__(self, selected: Selected, tags: Sequence[str] = ()) -> None:
        self.selected = selected
        self.tags = tuple(tags)

    def __len__(self) -> int:
        return len(self.selected.rows)

    def __str__(self) -> str:
        head = [tag_line(self.tags), ""] if self.tags else []
        return "\n".join((*head, *lines_of(selected_text("", self.selected), 0, colour=False)))

    __repr__ = __str__

    def dataframe(self) -> DataFrame:
        """Return the rows as a DataFrame, a column per id; missing values are None or NaN.

        Times are in ns and sizes in bytes: ``attrs["units"]`` has the unit of each column that
        has one, ``attrs["titles"]`` its title, ``attrs["tags"]`` remarks on its times.
        """
        columns, rows = self.selected.table.columns, self.selected.rows.tolist()
        values = {one.id: [plain_value(one.values[row]) for row in rows] for one in columns}
        frame = load_pandas().DataFrame(values)
        if self.selected.depths is not None:
            frame.insert(0, "depth", self.selected.depths)
        frame.attrs["units"] = {one.id: one.raw_unit for one in columns if one.raw_unit}
        frame.attrs["tags"] = self.tags
        frame.attrs["titles"] = {one.id: one.title for one in columns}
        return frame

    def _repr_html_(self) -> str:
        head = paragraph(tag_line(self.tags), "muted") if self.tags else ""
        return f"{head}{selected_html(self.selected, _MOST_ROWS)}"


def table(  # noqa: PLR0913 - the options of the verb
    subject: Session | Path_ | Sequence[Session | Path_],
    name: str,
    *,
    method: str = "",
    filter: str = "",
    sort: str | Sequence[str] = (),
    group_by: str = "",
    columns: str | Sequence[str] = (),
    top: int | None = None,
    start: str = "",
    end: str = "",
    run: str = "",
    of: str = "",
    dataframe: bool = False,
) -> Any:  # noqa: ANN401 - a TableResult or a DataFrame
    """Return a table of the window by name, as ``etscope table`` prints it.

    Args:
        subject: a session, paths of its files, or for tables that compare two sessions or more;
            the folder of a job for those of a sweep, a bisection or a run
        name: as in ``etscope table --help``
        method: needed where there are several
        filter: words, ``/a regular expression/`` or comparisons such as ``mean>0.1ms``
        sort: ids of columns, with ``:desc`` behind one for the largest first
        group_by: id of a text column
        columns: ids of the requested columns
        top: at most so many rows
        start: of the table ``range``: where the range of time begins, as in ``12.5us``
        end: where it ends
        run: label or number of the run it is of, ``all`` or ``clock``
        of: what the table is of beside its subject: a tensor, a file of gates, a delegate call
        dataframe: return a pandas DataFrame

    Raises: ValueError for an unknown table, column or method, or an invalid filter; FormatError,
        OSError for files that cannot be read
    """
    query = Query(filter, column_names(sort), group_by, column_names(columns), top)
    span = range_from(start, end, run)
    of_what = _subject(name, subject)
    selected = select(build(name, of_what, method, span=span, of=of), query)
    sessions = () if isinstance(of_what, Path) else of_what
    found = TableResult(selected, time_tags(sessions, [selected.table]))
    return found.dataframe() if dataframe else found


def _subject(
    name: str, subject: Session | Path_ | Sequence[Session | Path_]
) -> list[Session] | Path:
    if entry_named(name).subject is TableSubject.FOLDER and isinstance(subject, (str, os.PathLike)):
        return Path(subject)
    if isinstance(subject, Session):
        return [subject]
    given = [subject] if isinstance(subject, (str, os.PathLike)) else list(subject)
    paths = [os.fspath(one) for one in given if not isinstance(one, Session)]
    loaded = [load_session(group, strict=True) for group in split_sessions(paths)] if paths else []
    return [one for one in given if isinstance(one, Session)] + loaded
