"""size: every byte of the files and its owner."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Sequence

from inspector.cli.answer import Answer, Column, Table
from inspector.cli.options import add_files, open_files, short
from inspector.size.files import SizedFile, session_sizes
from inspector.size.owners import Part, mark_duplicates
from inspector.size.users import Users, stored_users, users_of, users_text
from schema.errors import Issue, Severity

_MEASURED = ("pte", "ptd", "bpte")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_files(parser)
    parser.add_argument("--duplicates", action="store_true", help="find equal contents; reads all")
    parser.add_argument("--top", type=int, default=40, metavar="N", help="parts listed in the text")


def run(options: Namespace) -> Answer:
    """Return the parts of the program files, else of whatever files there are."""
    session = open_files(options)
    sizes = session_sizes(session)
    chosen = [one for one in sizes if one.file.kind in _MEASURED] or list(sizes)
    issues = [
        Issue(Severity.ERROR, one.file.path, f"its parts cannot be told: {one.problem}")
        for one in chosen
        if one.size is None
    ]
    measured = [(one, _parts(one, options.duplicates)) for one in chosen if one.size is not None]
    total = sum(one.file.size for one, _ in measured)
    several = len(measured) > 1
    users = stored_users(session)
    data = {
        "total_bytes": total,
        "parts": [
            {
                "name": _name(one, part.name, several),
                "kind": part.kind,
                "bytes": part.nbytes,
                "share": part.nbytes / max(total, 1),
                "offset": part.offset,
                "file": one.file.path,
                "duplicate_of": _name(one, part.duplicate_of, several) or None,
                "used_by": list(users_of(part, users)),
            }
            for one, parts in measured
            for part in parts
        ],
    }
    return Answer(data, tables=_tables(measured, total, options, users), issues=issues)


def _parts(one: SizedFile, duplicates: bool) -> Sequence[Part]:
    assert one.size is not None
    return mark_duplicates(one.size.parts, one.file.data) if duplicates else one.size.parts


def _name(one: SizedFile, name: str, several: bool) -> str:
    return f"{short(one.file.path)}: {name}" if several and name else name


def _tables(
    measured: Sequence[tuple[SizedFile, Sequence[Part]]],
    total: int,
    options: Namespace,
    users: Users,
) -> tuple[Table, ...]:
    whole = max(total, 1)
    several = len(measured) > 1
    counts: Counter[str] = Counter()
    nbytes: Counter[str] = Counter()
    for _, parts in measured:
        for part in parts:
            counts[part.kind] += 1
            nbytes[part.kind] += part.nbytes
    kinds = Table(
        "by kind",
        (
            Column("kind"),
            Column("parts", "count"),
            Column("bytes", "bytes"),
            Column("share", "share"),
        ),
        [(kind, counts[kind], size, size / whole) for kind, size in nbytes.most_common()],
        ("total", counts.total(), total, 1.0 if total else None),
    )
    rows = [
        (
            _name(one, part.name, several),
            part.kind,
            part.nbytes,
            part.nbytes / whole,
            users_text(users_of(part, users)),
            _name(one, part.duplicate_of, several),
        )
        for one, parts in measured
        for part in parts
    ]
    rows.sort(key=lambda row: -row[2])
    columns = (
        Column("part"),
        Column("kind"),
        Column("bytes", "bytes"),
        Column("share", "share"),
        Column("used by"),
        Column("same content as"),
    )
    if not options.duplicates:  # nothing was compared: a column of blanks would say "none"
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    listed = rows[: max(options.top, 0)]
    title = f"the {len(listed)} largest of {len(rows)} parts"
    return (Table(title, columns, listed), kinds)
