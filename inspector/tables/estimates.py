"""Estimates of a vendor's compiler: cycles of layers, use of memories, facts of a stream."""

from __future__ import annotations

from inspector.files.session import Session
from inspector.graph.estimates import DelegateEstimate, delegate_estimates
from inspector.graph.model_graph import COMPILED
from inspector.tables.query import QueryError
from inspector.tables.rows import RowField, row_table
from inspector.tables.selection import Selection, SelectionKind, Units
from inspector.tables.table import Table, Total
from inspector.units import NS_PER_S, Quantity, format_quantity, format_time
from schema.origins import ValueOrigin
from schema.payloads.estimates import MEMORY_NAMES

_LAYERS = (
    RowField("delegate", Quantity.COUNT),
    RowField("layer", mono=True),
    RowField("operator"),
    RowField("NPU operator"),
    RowField("runs on"),
    RowField("cycles", Quantity.COUNT, Total.SUM),
    RowField("of cycles", Quantity.SHARE, Total.SUM),
    RowField("time", Quantity.TIME, Total.SUM),
    RowField("NPU cycles", Quantity.COUNT, Total.SUM),
    *(RowField(f"{name} cycles", Quantity.COUNT, Total.SUM) for name in MEMORY_NAMES),
    RowField("staging", Quantity.SIZE),
    RowField("MACs", Quantity.COUNT, Total.SUM),
    RowField("MAC utilization", Quantity.SHARE),
    RowField("payload nodes", mono=True),
    RowField("nodes", mono=True),
    RowField("origin"),
)
_MEMORY = (
    RowField("delegate", Quantity.COUNT),
    RowField("memory"),
    RowField("used", Quantity.SIZE, Total.SUM),
    RowField("holds"),
    RowField("activations read", Quantity.SIZE, Total.SUM),
    RowField("activations written", Quantity.SIZE, Total.SUM),
    RowField("weights read", Quantity.SIZE, Total.SUM),
    RowField("weights written", Quantity.SIZE, Total.SUM),
    RowField("access cycles", Quantity.COUNT, Total.SUM),
    RowField("origin"),
)
_COMMANDS = (
    RowField("delegate", Quantity.COUNT),
    RowField("command", mono=True),
    RowField("layer", mono=True),
    RowField("payload nodes", mono=True),
    RowField("nodes", mono=True),
)
_TENSORS = (
    RowField("delegate", Quantity.COUNT),
    RowField("tensor", mono=True),
    RowField("memory"),
    RowField("usage"),
    RowField("dtype"),
    RowField("layout"),
    RowField("address", Quantity.ADDRESS),
    RowField("size", Quantity.SIZE),
    RowField("first", Quantity.COUNT),
    RowField("last", Quantity.COUNT),
    RowField("origin"),
)
_FACTS = (RowField("delegate", Quantity.COUNT), RowField("fact"), RowField("value"))
_ORIGIN = ValueOrigin.ESTIMATE.value


def layers(session: Session, method: str, units: Units) -> Table:
    """Return the layers of all command streams of a method, in their order.

    Raises: QueryError without estimates
    """
    rows: list[tuple[object, ...]] = []
    keys: list[Selection] = []
    for found in _found(session, method):
        clock = found.summary.clock if found.summary is not None else None
        total = sum(one.estimate.cycles or 0 for one in found.layers)
        for one in found.layers:
            made = one.estimate
            cycles = made.cycles
            rows.append(
                (
                    found.delegate,
                    made.name,
                    made.operator,
                    made.npu_operator,
                    made.target,
                    cycles,
                    cycles / total if cycles is not None and total else None,
                    cycles / clock * NS_PER_S if cycles is not None and clock else None,
                    made.npu_cycles,
                    *made.access_cycles,
                    made.staging_bytes,
                    made.macs,
                    made.utilization,
                    ", ".join(one.nodes),
                    ", ".join(one.recorded),
                    _ORIGIN,
                )
            )
            keys.append(_key(method, found.delegate, one.recorded))
    return row_table(_LAYERS, rows, "layers", keys=keys, units=units)


