"""The calls of a sequence or a generation as tables: times, spread and growth, state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from inspector.files.run_calls import GENERATION
from inspector.files.run_report import REPORT, RunReport, is_sequence, run_report
from inspector.files.session import Session
from inspector.tables.generation import (
    DECODE,
    SpeedRow,
    calls_table,
    growth,
    later_calls,
    speed_table,
    spread_rows,
)
from inspector.tables.memory import memory_plan
from inspector.tables.query import QueryError
from inspector.tables.rows import RowField, row_table
from inspector.tables.runs import described
from inspector.tables.selection import AUTOMATIC, Units
from inspector.tables.table import Table
from inspector.units import NS_PER_MS, Quantity
from schema.errors import FormatError
from schema.objects.codec import read_json

_LARGEST = 1 << 28  # bytes of a report
_PREFILL, _FIRST = "prefill", "first"


def sequence_table(report: Mapping[str, Any], units: Units = AUTOMATIC) -> Table:
    """Return one row per call of a sequence: its inputs, its time, what it did to the state.

    Calls of several methods name theirs.

    Units: times in ns, sizes in bytes
    """
    calls: Sequence[Mapping[str, Any]] = report.get("calls") or ()
    several = len(methods_of(report)) > 1
    rows = [
        (
            one["call"],
            *([one.get("method")] if several else []),
            ", ".join(map(described, one["inputs"])),
            kind["kind"],
            kind["position"],
            one["ms"] * NS_PER_MS,
            *_state_bytes(one),
        )
        for one, kind in zip(calls, sequence_calls(report), strict=True)
    ]
    fields = (
        RowField("call", Quantity.PLAIN),
        *([RowField("method", mono=True)] if several else []),
        RowField("inputs", mono=True),
        RowField("kind"),
        RowField("position", Quantity.PLAIN),
        RowField("time", Quantity.TIME),
        RowField("state changed", Quantity.SIZE, missing=""),
        RowField("state used", Quantity.SIZE, missing=""),
    )
    return row_table(fields, rows, "calls", keys=[one["call"] for one in calls], units=units)


def methods_of(report: Mapping[str, Any]) -> list[str]:
    """Return the methods that ran, in the order of their first calls."""
    own = report.get("method", "")
    calls: Sequence[Mapping[str, Any]] = report.get("calls") or ()
    return list(dict.fromkeys(one.get("method") or own for one in calls)) or [own]


def _state_bytes(call: Mapping[str, Any]) -> tuple[int | None, int | None]:
    state: Sequence[Mapping[str, Any]] = call.get("state") or ()
    if not state:
        return None, None
    return sum(one["changed"] for one in state), sum(one["used"] for one in state)


def sequence_calls(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the calls of a sequence as those of a generation: kind, position, tokens, time.

    The position of inputs that are not tokens is the number of the call.
    """
    found: list[dict[str, Any]] = []
    position = 0
    for place, one in enumerate(report.get("calls") or ()):
        tokens: int | None = one.get("tokens")
        first = not place or (tokens or 1) > 1
        kind = (_FIRST if tokens is None else _PREFILL) if first else DECODE
        found.append({"kind": kind, "position": position, "tokens": tokens or 1, "ms": one["ms"]})
        position += tokens or 1
    return found


