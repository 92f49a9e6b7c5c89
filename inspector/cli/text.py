"""Answers as text: lines, tables, issues; colour only on a terminal."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from typing import TextIO

from inspector.cli.answer import Answer, Shown
from inspector.render.text import lines_of, printable, selected_text
from schema.errors import Issue, Severity


def render(answer: Answer, issues: Sequence[Issue], stream: TextIO) -> str:
    """Return the answer as text for a stream."""
    colour = wants_colour(stream)
    width = shutil.get_terminal_size((120, 24)).columns if stream.isatty() else 0
    blocks = ["\n".join(map(printable, answer.lines))] if answer.lines else []
    blocks += [_table(table, width, colour) for table in answer.tables]
    if issues:
        blocks.append("\n".join(_issue(issue) for issue in issues))
    return "\n\n".join(block for block in blocks if block) + "\n"


def wants_colour(stream: TextIO) -> bool:
    """Return whether escape codes are welcome: on terminals without NO_COLOR."""
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def _issue(issue: Issue) -> str:
    word = {Severity.INFO: "note", Severity.WARNING: "warning", Severity.ERROR: "error"}
    return printable(f"{word[issue.severity]}: {issue.where}: {issue.message}")


def _table(table: Shown, width: int, colour: bool) -> str:
    laid_out = selected_text(table.title, table.selected, total=table.total)
    return "\n".join(lines_of(laid_out, width, colour=colour))


def stdout_is_utf8() -> None:
    """Make printing never fail on a terminal that lacks a character."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")
