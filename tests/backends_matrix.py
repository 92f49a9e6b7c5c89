"""Backends by what works: ``python -m tests.backends_matrix`` runs each cell as a command.

Rows are backends and models, columns are compile by both toolchains, reasons, open, join, run,
profile, gap, step, bisect, rules, quantized (tests/backends_cells.py). A cell runs for a
bounded time; rows that were run before are kept unless ``--again``. The table is written into
docs/backends.md between its marks.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from inspector.jobs import process
from inspector.toolchain.backend_cards import BackendCard, backend_cards
from tests.backends_cells import COLUMNS, HERE, KEPT, Row, cells_of, compiles, kept_name
from tests.tools.forked import WORKER, Forks

# in the order in which they run: small ones first
NAMES = ("m1", "m2", "gru", "transformer", "methods", "int8", "mobilenet", "resnet")
PAGE = HERE.parent / "docs/backends.md"
RESULTS, ANY = HERE / "data/backends_matrix.json", "any"
BEGIN, END = "<!-- matrix -->", "<!-- end of the matrix -->"
_LONGEST = 110  # characters of a cell
_SECONDS = 300  # of a cell
_NOT_RUN, _THE_SAME = "not run", "likewise"


@dataclass
class Cells:
    """The cells of one backend and model.

    Attributes:
        backend: its name
        model: its name
        text: by column
    """

    backend: str
    model: str
    text: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def is_complete(self) -> bool:
        """Return whether every cell was run."""
        return all(self.text.get(one, _NOT_RUN)[: len(_NOT_RUN)] != _NOT_RUN for one in COLUMNS)


Results = dict[tuple[str, str], Cells]


def table(rows: Sequence[Cells]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"| backend | model | {' | '.join(COLUMNS)} |"
    yield "|---" * (len(COLUMNS) + 2) + "|"
    for one in rows:
        texts = [one.text.get(column, "") for column in COLUMNS]
        same = len({*texts}) == 1
        cells = [texts[0], *(_THE_SAME for _ in texts[1:])] if same else texts
        cells = map(_short, cells)
        yield f"| {one.backend} | {one.model} | {' | '.join(cells)} |"


def _short(text: str) -> str:
    plain = " ".join(text.replace("|", "/").split())
    return plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST - 1]}…"


def with_table(page: str, lines: Sequence[str]) -> str:
    """Return a page with the table between its marks, which are added at its end if missing."""
    if BEGIN not in page:
        page = f"{page.rstrip()}\n\n## Matrix\n\n{BEGIN}\n{END}\n"
    head, _, rest = page.partition(BEGIN)
    return f"{head}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{rest.partition(END)[2]}"


def read_results(path: Path) -> Results:
    """Return the rows that earlier runs have written, none without a file."""
    if not path.is_file():
        return {}
    rows = (Cells(**one) for one in json.loads(path.read_text("utf-8")))
    return {(one.backend, one.model): one for one in rows}


def write_results(path: Path, rows: Mapping[tuple[str, str], Cells]) -> None:
    """Write the rows, in the order of the table."""
    content = [asdict(rows[key]) for key in sorted(rows)]
    path.write_text(json.dumps(content, indent=1) + "\n", "utf-8")


def complete(rows: Mapping[tuple[str, str], Cells]) -> Iterator[Cells]:
    """Yield the rows of all backends; what was not run tells which command runs it."""
    for card in backend_cards():
        mine = [one for (name, _), one in rows.items() if name == card.name]
        yield from mine
        left = [name for name in NAMES if (card.name, name) not in rows]
        if left and ANY not in {one.model for one in mine}:
            words = f"not run yet: python -m tests.backends_matrix --backend {card.name}"
            yield Cells(
                card.name, ", ".join(left), dict.fromkeys(COLUMNS, "not run") | {"own": words}
            )


def _rows_of(
    cards: Iterable[BackendCard], models: Sequence[str]
) -> Iterator[tuple[BackendCard, str]]:
    """Yield what can be run: the first model of each backend, then the second, and so on."""
    cards = [*cards]
    for model in models:
        for card in cards:
            if compiles(card) or (KEPT / f"{kept_name(card, model)}.pte").is_file():
                yield card, model
    for card in cards:
        if not compiles(card):
            yield card, ANY


def main() -> None:
    """Run the matrix, or the chosen part of it; results are kept, so that it may be in parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", action="append", default=[], help="default: all")
    parser.add_argument("--model", action="append", default=[], choices=NAMES, help="default: all")
    parser.add_argument("--column", action="append", choices=COLUMNS, help="again; others stay")
    parser.add_argument("--seconds", type=int, default=_SECONDS, help="bound of a cell")
    parser.add_argument("--again", action="store_true", help="also what was run before")
    parser.add_argument("--only-write", action="store_true", help="run nothing")
    parser.add_argument("--keep", type=Path, help="folder that keeps what each row made")
    options = parser.parse_args()
    rows = read_results(RESULTS)
    chosen = [one for one in backend_cards() if not options.backend or one.name in options.backend]
    for card in filter(compiles, chosen):
        rows.pop((card.name, ANY), None)
    process.started = Forks(process.started, [f"inspector.worker.{one}" for one in WORKER]).started
    for card, model in _rows_of(() if options.only_write else chosen, options.model or NAMES):
        done = rows.get((card.name, model))
        if done is None or options.again or options.column or not done.is_complete:
            _run_kept(card, model, rows, options)
    lines = [*table([*complete(rows)])]
    PAGE.write_text(with_table(PAGE.read_text("utf-8"), lines), "utf-8")


def _run_kept(card: BackendCard, model: str, rows: Results, options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if options.keep:
            folder = options.keep / f"{card.name}_{model}"
            folder.mkdir(parents=True)
        found = rows.get((card.name, model)) if options.column else None
        found = rows[card.name, model] = found or Cells(card.name, model)
        columns = options.column or COLUMNS
        for column, text in cells_of(Row(card, model, folder), options.seconds, columns):
            found.text[column] = text
            write_results(RESULTS, rows)
    sys.stderr.write(f"{card.name} {model}: {rows[card.name, model].text}\n")


if __name__ == "__main__":
    main()