def sequence_speed(report: Mapping[str, Any], units: Units = AUTOMATIC) -> Table:
    """Return the times of a sequence: first calls, later ones with their spread, their growth."""
    calls = sequence_calls(report)
    with_tokens = any(one.get("tokens") is not None for one in report.get("calls") or ())
    first = [one for one in calls if one["kind"] != DECODE]
    spent = sum(one["ms"] for one in first)
    if with_tokens:
        adapted = {
            "load_ms": report["load_ms"] + report["init_ms"],
            "prompt_tokens": sum(one["tokens"] for one in first),
            "prefill_ms": spent,
            "first_token_ms": spent,
            "calls": calls,
        }
        return speed_table(adapted, units)
    rows: list[SpeedRow] = [
        ("load", None, (report["load_ms"] + report["init_ms"]) * NS_PER_MS, None)
    ]
    methods = methods_of(report)
    if len(methods) == 1:
        rows += _speed_rows(calls)
    else:  # an encoder takes many times as long as a joiner: a median over both says nothing
        for name in methods:
            for what, count, spent, rate in _speed_rows(_of(report, name)):
                rows.append((f"{name}: {what}", count, spent, rate))
    fields = (
        RowField("what"),
        RowField("calls", Quantity.PLAIN, missing=""),
        RowField("time", Quantity.TIME),
        RowField("calls/s", Quantity.PLAIN, missing=""),
    )
    return row_table(fields, rows, "times", units=units)


def _of(report: Mapping[str, Any], method: str) -> list[dict[str, Any]]:
    """Return the calls of one of several methods, as if they were all."""
    own = report.get("method", "")
    calls = [one for one in report["calls"] if (one.get("method") or own) == method]
    return sequence_calls({"calls": calls})


def _speed_rows(calls: Sequence[Mapping[str, Any]]) -> list[SpeedRow]:
    """Return the rows of the calls of a method: the first one, later ones, their growth."""
    first = [one for one in calls if one["kind"] != DECODE]
    rows: list[SpeedRow] = []
    if first:
        rows.append(("first call", len(first), sum(o["ms"] for o in first) * NS_PER_MS, None))
    rows += spread_rows(calls, "calls")
    if len(later_calls(calls)) > 1:
        rows.append(("growth per call", None, growth(calls) * NS_PER_MS, None))
    return rows


def state_table(report: Mapping[str, Any], units: Units = AUTOMATIC) -> Table:
    """Return one row per call and state tensor: how much of it the call changed and is in use."""
    tensors: Sequence[Mapping[str, Any]] = report.get("state") or ()
    before = [0] * len(tensors)
    rows: list[tuple[Any, ...]] = []
    for call in report.get("calls") or ():
        for at, (tensor, change) in enumerate(zip(tensors, call.get("state") or (), strict=False)):
            rows.append(
                (
                    call["call"],
                    tensor["name"],
                    _region_text(tensor["shape"], change.get("region") or ()),
                    before[at],
                    change["changed"],
                    change["used"],
                    change["largest"],
                    tensor["bytes"],
                    f"{tensor['dtype']} {tensor['shape']}",
                )
            )
            before[at] = change["used"]
    fields = (
        RowField("call", Quantity.PLAIN),
        RowField("state", mono=True),
        RowField("where", mono=True, missing=""),
        RowField("used before", Quantity.SIZE),
        RowField("changed", Quantity.SIZE),
        RowField("used", Quantity.SIZE),
        RowField("largest change", Quantity.PLAIN, missing="not finite"),
        RowField("size", Quantity.SIZE),
        RowField("type", mono=True),
    )
    return row_table(fields, rows, "changes", keys=[(row[0], row[1]) for row in rows], units=units)


def _region_text(shape: Sequence[int], region: Sequence[Sequence[int]]) -> str | None:
    """Return a region as an index: ``[:, 5, :, :]``; None where it is not known."""
    if len(region) != len(shape) or not region:
        return None
    parts = [
        ":" if [begin, end] == [0, size] else f"{begin}" if end == begin + 1 else f"{begin}:{end}"
        for size, (begin, end) in zip(shape, region, strict=True)
    ]
    return f"[{', '.join(parts)}]"


