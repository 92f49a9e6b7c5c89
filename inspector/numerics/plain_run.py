"""Runs a recorded graph of plain operators as it was read, one kernel of torch after the other.

torch's own reader of programs is imported in 1.6 s and takes 40 ms for ten operators; the graph has
been read already, for the joins. What is more than plain operators on tensors goes the long way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from inspector.api.torch_bridge import load_torch
from schema.errors import FormatError
from schema.etrecord import ETRecord, TensorData
from schema.graph import Graph, GraphNode, NodeKind

if TYPE_CHECKING:  # torch is loaded when a graph is asked for
    from runtime.emulation.graph import GraphCall, Subgraph

_HELD = ("parameter", "buffer", "tensor_constant")
_BORDERS = (NodeKind.PLACEHOLDER, NodeKind.OUTPUT)


def plain_graph(record: ETRecord, member: str) -> Subgraph | None:
    """Return a recorded program ready to run, None if it is more than plain operators.

    Its results are not kept: it is run to look at what its operators make.

    Args:
        record: of the program
        member: name of the program
    """
    from runtime.emulation.graph import Subgraph
    from runtime.errors import ExecutionError

    try:
        program = record.program(member)
        graph = program.graph
        if program.issues or graph.subgraphs or program.mutated:
            return None
        calls = tuple(_plain(node) for node in graph.nodes if node.kind not in _BORDERS)
        saved = {**record.state_dict(member), **record.constants(member)}
        held = _held(graph, saved)
    except (FormatError, ExecutionError, _NotPlainError):
        return None
    inputs = [node.name for node in _placeholders(graph) if node.name not in held]
    return Subgraph(calls, tuple(inputs), (), held)


def plain_run(
    graph: Subgraph, inputs: Sequence[Any], made: Callable[[GraphNode, Any], None]
) -> bool:
    """Run a graph and return whether all of it could be run.

    Args:
        graph: of ``plain_graph``
        inputs: tensors and numbers
        made: receives the results of each operator
    """
    if len(inputs) != len(graph.inputs):
        return False
    try:
        with load_torch().no_grad():
            graph.run(inputs, made)
    except Exception:  # noqa: BLE001 - whatever a kernel raises; the long way says where
        return False
    return True


class _NotPlainError(Exception):
    """A node is more than an operator on tensors."""


def _plain(node: GraphNode) -> GraphCall:
    """Return the call of an operator that writes into nothing and whose results have one form."""
    from runtime.emulation.graph import bound

    call = bound(node)
    layout: Any = node.attributes.get("outputs", ())
    one_list = len(layout) == 1 and isinstance(layout[0], tuple)
    schema = getattr(call.run, "_schema", None)
    if schema is None or schema.is_mutable:
        raise _NotPlainError
    if not one_list and not all(isinstance(name, str) for name in layout):
        raise _NotPlainError
    return call


def _held(graph: Graph, saved: Mapping[str, TensorData]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for node in _placeholders(graph):
        kind = node.attributes.get("input_kind")
        if kind in _HELD:
            entry = saved.get(str(node.attributes.get("target")))
            if entry is None:
                raise _NotPlainError
            found[node.name] = _own(entry)
        elif kind != "user_input":
            raise _NotPlainError
    return found


def _own(saved: TensorData) -> Any:  # noqa: ANN401 - a tensor
    """Return a saved tensor as torch loads it.

    Where it lies, and whether it is to be learned, decides which kernel runs: last bits differ.
    """
    from runtime.emulation.graph import tensor_of

    copied = tensor_of(saved).clone()
    if saved.is_parameter:
        return load_torch().nn.Parameter(copied, requires_grad=saved.requires_grad)
    return copied.requires_grad_(saved.requires_grad)


def _placeholders(graph: Graph) -> list[GraphNode]:
    return [node for node in graph.nodes if node.kind is NodeKind.PLACEHOLDER]
