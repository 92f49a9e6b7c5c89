"""Graphs of TorchScript's interpreter, which calls operators without Python in between.

`ScriptWriter` writes the operators that a run has called, by the overload that it called. The graph
is run as it is written: torch's optimizations, which may change last bits, are off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch._ops import OpOverload

Tensor = torch.Tensor
_torch: Any = torch
_c: Any = _torch._C
_FORMATS = {
    torch.contiguous_format: 0,
    torch.preserve_format: 1,
    torch.channels_last: 2,
    torch.channels_last_3d: 3,
}
_PLAIN = (bool, int, float, str, torch.dtype, torch.layout, torch.device)
_REFUSED_TAGS = frozenset(
    getattr(torch.Tag, name)
    for name in ("data_dependent_output", "dynamic_output_shape", "nondeterministic_seeded")
    if hasattr(torch.Tag, name)
)


class UnscriptableError(Exception):
    """An operator call that a graph cannot repeat."""


@dataclass(frozen=True, slots=True)
class OperatorStep:
    """An operator that was called.

    Attributes:
        operator: the overload
        args: positional arguments
        named: keyword arguments
        result: what it returned
    """

    operator: OpOverload
    args: Sequence[Any]
    named: dict[str, Any]
    result: Any


def has_scripts() -> bool:
    """Return whether this torch can run graphs; TorchScript is deprecated and may go."""
    names = (
        "Graph",
        "_create_function_from_graph",
        "_get_graph_executor_optimize",
        "_set_graph_executor_optimize",
    )
    return all(hasattr(_c, name) for name in names)


@dataclass(slots=True)
class ScriptWriter:
    """Writes a graph.

    Attributes:
        inputs: tensors of other owners, which the graph gets at each run
        written: those of them that operators write to
        read: those of them that operators read before they write to them
    """

    inputs: list[Tensor] = field(default_factory=list[Tensor])
    written: dict[int, Tensor] = field(default_factory=dict[int, Tensor])
    read: dict[int, Tensor] = field(default_factory=dict[int, Tensor])
    _graph: Any = field(default_factory=lambda: _c.Graph())
    _values: dict[int, Any] = field(default_factory=dict[int, Any])
    _given: set[int] = field(default_factory=set[int])
    _held: list[Any] = field(default_factory=list[Any])
    _constants: dict[str, Any] = field(default_factory=dict[str, Any])

    def value(self, tensor: Tensor) -> Any:  # noqa: ANN401 - a value of the graph
        """Return the current value of a tensor; one that is unknown becomes an input."""
        found = self._values.get(id(tensor))
        if found is None:
            found = self._values[id(tensor)] = self._graph.addInput()
            found.setType(_c.TensorType.get())
            self.inputs.append(tensor)
            self._given.add(id(tensor))
        return found

    def point(self, tensor: Tensor, contents: Tensor) -> None:
        """Let a tensor stand for the contents of another one from now on."""
        self._values[id(tensor)] = self.value(contents)
        self._given.discard(id(tensor))
        self._held.append(tensor)

    def share(self, tensor: Tensor) -> None:
        """Point a tensor of another owner at its value, for whoever reads it afterwards."""
        value = self._values.pop(id(tensor))
        node = self._graph.create("aten::set_", [self.value(tensor), value], 1)
        self._graph.insertNode(node)
        node.output().setType(_c.TensorType.get())
        self.written[id(tensor)] = tensor

    def step(self, step: OperatorStep) -> None:
        """Write an operator.

        Raises: UnscriptableError
        """
        schema = schema_of(step.operator)
        if not _REFUSED_TAGS.isdisjoint(step.operator.tags):
            raise UnscriptableError(schema.name)
        given = [self._argument(*one) for one in _arguments(step)]
        node = self._graph.create(schema.name, given, len(schema.returns))
        for value, kind in zip(node.outputs(), schema.returns, strict=True):
            value.setType(kind.type)
        self._graph.insertNode(node)
        if node.schema() != str(schema):
            raise UnscriptableError(f"{schema} is read as {node.schema()}")
        self._take(step, list(node.outputs()))

    def _argument(self, arg: Any, value: Any) -> Any:  # noqa: ANN401 - any argument
        kind = str(arg.type)
        if isinstance(value, Tensor):
            written = arg.alias_info is not None and bool(arg.alias_info.is_write)
            found = self.value(value)
            if id(value) in self._given:
                self._note(value, written=written, is_out=bool(arg.is_out))
            return found
        if isinstance(value, list | tuple) and ("Tensor" in kind or not value):
            return self._list(cast("Sequence[Any]", value), arg.type)
        if "float" in kind and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        return self._constant(value)

    def _note(self, tensor: Tensor, *, written: bool, is_out: bool) -> None:
        if not is_out and id(tensor) not in self.written:
            self.read[id(tensor)] = tensor
        if written:
            self.written[id(tensor)] = tensor

    def _list(self, items: Sequence[Any], kind: Any) -> Any:  # noqa: ANN401
        if isinstance(kind, _c.OptionalType):
            kind = kind.getElementType()
        if not isinstance(kind, _c.ListType):
            raise UnscriptableError(f"a list as {kind}")
        values = [self._constant(None) if item is None else self._read(item) for item in items]
        node = self._graph.create("prim::ListConstruct", values, 1)
        self._graph.insertNode(node)
        node.output().setType(kind)
        return node.output()

    def _read(self, tensor: Any) -> Any:  # noqa: ANN401
        if not isinstance(tensor, Tensor):
            raise UnscriptableError(f"a list with {type(tensor).__name__}")
        found = self.value(tensor)
        if id(tensor) in self._given:
            self._note(tensor, written=False, is_out=False)
        return found

    def _constant(self, value: Any) -> Any:  # noqa: ANN401
        if isinstance(value, torch.memory_format):
            value = _FORMATS[value]
        if isinstance(value, list | tuple):
            items: list[Any] = list(cast("Sequence[Any]", value))
            if not all(type(item) in (int, float) for item in items):
                raise UnscriptableError(f"a list {items!r}")
            value = items
        elif value is not None and not isinstance(value, _PLAIN):
            raise UnscriptableError(f"an argument of type {type(value).__name__}")
        key = f"{type(value).__name__} {value!r}"
        if key not in self._constants:
            self._constants[key] = self._graph.insertConstant(value)
        return self._constants[key]

    def _take(self, step: OperatorStep, values: list[Any]) -> None:
        for value, result in zip(values, results_of(step, len(values)), strict=True):
            if isinstance(result, Tensor):
                self._name(result, value)
            elif isinstance(result, list) and result:
                self._unpack(value, cast("Sequence[Tensor]", result))
            elif result is not None:
                raise UnscriptableError(f"a result of type {type(cast('object', result)).__name__}")
        self._held.append(step)

    def _unpack(self, value: Any, results: Sequence[Tensor]) -> None:  # noqa: ANN401
        node = self._graph.create("prim::ListUnpack", [value], len(results))
        self._graph.insertNode(node)
        for one, result in zip(node.outputs(), results, strict=True):
            one.setType(_c.TensorType.get())
            self._name(result, one)

    def _name(self, result: Tensor, value: Any) -> None:  # noqa: ANN401
        if id(result) not in self._values:  # what an operator writes in place has one already
            self._values[id(result)] = value

    def function(self) -> Callable[..., Any]:
        """Return the graph as a function of its inputs."""
        self._graph.registerOutput(self._graph.insertConstant(None))
        return _c._create_function_from_graph("stretch", self._graph)


def results_of(step: OperatorStep, count: int) -> Sequence[Any]:
    """Return the results of an operator with that many of them."""
    return (step.result,) if count == 1 else step.result or ()


def new_bytes(step: OperatorStep) -> int:
    """Return the bytes of memory that an operator allocated for its results."""
    kinds = schema_of(step.operator).returns
    results = results_of(step, len(kinds))
    pairs = zip(kinds, results, strict=True)
    fresh = [result for kind, result in pairs if kind.alias_info is None]
    return sum(one.nbytes for one in fresh if isinstance(one, Tensor))


def schema_of(operator: Any) -> Any:  # noqa: ANN401 - torch's schema has no type
    """Return the schema of an overload."""
    return operator._schema


def _arguments(step: OperatorStep) -> list[tuple[Any, Any]]:
    """Return each argument of the schema with its value."""
    named = dict(step.named)
    pairs: list[tuple[Any, Any]] = []
    for place, arg in enumerate(schema_of(step.operator).arguments):
        if place < len(step.args) and not arg.kwarg_only:
            pairs.append((arg, step.args[place]))
        elif arg.name in named:
            pairs.append((arg, named.pop(arg.name)))
        else:
            pairs.append((arg, arg.default_value))
    return pairs
