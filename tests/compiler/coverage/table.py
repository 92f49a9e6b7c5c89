"""The coverage table as a page of the documentation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import torch

from tests.compiler.coverage.inputs import DTYPES
from tests.compiler.coverage.run import Cell, Outcome

PAGE = Path(__file__).resolve().parents[3] / "docs/operator-coverage.md"
_MARKS = {
    Outcome.EQUAL: "=",
    Outcome.NO_KERNEL: "n",
    Outcome.REFUSED_BY_KERNEL: "k",
    Outcome.WRONG: "w",
    Outcome.CRASHED: "c",
    Outcome.REFUSED: "r",
    Outcome.NOT_IN_TORCH: "",
}
_MEANING = {
    Outcome.EQUAL: "compiled by us, run on the stock runtime, equal to eager",
    Outcome.NO_KERNEL: "compiled; the stock runtime has no kernel (0x14), ours is equal to eager",
    Outcome.REFUSED_BY_KERNEL: "compiled; the stock kernel refuses the element type or the values",
    Outcome.WRONG: "compiled; the stock kernel gives something else than eager",
    Outcome.CRASHED: "compiled; the stock process ends",
    Outcome.REFUSED: "refused by our compiler",
    Outcome.NOT_IN_TORCH: "torch itself has no kernel for this element type, or cannot export it",
}
_HEAD = """# Core ATen operators by element type

Every overload that torch {version} tags as core, called once for each element type, compiled by
ETScope and run on the runtime of the executorch wheel. `python -m tests.compiler.coverage` writes
this page; a test fails when it is not current.
"""
_COLUMNS = ("f32", "f64", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "bool")

Rows = Mapping[str, Mapping[torch.dtype, Cell]]


def render(rows: Rows) -> str:
    """Return the page."""
    lines = [_HEAD.format(version=torch.__version__.split("+")[0]), *_legend(rows), ""]
    lines += [f"| operator | {' | '.join(_COLUMNS)} |", "|---" * (len(_COLUMNS) + 1) + "|"]
    for name, cells in rows.items():
        marks = " | ".join(_MARKS[cells[dtype].outcome] for dtype in DTYPES)
        lines.append(f"| `{name}` | {marks} |")
    return "\n".join([*lines, "", "## Reasons", "", *_reasons(rows), ""])


def _legend(rows: Rows) -> list[str]:
    counts = Counter(cell.outcome for cells in rows.values() for cell in cells.values())
    head = ["| mark | means | cells |", "|---|---|---|"]
    return head + [
        f"| {_MARKS[outcome] or '(empty)'} | {_MEANING[outcome]} | {counts[outcome]} |"
        for outcome in Outcome
    ]


def _reasons(rows: Rows) -> list[str]:
    lines: list[str] = []
    for name, cells in rows.items():
        by_reason: dict[tuple[Outcome, str], list[str]] = {}
        for column, dtype in zip(_COLUMNS, DTYPES, strict=True):
            cell = cells[dtype]
            if cell.outcome not in (Outcome.EQUAL, Outcome.NO_KERNEL, Outcome.NOT_IN_TORCH):
                by_reason.setdefault((cell.outcome, cell.reason), []).append(column)
        for (outcome, reason), columns in by_reason.items():
            lines.append(f"- `{name}` ({', '.join(columns)}): {outcome.value}: {reason}")
    return lines
