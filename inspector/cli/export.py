"""export: graphs for Model Explorer, or an anonymised copy for a bug report or a colleague."""

from __future__ import annotations

import itertools
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

from inspector.check.session import check_session
from inspector.cli.answer import USAGE, Answer, CommandError, shown
from inspector.cli.options import add_files, methods, needs, open_files
from inspector.cli.output import json_pieces, refuse_inputs, write_folder
from inspector.export.anonymise import GONE, KEPT, anonymise, left_out
from inspector.export.model_explorer import model_explorer
from inspector.export.workspace_copy import WITHOUT, anonymous_workspace
from inspector.files.load import load_session
from inspector.files.workspace_file import is_workspace, read_workspace, workspace_sessions
from inspector.tables.written import graph_sizes, written_files
from schema.errors import Issue, Severity
from schema.objects.plural import plural

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
    if any(is_workspace(str(name)) for name in options.files):
        return _workspace_copy(options)
    session = open_files(options)
    target = Path(options.to)
    files = anonymise(session)
    for file in files:
        refuse_inputs(target / file.name, options.inputs)
    writers = [(Path(file.name), partial(_write, file.data)) for file in files]
    write_folder(target, writers, force=options.force)
    rows = [(file.name, file.kind, len(file.data)) for file in files]
    lacking = left_out(session)
    data = {
        "folder": str(target),
        "files": _listed(rows),
        "left_out": list(lacking),
        "verdict": _verdict(target, [file.name for file in files]),
        "original_verdict": check_session(session).verdict,
    }
    return Answer(data, lines=_words(target, rows, lacking), tables=(shown(written_files(rows)),))


def _workspace_copy(options: Namespace) -> Answer:
    """Write a copy of all sessions of a workspace, and a workspace of them."""
    if len(options.files) != 1:
        raise CommandError("a workspace is copied alone", USAGE)
    path, target = Path(options.files[0]), Path(options.to)
    content = read_workspace(path)
    sessions = [(name, open_files(options, paths)) for name, paths in workspace_sessions(path)]
    copy = anonymous_workspace(content, sessions)
    for place, _, _ in copy.files:
        refuse_inputs(target / place, [*options.inputs, str(path)])
    writers = [(place, partial(_write, data)) for place, _, data in copy.files]
    write_folder(target, writers, force=options.force)
    rows = [(place.as_posix(), kind, len(data)) for place, kind, data in copy.files]
    originals = dict(sessions)
    data = {
        "folder": str(target),
        "files": _listed(rows),
        "left_out": list(copy.left_out),
        "sessions": [
            {
                "id": one.id,
                "folder": one.folder,
                "verdict": _verdict(target / one.folder, [file.name for file in one.files]),
                "original_verdict": check_session(originals[one.id]).verdict,
            }
            for one in copy.sessions
        ],
    }
    lines = [*_words(target, rows, copy.left_out), f"Of the workspace: no {WITHOUT}."]
    return Answer(data, lines=lines, tables=(shown(written_files(rows)),))


def _listed(rows: Sequence[tuple[str, str, int]]) -> list[dict[str, object]]:
    return [{"path": name, "kind": kind, "bytes": size} for name, kind, size in rows]


def _words(target: Path, rows: Sequence[object], lacking: Sequence[str]) -> list[str]:
    """Return the contents of a copy and the omitted parts."""
    lines = [
        f"{plural(len(rows), 'file')} written to {target}",
        f"Not in the copy: {GONE}.",
        f"In the copy: {KEPT}. Look at it before you send it.",
    ]
    if lacking:
        lines.append(f"Files without a copy: {', '.join(lacking)}")
    return lines


def _write(data: bytes, stream: BinaryIO) -> None:
    stream.write(data)


def _verdict(folder: Path, names: list[str]) -> str | None:
    if not names:
        return None
    return check_session(load_session([folder / name for name in names])).verdict
