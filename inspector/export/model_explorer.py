"""Graphs in the JSON that Model Explorer opens.

Source: the public graph format of Model Explorer (graphs, nodes, namespaces, incomingEdges).
"""

from __future__ import annotations

from typing import Any

from inspector.files.session import Session
from inspector.graph.model_graph import ModelGraph, ModelNode, describe, graph_names, model_graph
from inspector.graph.source import user_frame
from schema.errors import FormatError, Issue, Severity


def model_explorer(
    session: Session, methods: tuple[str, ...]
) -> tuple[dict[str, Any], list[Issue]]:
    """Return every readable graph of the methods as one collection, and why others are not."""
    graphs: list[dict[str, Any]] = []
    issues: list[Issue] = []
    for method in methods:
        for name in graph_names(session, method):
            title = f"{method} {name}"
            try:
                graph = model_graph(session, method, name)
            except FormatError as error:
                issues.append(Issue(Severity.ERROR, title, str(error)))
                continue
            if graph is not None:
                graphs.append(explorer_graph(title, graph))
    return {"label": session.name, "graphs": graphs}, issues


def explorer_graph(title: str, graph: ModelGraph) -> dict[str, Any]:
    """Return one graph."""
    incoming: dict[int, list[dict[str, str]]] = {}
    for edge in graph.edges:
        maker = graph.nodes[edge.source]
        outputs = maker.node.outputs
        output = outputs.index(edge.value) if edge.value in outputs else 0
        position = len(incoming.setdefault(edge.target, []))
        incoming[edge.target].append(
            {
                "sourceNodeId": str(edge.source),
                "sourceNodeOutputId": str(output),
                "targetNodeInputId": str(position),
            }
        )
    nodes = [_node(node, incoming.get(node.id, [])) for node in graph.nodes]
    return {"id": title, "nodes": nodes}


def _node(node: ModelNode, incoming: list[dict[str, str]]) -> dict[str, Any]:
    attributes = {"name": node.name, "kind": node.node.kind.value}
    if node.backend:
        attributes["delegate"] = f"{node.backend} {node.delegate}"
    if node.node.debug_handle is not None:
        attributes["debug_handle"] = str(node.node.debug_handle)
    frame = user_frame(node.node.stack_trace)
    if frame is not None:
        attributes["source"] = frame.label
    for weight in node.weights:
        attributes[f"weight {weight.name}"] = weight.description
    for position, argument in enumerate(node.node.args):
        if not argument.values and argument.literal is not None:
            attributes[argument.name or f"argument {position}"] = str(argument.literal)
    outputs = [
        {
            "id": str(position),
            "attrs": [
                {"key": "tensor_shape", "value": describe(value)},
                {"key": "__tensor_tag", "value": value.name},
            ],
        }
        for position, value in enumerate(node.values)
    ]
    return {
        "id": str(node.id),
        "label": node.node.target,
        "namespace": "/".join(region.label.replace("/", "_") for region in node.regions),
        "attrs": [{"key": key, "value": value} for key, value in attributes.items()],
        "incomingEdges": incoming,
        "outputsMetadata": outputs,
    }
