"""extract: payloads, constants, named data and logged tensors as files."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from inspector.cli.answer import Answer, shown
from inspector.cli.options import add_folder_output, add_reading, methods, needs, open_files
from inspector.cli.output import safe_path, write_folder
from inspector.export.extract import KINDS, ExtractedItem, items
from inspector.tables.written import written_files
from schema.errors import Issue, Severity
from schema.objects.plural import plural


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="files or folders, any mix")
    names = [kind.replace(" ", "-") for kind in KINDS]
    parser.add_argument("--what", choices=(*names, "all"), default="all", help="default: all")
    add_reading(parser)
    add_folder_output(parser, "folder to write into; without it the files are only listed")


def run(options: Namespace) -> Answer:
    """Write the files and list them; other files in the folder are not touched."""
    session = open_files(options)
    kinds = KINDS if options.what == "all" else (options.what.replace("-", " "),)
    found, issues = items(session, methods(session, options), kinds)
    if not found and not issues:
        words = needs("something to extract", "a program, a .ptd, or an ETDump and debug buffer")
        issues.append(Issue(Severity.INFO, session.name, words))
    placed = _placed(found)
    if options.folder is not None:
        files = [(path, item.write) for path, item in placed]
        write_folder(Path(options.folder), files, force=options.force)
    rows = [(path.as_posix(), item.kind, item.nbytes) for path, item in placed]
    data = {
        "folder": options.folder,
        "files": [{"path": path, "kind": kind, "bytes": size} for path, kind, size in rows],
    }
    done = f"written to {options.folder}" if options.folder else "found; -o FOLDER writes them"
    return Answer(
        data,
        lines=[f"{plural(len(rows), 'file')} {done}"],
        tables=(shown(written_files(rows)),),
        issues=issues,
    )


def _placed(found: list[ExtractedItem]) -> list[tuple[Path, ExtractedItem]]:
    """Return the path of each item; names that become equal by sanitizing are numbered."""
    used: set[str] = set()
    placed: list[tuple[Path, ExtractedItem]] = []
    for item in found:
        path = safe_path(item.path)
        number, free = 1, path
        while str(free).casefold() in used:
            number += 1
            free = path.with_name(f"{path.stem}_{number}{path.suffix}")
        used.add(str(free).casefold())
        placed.append((free, item))
    return placed
