"""check: whether files belong together."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from inspector.check.session import DO_NOT_BELONG, check_session, check_words
from inspector.cli.answer import FINE, JUDGED, Answer, shown
from inspector.cli.options import add_files, open_files
from inspector.tables.check import link_table


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_files(parser)


def run(options: Namespace) -> Answer:
    """Return the verdict; exit code 1 if the files do not belong together."""
    session = open_files(options)
    found = check_session(session)
    data = {
        "verdict": found.verdict,
        "mismatch": found.mismatch or None,
        "odd_one_out": found.odd_one_out or None,
        "links": [
            {
                "first": link.first,
                "second": link.second,
                "verdict": link.verdict,
                "matched": link.matched,
                "what": link.what,
                "mismatch": link.mismatch or None,
            }
            for link in found.links
        ],
    }
    lines = [check_words(session)]
    if found.mismatch:
        lines.append(f"First mismatch: {found.mismatch}")
    if found.odd_one_out:
        lines.append(f"The one that differs: {found.odd_one_out}")
    code = JUDGED if found.verdict == DO_NOT_BELONG else FINE
    tables = (shown(link_table(found)),)
    return Answer(data, lines=lines, tables=tables, issues=session.unread(), code=code)
