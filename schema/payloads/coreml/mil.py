"""A MIL program as graphs: functions, blocks, operations.

Source: coremltools mlmodel/format/MIL.proto, Model.proto (field numbers)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from schema.errors import FormatError
from schema.graph import Argument, Graph, GraphNode, GraphValue, NodeKind
from schema.payloads.coreml.types import MilType, MilValue, read_type, read_value
from schema.payloads.coreml.wire import Budget, fields, nested, number, text
from schema.payloads.names import unique

_ML_PROGRAM = 502
_KINDS = {  # other fields of Model.type
    200: "pipeline classifier",
    201: "pipeline regressor",
    202: "pipeline",
    303: "neural network regressor",
    403: "neural network classifier",
    500: "neural network",
}
_MAX_DEPTH = 32
_MAX_OPERATIONS = 150_000


@dataclass(slots=True)
class Program:
    """What was read from ``model.mlmodel``.

    Attributes:
        specification: version of the Core ML specification
        kind: ``ML program``, or what else the model is
        functions: graph by function name; nested blocks are subgraphs
        weights: (weight file, offset) by the name of the constant that refers to it
        opsets: opset by function name
    """

    specification: int = 0
    kind: str = "unknown"
    functions: dict[str, Graph] = field(default_factory=dict[str, Graph])
    weights: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    opsets: dict[str, str] = field(default_factory=dict[str, str])


def read_model(data: memoryview) -> Program:
    """Return the program of a ``model.mlmodel``.

    Raises: FormatError if the protobuf is damaged
    """
    budget = Budget()
    program = Program()
    for number_, value in fields(data, budget):
        if number_ == 1:
            program.specification = number(value)
        elif number_ == _ML_PROGRAM:
            program.kind = "ML program"
            _functions(nested(value), program, budget)
        elif number_ in _KINDS:
            program.kind = _KINDS[number_]
    return program


def _entries(message: memoryview, wanted: int, budget: Budget) -> Iterator[tuple[str, memoryview]]:
    """Yield the entries of a map field with nested messages as values."""
    for number_, value in fields(message, budget):
        if number_ != wanted:
            continue
        key, body = "", memoryview(b"")
        for inner, item in fields(nested(value), budget):
            if inner == 1:
                key = text(item)
            elif inner == 2:
                body = nested(item)
        yield key, body


def _functions(message: memoryview, program: Program, budget: Budget) -> None:
    for name, body in _entries(message, 2, budget):
        inputs: list[GraphValue] = []
        opset = ""
        for number_, value in fields(body, budget):
            if number_ == 1:
                inputs.append(_named_value(nested(value), budget))
            elif number_ == 2:
                opset = text(value)
        program.opsets[name] = opset
        blocks = dict(_entries(body, 3, budget))
        block = blocks.get(opset) or next(iter(blocks.values()), memoryview(b""))
        reader = _BlockReader(program.weights, budget)
        graph = reader.block(block, name, {value.name: value for value in inputs}, 0)
        program.functions[name] = Graph(
            name,
            graph.nodes,
            graph.values,
            tuple(value.name for value in inputs),
            graph.outputs,
            reader.nested,
            MappingProxyType({"opset": opset}),
        )


def _named_value(message: memoryview, budget: Budget) -> GraphValue:
    name, kind = "", MilType("other")
    for number_, value in fields(message, budget):
        if number_ == 1:
            name = text(value)
        elif number_ == 2:
            kind = read_type(nested(value), budget)
    return GraphValue(name, kind.tensor, kind.kind)


class _Scope(Mapping[str, GraphValue]):
    """The values of a block seen from one inside it; nothing is copied."""

    def __init__(self, inner: Mapping[str, GraphValue], outer: Mapping[str, GraphValue]) -> None:
        self._inner = inner
        self._outer = outer

    def __getitem__(self, name: str) -> GraphValue:
        return self._inner[name] if name in self._inner else self._outer[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._inner
        yield from self._outer

    def __len__(self) -> int:
        return len(self._inner) + len(self._outer)


class _BlockReader:
    """Reads the blocks of one function; nested ones are collected by name."""

    def __init__(self, weights: dict[str, tuple[str, int]], budget: Budget) -> None:
        self.nested: dict[str, Graph] = {}
        self._weights = weights
        self._budget = budget
        self._names: set[str] = set()
        self._count = 0

    def block(
        self, message: memoryview, name: str, outer: Mapping[str, GraphValue], depth: int
    ) -> Graph:
        if depth > _MAX_DEPTH:
            raise FormatError(f"blocks nested at most {_MAX_DEPTH} deep", "deeper nesting")
        values: dict[str, GraphValue] = dict(outer) if depth == 0 else {}
        nodes: list[GraphNode] = []
        inputs: list[str] = []
        outputs: list[str] = []
        for number_, value in fields(message, self._budget):
            if number_ == 1:
                made = _named_value(nested(value), self._budget)
                inputs.append(made.name)
                values[made.name] = made
            elif number_ == 2:
                outputs.append(text(value))
            elif number_ == 3:
                nodes.append(self._operation(nested(value), values, outer, depth))
        for node in nodes:
            for used in node.inputs:  # of the enclosing block, or defined nowhere
                values.setdefault(used, outer.get(used) or GraphValue(used, kind="other"))
        for used in outputs:
            values.setdefault(used, outer.get(used) or GraphValue(used, kind="other"))
        return Graph(name, tuple(nodes), values, tuple(inputs), tuple(outputs))

    def _operation(
        self,
        message: memoryview,
        values: dict[str, GraphValue],
        outer: Mapping[str, GraphValue],
        depth: int,
    ) -> GraphNode:
        kind, outputs, blocks = "", list[GraphValue](), list[memoryview]()
        for number_, value in fields(message, self._budget):
            if number_ == 1:
                kind = text(value)
            elif number_ == 3:
                outputs.append(_named_value(nested(value), self._budget))
            elif number_ == 4:
                blocks.append(nested(value))
        arguments = tuple(
            self._argument(key, body) for key, body in _entries(message, 2, self._budget)
        )
        facts = self._attributes(message)
        stored = facts.pop("val", None)
        for made in outputs:
            values[made.name] = self._constant(made, stored)
        index = self._count
        self._count += 1
        if index >= _MAX_OPERATIONS:
            raise FormatError(f"at most {_MAX_OPERATIONS} operations", "more", field="mlProgram")
        name = outputs[0].name if outputs else f"{kind}_{index}"
        inner = self._blocks(blocks, name, _Scope(values, outer), depth)
        return GraphNode(
            unique(f"{name}:{kind}", index, self._names),
            NodeKind.GET_ATTR if kind == "const" else NodeKind.CONTROL if blocks else NodeKind.CALL,
            kind,
            arguments,
            tuple(made.name for made in outputs),
            attributes=MappingProxyType({key: item.literal for key, item in facts.items()}),
            subgraphs=inner,
        )

    def _blocks(
        self, blocks: list[memoryview], owner: str, outer: Mapping[str, GraphValue], depth: int
    ) -> tuple[str, ...]:
        names = tuple(f"{owner}/{index}" for index in range(len(blocks)))
        for name, message in zip(names, blocks, strict=True):
            self.nested[name] = self.block(message, name, outer, depth + 1)
        return names

    def _argument(self, key: str, message: memoryview) -> Argument:
        names: list[str] = []
        literals: list[object] = []
        for number_, value in fields(message, self._budget):
            if number_ != 1:
                continue
            for inner, item in fields(nested(value), self._budget):
                if inner == 1:
                    names.append(text(item))
                elif inner == 2:
                    literals.append(read_value(nested(item), self._budget).literal)
        literal = literals[0] if len(literals) == 1 else tuple(literals) or None
        return Argument(key, tuple(names), literal)

    def _attributes(self, message: memoryview) -> dict[str, MilValue]:
        return {
            key: read_value(body, self._budget) for key, body in _entries(message, 5, self._budget)
        }

    def _constant(self, value: GraphValue, stored: MilValue | None) -> GraphValue:
        if stored is None:
            return value
        if stored.file:
            self._weights[value.name] = (stored.file, stored.offset)
            return GraphValue(value.name, value.tensor, value.kind, constant=value.name)
        return GraphValue(value.name, value.tensor, value.kind, stored.literal)
