"""Attention with a KV cache in graphs, for one position: that of each token after the prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from runtime.execution.fused.scripts import ChangingScalar, ScriptWriter, UnscriptableError

Tensor = torch.Tensor


Result = Callable[[ScriptWriter], int | None]
"""Writes a kernel; returns its result, None for one that is not read."""


def update_cache(given: Mapping[str, Any], *, is_read: bool) -> Result:
    """Return the writer of ``llama::update_cache``.

    Args:
        given: its arguments
        is_read: whether its result is read, which is a placeholder

    Raises: UnscriptableError
    """
    value, cache, start = given["value"], given["cache"], given["start_pos"]
    if is_read or value.dim() != cache.dim():
        raise UnscriptableError("the placeholder of a cache")

    def write(writer: ScriptWriter) -> None:
        _place(writer, start, cache)
        _one(writer, value)
        place = [writer.target(cache), writer.constant(1), writer.number(start), writer.constant(1)]
        narrowed = writer.call("aten::narrow", place, Tensor)
        copied = [narrowed, writer.operand(value), writer.constant(value=False)]
        writer.call("aten::copy_", copied, Tensor)

    return write


def attend(given: Mapping[str, Any]) -> Result:
    """Return the writer of ``llama::custom_sdpa`` without a mask, which one position needs not.

    Raises: UnscriptableError
    """
    query, key, value, start = (given[name] for name in ("query", "key", "value", "start_pos"))
    if given["attn_mask"] is not None or key.shape[1] != value.shape[1]:
        raise UnscriptableError("attention with a mask")

    def write(writer: ScriptWriter) -> int:
        _place(writer, start, key)
        _one(writer, query)
        end = writer.call("aten::add.int", [writer.number(start), writer.constant(1)], int)
        by_head = [_swapped(writer, writer.operand(query))]
        by_head += [_by_head(writer, cache, end) for cache in (key, value)]
        rest = [None, 0.0, False, given["scale"], query.shape[2] != key.shape[2]]
        operands = [*by_head, *map(writer.constant, rest)]
        found = writer.call("aten::scaled_dot_product_attention", operands, Tensor)
        return _swapped(writer, found)

    return write


def _swapped(writer: ScriptWriter, value: int) -> int:
    dims = writer.constant(1), writer.constant(2)
    return writer.call("aten::transpose.int", [value, *dims], Tensor)


def _by_head(writer: ScriptWriter, cache: Tensor, end: int) -> int:
    """Write the first positions of a cache as [batch, groups, end, size]; see the kernel."""
    batch, _, groups, size = map(writer.constant, cache.shape)
    by_batch, by_position, by_group, by_place = cache.stride()
    strides = writer.constant([by_batch, by_group, by_position, by_place])
    given = [writer.operand(cache), writer.listed([batch, groups, end, size]), strides]
    return writer.call("aten::as_strided", [*given, writer.constant(None)], Tensor)


def _place(writer: ScriptWriter, start: Any, cache: Tensor) -> None:  # noqa: ANN401
    """Let a graph stand for its calls where a position is in the cache.

    Raises: UnscriptableError for what is not known before the graph runs
    """
    if not isinstance(start, ChangingScalar) or start.kind is not int:
        raise UnscriptableError("a position that does not change")
    writer.number(start)
    writer.value(cache)
    if start not in writer.given or not writer.is_given(cache):
        raise UnscriptableError("a position or a cache that the graph computes")
    writer.position.starts.add((start.index, cache.shape[1]))


def _one(writer: ScriptWriter, tensor: Tensor) -> None:
    """Let a graph stand for its calls where a tensor has one position.

    Raises: UnscriptableError for a tensor that is not known before the graph runs
    """
    writer.value(tensor)
    if not writer.is_given(tensor):
        raise UnscriptableError("sizes that the graph computes")
    writer.position.given.append(tensor)


def cached(name: str, given: Mapping[str, Any], *, is_read: bool) -> Result:
    """Return the writer of a kernel of `CACHED`.

    Args:
        name: of the kernel
        given: its arguments
        is_read: whether its result is read

    Raises: UnscriptableError
    """
    return update_cache(given, is_read=is_read) if name == _UPDATE else attend(given)


_UPDATE = "llama::update_cache.out"
CACHED: Mapping[str, Sequence[str]] = {
    _UPDATE: ("cache",),
    "llama::custom_sdpa.out": ("key", "value"),
}
"""Kernels that are written for one position, with their arguments that are caches."""
