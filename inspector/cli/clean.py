"""clean: what runs, variants, bisections and sweeps take on the disk, and removing some of it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from inspector.cli.answer import FAILED, FINE, USAGE, Answer, CommandError, shown
from inspector.cli.options import add_output
from inspector.files.written_folders import FolderKind, WrittenFolder, removed, written_folders
from inspector.tables.disk import disk_table
from inspector.units import format_bytes
from schema.errors import Issue, Severity
from schema.objects.plural import plural

_KINDS = {
    "runs": FolderKind.RUN,
    "variants": FolderKind.VARIANT,
    "trials": FolderKind.BISECTION,
    "sweeps": FolderKind.SWEEP,
}
_VALUES = "values"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "place",
        nargs="?",
        default=".",
        metavar="MODEL|FOLDER",
        help="a program, for its runs, variants and sweeps, or a folder; default: this one",
    )
    parser.add_argument(
        "--remove",
        action="append",
        default=[],
        metavar="|".join((_VALUES, *_KINDS, "FOLDER")),
        help="what to remove: logged values, all folders of a kind, or one folder of the list;"
        " may be repeated. Nothing is removed without it, and no file that no job wrote",
    )
    add_output(parser)


def run(options: Namespace) -> Answer:
    """List the folders; remove those that were named."""
    place = Path(options.place)
    folders = written_folders(place)
    chosen = _chosen(folders, options.remove)
    freed, issues = dict[Path, int](), list[Issue]()
    for one, values_only in chosen:
        try:
            freed[one.path] = removed(one, values_only=values_only)
        except OSError as error:
            sentence = f"not removed: {error.strerror or error}"
            issues.append(Issue(Severity.ERROR, str(one.path), sentence))
    total = sum(one.size for one in folders)
    data = {
        "place": str(place),
        "folders": [
            {
                "path": str(one.path),
                "kind": one.kind.value,
                "bytes": one.size,
                "values_bytes": one.values_size,
                "removed_bytes": freed.get(one.path, 0),
            }
            for one in folders
        ],
        "bytes": total,
        "removed_bytes": sum(freed.values()),
    }
    lines = [f"{plural(len(folders), 'folder')}, {format_bytes(total)}"]
    if options.remove:
        lines.append(
            f"removed {format_bytes(sum(freed.values()))} of {plural(len(freed), 'folder')}"
        )
    elif folders:
        names = ", ".join((_VALUES, *_KINDS))
        lines.append(f"nothing is removed; --remove {names} or FOLDER does")
    code = FAILED if issues else FINE
    tables = (shown(disk_table(folders, place)),)
    return Answer(data, lines=lines, tables=tables, issues=issues, code=code)


def _chosen(
    folders: tuple[WrittenFolder, ...], names: list[str]
) -> list[tuple[WrittenFolder, bool]]:
    """Return the folders to remove, and whether only their values are.

    Raises: CommandError for a folder that is not in the list
    """
    found: dict[Path, bool] = {}
    for name in names:
        if name == _VALUES:
            found = {one.path: True for one in folders if one.values_size} | found
        elif name in _KINDS:
            found |= {one.path: False for one in folders if one.kind is _KINDS[name]}
        else:
            path = Path(name).absolute()
            if not any(one.path == path for one in folders):
                words = f"{name} is not in the list: expected {_VALUES}, {', '.join(_KINDS)}"
                raise CommandError(f"{words}, or a folder that a job wrote", USAGE)
            found[path] = False
    return [(one, found[one.path]) for one in folders if one.path in found]
