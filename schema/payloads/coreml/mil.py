"""Converts a MIL program to graphs: functions, blocks, operations.

Source: coremltools mlmodel/format/MIL.proto (field numbers)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from schema.errors import FormatError
from schema.graph import Argument, Graph, GraphNode, GraphValue, NodeKind, TensorMeta
from schema.payloads.coreml.types import MilType, MilValue, read_type, read_value
from schema.payloads.coreml.wire import FieldBudget, fields, nested, text
from schema.payloads.names import unique

_MAX_DEPTH = 32
_INT64 = 4  # scalar type of the class that a classifier chooses
_MAX_OPERATIONS = 150_000


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a program.

    Attributes:
        graph: its operations; nested blocks are subgraphs
        opset: of the block that was read
        weights: by the name of the constant: (weight file, offset), or the bytes
    """

    graph: Graph
    opset: str
    weights: Mapping[str, tuple[str, int] | memoryview]


def read_program(message: memoryview, budget: FieldBudget) -> dict[str, Function]:
    """Return the functions of a MIL program by name.

    Raises: FormatError if the protobuf is damaged
    """
    return {name: _function(name, body, budget) for name, body in _entries(message, 2, budget)}


def _entries(
    message: memoryview, requested: int, budget: FieldBudget
) -> Iterator[tuple[str, memoryview]]:
    """Yield the entries of a map field with nested messages as values."""
    for number_, value in fields(message, budget):
        if number_ != requested:
            continue
        key, body = "", memoryview(b"")
        for inner, item in fields(nested(value), budget):
            if inner == 1:
                key = text(item)
            elif inner == 2:
                body = nested(item)
        yield key, body


def _function(name: str, body: memoryview, budget: FieldBudget) -> Function:
    inputs: list[GraphValue] = []
    states: list[str] = []
    opset = ""
    for number_, value in fields(body, budget):
        if number_ == 1:
            built, kind = _typed_value(nested(value), budget)
            inputs.append(built)
            states += [built.name] if kind.is_state else []
        elif number_ == 2:
            opset = text(value)
    blocks = dict(_entries(body, 3, budget))
    block = blocks.get(opset) or next(iter(blocks.values()), memoryview(b""))
    reader = _BlockReader(budget)
    graph = reader.block(block, name, {value.name: value for value in inputs}, 0)
    built = Graph(
        name,
        graph.nodes,
        graph.values,
        tuple(value.name for value in inputs),
        graph.outputs,
        reader.nested,
        MappingProxyType({"opset": opset, **({"states": tuple(states)} if states else {})}),
    )
    return Function(built, opset, reader.weights)


def _named_value(message: memoryview, budget: FieldBudget) -> GraphValue:
    return _typed_value(message, budget)[0]


def _typed_value(message: memoryview, budget: FieldBudget) -> tuple[GraphValue, MilType]:
    name, kind = "", MilType("other")
    for number_, value in fields(message, budget):
        if number_ == 1:
            name = text(value)
        elif number_ == 2:
            kind = read_type(nested(value), budget)
    return GraphValue(name, kind.tensor, kind.kind), kind


