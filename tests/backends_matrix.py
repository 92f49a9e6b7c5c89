"""Backends by what works: ``python -m tests.backends_matrix`` runs each cell as a command.

Rows are backends and models, columns are compile by both toolchains, reasons, open, join, run,
profile, gap, step, bisect, rules, quantized. A cell is ``yes``, a figure, or the sentence of the
command that failed. The table is written into docs/backends.md between its marks.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from inspector.cli.main import main as etscope
from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.toolchain.backend_cards import BackendCard, backend_cards
from schema.vendors.names import flow_vendor

HERE = Path(__file__).parent
MODELS = HERE / "backends_models.py"
NAMES = ("m1", "m2", "mobilenet", "resnet", "gru", "transformer", "int8", "methods")
PAGE = HERE.parent / "docs/backends.md"
RESULTS, ANY = HERE / "data/backends_matrix.json", "any"
BEGIN, END = "<!-- matrix -->", "<!-- end of the matrix -->"
COLUMNS = (
    *("own", "stock", "reasons", "open", "join", "run", "profile", "gap", "step", "bisect"),
    *("rules", "quantized"),
)
KEPT, _KEPT_AS = HERE / "data/backends", {"int8": "m1_int8"}
_OF_INTEGERS = {"coreml": "coreml:target=iOS17"}  # how a backend is named for quantized programs
_LONGEST = 110  # characters of a cell
_NOT_COMPILED = "not compiled"


_SUMS = ("delegate overhead", "unattributed", "cost of tracing")


class CellError(Exception):
    """A command that failed; its sentence."""


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


def command(*words: str | Path) -> tuple[int, str, str]:
    """Return exit code, output and the last sentence of a command."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = etscope([str(word) for word in words])
    told = [line for line in err.getvalue().splitlines() if line.startswith("etscope: ")]
    sentence = told[-1].removeprefix("etscope: ") if told else f"code {code}"
    return code, out.getvalue(), without_folders(sentence)


def without_folders(text: str) -> str:
    """Return a sentence without the folders of this machine."""
    return re.sub(r"(?<!\S)/(?:[^\s/]+/)+", "", text)


def cells_of(card: BackendCard, model: str, folder: Path) -> Cells:
    """Run the cells of a backend and a model."""
    found = Cells(card.name, model)
    if not compiles(card):
        found.text = dict.fromkeys(COLUMNS, card.missing or card.works)
        own = kept_payload(card, model, folder)
        if own is not None:
            found.text |= _cells_of_files(own)
        return found
    source, own = f"{MODELS}:{model}", folder / "own"
    asked = _OF_INTEGERS.get(card.name, card.name) if model == "int8" else card.name
    names: list[str | Path] = ["--partitioner", asked]
    code, _, why = command("compile", source, "-o", own, *names)
    found.text["own"] = "yes" if not code else why
    code, _, why = command(
        *("compile", source, "-o", folder / "stock", *names, "--toolchain", "executorch")
    )
    found.text["stock"] = "yes" if not code else why
    if not (own / "model.pte").is_file():
        found.text.update(dict.fromkeys(COLUMNS[2:], _NOT_COMPILED))
        return found
    found.text |= _cells_of_files(own)
    found.text["rules"] = _told(lambda: _rules(card.name, source, folder))
    found.text["quantized"] = _told(lambda: _quantized(card, source, folder))
    return found


def compiles(card: BackendCard) -> bool:
    """Return whether a backend compiles here, by its partitioner or by a flow of passes."""
    return not card.missing and (card.partitioner or flow_vendor(card.name) is not None)


def kept_name(card: BackendCard, model: str) -> str:
    """Return the name of the files of a model among those that vendors' compilers made."""
    return f"{card.name.replace('-', '')}_{_KEPT_AS.get(model, model)}"


def kept_payload(card: BackendCard, model: str, folder: Path) -> Path | None:
    """Return a folder with the program that a vendor's compiler made elsewhere, None without it."""
    name = kept_name(card, model)
    if not (KEPT / f"{name}.pte").is_file():
        return None
    for kind in ("pte", "etrecord"):
        if (KEPT / f"{name}.{kind}").is_file():
            shutil.copy(KEPT / f"{name}.{kind}", folder / f"model.{kind}")
    return folder


def _cells_of_files(own: Path) -> dict[str, str]:
    """Return the cells of a program and its record."""
    session = load_session([own])
    return {name: _told(lambda cell=cell: cell(session, own)) for name, cell in _CELLS.items()}


def _told(cell: Callable[[], str]) -> str:
    try:
        return cell()
    except CellError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - the cell is its sentence
        return f"{type(error).__name__}: {error}"


def rows_of(name: str, *files: Path) -> list[dict[str, Any]]:
    """Return the rows of a table of files, each by the titles of its columns.

    Raises: CellError with the sentence of the command
    """
    code, out, why = command("table", name, *files, "--format", "json")
    if code:
        raise CellError(why)
    found: list[dict[str, Any]] = []
    for one in json.loads(out)["data"]["tables"]:
        titles = [column["id"] for column in one["columns"]]
        found += [dict(zip(titles, row["values"], strict=True)) for row in one["rows"]]
    return found


