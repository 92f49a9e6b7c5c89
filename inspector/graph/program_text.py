"""A recorded graph, or the instructions of a method, as typed text in the form printed by torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from inspector.files.session import Session
from inspector.graph.plan_graph import plan_graph
from inspector.graph.source import user_frame
from schema.dtypes.scalar_type import scalar_type
from schema.graph import Argument, Graph, GraphNode, GraphValue, NodeKind

INSTRUCTIONS = "instructions"
_INDENT = "    "
Ranges = Mapping[str, tuple[int | None, int | None]]


@dataclass(frozen=True, slots=True, eq=False)
class ProgramText:
    """The lines of a program.

    Attributes:
        lines: as they are printed
        line_of: first line (1-based) of each node, by its name with those of the graphs around it
    """

    lines: tuple[str, ...]
    line_of: Mapping[str, int] = field(default_factory=dict[str, int])

    def node_at(self, line: int) -> str | None:
        """Return the node printed at a 1-based line, None for other lines."""
        return next((name for name, at in self.line_of.items() if at == line), None)


def text_names(session: Session, method: str) -> tuple[str, ...]:
    """Return the printable forms of a method: recorded programs, then the instructions."""
    record = session.record
    names = record.program_names if record is not None else ()
    found = [name for name in names if "/" not in name or name.rsplit("/", 1)[1] == method]
    plans = session.program.plans if session.program is not None else ()
    if any(plan.name == method for plan in plans):
        found.append(INSTRUCTIONS)
    return tuple(found)


def program_text(session: Session, method: str, name: str) -> ProgramText:
    """Return the text of one of ``text_names``.

    Raises: KeyError for an unknown name; FormatError if the record cannot be read
    """
    if name not in text_names(session, method):
        raise KeyError(name)
    if name == INSTRUCTIONS:
        assert session.program is not None
        return graph_text(plan_graph(session.program, method), {})
    assert session.record is not None
    program = session.record.program(name)
    return graph_text(program.graph, program.range_constraints)


def graph_text(graph: Graph, ranges: Ranges) -> ProgramText:
    """Return the text of a graph with the ranges of its symbols."""
    printer = _Printer()
    printer.function(graph, "forward", 0, "")
    printer.signature(graph)
    if ranges:
        words = (f"{symbol}: {_range(*bounds)}" for symbol, bounds in ranges.items())
        printer.lines.append(f"Range constraints: {{{', '.join(words)}}}")
    return ProgramText(tuple(printer.lines), printer.line_of)


def _range(low: int | None, high: int | None) -> str:
    return f"[{'-∞' if low is None else low}, {'∞' if high is None else high}]"


class _Printer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.line_of: dict[str, int] = {}

    def function(self, graph: Graph, name: str, depth: int, prefix: str) -> None:
        """Print a graph as a function, and the graphs inside of it behind its nodes."""
        indent = _INDENT * depth
        inputs = [node for node in graph.nodes if node.kind is NodeKind.PLACEHOLDER]
        self.lines.append(f"{indent}def {name}(")
        for node in inputs:
            self.line_of[prefix + node.name] = len(self.lines) + 1
            self.lines.append(f"{indent}{_INDENT}{_declared(node, graph)},")
        for value in graph.inputs if not inputs else ():  # a payload has no placeholders
            self.lines.append(f'{indent}{_INDENT}{value}: "{_type(graph.values.get(value))}",')
        self.lines.append(f"{indent}):")
        last = ""
        for node in graph.nodes:
            if node.kind is not NodeKind.PLACEHOLDER:
                last = self._node(node, graph, depth + 1, prefix, last)
        if graph.outputs and not any(node.kind is NodeKind.OUTPUT for node in graph.nodes):
            self.lines.append(f"{indent}{_INDENT}return ({', '.join(graph.outputs)},)")

    def _node(self, node: GraphNode, graph: Graph, depth: int, prefix: str, last: str) -> str:
        indent = _INDENT * depth
        frame = user_frame(node.stack_trace)
        place = f"{frame.label} in {frame.function}" if frame is not None else last
        if frame is not None and place != last:
            code = f", code: {frame.code}" if frame.code else ""
            self.lines.append(f"{indent}# File: {place}{code}")
        self.line_of[prefix + node.name] = len(self.lines) + 1
        arguments = ", ".join(_argument(one) for one in node.args)
        if node.kind is NodeKind.OUTPUT:
            self.lines.append(f"{indent}return ({arguments}{',' if len(node.args) == 1 else ''})")
            return place
        handle = f"  # debug_handle {node.debug_handle}" if node.debug_handle is not None else ""
        results = f"{_declared(node, graph)} = " if node.outputs else ""
        self.lines.append(f"{indent}{results}{node.target}({arguments}){handle}")
        for inner in node.subgraphs:
            if inner in graph.subgraphs:
                inside = f"{prefix}{node.name}/{inner}/"
                self.function(graph.subgraphs[inner], inner, depth + 1, inside)
        return place

    def signature(self, graph: Graph) -> None:
        """Print the roles of inputs and outputs, if recorded."""
        inputs = [node for node in graph.nodes if node.kind is NodeKind.PLACEHOLDER]
        roles = [(node.name, _text(node, "input_kind"), _text(node, "target")) for node in inputs]
        for node in graph.nodes:
            kinds, targets = (
                node.attributes.get("output_kinds"),
                node.attributes.get("output_targets"),
            )
            if node.kind is NodeKind.OUTPUT and kinds:
                names = [_argument(one) for one in node.args]
                aims = _strings(targets) or [""] * len(names)
                roles += list(zip(names, _strings(kinds), aims, strict=False))
        if not any(kind for _, kind, _ in roles):
            return
        self.lines += ["", "Graph signature:"]
        for name, kind, target in roles:
            aim = f" target={target!r}" if target and target != name else ""
            self.lines.append(f"{_INDENT}{name}: {kind.upper()}{aim}")
        self.lines.append("")


def _strings(found: object) -> list[str]:
    return list(map(str, cast("tuple[object, ...]", found))) if isinstance(found, tuple) else []


def _text(node: GraphNode, name: str) -> str:
    found = node.attributes.get(name)
    return found if isinstance(found, str) else ""


def _declared(node: GraphNode, graph: Graph) -> str:
    return ", ".join(f'{name}: "{_type(graph.values.get(name))}"' for name in node.outputs)


def _type(value: GraphValue | None) -> str:
    if value is None:
        return "unknown"
    tensor = value.tensor
    if tensor is None:
        return value.kind
    known = tensor.scalar_type >= 0 and not tensor.type_name
    short = scalar_type(tensor.scalar_type).short if known else tensor.dtype
    return f"{short}[{', '.join(map(str, tensor.sizes))}]"


def _argument(one: Argument) -> str:
    if not one.values:
        return f"{one.name} = {one.literal!r}" if one.name else repr(one.literal)
    if isinstance(one.literal, str):  # a list of values and constants, as the reader shows it
        return one.literal
    return one.values[0] if len(one.values) == 1 else f"[{', '.join(one.values)}]"
