"""The cells of one backend and one model, each by a command of ETScope.

A cell is ``yes``, a figure, or the sentence of the command that failed.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
import signal
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from inspector.cli.main import main as etscope
from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.toolchain.backend_cards import BackendCard
from inspector.toolchain.backend_python import interpreter_of
from schema.vendors.names import flow_vendor

HERE = Path(__file__).parent
MODELS = HERE / "backends_models.py"
KEPT, _KEPT_AS = HERE / "data/backends", {"int8": "m1_int8"}
COLUMNS = (
    *("own", "stock", "reasons", "open", "join", "run", "profile", "gap", "step", "bisect"),
    *("rules", "quantized"),
)
# how a backend is named for quantized programs
_OF_INTEGERS = {
    "coreml": "coreml:target=iOS17",
    "tosa": "tosa:spec=TOSA-1.0+INT",
    "vgf": "vgf:spec=TOSA-1.0+INT",
}
_INTEGERS_ALONE = ("ethos-u", "cortex-m", "nxp")  # a float model is quantized for them
_NEEDED = ("own", "run")
_NOT_COMPILED = "not compiled"
_SUMS = ("delegate overhead", "unattributed", "cost of tracing")
Words = tuple[str | Path, ...]
Cell = tuple[str, Callable[[], str]]


class CellError(Exception):
    """A command that failed; its sentence."""


@dataclass(frozen=True, slots=True)
class Row:
    """What the cells of a backend and a model are run with.

    Attributes:
        card: of the backend
        model: its name
        folder: for files
    """

    card: BackendCard
    model: str
    folder: Path

    @property
    def source(self) -> str:
        """Return the model as a source of compiles."""
        return f"{MODELS}:{self.model}"

    @property
    def own(self) -> Path:
        """Return the folder of the program, or of the one that its vendor's compiler made."""
        return self.folder / "own"

    def names(self, *, integers: bool = False) -> Words:
        """Return the options that name the backend."""
        whole = self.card.name in _INTEGERS_ALONE
        name = self.card.name
        if integers or whole or self.model == "int8":
            name = _OF_INTEGERS.get(name, name)
        how = self.card.name
        quantized = ("--quantize", how) if (whole or integers) and self.model != "int8" else ()
        if quantized and self.card.works.startswith("compile by our own"):
            quantized = ("--quantize", "static")
        return ("--partitioner", name, *quantized)

    def compiled(self, folder: str, *names: str | Path, stock: bool = False) -> str:
        """Return the sentence of a compile that failed, ``yes`` of one that did not."""
        where: Words = ("--toolchain", "executorch") if stock else ()
        if stock and (python := interpreter_of("", self.card.name)):
            where += ("--toolchain-python", python)
        words = ("compile", self.source, "-o", self.folder / folder, *names, *where)
        code, _, why = command(*words)
        return "yes" if not code else why


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
    return re.sub(r"(?<![^\s('\"])/(?:[^\s/]+/)+", "", text)


def cells_of(
    row: Row, seconds: int = 0, columns: Collection[str] = COLUMNS
) -> Iterator[tuple[str, str]]:
    """Yield column and text of each cell of a row.

    Args:
        row: backend, model and folder
        seconds: bound of a cell; 0 for none
        columns: that are wanted; the program and its run, which others need, are made anyway
    """
    wanted = {*columns, *_NEEDED}
    if compiles(row.card):
        yield from _bounded(("own", partial(row.compiled, "own", *row.names())), seconds)
        if "stock" in wanted:
            stock = partial(row.compiled, "stock", *row.names(), stock=True)
            yield from _bounded(("stock", stock), seconds)
        if not (row.own / "model.pte").is_file():
            yield from ((one, _NOT_COMPILED) for one in COLUMNS[2:])
            return
        for cell in (*_of_files(row), *_of_recompiles(row)):
            if cell[0] in wanted:
                yield from _bounded(cell, seconds)
        return
    why = row.card.missing or row.card.works
    kept = kept_payload(row)
    for cell in _of_files(row) if kept else ():
        yield from _bounded(cell, seconds)
    yield from ((one, why) for one in COLUMNS if not kept or one not in _CELLS)


