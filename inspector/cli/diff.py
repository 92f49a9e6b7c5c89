"""diff: two programs or sessions side by side."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from inspector.cli.answer import FINE, JUDGED, USAGE, Answer, CommandError, shown
from inspector.cli.options import add_output, add_reading, open_sides, split_names
from inspector.compare.alignment import GraphAlignment
from inspector.compare.change import MOST_SAMPLES, Change
from inspector.compare.content import change_content
from inspector.compare.differences import instruction_alignment, node_alignment
from inspector.compare.sessions import compare_sessions
from inspector.files.session import Session
from inspector.tables.compare_lists import change_table, sample_table
from schema.errors import Issue, Severity
from schema.objects.plural import plural

_MOST = 200


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    what = "file or folder; several with commas"
    parser.add_argument("old", metavar="A", nargs="?", help=what)
    parser.add_argument("new", metavar="B", nargs="?", help=what)
    parser.add_argument("--base", nargs="+", metavar="FILE", default=[], help="instead of A")
    parser.add_argument("--new", dest="news", nargs="+", metavar="FILE", default=[], help="of B")
    parser.add_argument(
        "--max-samples",
        type=int,
        metavar="N",
        help=f"list the first N elements that differ of each tensor; JSON has {MOST_SAMPLES}",
    )
    parser.add_argument("--all", action="store_true", help=f"more than {_MOST} lines of text")
    add_reading(parser)
    add_output(parser)


def run(options: Namespace) -> Answer:
    """Return the differences; exit code 1 if there are any besides times."""
    first, second = _sides(options)
    sessions = open_sides(options, (first, second))
    old, new = sessions
    samples = _most_samples(options.max_samples)
    found = compare_sessions(sessions, method=options.method or "", samples=samples)
    (changes,) = found.changes
    different = [change for change in changes if change.counts]
    data = {
        "different": bool(different),
        "changes": [change_content(change) for change in changes],
        "alignment": _alignments(old, new),
    }
    issues: list[Issue] = []
    if not {file.kind for file in old.files} & {file.kind for file in new.files}:
        words = "A and B have no kind of file in common"
        issues.append(Issue(Severity.WARNING, old.name, words))
    listed = changes if options.all or options.format != "text" else changes[:_MOST]
    tables = [shown(change_table([listed], "AB"))]
    if options.max_samples:
        tables.append(shown(sample_table(listed), "elements that differ"))
    lines = _lines(old, new, different)
    if len(listed) < len(changes):
        lines.append(f"{len(changes) - len(listed)} more; --all shows them")
    return Answer(
        data, lines=lines, tables=tuple(tables), issues=issues, code=JUDGED if different else FINE
    )


def _most_samples(requested: int | None) -> int:
    if requested is not None and requested < 0:
        raise CommandError(f"--max-samples expects a number of elements, found {requested}", USAGE)
    return MOST_SAMPLES if requested is None else requested


def _sides(options: Namespace) -> tuple[list[str], list[str]]:
    """Return the files of both sides, however they were named."""
    named = [name for name in (options.old, options.new) if name is not None]
    first = options.base or (split_names(named.pop(0)) if named else [])
    second = options.news or (split_names(named.pop(0)) if named else [])
    if not first or not second or named:
        raise CommandError("diff expects A and B, or --base FILES and --new FILES", USAGE)
    return first, second


def _alignments(old: Session, new: Session) -> dict[str, Any]:
    """Return how the instructions and recorded nodes of the common methods correspond."""
    found: dict[str, Any] = {}
    for method in (name for name in old.methods if name in new.methods):
        entry: dict[str, Any] = {}
        if old.program is not None and new.program is not None:
            alignment = instruction_alignment(old, new, method)
            entry["same"] = len(alignment.pairs)
            entry["removed"] = list(alignment.removed)
            entry["added"] = list(alignment.added)
        nodes = node_alignment(old, new, method)
        if nodes is not None:
            entry["nodes"] = _nodes(nodes)
        if entry:
            found[method] = entry
    return found


def _nodes(found: GraphAlignment) -> dict[str, Any]:
    old, new = found.old.nodes, found.new.nodes
    return {
        "same": len(found.pairs),
        "removed": [old[number].name for number in found.removed],
        "added": [new[number].name for number in found.added],
        "replaced": [
            {"old": [old[n].name for n in group.old], "new": [new[n].name for n in group.new]}
            for group in found.replaced
        ],
    }


def _lines(old: Session, new: Session, different: list[Change]) -> list[str]:
    count = len(different)
    words = plural(count, "difference") if count else "no difference"
    return [f"A {old.name}, B {new.name}: {words} (times are means; they vary and are not judged)"]