def memory_calls(session: Session, method: str, units: Units) -> Table:
    """Return one row per call of a sequence: what it used and changed of the state's memory.

    What a program plans is the same at each call; its state fills up.

    Raises: QueryError without a sequence of the method, or where its state was not observed
    """
    report = sequence_report(session, method)
    if report is None:
        of = f" of {method}" if method else ""
        raise QueryError(f"the state over calls needs the trace of a sequence{of}")
    capacity = sum(one.bytes for one in report.state)
    calls = [one for one in report.calls if one.state]
    if not calls:
        raise QueryError(f"no state of {method} was observed between its calls")
    plan = memory_plan(session, method)
    planned = None if plan is None else plan.planned_bytes
    rows = [
        (
            one.call,
            one.used_bytes,
            one.used_bytes / (capacity or 1),
            one.changed_bytes,
            capacity,
            planned,
        )
        for one in calls
    ]
    fields = (
        RowField("call", Quantity.PLAIN),
        RowField("state in use", Quantity.SIZE),
        RowField("of state", Quantity.SHARE),
        RowField("changed", Quantity.SIZE),
        RowField("state", Quantity.SIZE),
        RowField("planned", Quantity.SIZE, missing="no program"),
    )
    return row_table(fields, rows, "calls", keys=[one.call for one in calls], units=units)


def sequence_report(session: Session, method: str) -> RunReport | None:
    """Return the report of the first sequence of a method in a session, None without one.

    Args:
        session: may have no program, and then no method
        method: empty for any
    """
    reports = (run_report(dump) for dump in session.timed_dumps if is_sequence(dump))
    known = (one for one in reports if one is not None)
    return next((one for one in known if not method or method in one.methods), None)


@dataclass(frozen=True, slots=True, eq=False)
class CallReport:
    """The calls of a sequence or of a generated text.

    Attributes:
        path: of the report
        content: the report
        generated: whether it is of a text
    """

    path: Path
    content: Mapping[str, Any]
    generated: bool

    @property
    def calls(self) -> Sequence[Mapping[str, Any]]:
        """Return kind, position, tokens and ms of each call."""
        return self.content["calls"] if self.generated else sequence_calls(self.content)

    @property
    def has_tokens(self) -> bool:
        """Return whether the inputs of calls are tokens."""
        given = self.content.get("calls") or ()
        return any(one.get("tokens") is not None for one in given)

    def calls_table(self, units: Units = AUTOMATIC) -> Table:
        """Return a row per call."""
        return (_generation_calls if self.generated else sequence_table)(self.content, units)

    def times_table(self, units: Units = AUTOMATIC) -> Table:
        """Return the times: prompt, first token, later ones."""
        return (speed_table if self.generated else sequence_speed)(self.content, units)

    def state_table(self, units: Units = AUTOMATIC) -> Table:
        """Return what each call did to each state tensor."""
        return state_table(self.content, units)


_T = TypeVar("_T")


def read_calls(folder: Path, make: Callable[[CallReport], _T]) -> _T:
    """Return a table of the report in a folder, or of a report.

    Raises: FormatError for a folder without a report, and for one with other content; OSError
    """
    path = folder
    if folder.is_dir():
        generated = folder / GENERATION
        path = generated if generated.is_file() else folder / REPORT
    content = read_json(path, "the report of a run", _LARGEST)
    try:
        return make(CallReport(path, content, _is_generation(content)))
    except (AttributeError, ArithmeticError, ValueError, KeyError, TypeError) as error:
        raise FormatError("the report of a run", repr(error), file=str(path)) from error


def _is_generation(content: Mapping[str, Any]) -> bool:
    return "prefill_ms" in content


def calls(folder: Path, units: Units) -> Table:
    """Return the calls of a sequence or a generation.

    Raises: FormatError for a folder without a report; OSError
    """
    return read_calls(folder, lambda report: report.calls_table(units))


def call_times(folder: Path, units: Units) -> Table:
    """Return the times of a sequence or a generation: prompt, first token, later ones.

    Raises: FormatError for a folder without a report; OSError
    """
    return read_calls(folder, lambda report: report.times_table(units))


def call_state(folder: Path, units: Units) -> Table:
    """Return what each call of a sequence did to each state tensor.

    Raises: FormatError for a folder without a report; OSError
    """
    return read_calls(folder, lambda report: report.state_table(units))


def _generation_calls(report: Mapping[str, Any], units: Units) -> Table:
    return calls_table(report["calls"], units)
