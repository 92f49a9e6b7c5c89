"""Gathers, scatters and the selection of boxes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from runtime.backends.coreml.given import Given, ints, number, positive

_MODES = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


def _gather(
    x: Tensor,
    indices: Given,
    axis: Given = 0,
    batch_dims: Given = 0,
    validate_indices: Given = False,
) -> Tensor:
    del validate_indices  # torch checks them
    dim, batch = positive(axis, x.dim()), int(number(batch_dims))
    places = _places(torch.as_tensor(indices), x.shape[dim])
    if not batch:
        made = x.index_select(dim, places.reshape(-1))
        return made.reshape([*x.shape[:dim], *places.shape, *x.shape[dim + 1 :]])
    rows = [
        _gather(one, at, dim - 1, batch - 1)
        for one, at in zip(x.unbind(0), places.unbind(0), strict=True)
    ]
    return torch.stack(rows)


def _places(indices: Tensor, size: int) -> Tensor:
    found = indices.long()
    return torch.where(found < 0, found + size, found)


def _gather_along(
    x: Tensor, indices: Tensor, axis: Given = 0, validate_indices: Given = False
) -> Tensor:
    del validate_indices
    dim = positive(axis, x.dim())
    return torch.take_along_dim(x, _places(indices, x.shape[dim]), dim)


def _gather_nd(
    x: Tensor, indices: Tensor, batch_dims: Given = 0, validate_indices: Given = False
) -> Tensor:
    del validate_indices
    if number(batch_dims):
        rest = int(number(batch_dims)) - 1
        rows = zip(x.unbind(0), indices.unbind(0), strict=True)
        return torch.stack([_gather_nd(one, at, rest) for one, at in rows])
    return x[tuple(indices.long().unbind(-1))]


def _written(data: Tensor, places: tuple[Any, ...], updates: Tensor, mode: str) -> Tensor:
    """Return data with elements of a flat index changed; equal places add up."""
    index = torch.arange(data.numel()).reshape(data.shape)[places].reshape(-1)
    flat, given = data.reshape(-1), updates.reshape(-1).to(data.dtype)
    if mode == "update":
        return flat.scatter(0, index, given).reshape(data.shape)
    if mode in ("sub", "div"):
        given = -given if mode == "sub" else given.reciprocal()
        mode = "add" if mode == "sub" else "mul"
    if mode not in _MODES:
        raise ValueError(f"the mode {mode} is not known")
    return flat.scatter_reduce(0, index, given, _MODES[mode]).reshape(data.shape)


def _scatter(
    data: Tensor,
    indices: Tensor,
    updates: Tensor,
    axis: Given = 0,
    mode: str = "add",
    validate_indices: Given = False,
) -> Tensor:
    del validate_indices
    dim = positive(axis, data.dim())
    return _written(data, (*[slice(None)] * dim, indices.long()), updates, mode)


def _scatter_along(
    data: Tensor,
    indices: Tensor,
    updates: Tensor,
    axis: Given = 0,
    mode: str = "add",
    validate_indices: Given = False,
) -> Tensor:
    del validate_indices
    dim = positive(axis, data.dim())
    places = [
        torch.arange(size).reshape([-1 if one == at else 1 for one in range(data.dim())])
        for at, size in enumerate(indices.shape)
    ]
    places[dim] = _places(indices, data.shape[dim])
    return _written(data, tuple(places), updates, mode)


def _scatter_nd(
    data: Tensor,
    indices: Tensor,
    updates: Tensor,
    mode: str = "add",
    validate_indices: Given = False,
) -> Tensor:
    del validate_indices
    return _written(data, tuple(indices.long().unbind(-1)), updates, mode)


def _overlap(box: Tensor, others: Tensor) -> Tensor:
    """Return the shares that boxes have in common, each as centre and size."""
    low = torch.maximum(box[:2] - box[2:] / 2, others[:, :2] - others[:, 2:] / 2)
    high = torch.minimum(box[:2] + box[2:] / 2, others[:, :2] + others[:, 2:] / 2)
    common = (high - low).clamp(min=0).prod(-1)
    return common / (box[2:].prod() + others[:, 2:].prod(-1) - common)


def _selected(boxes: Tensor, scores: Tensor, limits: tuple[float, float], most: int) -> list[int]:
    """Return the boxes of one image that are kept, the best first."""
    best = scores.amax(-1)
    order = best.argsort(descending=True, stable=True)
    left: list[int] = [one for one in ints(order) if best[one] > limits[1]]
    kept: list[int] = []
    while left and len(kept) < most:
        first, rest = left[0], left[1:]
        kept.append(first)
        if not rest:
            break
        shares = _overlap(boxes[first], boxes[rest])
        left = [one for place, one in enumerate(rest) if shares[place] <= limits[0]]
    return kept


def _nms(
    boxes: Tensor,
    scores: Tensor,
    iou_threshold: Given,
    max_boxes: Given,
    score_threshold: Given = None,
    per_class_suppression: Given = False,
) -> tuple[Tensor, ...]:
    if per_class_suppression:
        raise ValueError("suppression for each class is not known")
    last = score_threshold is None  # from iOS 17 on the boxes are in the last dimension
    if last:
        boxes, scores = boxes.mT, scores.mT
    most = int(number(max_boxes))
    limits = float(number(iou_threshold)), -torch.inf if last else float(number(score_threshold))
    batch = boxes.shape[0]
    made = boxes.new_zeros(batch, most, 4), scores.new_zeros(batch, most, scores.shape[-1])
    places = torch.full((batch, most), -1)
    counts = torch.zeros(batch, dtype=torch.long)
    for row in range(batch):
        kept = _selected(boxes[row], scores[row], limits, most)
        made[0][row, : len(kept)] = boxes[row, kept]
        made[1][row, : len(kept)] = scores[row, kept]
        places[row, : len(kept)] = torch.tensor(kept, dtype=torch.long)
        counts[row] = len(kept)
    if last:
        return made[0].mT, made[1].mT, places
    return *made, places, counts


TABLE: dict[str, Callable[..., Any]] = {
    "gather": _gather,
    "gather_along_axis": _gather_along,
    "gather_nd": _gather_nd,
    "non_maximum_suppression": _nms,
    "scatter": _scatter,
    "scatter_along_axis": _scatter_along,
    "scatter_nd": _scatter_nd,
}