def _bounded(cell: Cell, seconds: int) -> Iterator[tuple[str, str]]:
    """Yield a cell; one that takes longer is interrupted as by Ctrl-C, which ends its workers."""
    column, function = cell
    late: list[int] = []

    def stop(number: int, _frame: object) -> None:
        late.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        text = _told(function)
    except KeyboardInterrupt:
        text = ""
        if not late:
            raise
    finally:
        signal.alarm(0)
    yield column, f"longer than the bound of {seconds} s" if late else text


def compiles(card: BackendCard) -> bool:
    """Return whether a backend compiles here, in this interpreter or in an environment."""
    if not card.partitioner and flow_vendor(card.name) is None:
        return False
    return not card.missing


def kept_name(card: BackendCard, model: str) -> str:
    """Return the name of the files of a model among those that vendors' compilers made."""
    return f"{card.name.replace('-', '')}_{_KEPT_AS.get(model, model)}"


def kept_payload(row: Row) -> bool:
    """Return whether a vendor's compiler made the program elsewhere; it is then copied."""
    name = kept_name(row.card, row.model)
    if not (KEPT / f"{name}.pte").is_file():
        return False
    row.own.mkdir()
    for kind in ("pte", "etrecord"):
        if (KEPT / f"{name}.{kind}").is_file():
            shutil.copy(KEPT / f"{name}.{kind}", row.own / f"model.{kind}")
    return True


def _of_files(row: Row) -> Iterator[Cell]:
    session = load_session([row.own])
    yield from ((name, partial(cell, session, row.own)) for name, cell in _CELLS.items())


def _of_recompiles(row: Row) -> Iterator[Cell]:
    yield "rules", partial(_rules, row)
    yield "quantized", partial(_quantized, row)


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
    # methods that did not run are a list of nodes, without joins
    rows = [row for row in rows if row["operator"] not in _SUMS and "join" in row]
    inside = [row for row in rows if row["delegate"]]
    shown = inside or rows  # of a flow without delegates the instructions
    return f"{sum(row['join'] == 'exact' for row in shown)} of {len(shown)} exact"


def _run_files(own: Path) -> list[Path]:
    named = ("model.pte", "model.etrecord", "run/run.etdp", "run/values.etdp", "run/values.debug")
    return [path for name in named if (path := own / name).is_file()]


def _profile(_session: Session, own: Path) -> str:
    code, _, why = command("profile", *_run_files(own))
    return "yes" if not code else why


def _gap(_session: Session, own: Path) -> str:
    code, out, why = command("gap", *_run_files(own), "--format", "json")
    if code:
        return why
    rows = json.loads(out)["data"]["rows"]
    return f"{sum(row['compared'] for row in rows)} of {len(rows)} values compared"


def _bisect(_session: Session, own: Path) -> str:
    words = ("--bound", "output.max_abs<=1e-2", "-o", own / "bisect")
    code, _, why = command("bisect", own, *words)
    return "yes" if code in (0, 1) else why


def _step(_session: Session, own: Path) -> str:
    code, _, why = command("step", own)
    return "yes" if not code else why


def _rules(row: Row) -> str:
    rows = rows_of("verdicts", row.own)
    taken = [one["operator"] for one in rows if one["verdict"] == "delegated"]
    operator = next((one for one in taken if str(one).startswith("aten.")), "")
    if not operator:
        return "nothing is delegated that a rule could deny"
    why = row.compiled("ruled", *row.names(), "--deny-op", str(operator))
    return f"without {operator}" if why == "yes" else why


def _quantized(row: Row) -> str:
    if row.model == "int8":
        return "the model is quantized"
    if not row.card.quantizer:
        return "it has no quantizer"
    if row.card.name in _INTEGERS_ALONE:
        return "the row is of the quantized model"
    return row.compiled("quantized", *row.names(integers=True))


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