def _reasons(_session: Session, own: Path) -> str:
    rows = rows_of("verdicts", own)
    told = sum("without a reason" not in str(row["reason"]) for row in rows)
    return f"{told} of {len(rows)}" if rows else "the record has no verdicts"


def _open(session: Session, _own: Path) -> str:
    issues = session.all_issues()
    return "yes" if not issues else issues[0].message


def _run(_session: Session, own: Path) -> str:
    code, out, why = command(
        "run", own, "-o", own / "run", "--debug-level", "intermediate", "--format", "json"
    )
    if code:
        return why
    parts = json.loads(out)["data"].get("partitions", [])
    kinds = dict.fromkeys(str(one.get("origin") or one.get("source")) for one in parts)
    return ", ".join(kinds) or "instructions, by our kernels"


def _join(_session: Session, own: Path) -> str:
    """Return the share of events inside delegates that are joined exactly."""
    trace = own / "run/run.etdp"
    if not trace.is_file():
        return "no trace: it did not run"
    rows = rows_of("operators", own, trace)
    rows = [row for row in rows if row["operator"] not in _SUMS]
    inside = [row for row in rows if row["delegate"]]
    shown = inside or rows  # of a flow without delegates the instructions
    return f"{sum(row['join'] == 'exact' for row in shown)} of {len(shown)} exact"


def _run_files(own: Path) -> list[Path]:
    found = [own / "model.pte", own / "model.etrecord", own / "run/run.etdp", own / "run/run.debug"]
    return [path for path in found if path.is_file()]


def _profile(_session: Session, own: Path) -> str:
    code, _, why = command("profile", *_run_files(own))
    return "yes" if not code else why


def _gap(_session: Session, own: Path) -> str:
    code, out, why = command("gap", *_run_files(own), "--format", "json")
    if code:
        return why
    return f"{len(json.loads(out)['data'].get('rows', []))} values" if out else "yes"


def _bisect(_session: Session, own: Path) -> str:
    words = ("--bound", "output.max_abs<=1e-2", "-o", own / "bisect")
    code, _, why = command("bisect", own, *words)
    return "yes" if code in (0, 1) else why


def _step(_session: Session, own: Path) -> str:
    code, _, why = command("step", own / "model.pte")
    return "yes" if not code else why


def _rules(name: str, source: str, folder: Path) -> str:
    rows = rows_of("verdicts", folder / "own")
    taken = [row["operator"] for row in rows if row["verdict"] == "delegated"]
    operator = next((one for one in taken if str(one).startswith("aten.")), "")
    if not operator:
        return "nothing is delegated that a rule could deny"
    words = ("compile", source, "-o", folder / "ruled", "--partitioner", name)
    code, _, why = command(*words, "--deny-op", str(operator))
    return f"without {operator}" if not code else why


def _quantized(card: BackendCard, source: str, folder: Path) -> str:
    if source.endswith(":int8"):
        return "the model is quantized"
    if not card.quantizer:
        return "it has no quantizer"
    how = "static" if card.works.startswith("compile by our own") else card.name
    asked = _OF_INTEGERS.get(card.name, card.name)
    words = ("compile", source, "-o", folder / "quantized", "--partitioner", asked)
    code, _, why = command(*words, "--quantize", how)
    return "yes" if not code else why


_CELLS: Mapping[str, Callable[[Session, Path], str]] = {
    "reasons": _reasons,
    "open": _open,
    "run": _run,
    "join": _join,
    "profile": _profile,
    "gap": _gap,
    "step": _step,
    "bisect": _bisect,
}


def table(rows: Sequence[Cells]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"| backend | model | {' | '.join(COLUMNS)} |"
    yield "|---" * (len(COLUMNS) + 2) + "|"
    for one in rows:
        cells = (_short(one.text.get(column, "")) for column in COLUMNS)
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


def read_results(path: Path) -> dict[tuple[str, str], Cells]:
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


def _run_row(card: BackendCard, model: str, rows: dict[tuple[str, str], Cells]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows[card.name, model] = cells_of(card, model, Path(folder))
    write_results(RESULTS, rows)
    sys.stderr.write(f"{card.name} {model}: {rows[card.name, model].text}\n")


def main() -> None:
    """Run the matrix, or the chosen part of it; results are kept, so that it may be in parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", action="append", default=[], help="default: all")
    parser.add_argument("--model", action="append", default=[], choices=NAMES, help="default: all")
    parser.add_argument("--only-write", action="store_true", help="run nothing")
    options = parser.parse_args()
    rows = read_results(RESULTS)
    chosen = [one for one in backend_cards() if not options.backend or one.name in options.backend]
    for card in () if options.only_write else chosen:
        rows.pop((card.name, ANY), None)
        for model in options.model or NAMES:
            if not compiles(card) and not (KEPT / f"{kept_name(card, model)}.pte").is_file():
                continue
            _run_row(card, model, rows)
        if not compiles(card):
            _run_row(card, ANY, rows)
    lines = [*table([*complete(rows)])]
    PAGE.write_text(with_table(PAGE.read_text("utf-8"), lines), "utf-8")


if __name__ == "__main__":
    main()
