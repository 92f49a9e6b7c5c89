"""merge: a program and its external data as one program file."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from inspector.cli.answer import USAGE, Answer, CommandError
from inspector.cli.output import refuse_inputs, write_bytes
from inspector.cli.split import add_writing, opened
from schema.program import encode
from schema.program.alignment import alignment_of
from schema.program.split import merge


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="the .pte file and the .ptd files it reads"
    )
    parser.add_argument(
        "-o", "--output", dest="target", metavar="MODEL.pte", help="the file to write; required"
    )
    add_writing(parser)


def run(options: Namespace) -> Answer:
    """Write the program; the file is replaced atomically.

    Raises: CommandError without a target or without external data; FormatError
    """
    if options.target is None:
        raise CommandError("-o MODEL.pte is missing: it names the file", USAGE)
    session = opened(options)
    program = session.program
    if program is None or not session.external:
        raise CommandError("merging needs a .pte and at least one .ptd", USAGE)
    target = Path(options.target)
    refuse_inputs(target, options.inputs)
    whole = merge(program, session.external)
    data = encode(whole, alignment=alignment_of(program, *session.external))
    write_bytes(target, data, force=options.force)
    keys = sum(len(file.entries) for file in session.external)
    return Answer(
        {"file": str(target), "bytes": len(data), "keys": keys},
        lines=[f"{target}: {len(data):,} bytes, with the data of {keys} keys"],
    )
