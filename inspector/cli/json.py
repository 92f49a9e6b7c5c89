"""json: the flatbuffer of a file as the JSON of flatc, and a file of such JSON."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from pathlib import Path

from inspector.cli.answer import USAGE, Answer, CommandError
from inspector.cli.output import refuse_inputs, write_bytes
from inspector.cli.split import add_writing
from inspector.files.load import open_bytes
from schema.errors import FormatError
from schema.files import formats
from schema.files.json_files import FORMS, file_of, from_json, kind_of_json, to_json

_IS_JSON = re.compile(rb"(\xef\xbb\xbf)?\s*[{\[]")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "files", nargs=1, metavar="FILE", help="a .pte, .ptd, .bpte or ETDump, or its JSON"
    )
    parser.add_argument(
        "-o",
        "--output",
        dest="target",
        metavar="FILE",
        help="the file to write; JSON goes to standard output without it",
    )
    parser.add_argument(
        "--segments",
        metavar="FILE",
        help="for JSON: the .pte or .ptd that provides constants and payloads",
    )
    add_writing(parser)


def run(options: Namespace) -> Answer:
    """Convert to the other form; which one it has follows from its content.

    Raises: CommandError without a target where one is needed, or for a file without a flatbuffer;
        FormatError, OSError
    """
    name = options.files[0]
    data = open_bytes(name)
    try:
        is_json = _IS_JSON.match(bytes(data[:64])) is not None
        return _written(options, data) if is_json else _printed(options, data)
    except FormatError as error:
        raise error.in_file(name) from None


def _printed(options: Namespace, data: memoryview) -> Answer:
    if options.segments:
        raise CommandError("--segments requires JSON as input", USAGE)
    found = formats.recognise(data)
    if found is None:
        raise formats.unrecognised(data, options.files[0])
    if found.kind not in FORMS:
        raise CommandError(
            f"{options.files[0]}: expected a flatbuffer file, found an {found.title}", USAGE
        )
    text = to_json(found.kind, data) + "\n"
    size = len(text.encode())
    if options.target is None:
        return Answer({"kind": found.kind, "file": None, "bytes": size}, document=(text,))
    return _saved(options, found.kind, text.encode())


def _written(options: Namespace, data: memoryview) -> Answer:
    if options.target is None:
        raise CommandError("-o FILE is missing: it names the file", USAGE)
    text = bytes(data)
    kind = kind_of_json(text)
    original = open_bytes(options.segments) if options.segments else None
    try:
        whole = file_of(kind, from_json(kind, text), original)
    except FormatError as error:
        if original is None and (error.field or "").startswith("segments"):
            words = f"{error}; --segments FILE names the .{kind} that has them"
            raise CommandError(words, USAGE) from None
        raise
    return _saved(options, kind, whole)


def _saved(options: Namespace, kind: str, data: bytes) -> Answer:
    target = Path(options.target)
    refuse_inputs(target, [*options.files, *filter(None, [options.segments])])
    write_bytes(target, data, force=options.force)
    return Answer(
        {"kind": kind, "file": str(target), "bytes": len(data)},
        lines=[f"{target}: {len(data):,} bytes"],
    )
