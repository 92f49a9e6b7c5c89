"""Cut-outs of boxes, classes, and convolutions of quantized weights.

Source: the descriptions of the operators in coremltools 9.0; they run on Apple's systems only
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from runtime.backends.coreml.given import Given, number
from runtime.backends.coreml.images import conv, positions

_CORNERS = {
    "CORNERS_HEIGHT_FIRST": (0, 1, 2, 3),
    "CORNERS_WIDTH_FIRST": (1, 0, 3, 2),
}
_CENTRES = {
    "CENTER_SIZE_HEIGHT_FIRST": (0, 1, 2, 3),
    "CENTER_SIZE_WIDTH_FIRST": (1, 0, 3, 2),
}


def _crop_resize(  # noqa: PLR0913 - those of the operator
    x: Tensor,
    roi: Tensor | None = None,
    target_height: Given = 1,
    target_width: Given = 1,
    normalized_coordinates: Given = False,
    spatial_scale: Given = 1.0,
    box_coordinate_mode: str = "CORNERS_HEIGHT_FIRST",
    sampling_mode: str = "DEFAULT",
    pad_value: Given = 0.0,
    boxes: Tensor | None = None,
    box_indices: Tensor | None = None,
) -> Tensor:
    """Return the boxes of images at one size.

    Up to iOS 16 each box is cut out of all images, or of the one whose index stands before it;
    since iOS 17 box and index are operands of their own.
    """
    flat = boxes if boxes is not None else roi
    if flat is None:
        raise ValueError("a cut-out needs boxes")
    rows = flat.reshape(flat.shape[0], -1).float()
    indexed = boxes is None and rows.shape[1] == 5
    chosen = rows[:, 0] if indexed else box_indices
    if boxes is not None and chosen is None:
        chosen = torch.arange(rows.shape[0])
    corners = _corners(rows[:, 1:] if indexed else rows, box_coordinate_mode)
    corners = corners * float(number(spatial_scale))
    if bool(number(normalized_coordinates)):
        corners = corners * torch.tensor([x.shape[-2] - 1, x.shape[-1] - 1] * 2)
    sizes = int(number(target_height)), int(number(target_width))
    made: list[Tensor] = []
    for place, box in enumerate(corners):
        images = x if chosen is None else x[int(chosen[place])].unsqueeze(0)
        made.append(_cut(images, box, sizes, sampling_mode, float(number(pad_value))))
    found = torch.stack(made) if made else x.new_empty((0, 1, x.shape[1], *sizes))
    return found.squeeze(1) if boxes is not None else found


def _corners(rows: Tensor, mode: str) -> Tensor:
    """Return boxes as top, left, bottom, right."""
    if mode in _CORNERS:
        return rows[:, list(_CORNERS[mode])]
    if mode not in _CENTRES:
        raise ValueError(f"the box coordinates {mode} are not known")
    centred = rows[:, list(_CENTRES[mode])]
    middle, half = centred[:, :2], centred[:, 2:] / 2
    return torch.cat([middle - half, middle + half], 1)


def _cut(x: Tensor, box: Tensor, sizes: tuple[int, int], mode: str, pad: float) -> Tensor:
    """Return one box of images by bilinear interpolation; outside of them lies the padding."""
    axes = [
        positions(mode, float(end - start) + 1, target) + start
        for start, end, target in zip(box[:2], box[2:], sizes, strict=True)
    ]
    limits = x.shape[-2] - 1, x.shape[-1] - 1
    inside = [(at >= 0) & (at <= last) for at, last in zip(axes, limits, strict=True)]
    for dim, at, last in zip((-2, -1), axes, limits, strict=True):
        clear = at.clamp(0, last)
        low = clear.floor().long()
        share = clear - low
        if dim == -2:
            share = share.unsqueeze(-1)
        first = x.index_select(dim, low)
        x = first + (x.index_select(dim, (low + 1).clamp(max=last)) - first) * share
    return torch.where(inside[0].unsqueeze(-1) & inside[1], x, pad)


def _classify(probabilities: Tensor, classes: Given) -> tuple[Tensor, Tensor]:
    """Return the class of the largest probability, and the probabilities in the order of classes.

    The class is the number that the program gives it; the index of one that has a name.
    """
    index = int(probabilities.reshape(-1).argmax())
    chosen: object = classes[index] if classes.__class__ in (tuple, list) else index
    return torch.tensor(chosen if isinstance(chosen, int) else index), probabilities


def _conv_quantized(  # noqa: PLR0913 - those of the operator
    x: Tensor,
    weight: Tensor,
    quantization_type: str,
    quant_scale: Tensor,
    quant_bias: Tensor,
    bias: Tensor | None = None,
    nbits: Given = 8,
    strides: Given = None,
    pad_type: str = "valid",
    pad: Given = None,
    dilations: Given = None,
    groups: Given = 1,
) -> Tensor:
    """Return a convolution whose weights are ``stored * scale + bias``."""
    del nbits  # weights have a byte each
    if quantization_type != "linear":
        raise ValueError(f"weights of type {quantization_type} have no table of values here")
    scale, offset = (_by_channel(one, weight) for one in (quant_scale, quant_bias))
    real = weight.to(x.dtype) * scale + offset
    own = None if bias is None else bias.to(x.dtype)
    return conv(x, real, own, strides, pad_type, pad, dilations, groups)


def _by_channel(value: Tensor, weight: Tensor) -> Tensor:
    return value.reshape(-1, *[1] * (weight.dim() - 1))


TABLE: dict[str, Callable[..., Any]] = {
    "classify": _classify,
    "conv_quantized": _conv_quantized,
    "crop_resize": _crop_resize,
}
