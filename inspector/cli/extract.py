"""extract: payloads, constants and tensors as files."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from inspector.cli.answer import USAGE, Answer, Column, CommandError, Table
from inspector.cli.options import add_files, methods, open_files
from inspector.cli.output import safe_name, write_bytes
from inspector.extract import KINDS, items


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_files(parser)
    parser.add_argument("--what", choices=(*KINDS, "all"), default="all", help="default: all")
    parser.add_argument("--to", metavar="FOLDER", required=True, help="folder to write into")


def run(options: Namespace) -> Answer:
    """Write the files and list them; nothing else in the folder is touched."""
    session = open_files(options)
    target = Path(options.to)
    if target.exists() and not target.is_dir():
        raise CommandError(f"{target} is not a folder", USAGE)
    kinds = KINDS if options.what == "all" else (options.what,)
    used: set[Path] = set()
    rows: list[tuple[str, str, int]] = []
    for item in items(session, methods(session, options), kinds):
        path = _unused(target.joinpath(*map(safe_name, item.path)), used)
        content = item.content()
        write_bytes(path, content, force=options.force)
        rows.append((str(path.relative_to(target)), item.kind, len(content)))
    data = {
        "folder": str(target),
        "files": [{"path": path, "kind": kind, "bytes": size} for path, kind, size in rows],
    }
    columns = (Column("file"), Column("kind"), Column("bytes", "bytes"))
    lines = [f"{len(rows)} file(s) written to {target}"]
    return Answer(data, lines=lines, tables=(Table("", columns, rows),))


def _unused(path: Path, used: set[Path]) -> Path:
    """Return the path, numbered when two names became one by being made safe."""
    number, found = 1, path
    while found in used:
        number += 1
        found = path.with_name(f"{path.stem}_{number}{path.suffix}")
    used.add(found)
    return found
