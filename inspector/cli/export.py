"""export: graphs for Model Explorer, or an anonymised copy for a bug report."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from inspector.anonymise import anonymise
from inspector.check import check_session
from inspector.cli.answer import USAGE, Answer, Column, CommandError, Table
from inspector.cli.options import add_files, methods, needs, open_files
from inspector.cli.output import refuse_inputs, to_json, write_bytes
from inspector.load import load_session
from inspector.model_explorer import model_explorer
from inspector.session import Session
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
    parser.add_argument("--to", metavar="FOLDER", help="folder for the anonymised copy")


def run(options: Namespace) -> Answer:
    """Return the graphs, or write the copy and list its files."""
    if options.form == ANONYMISED and not options.to:
        raise CommandError(f"--as {ANONYMISED} needs --to FOLDER", USAGE)
    session = open_files(options)
    if options.form == ANONYMISED:
        return _copy(session, options)
    found = model_explorer(session, methods(session, options))
    issues: list[Issue] = []
    if not found["graphs"]:
        words = needs("a graph", "a program or an ETRecord")
        issues.append(Issue(Severity.INFO, session.name, words))
    columns = (Column("graph"), Column("nodes", "count"))
    rows = [(graph["id"], len(graph["nodes"])) for graph in found["graphs"]]
    document = to_json(found) + "\n"
    return Answer(found, tables=(Table("", columns, rows),), issues=issues, document=document)


def _copy(session: Session, options: Namespace) -> Answer:
    target = Path(options.to)
    if target.exists() and not target.is_dir():
        raise CommandError(f"{target} is not a folder", USAGE)
    files = anonymise(session)
    for file in files:
        path = target / file.name
        refuse_inputs(path, options.inputs)
        if path.exists() and not options.force:
            raise CommandError(f"{path} exists; --force replaces it", USAGE)
    for file in files:
        write_bytes(target / file.name, file.data, force=options.force)
    verdicts = (check_session(session).verdict, _verdict(target, [file.name for file in files]))
    data = {
        "folder": str(target),
        "files": [
            {"path": file.name, "kind": file.kind, "bytes": len(file.data)} for file in files
        ],
        "verdict": verdicts[1],
        "original_verdict": verdicts[0],
    }
    columns = (Column("file"), Column("kind"), Column("bytes", "bytes"))
    rows = [(file.name, file.kind, len(file.data)) for file in files]
    lines = [
        f"{len(rows)} file(s) written to {target}: no weights, inputs, names of modules or paths",
        "Method, operator and backend names, shapes and times are kept; look before you send it.",
    ]
    return Answer(data, lines=lines, tables=(Table("", columns, rows),))


def _verdict(folder: Path, names: list[str]) -> str | None:
    if not names:
        return None
    return check_session(load_session([folder / name for name in names])).verdict