class _BlockScope(Mapping[str, GraphValue]):
    """The values visible in a block, those of enclosing blocks included; nothing is copied."""

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
    """Reads the blocks of one function; nested blocks are collected by name."""

    def __init__(self, budget: FieldBudget) -> None:
        self.nested: dict[str, Graph] = {}
        self.weights: dict[str, tuple[str, int] | memoryview] = {}
        self._budget = budget
        self._names: set[str] = set()
        self._constants: set[str] = set()
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
                built = _named_value(nested(value), self._budget)
                inputs.append(built.name)
                values[built.name] = built
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
        index = self._count
        self._count += 1
        if index >= _MAX_OPERATIONS:
            raise FormatError(f"at most {_MAX_OPERATIONS} operations", "more", field="mlProgram")
        name = outputs[0].name if outputs else f"{kind}_{index}"
        arguments = [
            self._argument(name, key, body, values)
            for key, body in _entries(message, 2, self._budget)
        ]
        facts: dict[str, object] = {}
        stored: MilValue | None = None
        for key, body in _entries(message, 5, self._budget):
            value = read_value(body, self._budget)
            if kind == "const" and key == "val":
                stored = value
            elif value.file or value.data is not None:  # the parameters of a compressed weight
                arguments.append(Argument(key, (self._stored(name, key, value, values),)))
            else:
                facts[key] = value.literal
        outputs = _classified(kind, outputs, arguments, values)
        for built in outputs:
            values[built.name] = self._constant(built, stored)
        inner = self._blocks(blocks, name, _BlockScope(values, outer), depth)
        return GraphNode(
            unique(f"{name}:{kind}", index, self._names),
            NodeKind.GET_ATTR if kind == "const" else NodeKind.CONTROL if blocks else NodeKind.CALL,
            kind,
            tuple(arguments),
            tuple(built.name for built in outputs),
            attributes=MappingProxyType(facts),
            subgraphs=inner,
        )

    def _blocks(
        self, blocks: list[memoryview], owner: str, outer: Mapping[str, GraphValue], depth: int
    ) -> tuple[str, ...]:
        names = tuple(
            unique(f"{owner}/{index}", self._count, self._names) for index in range(len(blocks))
        )
        for name, message in zip(names, blocks, strict=True):
            self.nested[name] = self.block(message, name, outer, depth + 1)
        return names

    def _argument(
        self, owner: str, key: str, message: memoryview, values: dict[str, GraphValue]
    ) -> Argument:
        names: list[str] = []
        literals: list[object] = []
        for number_, value in fields(message, self._budget):
            if number_ != 1:
                continue
            for inner, item in fields(nested(value), self._budget):
                if inner == 1:
                    names.append(text(item))
                elif inner == 2:
                    found = read_value(nested(item), self._budget)
                    if found.file or found.data is not None:
                        names.append(self._stored(owner, key, found, values))
                    else:
                        literals.append(found.literal)
        literal = literals[0] if len(literals) == 1 else tuple(literals) or None
        return Argument(key, tuple(names), literal)

    def _stored(self, owner: str, key: str, value: MilValue, values: dict[str, GraphValue]) -> str:
        """Return the name of an operand that is a constant, though no operation defines it."""
        name = unique(f"{owner}.{key}", len(self.weights), self._constants)
        while name in values:
            name = unique(f"{name}'", len(self.weights), self._constants)
        self.weights[name] = _place(value)
        values[name] = GraphValue(name, value.type.tensor, value.type.kind, constant=name)
        return name

    def _constant(self, value: GraphValue, stored: MilValue | None) -> GraphValue:
        if stored is None:
            return value
        if stored.file or stored.data is not None:
            # Values of two blocks may share a name, constants of a function may not.
            name = unique(value.name, len(self.weights), self._constants)
            self.weights[name] = _place(stored)
            return GraphValue(value.name, value.tensor, value.kind, constant=name)
        return GraphValue(value.name, value.tensor, value.kind, stored.literal)


def _place(value: MilValue) -> tuple[str, int] | memoryview:
    return (value.file, value.offset) if value.data is None else value.data


def _classified(
    kind: str,
    outputs: list[GraphValue],
    arguments: list[Argument],
    values: Mapping[str, GraphValue],
) -> list[GraphValue]:
    """Return the results of a classifier as tensors: the class, and the probabilities in order.

    The program has a label and a dictionary; an interface of tensors has neither.
    """
    given = [name for one in arguments if one.name == "probabilities" for name in one.values]
    if kind != "classify" or len(outputs) != 2 or not given or given[0] not in values:
        return outputs
    label, table = outputs
    chosen = TensorMeta(_INT64, (), type_name="int64")
    return [GraphValue(label.name, chosen), GraphValue(table.name, values[given[0]].tensor)]
