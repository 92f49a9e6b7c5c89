"""Operators of MIL that move, select and reduce elements.

Source: coremltools converters/mil/mil/ops/defs
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from runtime.backends.coreml.given import Given, ints, number, positive

Run = Callable[..., Any]


# ---- sizes
def _reshape(x: Tensor, shape: Given) -> Tensor:
    sizes = ints(shape)
    if len(sizes) == x.dim():  # a zero is the size of the input
        sizes = [size or x.shape[dim] for dim, size in enumerate(sizes)]
    return x.reshape(sizes)


def _reshape_like(x: Tensor, ref_tensors: Sequence[Tensor], **given: Given) -> Tensor:
    sizes: list[int] = []
    begins, ends = ints(given["begins"]), ints(given["ends"])
    masks = ints(given["end_masks"])
    for place, like in enumerate(ref_tensors):
        end = like.dim() if masks[place] else ends[place]
        sizes += like.shape[begins[place] : end]
    return x.reshape(sizes)


def _expand_dims(x: Tensor, axes: Given) -> Tensor:
    places = ints(axes)
    rank = x.dim() + len(places)
    for axis in sorted(one + rank if one < 0 else one for one in places):
        x = x.unsqueeze(axis)
    return x


def _squeeze(x: Tensor, axes: Given = None) -> Tensor:
    return x.squeeze() if axes is None else x.squeeze(tuple(ints(axes)))


def _flatten(x: Tensor, axis: Given = 1) -> Tensor:
    before = 1
    for size in x.shape[: int(axis)]:
        before *= size
    return x.reshape(before, -1)


def _tile(x: Tensor, reps: Given) -> Tensor:
    return x.repeat(ints(reps))


def _split(
    x: Tensor, axis: Given, num_splits: Given = None, split_sizes: Given = None
) -> Sequence[Tensor]:
    dim = positive(axis, x.dim())
    if split_sizes is not None:
        return torch.split(x, ints(split_sizes), dim)
    return torch.split(x, x.shape[dim] // int(number(num_splits)), dim)


def _concat(values: Sequence[Tensor], axis: Given, interleave: Given = False) -> Tensor:
    if values[0].dim() == 0:
        return torch.stack(list(values), int(axis))
    if not interleave:
        return torch.cat(list(values), int(axis))
    dim = positive(axis, values[0].dim())
    return torch.stack(list(values), dim + 1).flatten(dim, dim + 1)


def _pad(x: Tensor, pad: Given, mode: str = "constant", constant_val: Given = 0) -> Tensor:
    flat = ints(pad)
    while len(flat) > 2 and flat[:2] == [0, 0]:
        flat = flat[2:]
    pairs = [flat[at : at + 2] for at in range(0, len(flat), 2)]
    order = [one for pair in reversed(pairs) for one in pair]
    if mode == "constant":
        return F.pad(x, order, value=number(constant_val))
    count = len(pairs)
    lead = max(0, count + 1 - x.dim())
    made = x.reshape([1] * lead + [*x.shape]) if lead else x
    if made.dim() > count + 2:  # torch pads the last dimensions of one batch and channel
        made = made.flatten(0, made.dim() - count - 1)
    made = F.pad(made, order, mode=mode)
    return made.reshape([*x.shape[: x.dim() - count], *made.shape[made.dim() - count :]])


# ---- slices
def _slices(x: Tensor, **given: Given) -> tuple[tuple[Any, ...], list[int]]:
    """Return for each dimension an index, and the dimensions counted backwards."""
    rank = x.dim()

    def mask(name: str) -> Sequence[Any]:
        found = given.get(name)
        return [False] * rank if found is None else ints(found)

    stride = given.get("stride")
    steps = [1] * rank if stride is None else ints(stride)
    begins, ends, squeezed = ints(given["begin"]), ints(given["end"]), mask("squeeze_mask")
    first, last = mask("begin_mask"), mask("end_mask")
    places: list[Any] = []
    backwards: list[int] = []
    for dim, size in enumerate(x.shape):
        begin = None if first[dim] else begins[dim]
        if squeezed[dim]:
            places.append(begin or 0)
            continue
        end = None if last[dim] else ends[dim]
        if steps[dim] > 0:
            places.append(slice(begin, end, steps[dim]))
            continue
        taken = range(size)[slice(begin, end, steps[dim])]
        places.append(torch.tensor(list(taken), dtype=torch.long))
        backwards.append(dim)
    return tuple(places), backwards


def _slice_by_index(x: Tensor, begin: Given, end: Given, **given: Given) -> Tensor:
    places, backwards = _slices(x, begin=begin, end=end, **given)
    if not backwards:
        return x[places]
    for dim in backwards:
        x = x.index_select(dim, places[dim])
    return x[tuple(slice(None) if isinstance(one, Tensor) else one for one in places)]


def _slice_update(x: Tensor, update: Tensor, begin: Given, end: Given, **given: Given) -> Tensor:
    places, backwards = _slices(x, begin=begin, end=end, **given)
    if backwards:
        raise ValueError("a slice with a negative stride is written")
    made = x.clone()
    made[places] = update.reshape(made[places].shape)
    return made


def _slice_by_size(x: Tensor, begin: Given, size: Given) -> Tensor:
    places: list[slice] = []
    for dim, (start, count) in enumerate(zip(ints(begin), ints(size), strict=True)):
        first = start + x.shape[dim] if start < 0 else start
        places.append(slice(first, first + count if count > 0 else None))
    return x[tuple(places)]


def _reverse(x: Tensor, axes: Given = None) -> Tensor:
    return x.flip(list(range(x.dim())) if axes is None else ints(axes))


def _reverse_sequence(
    x: Tensor, lengths: Given, seq_axis: Given = 0, batch_axis: Given = 0
) -> Tensor:
    along, batch = positive(seq_axis, x.dim()), positive(batch_axis, x.dim())
    made = x.clone()
    for row, length in enumerate(ints(lengths)):
        part = x.select(batch, row)
        dim = along - (along > batch)
        turned = part.narrow(dim, 0, length).flip(dim)
        made.select(batch, row).narrow(dim, 0, length).copy_(turned)
    return made


def _sliding_windows(x: Tensor, axis: Given, size: Given, stride: Given = 1) -> Tensor:
    dim = positive(axis, x.dim())
    return x.unfold(dim, int(number(size)), int(number(stride))).movedim(-1, dim + 1)


# ---- blocks of pixels
def _depth_to_space(x: Tensor, block_size: Given) -> Tensor:
    n, c, h, w = x.shape
    b = int(number(block_size))
    made = x.reshape(n, b, b, c // (b * b), h, w).permute(0, 3, 4, 1, 5, 2)
    return made.reshape(n, c // (b * b), h * b, w * b)


def _space_to_depth(x: Tensor, block_size: Given) -> Tensor:
    n, c, h, w = x.shape
    b = int(number(block_size))
    made = x.reshape(n, c, h // b, b, w // b, b).permute(0, 3, 5, 1, 2, 4)
    return made.reshape(n, c * b * b, h // b, w // b)


def _space_to_batch(x: Tensor, block_shape: Given, paddings: Given) -> Tensor:
    (high, wide), (top, bottom, left, right) = ints(block_shape), ints(paddings)
    x = F.pad(x, (left, right, top, bottom))
    n, c, h, w = x.shape
    made = x.reshape(n, c, h // high, high, w // wide, wide).permute(3, 5, 0, 1, 2, 4)
    return made.reshape(n * high * wide, c, h // high, w // wide)


def _batch_to_space(x: Tensor, block_shape: Given, crops: Given) -> Tensor:
    (high, wide), (top, bottom, left, right) = ints(block_shape), ints(crops)
    n, c, h, w = x.shape
    made = x.reshape(high, wide, n // (high * wide), c, h, w).permute(2, 3, 4, 0, 5, 1)
    made = made.reshape(n // (high * wide), c, h * high, w * wide)
    return made[..., top : h * high - bottom, left : w * wide - right]


# ---- filled
def _fill(shape: Given, value: Given = 0.0) -> Tensor:
    return torch.full(ints(shape), number(value))


def _fill_like(ref_tensor: Tensor, value: Given = 0.0) -> Tensor:
    return torch.full(list(ref_tensor.shape), number(value))


def _range(start: Given, end: Given, step: Given) -> Tensor:
    return torch.arange(number(start), number(end), number(step))


def _one_hot(
    indices: Tensor,
    one_hot_vector_size: Given,
    axis: Given = -1,
    on_value: Given = 1,
    off_value: Given = 0,
) -> Tensor:
    classes = torch.arange(int(number(one_hot_vector_size)))
    dim = positive(axis, indices.dim() + 1)
    hot = indices.unsqueeze(dim) == classes.reshape(
        [-1 if one == dim else 1 for one in range(indices.dim() + 1)]
    )
    return torch.where(hot, number(on_value), number(off_value))


def _band(x: Tensor, lower: Given = -1, upper: Given = -1) -> Tensor:
    rows = torch.arange(x.shape[-2]).unsqueeze(-1)
    columns = torch.arange(x.shape[-1])
    low, high = int(number(lower)), int(number(upper))
    kept = torch.ones(x.shape[-2:], dtype=torch.bool)
    if low >= 0:
        kept &= rows - columns <= low
    if high >= 0:
        kept &= columns - rows <= high
    return x * kept.to(x.dtype) if x.dtype is not torch.bool else x & kept


def _cumsum(x: Tensor, axis: Given = 0, exclusive: Given = False, reverse: Given = False) -> Tensor:
    dim = positive(axis, x.dim())
    data = x.flip(dim) if reverse else x
    made = data.cumsum(dim)
    if exclusive:
        made = made - data
    return made.flip(dim) if reverse else made


# ---- order
def _argsort(x: Tensor, axis: Given = -1, ascending: Given = False) -> Tensor:
    return torch.argsort(x, dim=int(axis), descending=not ascending, stable=True)


def _topk(  # noqa: PLR0913 - those of the operator
    x: Tensor,
    k: Given = 1,
    axis: Given = -1,
    ascending: Given = False,
    sort: Given = True,
    return_indices: Given = True,
    output_indices_dtype: str = "int32",
) -> tuple[Tensor, ...]:
    del sort, output_indices_dtype  # sorted is one of the orders; the value has its dtype
    dim, count = positive(axis, x.dim()), int(number(k))
    count = x.shape[dim] if count == -1 else count
    found = torch.sort(x, dim=dim, descending=not ascending, stable=True)
    made = tuple(one.narrow(dim, 0, count) for one in found)
    return made if return_indices else made[:1]


# ---- reductions
def _reduced(run: Callable[..., Tensor]) -> Run:
    def called(x: Tensor, axes: Given = None, keep_dims: Given = False) -> Tensor:
        dims = list(range(x.dim())) if axes is None else ints(axes)
        return run(x, dims, bool(keep_dims)) if dims else x

    return called


def _mean(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    return (x if x.is_floating_point() else x.double()).mean(dims, keep)


def _prod(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    for dim in sorted((positive(one, x.dim()) for one in dims), reverse=True):
        x = x.prod(dim, keep)
    return x


def _arg(run: Callable[..., Tensor]) -> Run:
    def called(
        x: Tensor, axis: Given = -1, keep_dims: Given = False, output_dtype: str = "int32"
    ) -> Tensor:
        del output_dtype  # the value has it
        return run(x, int(axis), keepdim=bool(keep_dims))

    return called


_REDUCTIONS: dict[str, Callable[[Any, Any, Any], Tensor]] = {
    "l1_norm": lambda x, dims, keep: x.abs().sum(dims, keep),
    "l2_norm": lambda x, dims, keep: x.square().sum(dims, keep).sqrt(),
    "log_sum": lambda x, dims, keep: x.sum(dims, keep).log(),
    "log_sum_exp": torch.logsumexp,
    "max": torch.amax,
    "mean": _mean,
    "min": torch.amin,
    "prod": _prod,
    "sum": torch.sum,
    "sum_square": lambda x, dims, keep: x.square().sum(dims, keep),
}


# ---- lists
def _make_list(init_length: Given = 1, **_facts: Given) -> list[Any]:
    return [None] * int(number(init_length))


def _list_write(ls: list[Any], index: Given, value: Tensor) -> list[Any]:
    place = int(number(index))
    made = [*ls, *[None] * (place + 1 - len(ls))]
    made[place] = value
    return made


def _list_scatter(ls: list[Any], indices: Given, value: Tensor) -> list[Any]:
    for place, one in zip(ints(indices), value.unbind(0), strict=True):
        ls = _list_write(ls, place, one)
    return ls


_ONE: dict[str, Callable[[Any], Any]] = {
    "non_zero": lambda x: x.nonzero(),
    "shape": lambda x: torch.tensor(x.shape),
    "list_length": lambda ls: torch.tensor(len(ls)),
}
_TWO: dict[str, Callable[[Any, Any], Any]] = {
    "list_gather": lambda ls, indices: torch.stack([ls[one] for one in ints(indices)]),
    "list_read": lambda ls, index: ls[int(number(index))],
    "pixel_shuffle": lambda x, upscale_factor: F.pixel_shuffle(x, int(number(upscale_factor))),
    "pixel_unshuffle": lambda x, downscale_factor: F.pixel_unshuffle(
        x, int(number(downscale_factor))
    ),
    "stack": lambda values, axis: torch.stack(list(values), int(axis)),
    "transpose": lambda x, perm: x.permute(ints(perm)),
}
TABLE: dict[str, Run] = {
    **_ONE,
    **_TWO,
    **{f"reduce_{name}": _reduced(run) for name, run in _REDUCTIONS.items()},
    "argsort": _argsort,
    "band_part": _band,
    "batch_to_space": _batch_to_space,
    "concat": _concat,
    "cumsum": _cumsum,
    "depth_to_space": _depth_to_space,
    "expand_dims": _expand_dims,
    "fill": _fill,
    "fill_like": _fill_like,
    "flatten2d": _flatten,
    "list_scatter": _list_scatter,
    "list_write": _list_write,
    "make_list": _make_list,
    "one_hot": _one_hot,
    "pad": _pad,
    "range_1d": _range,
    "reduce_argmax": _arg(torch.argmax),
    "reduce_argmin": _arg(torch.argmin),
    "reshape": _reshape,
    "reshape_like": _reshape_like,
    "reverse": _reverse,
    "reverse_sequence": _reverse_sequence,
    "slice_by_index": _slice_by_index,
    "slice_by_size": _slice_by_size,
    "slice_update": _slice_update,
    "sliding_windows": _sliding_windows,
    "space_to_batch": _space_to_batch,
    "space_to_depth": _space_to_depth,
    "split": _split,
    "squeeze": _squeeze,
    "tile": _tile,
    "topk": _topk,
}
