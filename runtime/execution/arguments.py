"""The arguments that an instruction calls its kernel with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from runtime.errors import ErrorCode, ExecutionError
from runtime.kernels.rule import Kernel
from runtime.memory.slots import TensorSlot
from runtime.program.values import ValueTable


class Arguments:
    """The inputs of a kernel call: resolved once; those that may change, at each call.

    Args:
        kernel: the kernel
        sources: value index of each input
        table: the values
        changing: places in `sources` of the values whose table entry may change
    """

    __slots__ = ("_changing", "_kernel", "_known", "_sources", "_table")

    def __init__(
        self,
        kernel: Kernel,
        sources: tuple[int, ...],
        table: ValueTable,
        changing: Sequence[int] = (),
    ) -> None:
        self._kernel = kernel
        self._sources = sources
        self._table = table
        self._changing = tuple(changing)
        self._known: tuple[list[Any], dict[str, Any]] | None = None
        if not changing:
            self._known = self._resolved()

    @property
    def fixed(self) -> bool:
        """Return whether the scalars among them never change."""
        return not self._changing

    def current(self) -> tuple[list[Any], dict[str, Any]]:
        """Return positional and keyword arguments as they are now; the caller changes neither."""
        if self._known is None:  # what changes has a value only when the program runs
            self._known = self._resolved()
            return self._known
        positional, named = self._known
        for place in self._changing:
            entry, value = self._kernel.inputs[place], self._value(place)
            if entry.keyword:
                named[entry.name] = value
            else:
                positional[place] = value
        return self._known

    def _resolved(self) -> tuple[list[Any], dict[str, Any]]:
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for place, entry in enumerate(self._kernel.inputs):
            if entry.keyword:
                named[entry.name] = self._value(place)
            else:
                positional.append(self._value(place))
        return positional, named

    def _value(self, place: int) -> Any:  # noqa: ANN401 - any value
        table, entry = self._table, self._kernel.inputs[place]
        value = table.resolve(table.items[self._sources[place]])
        if entry.convert is not None and value is not None:
            value = entry.convert(_integer(value, entry.name))
        return value

    def bound(self, run: Callable[..., Any], slots: Sequence[TensorSlot] = ()) -> Callable[[], Any]:
        """Return the kernel with its arguments."""
        if self._changing:
            return partial(self.call, run, slots)
        positional, named = self.current()
        return partial(run, *positional, *slots, **named)

    def call(self, run: Callable[..., Any], slots: Sequence[TensorSlot]) -> Any:  # noqa: ANN401 - results
        """Run the kernel with its arguments as they are now."""
        positional, named = self.current()
        return run(*positional, *slots, **named)


def _integer(value: Any, name: str) -> int:  # noqa: ANN401 - any value of a program
    if not isinstance(value, int) or isinstance(value, bool):
        raise ExecutionError(
            ErrorCode.InvalidType, f"argument {name} is a {type(value).__name__}, not an integer"
        )
    return value
