"""Attention with a KV cache in graphs, for one position: that of each token after the prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from runtime.execution.fused.scripts import ChangingScalar, ScriptWriter, UnscriptableError

Tensor = torch.Tensor
_choice: Any = torch.ops.aten._fused_sdp_choice.default
_flash: Any = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
_FLASH = 1  # of the ways that torch chooses from


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
    if given["attn_mask"] is not None or key.shape != value.shape:
        raise UnscriptableError("attention with a mask, or caches of two shapes")

    def write(writer: ScriptWriter) -> int:
        _place(writer, start, key)
        _one(writer, query)
        end = writer.call("aten::add.int", [writer.number(start), writer.constant(1)], int)
        by_head = [_swapped(writer, writer.operand(query))]
        sizes = _sizes(writer, key, end)
        by_head += [_by_head(writer, cache, sizes) for cache in (key, value)]
        return _swapped(writer, _attention(writer, by_head, given))

    return write


def _swapped(writer: ScriptWriter, value: int) -> int:
    dims = writer.constant(1), writer.constant(2)
    return writer.call("aten::transpose.int", [value, *dims], Tensor)


def _attention(writer: ScriptWriter, by_head: Sequence[int], given: Mapping[str, Any]) -> int:
    """Write the operator that torch chooses for such heads, without the choice in each run."""
    query, key, value = given["query"], given["key"], given["value"]
    grouped, scale = query.shape[2] != key.shape[2], given["scale"]
    heads = [tensor.transpose(1, 2) for tensor in (query, key, value)]
    chosen = _choice(*heads, None, 0.0, False, scale=scale, enable_gqa=grouped)
    if chosen != _FLASH:
        operands = [*by_head, *map(writer.constant, [None, 0.0, False, scale, grouped])]
        return writer.call("aten::scaled_dot_product_attention", operands, Tensor)
    rest = map(writer.constant, [0.0, False, None, scale])
    return writer.call_of(_flash, [*by_head, *rest])[0]


def _sizes(writer: ScriptWriter, cache: Tensor, end: int) -> int:
    """Write the sizes of the first positions of a cache: [batch, groups, end, size]."""
    batch, _, groups, size = map(writer.constant, cache.shape)
    return writer.listed([batch, groups, end, size])


def _by_head(writer: ScriptWriter, cache: Tensor, sizes: int) -> int:
    """Write the first positions of a cache as [batch, groups, end, size]; see the kernel."""
    by_batch, by_position, by_group, by_place = cache.stride()
    strides = writer.constant([by_batch, by_group, by_position, by_place])
    given = [writer.operand(cache), sizes, strides]
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
