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

from runtime.execution.fused.graph_form import KINDS, GraphForm, UnscriptableError
from runtime.execution.fused.one_position import OnePosition
from runtime.execution.fused.signatures import (
    OperatorArgument,
    arguments_of,
    schema_of,
    signature_of,
)

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


_INTEGERS = (torch.int32, torch.int64)
_UNLIMITED = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class ChangingScalar:
    """A scalar that may differ from run to run.

    Attributes:
        index: in the value table
        kind: its type
    """

    index: int
    kind: type


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
        "parse_ir",
    )
    return all(hasattr(_c, name) for name in names)


@dataclass(slots=True)
class ScriptWriter:
    """Writes a graph; values of the graph are their numbers.

    Attributes:
        inputs: tensors of other owners, which the graph gets at each run
        given: scalars that the graph gets before them
        written: those of the inputs that operators write to
        read: those of the inputs that operators read before they write to them
        limits: largest value of each integer that the graph returns
        position: what must hold for the graph to be run
    """

    inputs: list[Tensor] = field(default_factory=list[Tensor])
    given: list[ChangingScalar] = field(default_factory=list[ChangingScalar])
    written: dict[int, Tensor] = field(default_factory=dict[int, Tensor])
    read: dict[int, Tensor] = field(default_factory=dict[int, Tensor])
    limits: list[int] = field(default_factory=list[int])
    position: OnePosition = field(default_factory=OnePosition)
    _returned: list[int] = field(default_factory=list[int])
    _scalars: dict[int, int] = field(default_factory=dict[int, int])
    _form: GraphForm = field(default_factory=GraphForm)
    _values: dict[int, int] = field(default_factory=dict[int, int])
    _given: set[int] = field(default_factory=set[int])
    _held: list[Any] = field(default_factory=list[Any])

    def value(self, tensor: Tensor) -> int:
        """Return the current value of a tensor; one that is unknown becomes an input."""
        found = self._values.get(id(tensor))
        if found is None:
            found = self._values[id(tensor)] = self._form.input(Tensor)
            self.inputs.append(tensor)
            self._given.add(id(tensor))
        return found

    def is_given(self, tensor: Tensor) -> bool:
        """Return whether a tensor is an input of the graph that still has its own memory."""
        return id(tensor) in self._given

    def point(self, tensor: Tensor, contents: Tensor) -> None:
        """Bind a tensor to the contents of another one."""
        self.bind(tensor, self.value(contents))

    def share(self, tensor: Tensor) -> None:
        """Point a tensor of another owner at its value, for whoever reads it afterwards."""
        value = self._values.pop(id(tensor))
        self.call("aten::set_.source_Tensor", [self.value(tensor), value], Tensor)
        self.written[id(tensor)] = tensor

    def define(self, index: int, value: int) -> None:
        """Bind a scalar to a value of the graph."""
        self._scalars[index] = value

    def scalar(self, index: int) -> int:
        """Return the current value of a scalar.

        Raises: UnscriptableError if it has none
        """
        if index not in self._scalars:
            raise UnscriptableError(f"scalar {index} is not known")
        return self._scalars[index]

    def give_back(self, integer: int, limit: int) -> None:
        """Let the graph return an integer that has a limit."""
        self._returned.append(integer)
        self.limits.append(limit)

    def give_first(self, integers: Sequence[int]) -> None:
        """Let the graph return integers before all others, without limits."""
        self._returned[:0] = integers
        self.limits[:0] = [_UNLIMITED] * len(integers)

    def bind(self, tensor: Tensor, value: int) -> None:
        """Bind a tensor to a value of the graph."""
        self._values[id(tensor)] = value
        self._given.discard(id(tensor))
        self._held.append(tensor)

    def target(self, tensor: Tensor) -> int:
        """Return the value of a tensor that is written to."""
        found = self.value(tensor)
        if not self.is_given(tensor):
            raise UnscriptableError("a tensor without memory of its own is written to")
        self.written[id(tensor)] = tensor
        return found

    def call(self, name: str, given: Sequence[int], kind: type) -> int:
        """Write an operator with one result, and return that.

        Args:
            name: with its overload
            given: values of the graph
            kind: type of the result

        Raises: UnscriptableError
        """
        return self._form.operator(name, name.partition(".")[0], given, [KINDS[kind]])[0]

    def call_of(self, operator: OpOverload, given: Sequence[int]) -> Sequence[int]:
        """Write an operator on values of the graph, and return its results.

        Raises: UnscriptableError
        """
        known = signature_of(operator)
        return self._form.operator(known.text, known.name, given, known.returns, known.requested)

    def step(self, step: OperatorStep) -> None:
        """Write an operator that was called.

        Raises: UnscriptableError
        """
        self._take(step, self.results(step.operator, step.args, step.named))

    def results(
        self, operator: OpOverload, args: Sequence[Any], named: dict[str, Any]
    ) -> Sequence[int]:
        """Write an operator, and return its results.

        Raises: UnscriptableError
        """
        known = signature_of(operator)
        if known.is_refused and not _is_gather(operator, args):
            raise UnscriptableError(known.name)
        pairs = arguments_of(known, args, named)
        given = [self._argument(arg, value) for arg, value in pairs]
        return self._form.operator(known.text, known.name, given, known.returns, known.requested)

    def _argument(self, arg: OperatorArgument, value: Any) -> int:  # noqa: ANN401 - any argument
        kind = arg.kind
        if isinstance(value, Tensor):
            found = self.value(value)
            if id(value) in self._given:
                self._note(value, written=arg.is_written, is_out=arg.is_out)
            return found
        if isinstance(value, ChangingScalar):
            return self._symbol(value, kind)
        if isinstance(value, list | tuple):
            items = cast("Sequence[Any]", value)
            if any(isinstance(item, ChangingScalar) for item in items):
                return self.integers(items)
            if "Tensor" in kind or not items:
                return self._list(items, arg.type)
        if "float" in kind and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        return self.constant(value)

    def number(self, value: Any) -> int:  # noqa: ANN401 - a scalar or a symbol
        """Return the value of a scalar, be it a constant or one that changes.

        One that the graph does not compute becomes an input.
        """
        if not isinstance(value, ChangingScalar):
            return self.constant(value)
        found = self._scalars.get(value.index)
        if found is None:
            found = self._scalars[value.index] = self._form.input(value.kind)
            self.given.append(value)
        return found

    def _symbol(self, symbol: ChangingScalar, kind: str) -> int:
        found = self.number(symbol)
        if "float" in kind and symbol.kind is int:
            return self.call("aten::Float.int", [found], float)
        return found

    def listed(self, integers: Sequence[int]) -> int:
        """Return a list of integers of the graph."""
        return self._form.constructed(integers, KINDS[list])

    def integers(self, items: Sequence[Any]) -> int:
        """Return a list of integers, some of which may be symbols."""
        values: list[int] = []
        for item in items:
            kind = item.kind if isinstance(item, ChangingScalar) else type(item)
            if kind is not int:
                raise UnscriptableError(f"a list with {kind.__name__}")
            values.append(self.number(item))
        return self.listed(values)

    def _note(self, tensor: Tensor, *, written: bool, is_out: bool) -> None:
        if not is_out and id(tensor) not in self.written:
            self.read[id(tensor)] = tensor
        if written:
            self.written[id(tensor)] = tensor

    def _list(self, items: Sequence[Any], kind: Any) -> int:  # noqa: ANN401 - a type of torch
        if isinstance(kind, _c.OptionalType):
            kind = kind.getElementType()
        if not isinstance(kind, _c.ListType):
            raise UnscriptableError(f"a list as {kind}")
        values = [self.constant(None) if item is None else self.operand(item) for item in items]
        return self._form.constructed(values, kind.str())

    def operand(self, tensor: Any) -> int:  # noqa: ANN401 - checked here
        """Return the current value of a tensor that is read.

        Raises: UnscriptableError if it is not a tensor
        """
        if not isinstance(tensor, Tensor):
            raise UnscriptableError(f"a list with {type(tensor).__name__}")
        found = self.value(tensor)
        if id(tensor) in self._given:
            self._note(tensor, written=False, is_out=False)
        return found

    def constant(self, value: Any) -> int:  # noqa: ANN401 - checked here
        """Return a constant.

        Raises: UnscriptableError for a type that graphs have no constants of
        """
        if isinstance(value, torch.memory_format):
            value = _FORMATS[value]
        if isinstance(value, list | tuple):
            items: list[Any] = list(cast("Sequence[Any]", value))
            if not all(type(item) in (int, float) for item in items):
                raise UnscriptableError(f"a list {items!r}")
            value = items
        elif value is not None and not isinstance(value, _PLAIN):
            raise UnscriptableError(f"an argument of type {type(value).__name__}")
        return self._form.constant(value)

    def _take(self, step: OperatorStep, values: Sequence[int]) -> None:
        for value, result in zip(values, results_of(step, len(values)), strict=True):
            if isinstance(result, Tensor):
                self._name(result, value)
            elif isinstance(result, list) and result:
                self._unpack(value, cast("Sequence[Tensor]", result))
            elif result is not None:
                raise UnscriptableError(f"a result of type {type(cast('object', result)).__name__}")
        self._held.append(step)

    def _unpack(self, value: int, results: Sequence[Tensor]) -> None:
        for one, result in zip(self.unpacked(value, len(results)), results, strict=True):
            self._name(result, one)

    def unpacked(self, value: int, count: int) -> Sequence[int]:
        """Return the tensors in a list of that many."""
        return self._form.unpacked(value, [KINDS[Tensor]] * count)

    def _name(self, result: Tensor, value: int) -> None:
        if id(result) not in self._values:  # what an operator writes in place has one already
            self._values[id(result)] = value

    def function(self) -> Callable[..., Any]:
        """Return the graph as a function of its inputs, which returns integers or None.

        Graphs of one form, such as those of the layers of a network, share their function.
        """
        returned = self._returned
        return self._form.function(self.listed(returned) if returned else self.constant(None))


def _is_gather(operator: OpOverload, args: Sequence[Any]) -> bool:
    """Return whether an operator is an index with integers, whose sizes follow from theirs."""
    if operator is not _torch.ops.aten.index.Tensor:
        return False
    given = [one for one in args[1] if one is not None]
    return all(isinstance(one, Tensor) and one.dtype in _INTEGERS for one in given)


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
