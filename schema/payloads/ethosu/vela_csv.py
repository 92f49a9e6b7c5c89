"""Tables of CSV as Vela writes them."""

from __future__ import annotations

import csv
import io

from schema.errors import FormatError

_MOST_ROWS = 1_000_000


def csv_rows(data: bytes, file: str, wanted: str = "") -> list[dict[str, str]]:
    """Return the rows of a table by column.

    Args:
        data: the table
        file: name of the file it is in
        wanted: a column it must have; empty for none

    Raises: FormatError if it is not such a table
    """
    reader = csv.DictReader(io.StringIO(data.decode("utf-8", "replace")))
    rows: list[dict[str, str]] = []
    try:
        fields = reader.fieldnames or ()
        if wanted and wanted not in fields:
            found = ", ".join(fields)[:200] or "nothing"
            raise FormatError(f"a column {wanted}", found, file=file)
        for row in reader:
            if len(rows) >= _MOST_ROWS:
                raise FormatError(f"at most {_MOST_ROWS} rows", "more", file=file)
            rows.append(
                {key: value for key, value in row.items() if key and isinstance(value, str)}
            )
    except csv.Error as error:
        raise FormatError("a table of CSV", str(error), file=file) from error
    return rows
