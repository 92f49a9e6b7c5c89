"""Kernels that fill their slot, as operators of a graph: they resize it and write to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch

from runtime.execution.fused.scripts import ChangingScalar, ScriptWriter, UnscriptableError
from runtime.kernels.shapes import in_turns
from runtime.memory.slots import TensorSlot
from runtime.untyped import aten

Tensor = torch.Tensor


class Filler(Protocol):
    """Writes a kernel that fills its slot."""

    def __call__(
        self,
        writer: ScriptWriter,
        slot: TensorSlot,
        given: Sequence[Any],
        named: Mapping[str, Any],
        *,
        resized: bool,
    ) -> None:
        """Write it.

        Args:
            writer: of the graph
            slot: of the result
            given: positional arguments
            named: keyword arguments
            resized: whether the slot may change its sizes

        Raises: UnscriptableError
        """


def _as_tensor(writer: ScriptWriter, slot: TensorSlot, tensor: Tensor, *, resized: bool) -> Any:  # noqa: ANN401
    """Resize a slot to a tensor, and return its value in the graph."""
    target, source = writer.target(slot.tensor), writer.operand(tensor)
    if resized:
        _bounded(writer, slot, writer.call("aten::numel", [source], int))
        writer.call("aten::resize_as_", [target, source, writer.constant(None)], Tensor)
    return target


def _as_sizes(
    writer: ScriptWriter, slot: TensorSlot, sizes: Sequence[Any], *, resized: bool
) -> Any:  # noqa: ANN401
    """Resize planned memory to sizes, and return its value in the graph."""
    target = writer.target(slot.tensor)
    if resized:
        if not slot.planned:
            raise UnscriptableError("sizes of memory that is not planned")
        given = [target, writer.integers(sizes), writer.constant(None)]
        writer.call("aten::resize_", given, Tensor)
    return target


def _bounded(writer: ScriptWriter, slot: TensorSlot, count: Any) -> None:  # noqa: ANN401
    if not slot.planned:
        writer.give_back(count, slot.capacity)


def _copied(
    writer: ScriptWriter,
    slot: TensorSlot,
    given: Sequence[Any],
    named: Mapping[str, Any],
    *,
    resized: bool,
) -> None:
    del named  # the plan has the layout
    target = _as_tensor(writer, slot, given[0], resized=resized)
    source = writer.operand(given[0])
    writer.call("aten::copy_", [target, source, writer.constant(value=False)], Tensor)


def _fill(writer: ScriptWriter, target: Any, value: Any) -> None:  # noqa: ANN401
    if not isinstance(value, ChangingScalar | int | float):
        raise UnscriptableError(f"a fill with {type(value).__name__}")
    writer.call("aten::fill_.Scalar", [target, writer.number(value)], Tensor)


def _full(
    writer: ScriptWriter,
    slot: TensorSlot,
    given: Sequence[Any],
    named: Mapping[str, Any],
    *,
    resized: bool,
) -> None:
    del named  # the plan has layout and dtype
    sizes, value = given[:2]
    _fill(writer, _as_sizes(writer, slot, sizes, resized=resized), value)


def _full_like(
    writer: ScriptWriter,
    slot: TensorSlot,
    given: Sequence[Any],
    named: Mapping[str, Any],
    *,
    resized: bool,
) -> None:
    del named  # the plan has layout and dtype
    _fill(writer, _as_tensor(writer, slot, given[0], resized=resized), given[1])


def _scalar_tensor(
    writer: ScriptWriter,
    slot: TensorSlot,
    given: Sequence[Any],
    named: Mapping[str, Any],
    *,
    resized: bool,
) -> None:
    del named, resized  # a tensor without dimensions
    _fill(writer, writer.target(slot.tensor), given[0])


def _with(value: int) -> Filler:
    def fill(
        writer: ScriptWriter,
        slot: TensorSlot,
        given: Sequence[Any],
        named: Mapping[str, Any],
        *,
        resized: bool,
    ) -> None:
        _full(writer, slot, [given[0], value], named, resized=resized)

    return fill


def _arange(
    writer: ScriptWriter,
    slot: TensorSlot,
    given: Sequence[Any],
    named: Mapping[str, Any],
    *,
    resized: bool,
) -> None:
    """Write a range of integers in steps of 1, whose size is the difference of its ends."""
    del named  # the plan has layout and dtype
    start, end, step = given if len(given) == 3 else (0, *given, 1)
    kinds = {one.kind if isinstance(one, ChangingScalar) else type(one) for one in (start, end)}
    if kinds != {int} or step != 1:
        raise UnscriptableError("a range in other steps than 1")
    first, last = writer.number(start), writer.number(end)
    target = writer.target(slot.tensor)
    if resized:
        if not slot.planned:
            raise UnscriptableError("sizes of memory that is not planned")
        count = last if start == 0 else writer.call("aten::sub.int", [last, first], int)
        sizes = writer.listed([count])
        writer.call("aten::resize_", [target, sizes, writer.constant(None)], Tensor)
    writer.results(aten.arange.start_out, [start, end, 1], {"out": slot.tensor})


def _repeat(
    writer: ScriptWriter,
    slot: TensorSlot,
    given: Sequence[Any],
    named: Mapping[str, Any],
    *,
    resized: bool,
) -> None:
    """Write a tensor several times side by side: a copy of it to a view of the slot."""
    del named
    tensor, repeats = given
    if resized or not all(type(times) is int for times in repeats):
        raise UnscriptableError("repeats that change")
    target, source = (writer.constant(sizes) for sizes in in_turns(tensor.shape, repeats))
    viewed = writer.call("aten::view", [writer.target(slot.tensor), target], Tensor)
    shaped = writer.call("aten::reshape", [writer.operand(tensor), source], Tensor)
    writer.call("aten::copy_", [viewed, shaped, writer.constant(value=False)], Tensor)


FILLERS: Mapping[str, Filler] = {
    "aten::_to_copy.out": _copied,
    "aten::arange.out": _arange,
    "aten::arange.start_out": _arange,
    "aten::clone.out": _copied,
    "aten::full.out": _full,
    "aten::full_like.out": _full_like,
    "aten::ones.out": _with(1),
    "aten::repeat.out": _repeat,
    "aten::scalar_tensor.out": _scalar_tensor,
    "aten::zeros.out": _with(0),
    "dim_order_ops::_clone_dim_order.out": _copied,
    "dim_order_ops::_to_dim_order_copy.out": _copied,
}
