"""size: every byte of the files and its owner."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from inspector.cli.answer import Answer, Shown, shown
from inspector.cli.options import add_files, open_files, short
from inspector.size.files import SizedFile, session_sizes
from inspector.size.owners import FilePart, mark_duplicates
from inspector.size.users import stored_users, users_of
from inspector.tables.query import Query, select
from inspector.tables.size import kind_table, parts_table
from schema.errors import Issue, Severity
from schema.objects.plural import plural

_MEASURED = ("pte", "ptd", "bpte")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_files(parser)
    parser.add_argument("--duplicates", action="store_true", help="find equal contents; reads all")
    parser.add_argument("--top", type=int, default=40, metavar="N", help="parts listed in the text")


def run(options: Namespace) -> Answer:
    """Return the parts of the program files, else of all available files."""
    session = open_files(options)
    sizes = session_sizes(session)
    chosen = [one for one in sizes if one.file.kind in _MEASURED] or list(sizes)
    issues = [
        Issue(Severity.ERROR, one.file.path, f"its parts are unknown: {one.problem}")
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
                "used_by": [user.text for user in users_of(part, users)],
            }
            for one, parts in measured
            for part in parts
        ],
    }
    found = [(one.file, part) for one, parts in measured for part in parts]
    whole = parts_table(found, files=several, users=users, compared=options.duplicates)
    tables = (
        Shown(
            f"the {min(max(options.top, 0), len(found)):,} largest of {plural(len(found), 'part')}",
            select(whole, Query(sort=("size:desc",), top=max(options.top, 0))),
        ),
        shown(kind_table([part for _, part in found]), "by kind", total=True),
    )
    return Answer(data, tables=tables, issues=issues)


def _parts(one: SizedFile, duplicates: bool) -> Sequence[FilePart]:
    assert one.size is not None
    return mark_duplicates(one.size.parts, one.file.data) if duplicates else one.size.parts


def _name(one: SizedFile, name: str, several: bool) -> str:
    return f"{short(one.file.path)}: {name}" if several and name else name
