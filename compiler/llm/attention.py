"""Attention over a KV cache, in the ways a configuration chooses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from typing_extensions import override

from compiler.dialect.llama import CUSTOM_SDPA, UPDATE_CACHE
from compiler.untyped import check

Tensor = torch.Tensor
_LOW, _HIGH = -128, 127  # of int8


@dataclass(frozen=True, slots=True)
class CacheOptions:
    """How keys and values of earlier calls are kept.

    Attributes:
        used: whether they are; without, each call has the whole sequence
        length: positions of the cache, and the largest length of a sequence without one
        custom: by the operators of ``llama``, which write in place and attend in one call
        quantized: as int8, with a scale and a zero point for each position and head
        sink: positions at the begin that a window always includes
        call: tokens of a call at most; 0 if unknown
    """

    used: bool = False
    length: int = 128
    custom: bool = False
    quantized: bool = False
    sink: int = 0
    call: int = 0

    def kept(self, window: int) -> int:
        """Return the positions in the cache of a layer: all, or a ring of those in its window.

        A ring holds the sink, and the windows of all tokens of a call.
        """
        needed = self.sink + window + self.call - 1
        return needed if self.is_ring(window) else self.length

    def is_ring(self, window: int) -> bool:
        """Return whether the cache of a layer is shorter than the context, and wraps."""
        return bool(self.call and window and self.sink + window + self.call - 1 < self.length)


@dataclass
class CallPositions:
    """The positions of one call.

    Attributes:
        positions: of its tokens, int64
        start: of the first one, as a number; None unless the cache needs it
        options: of the cache
        masks: by window, shared by the layers
        rings: slots of the tokens by window, likewise
    """

    positions: Tensor
    start: Any
    options: CacheOptions
    masks: dict[int, Tensor] = field(default_factory=dict[int, Tensor])
    rings: dict[int, Tensor] = field(default_factory=dict[int, Tensor])

    def mask(self, window: int) -> Tensor:
        """Return which slots of the cache each token attends to; a window of 0 is unlimited.

        Shapes: result: [tokens, context] bool
        """
        if window not in self.masks:
            self.masks[window] = self._mask(window)
        return self.masks[window]

    def _mask(self, window: int) -> Tensor:
        options = self.options
        ring = options.used and options.is_ring(window)
        context = self._context(window) if options.used else self.positions
        rows = self.positions.unsqueeze(1)
        allowed = context <= rows
        if window:
            near = context > rows - window
            allowed = allowed & ((near | (context < options.sink)) if options.sink else near)
        return allowed & (context >= 0) if ring else allowed

    def _context(self, window: int) -> Tensor:
        """Return the position in each slot of a cache; -1 in the empty slots of a ring.

        Shapes: result: [context] int64
        """
        options = self.options
        slots = torch.arange(options.kept(window))
        if not options.is_ring(window):
            return slots
        last = self.positions[-1]
        # A position has the same remainder as its slot, so the latest one with it is there.
        found = last - torch.remainder(last - slots, options.kept(window) - options.sink)
        found = found.masked_fill(found < options.sink, -1)
        return torch.where(slots < options.sink, slots, found) if options.sink else found

    def slots(self, window: int) -> Tensor:
        """Return where the tokens are stored in the cache of a layer.

        Shapes: result: [tokens] int64
        """
        options = self.options
        if not options.is_ring(window):
            return self.positions
        if window not in self.rings:
            length = options.kept(window) - options.sink
            found = torch.remainder(self.positions - options.sink, length) + options.sink
            if options.sink:
                found = torch.where(self.positions < options.sink, self.positions, found)
            self.rings[window] = found
        return self.rings[window]


def place_of(
    tokens: Tensor, input_pos: Tensor | None, options: CacheOptions, *, rolls: bool = False
) -> CallPositions:
    """Return the positions of a call.

    Args:
        tokens: [1, length]
        input_pos: [1], position of the first token; None without a cache
        options: of the cache
        rolls: whether the caches of all layers are rings, so that positions have no end
    """
    count = torch.arange(tokens.shape[1])
    if input_pos is None:
        return CallPositions(count, None, options)
    start: Any = None
    if options.custom and not rolls:
        start = input_pos[0].item()
        check(start >= 0)
        check(start + tokens.shape[1] <= options.length)
    return CallPositions(count + input_pos, start, options)


class KVCache(nn.Module):
    """Keys and values of all positions so far, or of those in the window of a layer."""

    keys: Tensor
    values: Tensor

    def __init__(
        self, options: CacheOptions, groups: int, size: int, dtype: torch.dtype, window: int
    ) -> None:
        super().__init__()
        self.options, self.window = options, window
        length = options.kept(window)
        positions = (length, groups) if options.custom else (groups, length)
        stored = torch.int8 if options.quantized else dtype
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(1, *positions, size, dtype=stored))
            if options.quantized:
                self.register_buffer(f"{name}_scale", torch.ones(1, *positions, 1))
                self.register_buffer(f"{name}_zero", torch.zeros(1, *positions, 1))

    @override
    def forward(self, keys: Tensor, values: Tensor, place: CallPositions) -> tuple[Tensor, Tensor]:
        """Store those of a call; return all.

        Shapes: keys, values: [1, tokens, groups, size]; result: the same with the context for
            tokens, and groups before it unless the operators of ``llama`` are used
        """
        return self._stored("keys", keys, place), self._stored("values", values, place)

    def _stored(self, name: str, new: Tensor, place: CallPositions) -> Tensor:
        if not self.options.custom:
            new = new.transpose(1, 2)
        if not self.options.quantized:
            return self._write(name, new, place)
        scale, zero = _parameters(new)
        rounded = (torch.round(new / scale) + zero).clamp(_LOW, _HIGH).to(torch.int8)
        cache = self._write(name, rounded, place)
        scales = self._write(f"{name}_scale", scale, place)
        zeros = self._write(f"{name}_zero", zero, place)
        return (cache.to(new.dtype) - zeros) * scales

    def _write(self, name: str, new: Tensor, place: CallPositions) -> Tensor:
        cache: Tensor = getattr(self, name)
        options = self.options
        if options.custom and not options.is_ring(self.window):
            UPDATE_CACHE(new, cache, place.start)
        else:
            cache.index_copy_(1 if options.custom else 2, place.slots(self.window), new)
        return cache


def _parameters(values: Tensor) -> tuple[Tensor, Tensor]:
    """Return scale and zero point of each row, so that zero is exact."""
    low = values.amin(-1, keepdim=True).clamp(max=0.0)
    high = values.amax(-1, keepdim=True).clamp(min=0.0)
    scale = ((high - low) / (_HIGH - _LOW)).clamp(min=1e-9)
    return scale, (_LOW - torch.round(low / scale)).clamp(_LOW, _HIGH)


class Attend(nn.Module):
    """Attention of the tokens of a call to all positions until theirs.

    Args:
        options: of the cache
        heads: of the query
        groups: of keys and values; each serves the same number of heads
        size: of a head
        dtype: of the cache
        scale: of the products; None for that of the size
        window: positions a token attends to, 0 for all
        softcap: bound of the products, 0 for none
    """

    def __init__(  # noqa: PLR0913 - the sizes of an attention
        self,
        options: CacheOptions,
        heads: int,
        groups: int,
        size: int,
        dtype: torch.dtype,
        *,
        scale: float | None = None,
        window: int = 0,
        softcap: float = 0.0,
    ) -> None:
        super().__init__()
        self.options, self.repeats = options, heads // groups
        self.scale, self.window, self.softcap = scale, window, softcap
        cache = KVCache(options, groups, size, dtype, window) if options.used else None
        self.kv_cache = cache

    @override
    def forward(self, query: Tensor, keys: Tensor, values: Tensor, place: CallPositions) -> Tensor:
        """Return the attention output.

        Shapes: query, result: [1, tokens, heads, size]; keys, values: [1, tokens, groups, size]
        """
        if self.kv_cache is None:
            keys, values = keys.transpose(1, 2), values.transpose(1, 2)
        else:
            keys, values = self.kv_cache(keys, values, place)
        if self.options.custom and not self.softcap:
            return self._custom(query, keys, values, place)
        if self.options.custom:
            keys, values = keys.transpose(1, 2), values.transpose(1, 2)
        mask = place.mask(self.window)
        query = query.transpose(1, 2)
        if self.repeats > 1:
            keys, values = _repeated(keys, self.repeats), _repeated(values, self.repeats)
        if self.softcap:
            return _capped(query, keys, values, mask, self.scale, self.softcap).transpose(1, 2)
        attend: Any = nn.functional.scaled_dot_product_attention
        return attend(query, keys, values, attn_mask=mask, scale=self.scale).transpose(1, 2)

    def _custom(self, query: Tensor, keys: Tensor, values: Tensor, place: CallPositions) -> Tensor:
        if not self.window:
            return CUSTOM_SDPA(query, keys, values, place.start, None, 0.0, True, self.scale)
        allowed = place.mask(self.window)
        bias = torch.zeros(allowed.shape).masked_fill(allowed.logical_not(), float("-inf"))
        # With a mask the start has no meaning; that of a ring may be beyond its end.
        start = 0 if self.options.is_ring(self.window) else place.start
        return CUSTOM_SDPA(query, keys, values, start, bias, 0.0, False, self.scale)


def _repeated(values: Tensor, times: int) -> Tensor:
    """Return each group as often as heads share it."""
    batch, groups, context, size = values.shape
    wide = values.unsqueeze(2).expand(batch, groups, times, context, size)
    return wide.reshape(batch, groups * times, context, size)


def _capped(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, scale: float | None, cap: float
) -> Tensor:
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    products = torch.matmul(query, keys.transpose(2, 3)) * factor
    bounded = torch.tanh(products / cap) * cap
    hidden = bounded.masked_fill(mask.logical_not(), float("-inf"))
    return torch.matmul(torch.softmax(hidden, -1), values)