def memories(session: Session, method: str, units: Units) -> Table:
    """Return the memories of the target of each stream, as the vendor's compiler fills them.

    Raises: QueryError without estimates
    """
    rows = [
        (
            found.delegate,
            one.memory,
            one.used,
            one.holds,
            one.feature_map_read,
            one.feature_map_written,
            one.weights_read,
            one.weights_written,
            one.access_cycles,
            _ORIGIN,
        )
        for found in _found(session, method)
        if found.summary is not None
        for one in found.summary.memories
    ]
    return row_table(_MEMORY, rows, "memories", units=units)


def commands(session: Session, method: str, _units: Units) -> Table:
    """Return the commands of each stream with the layer and the nodes that they are part of.

    Raises: QueryError without estimates
    """
    found = [(one.delegate, *pair) for one in _found(session, method) for pair in one.commands]
    rows = [
        (
            delegate,
            name,
            layer.estimate.name if layer is not None else "",
            ", ".join(layer.nodes) if layer is not None else "",
            ", ".join(layer.recorded) if layer is not None else "",
        )
        for delegate, name, layer in found
    ]
    keys = [
        _key(method, delegate, layer.recorded if layer is not None else ())
        for delegate, _, layer in found
    ]
    return row_table(_COMMANDS, rows, "commands", keys=keys)


def tensors(session: Session, method: str, units: Units) -> Table:
    """Return the tensors in the memories of the NPU's system: place, size, time.

    Raises: QueryError without estimates
    """
    rows = [
        (
            found.delegate,
            one.name,
            one.memory,
            one.usage,
            one.dtype,
            one.layout,
            one.address,
            one.nbytes,
            one.first,
            one.last,
            _ORIGIN,
        )
        for found in _found(session, method)
        for one in found.tensors
    ]
    return row_table(_TENSORS, rows, "tensors", units=units)


def facts(session: Session, method: str, _units: Units) -> Table:
    """Return what the vendor's compiler assumes and estimates of each stream, one fact per row.

    Raises: QueryError without estimates
    """
    rows = [(one.delegate, *pair) for one in _found(session, method) for pair in _facts(one)]
    return row_table(_FACTS, rows, "facts")


def has_estimates(session: Session, method: str) -> bool:
    """Return whether the record has estimates of a method."""
    return bool(delegate_estimates(session, method))


def _found(session: Session, method: str) -> tuple[DelegateEstimate, ...]:
    found = delegate_estimates(session, method)
    if not found:
        raise QueryError(
            "estimates need a program for an NPU whose compiler makes them, and the record of its "
            "compile by ETScope, which keeps what the vendor's tools leave"
        )
    return found


def _facts(found: DelegateEstimate) -> list[tuple[str, str]]:
    summary = found.summary
    if summary is None:
        return [("issue", found.issue)] if found.issue else []
    facts = [
        ("accelerator", summary.accelerator),
        ("system", summary.system_config),
        ("memory mode", summary.memory_mode),
    ]
    if summary.clock is not None:
        facts.append(("clock", f"{summary.clock / 1e6:g} MHz"))
    if summary.cycles is not None:
        facts.append(
            ("cycles of an inference (estimate)", format_quantity(summary.cycles, Quantity.COUNT))
        )
    if summary.seconds is not None:
        facts.append(("time of an inference (estimate)", format_time(summary.seconds * NS_PER_S)))
    return [(name, value) for name, value in facts if value]


def _key(method: str, delegate: int, recorded: tuple[str, ...]) -> Selection:
    if len(recorded) == 1:
        return Selection(SelectionKind.NODE, method, COMPILED, recorded[0])
    return Selection(SelectionKind.DELEGATE, method, delegate=delegate)
