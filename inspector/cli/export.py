"""export: graphs for Model Explorer, or an anonymised copy for a bug report."""

from __future__ import annotations

import itertools
from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path
from typing import BinaryIO

from inspector.check.session import check_session
from inspector.cli.answer import USAGE, Answer, CommandError, shown
from inspector.cli.options import add_files, methods, needs, open_files
from inspector.cli.output import json_pieces, refuse_inputs, write_folder
from inspector.export.anonymise import anonymise
from inspector.export.model_explorer import model_explorer
from inspector.files.load import load_session
from inspector.tables.written import graph_sizes, written_files
from inspector.units import plural
from schema.errors import Issue, Severity

MODEL_EXPLORER, ANONYMISED = "model-explorer", "anonymised"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_files(parser)
    parser.add_argument(
        "--as",
        dest="form",
        choices=(MODEL_EXPLORER, ANONYMISED),
        default=MODEL_EXPLORER,
        help=f"default: {MODEL_EXPLORER}",
    )
    parser.add_argument(
        "--to", metavar="FOLDER", help="folder of the anonymised copy; same as -o FOLDER"
    )


def run(options: Namespace) -> Answer:
    """Return the graphs, or write the copy and list its files."""
    if options.form == ANONYMISED:
        return _copy(options)
    if options.to is not None:
        raise CommandError(f"--to requires --as {ANONYMISED}; -o names a file", USAGE)
    session = open_files(options)
    found, issues = model_explorer(session, methods(session, options))
    if not found["graphs"] and not issues:
        words = needs("a graph", "a program or an ETRecord")
        issues.append(Issue(Severity.INFO, session.name, words))
    rows = [(graph["id"], len(graph["nodes"])) for graph in found["graphs"]]
    document = itertools.chain(json_pieces(found), "\n")
    return Answer(found, tables=(shown(graph_sizes(rows)),), issues=issues, document=document)


def _copy(options: Namespace) -> Answer:
    if options.to is None:
        options.to, options.output = options.output, None
    if options.to is None:
        raise CommandError(f"--as {ANONYMISED} needs --to FOLDER", USAGE)
    session = open_files(options)
    target = Path(options.to)
    files = anonymise(session)
    for file in files:
        refuse_inputs(target / file.name, options.inputs)
    writers = [(Path(file.name), partial(_write, file.data)) for file in files]
    write_folder(target, writers, force=options.force)
    rows = [(file.name, file.kind, len(file.data)) for file in files]
    data = {
        "folder": str(target),
        "files": [{"path": name, "kind": kind, "bytes": size} for name, kind, size in rows],
        "verdict": _verdict(target, [file.name for file in files]),
        "original_verdict": check_session(session).verdict,
    }
    lines = [
        f"{plural(len(rows), 'file')} written to {target}:"
        " no weights, inputs, names of modules or paths",
        "Method, operator and backend names, shapes and times are kept; check before sending it.",
    ]
    return Answer(data, lines=lines, tables=(shown(written_files(rows)),))


def _write(data: bytes, stream: BinaryIO) -> None:
    stream.write(data)


def _verdict(folder: Path, names: list[str]) -> str | None:
    if not names:
        return None
    return check_session(load_session([folder / name for name in names])).verdict
