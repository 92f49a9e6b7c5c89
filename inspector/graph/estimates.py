"""A vendor's estimates of the delegates of a method, joined to the recorded graph."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.files.session import Session
from inspector.join import record_maps
from inspector.join.node_index import nodes_by_handle
from schema.backends import backend_of, resolve
from schema.errors import FormatError
from schema.objects.identity_cache import identity_cache
from schema.payloads.estimates import (
    EstimateSummary,
    LayerEstimate,
    PayloadEstimate,
    TensorPlace,
)
from schema.program import instructions
from schema.program import model as m


@dataclass(frozen=True, slots=True)
class EstimatedLayer:
    """A layer with its origin.

    Attributes:
        estimate: the tool's
        nodes: operators of the graph that was compiled, the first and the last of those fused
        recorded: nodes of the recorded graph of these operators
    """

    estimate: LayerEstimate
    nodes: tuple[str, ...]
    recorded: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DelegateEstimate:
    """The estimates of the tool for a delegate.

    Attributes:
        delegate: index in the method's delegates
        summary: None if the record has none
        layers: in the order of the payload
        commands: name of each node of the payload, and its layer, None for one of no layer
        tensors: in the memories of the system
        issue: why files in the record could not be read, empty if they could
    """

    delegate: int
    summary: EstimateSummary | None = None
    layers: tuple[EstimatedLayer, ...] = ()
    commands: tuple[tuple[str, EstimatedLayer | None], ...] = ()
    tensors: tuple[TensorPlace, ...] = ()
    issue: str = ""


@identity_cache
def delegate_estimates(session: Session, method: str) -> tuple[DelegateEstimate, ...]:
    """Return the estimates in the record, one for each delegate that has some."""
    program, record = session.program, session.record
    if program is None or record is None or method not in session.methods:
        return ()
    plan = program.plan(method)
    found: list[DelegateEstimate] = []
    for index, delegate in enumerate(plan.delegates):
        reader = backend_of(delegate.id).estimates
        if not reader:
            continue
        try:
            data = program.delegate_data(delegate)
            made: PayloadEstimate | None = resolve(reader)(data, record.kept(data))
        except FormatError as error:
            found.append(DelegateEstimate(index, issue=str(error)))
            continue
        if made is not None:
            found.append(_joined(index, made, _recorded(session, method, plan, index)))
    return tuple(found)


def _joined(
    index: int, made: PayloadEstimate, recorded: dict[str, tuple[str, ...]]
) -> DelegateEstimate:
    layers = tuple(
        EstimatedLayer(
            one,
            nodes,
            tuple(dict.fromkeys(node for label in nodes for node in recorded.get(label, ()))),
        )
        for one, nodes in zip(made.layers, made.nodes, strict=True)
    )
    commands = tuple(
        (name, layers[place] if place is not None else None) for name, place in made.commands
    )
    return DelegateEstimate(index, made.summary, layers, commands, made.tensors)


def _recorded(
    session: Session, method: str, plan: m.ExecutionPlan, index: int
) -> dict[str, tuple[str, ...]]:
    """Return operator of a payload -> recorded nodes, by the map that the compile stored."""
    record = session.record
    edge = record_maps.edge_graph(record, method) if record is not None else None
    if record is None or edge is None:
        return {}
    by_handle, maps = nodes_by_handle(edge), record_maps.delegates(record, method)
    for number, (_, _, instruction) in enumerate(instructions(plan)):
        args = instruction.instr_args
        if isinstance(args, m.DelegateCall) and args.delegate_index == index and number in maps:
            return {
                name: tuple(node.name for one in handles for node in by_handle.get(one, ()))
                for name, handles in maps[number].handles.items()
            }
    return {}
