"""split: a program's constants and keyed blobs as external data beside it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

from inspector.cli.answer import USAGE, Answer, CommandError, shown
from inspector.cli.options import FORMATS, open_files
from inspector.cli.output import safe_name, write_folder
from inspector.files.session import Session
from inspector.tables.written import written_files
from schema import flat_tensor
from schema.objects.plural import plural
from schema.program import encode
from schema.program.alignment import alignment_of
from schema.program.split import split


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("files", nargs=1, metavar="MODEL.pte", help="the program file")
    parser.add_argument(
        "-o", "--output", dest="folder", metavar="FOLDER", help="folder to write into; required"
    )
    add_writing(parser)


def add_writing(parser: ArgumentParser) -> None:
    """Add the arguments of verbs that write program files from others."""
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    parser.add_argument("--force", action="store_true", help="replace files that exist")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="show the traceback of an error"
    )
    parser.set_defaults(output=None, method=None, source_time_scale=None, source_root=[])


def opened(options: Namespace) -> Session:
    """Return a session of one program file and external data; other files of a folder are ignored.

    Raises: CommandError for other named files; FormatError, OSError for one that cannot be read
    """
    session = open_files(options, options.files, strict=True)
    kinds = [file.kind for file in session.files]
    named = [file for file in session.files if file.path in options.files]
    other = next((file for file in named if file.kind not in ("pte", "ptd")), None)
    if other is not None or kinds.count("pte") != 1:
        found = f"{other.path} ({other.kind})" if other else f"{kinds.count('pte')} of them"
        raise CommandError(f"one .pte is needed, found {found}", USAGE)
    return session


def run(options: Namespace) -> Answer:
    """Write both files; nothing else in the folder is touched.

    Raises: CommandError without a folder, or if nothing can be moved; FormatError
    """
    if options.folder is None:
        raise CommandError("-o FOLDER is missing: it names the folder for both files", USAGE)
    session = opened(options)
    program = session.program
    if program is None:
        raise CommandError(f"{options.files[0]} is not a program (.pte)", USAGE)
    rest, data = split(program)
    if not data.entries:
        raise CommandError(f"{options.files[0]} has no constants and no named data", USAGE)
    step, name = alignment_of(program), safe_name(Path(options.files[0]).stem)
    parts: dict[str, list[bytes | memoryview]] = {
        "pte": [encode(rest, alignment=step)],
        "ptd": flat_tensor.encode_parts(data, alignment=step),
    }

    files = [(Path(f"{name}.{kind}"), partial(_write, parts[kind])) for kind in parts]
    write_folder(Path(options.folder), files, force=options.force)
    rows = [(f"{name}.{k}", k, sum(len(part) for part in parts[k])) for k in parts]
    tensors = sum(entry.layout is not None for entry in data.entries)
    moved = {"tensors": tensors, "blobs": len(data.entries) - tensors}
    return Answer(
        {
            "folder": options.folder,
            "files": [{"path": path, "kind": kind, "bytes": size} for path, kind, size in rows],
            **moved,
        },
        lines=[
            f"{plural(tensors, 'tensor')} and {plural(moved['blobs'], 'blob')} moved, written to"
            f" {options.folder}"
        ],
        tables=(shown(written_files(rows)),),
    )


def _write(parts: Sequence[bytes | memoryview], stream: BinaryIO) -> None:
    for part in parts:
        stream.write(part)
