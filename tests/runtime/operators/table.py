"""The page docs/operators.md: which operator takes which element type, here and in stock."""

from __future__ import annotations

from collections.abc import Sequence

from runtime.kernels import BEYOND_STOCK, OF_LLM_LIBRARY
from tests.runtime.operators.exceptions import DIFFERS, NOT_COMPARED
from tests.runtime.operators.inputs import DTYPES
from tests.runtime.operators.sweep import Trial

_HEAD = """# Operators

All operators that the stock 1.5.1 wheel registers, with its quantized library, have a kernel in
`runtime/kernels`. `tests/runtime/test_operators.py` writes this table: it runs each operator on the
stock runtime and on ours with the same random and edge inputs and compares the results, for each
element type of its first tensor.

`=` equal; `≠` differs on purpose, see below; `+` only ours takes it; `.` neither takes it;
`·` not tried

"""


def page(made: Sequence[Trial]) -> str:
    """Return the text of the page."""
    columns = [str(dtype).removeprefix("torch.") for dtype in DTYPES]
    lines = ["| operator | " + " | ".join(columns) + " |", "| --- |" + " --- |" * len(columns)]
    found: dict[tuple[str, str], set[str]] = {}
    for trial in made:
        key = (trial.operator, str(trial.dtype).removeprefix("torch."))
        found.setdefault(key, set()).add(trial.verdict)
    for name, entry in DIFFERS.items():
        for column in entry.varies.split():
            found.setdefault((name, column), set()).add("differs")
    names = sorted({trial.operator for trial in made} | set(NOT_COMPARED))
    for name in names:
        marks = [_mark(found.get((name, column), set())) for column in columns]
        lines.append(f"| `{name}` | " + " | ".join(marks) + " |")
    return _HEAD + "\n".join(lines) + "\n\n" + _reasons()


def _mark(verdicts: set[str]) -> str:
    if not verdicts:
        return "·"
    if "stock only" in verdicts:
        return "-"
    if "differs" in verdicts:
        return "≠"
    if "equal" in verdicts:
        return "="
    return "+" if "ours only" in verdicts else "."


def _reasons() -> str:
    differs = [f"- `{name}`: {entry.reason}" for name, entry in sorted(DIFFERS.items())]
    open_ = [f"- `{name}`: {reason}" for name, reason in sorted(NOT_COMPARED.items())]
    beyond = [
        "The stock runtime has no kernel for these; `tests/runtime/test_operators_beyond_stock.py`",
        "compares ours with eager, bit by bit, for each element type.",
        "",
        *(f"- `{name}`" for name in sorted(BEYOND_STOCK)),
    ]
    llm = [
        "Its library for language models has these. `tests/runtime/test_llama_operators.py`",
        "compares caches bit by bit and attention within 1e-6.",
        "",
        *(f"- `{name}`" for name in sorted(OF_LLM_LIBRARY)),
    ]
    return "\n".join(
        [
            *("## Differences", "", *differs, "", "## Not compared one by one", "", *open_, ""),
            *("## Beyond the stock runtime", "", *beyond, ""),
            *("## Of the library for language models", "", *llm, ""),
        ]
    )
