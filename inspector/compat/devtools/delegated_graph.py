"""Graphs as strings with the delegates expanded in place, and the payloads of the delegates."""

from __future__ import annotations

from typing import Any

from inspector.compat.devtools.fx_nodes import Fx, is_lowered, lowered_graph, lowered_module
from schema.etrecord import LoweredModule, lowered_modules
from schema.graph import Argument, Graph, GraphNode, NodeKind

_INDENT = "  "
Payload = tuple[str, list[Any], bytes]


def format_delegated_graph(graph_module: object) -> str:
    """Return a lowered graph as a string, each delegate with its backend and its own graph.

    Args:
        graph_module: a torch.fx.GraphModule, or a schema.graph.Graph of an ETRecord

    Raises: TypeError for anything else
    """
    if isinstance(graph_module, Graph):
        return "graph():\n" + "".join(f"{line}\n" for line in _snapshot_lines(graph_module))
    return "graph():\n" + "".join(f"{line}\n" for line in _module_lines(_module(graph_module)))


def print_delegated_graph(graph_module: object) -> None:
    """Print the result of format_delegated_graph."""
    print(format_delegated_graph(graph_module))  # noqa: T201 - the documented output


def get_delegated_payload(graph_module: object) -> dict[str, Payload]:
    """Return (backend id, compile specs, processed bytes) of each delegate by its name.

    Args:
        graph_module: a torch.fx.GraphModule, or a schema.graph.Graph of an ETRecord

    Raises: TypeError for anything else
    """
    if isinstance(graph_module, Graph):
        modules = lowered_modules(graph_module).values()
        return {part.name: _payload(part, part.processed) for part in modules}
    module = _module(graph_module)
    found: dict[str, Payload] = {}
    for node in module.graph.nodes:
        if is_lowered(node):
            lowered = lowered_module(module, node)
            found[node.name] = _payload(lowered, lowered.processed_bytes)
    return found


def _module(given: Fx) -> Fx:
    if not hasattr(given, "graph"):
        found = type(given).__name__
        raise TypeError(f"expected a torch.fx.GraphModule or a recorded Graph, found {found}")
    return given


def _payload(lowered: Fx, processed: bytes) -> Payload:
    return lowered.backend_id, list(lowered.compile_specs), processed


def _module_lines(module: Fx) -> list[str]:
    lines: list[str] = []
    for node in module.graph.nodes:
        lines.append(f"{_INDENT}{node.format_node()}")
        if is_lowered(node):
            lowered = lowered_module(module, node)
            inner = [node.format_node() for node in lowered_graph(lowered).nodes]
            lines += _block(lowered.backend_id, inner)
    return lines


def _block(backend: str, inner: list[str]) -> list[str]:
    head = [f"{_INDENT * 2}backend_id: {backend}", f"{_INDENT * 2}lowered graph():"]
    return head + [f"{_INDENT * 3}{line}" for line in inner]


def _snapshot_lines(graph: Graph) -> list[str]:
    users = _users(graph)
    lines: list[str] = []
    for node in graph.nodes:
        if node.kind is NodeKind.DELEGATE:
            name = _lowered_name(node)
            lines.append(f"{_INDENT}%{name} : [num_users=1] = get_attr[target={name}]")
            lines += _snapshot_block(graph, node)
        lines.append(f"{_INDENT}{_line(node, users)}")
    return lines


def _lowered_name(node: GraphNode) -> str:
    lowered = node.attributes.get("lowered_module")
    return lowered.name if isinstance(lowered, LoweredModule) else "lowered_module"


def _snapshot_block(graph: Graph, node: GraphNode) -> list[str]:
    inner = graph.subgraphs.get(node.subgraphs[0]) if node.subgraphs else None
    backend = str(node.attributes.get("backend_id", "unknown"))
    if inner is None:
        return _block(backend, [])
    users = _users(inner)
    return _block(backend, [_line(each, users) for each in inner.nodes])


def _users(graph: Graph) -> dict[str, int]:
    """Return for each value how many nodes read it."""
    counts: dict[str, int] = {}
    for node in graph.nodes:
        for name in dict.fromkeys(node.inputs):
            counts[name] = counts.get(name, 0) + 1
    return counts


def _line(node: GraphNode, users: dict[str, int]) -> str:
    shown = [_argument(argument) for argument in node.args]
    if node.kind is NodeKind.DELEGATE:
        shown[:1] = [f"%{_lowered_name(node)}"]
    arguments = ", ".join(shown)
    if node.kind is NodeKind.OUTPUT:
        return f"return ({arguments})"
    count = sum(users.get(name, 0) for name in node.outputs)
    head = f"%{node.name} : [num_users={count}]"
    if node.kind is NodeKind.PLACEHOLDER:
        return f"{head} = placeholder[target={node.target}]"
    return f"{head} = call_function[target={node.target}](args = ({arguments}), kwargs = {{}})"


def _argument(argument: Argument) -> str:
    if not argument.values:
        return str(argument.literal)
    names = [f"%{name}" for name in argument.values]
    return names[0] if len(names) == 1 else f"[{', '.join(names)}]"
