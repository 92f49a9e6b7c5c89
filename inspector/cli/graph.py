"""graph: nodes and edges of a graph, as text, JSON or a table."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from inspector.cli.answer import USAGE, Answer, CommandError, Shown, shown
from inspector.cli.graph_stages import add_stages, stages_answer
from inspector.cli.options import add_files, methods, needs, open_files
from inspector.files.session import Session
from inspector.graph.model_graph import (
    COMPILED,
    ModelGraph,
    ModelNode,
    describe,
    graph_names,
    model_graph,
)
from inspector.graph.program_text import program_text, text_names
from inspector.graph.source import user_frame
from inspector.tables.graph import graph_name_table, node_table
from schema.errors import Issue, Severity
from schema.objects.plural import plural


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_files(parser)
    parser.add_argument("--graph", default="", help="which graph, by default the first of --list")
    parser.add_argument(
        "--code", action="store_true", help="print the program as typed code, as torch prints one"
    )
    parser.add_argument("--list", action="store_true", help="list the available graphs")
    add_stages(parser)


def run(options: Namespace) -> Answer:
    """Return the graphs of every method."""
    session = open_files(options)
    if options.stages or options.stage is not None:
        return stages_answer(session, options)
    if options.code:
        return _code(session, options)
    names = {method: graph_names(session, method) for method in methods(session, options)}
    if options.list:
        return Answer({"graphs": names}, tables=(shown(graph_name_table(names)),))
    data: dict[str, Any] = {}
    tables: list[Shown] = []
    for method, found in names.items():
        name = options.graph or found[0]
        if name not in found:
            raise CommandError(
                f"unknown graph {name!r} of {method}; available: {', '.join(found)}", USAGE
            )
        graph = model_graph(session, method, name)
        if graph is not None:
            data[method] = graph_json(graph)
            title = f"{method}: {graph.source}, {plural(len(graph.nodes), 'node')}"
            tables.append(shown(node_table(method, graph), title))
    issues: list[Issue] = []
    if not data:
        sentence = needs("a graph", "a program or an ETRecord")
        issues.append(Issue(Severity.INFO, session.name, sentence))
    return Answer({"methods": data}, tables=tables, issues=issues)


def _code(session: Session, options: Namespace) -> Answer:
    """Return the code of one recorded graph, or of all, by method and name."""
    data: dict[str, dict[str, list[str]]] = {}
    lines: list[str] = []
    for method in methods(session, options):
        names = text_names(session, method)
        requested = names if options.graph in ("", COMPILED) else (options.graph,)
        for name in requested:
            if name not in names:
                raise CommandError(
                    f"unknown graph {name!r} of {method}; available: {', '.join(names)}", USAGE
                )
            code = program_text(session, method, name).lines
            data.setdefault(method, {})[name] = list(code)
            lines += [f"# {method}: {name}", *code, ""]
    return Answer({"code": data}, lines=lines)


def graph_json(graph: ModelGraph) -> dict[str, Any]:
    """Return the JSON of a graph."""
    return {
        "name": graph.name,
        "source": graph.source,
        "nodes": [node_json(node) for node in graph.nodes],
        "edges": [
            {
                "source": edge.source,
                "target": edge.target,
                "value": edge.value,
                "bytes": edge.nbytes,
            }
            for edge in graph.edges
        ],
    }


def node_json(node: ModelNode) -> dict[str, Any]:
    """Return the JSON of a node."""
    frame = user_frame(node.node.stack_trace)
    return {
        "id": node.id,
        "name": node.name,
        "kind": node.node.kind.value,
        "target": node.node.target,
        "debug_handle": node.node.debug_handle,
        "module": node.node.module_path,
        "delegate": node.delegate,
        "backend": node.backend or None,
        "instruction": node.instruction,
        "outputs": [{"name": value.name, "type": describe(value)} for value in node.values],
        "weights": [
            {"name": weight.name, "type": weight.description, "bytes": weight.nbytes}
            for weight in node.weights
        ],
        "source": frame.label if frame is not None else None,
        "regions": [region.label for region in node.regions],
    }
