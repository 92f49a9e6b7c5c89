"""diff: two programs or sessions side by side."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from inspector.cli.answer import FINE, JUDGED, Answer, Column, Table
from inspector.cli.options import add_output, add_reading, open_files
from inspector.diff import Change, diff_sessions


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("old", metavar="A", help="file or folder; several with commas")
    parser.add_argument("new", metavar="B", help="file or folder; several with commas")
    add_reading(parser)
    add_output(parser)


def run(options: Namespace) -> Answer:
    """Return the differences; exit code 1 when there are any beside times."""
    old = open_files(options, options.old.split(","))
    new = open_files(options, options.new.split(","))
    changes = diff_sessions(old, new)
    different = [change for change in changes if change.counts]
    data = {
        "different": bool(different),
        "changes": [
            {
                "area": change.area,
                "what": change.what,
                "old": change.old,
                "new": change.new,
                "unit": change.unit or None,
                "counts": change.counts,
            }
            for change in changes
        ],
    }
    words = f"{len(different)} difference(s)" if different else "no difference"
    lines = [f"A {old.name}, B {new.name}: {words}; times are means of runs and always vary"]
    columns = (Column("area"), Column("what"), Column("A"), Column("B"), Column("B − A"))
    table = Table("", columns, [_cells(change) for change in changes])
    return Answer(data, lines=lines, tables=(table,), code=JUDGED if different else FINE)


def _cells(change: Change) -> tuple[str, ...]:
    old, new = _text(change.old, change.unit), _text(change.new, change.unit)
    return (change.area, change.what, old, new, _delta(change))


def _text(value: object, unit: str) -> str:
    if value is None:
        return "—"
    if isinstance(value, float):
        return f"{value:.4g} {unit}".rstrip()
    if isinstance(value, int):
        return f"{value:,} {'B' if unit == 'bytes' else unit}".rstrip()
    return str(value)


def _delta(change: Change) -> str:
    old, new = change.old, change.new
    if not isinstance(old, (int, float)) or not isinstance(new, (int, float)):
        return ""
    share = f" ({100 * (new - old) / old:+.1f} %)" if old else ""
    if isinstance(old, float) or isinstance(new, float):
        return f"{new - old:+.4g} {change.unit}{share}"
    return f"{new - old:+,} {'B' if change.unit == 'bytes' else change.unit}{share}".replace(
        " (", " ("
    )
