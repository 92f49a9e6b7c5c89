"""Convolutions, pools and resizing of MIL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from runtime.backends.coreml.given import Given, ints, number, several

_CONVS = (F.conv1d, F.conv2d, F.conv3d)
_TRANSPOSED = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)
_AVERAGES = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)
_MAXIMA = (F.max_pool1d, F.max_pool2d, F.max_pool3d)


def _padding(
    kind: str,
    pad: Given,
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
) -> list[tuple[int, int]]:
    """Return the padding before and after each dimension; kernels are dilated already."""
    if kind == "valid":
        return [(0, 0)] * len(sizes)
    if kind == "custom":
        flat = several(pad, 2 * len(sizes), 0)
        return [(flat[2 * dim], flat[2 * dim + 1]) for dim in range(len(sizes))]
    if kind not in ("same", "same_lower"):
        raise ValueError(f"the padding {kind} is not known")
    found: list[tuple[int, int]] = []
    for size, width, stride in zip(sizes, kernel, strides, strict=True):
        whole = max(0, (-(-size // stride) - 1) * stride + width - size)
        half = whole // 2
        found.append((half, whole - half) if kind == "same" else (whole - half, half))
    return found


def _padded(x: Tensor, pads: Sequence[tuple[int, int]], value: float = 0.0) -> Tensor:
    if not any(before or after for before, after in pads):
        return x
    return F.pad(x, [one for pair in reversed(pads) for one in pair], value=value)


def _symmetric(pads: Sequence[tuple[int, int]]) -> list[int] | None:
    return [one for one, _ in pads] if all(a == b >= 0 for a, b in pads) else None


def _dilated(kernel: Sequence[int], dilations: Sequence[int]) -> list[int]:
    return [(one - 1) * by + 1 for one, by in zip(kernel, dilations, strict=True)]


def conv(  # noqa: PLR0913 - those of the operator
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    strides: Given = None,
    pad_type: str = "valid",
    pad: Given = None,
    dilations: Given = None,
    groups: Given = 1,
) -> Tensor:
    """Return a convolution of one, two or three dimensions."""
    rank = x.dim() - 2
    steps, wide = several(strides, rank, 1), several(dilations, rank, 1)
    kernel = _dilated(weight.shape[2:], wide)
    pads = _padding(pad_type, pad, x.shape[2:], kernel, steps)
    around = _symmetric(pads)
    if around is None:
        x, around = _padded(x, pads), [0] * rank
    return _CONVS[rank - 1](x, weight, bias, steps, around, wide, int(number(groups)))


def conv_transpose(  # noqa: PLR0913 - those of the operator
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    pad: Given = None,
    output_shape: Given = None,
    pad_type: str = "valid",
    strides: Given = None,
    dilations: Given = None,
    groups: Given = 1,
) -> Tensor:
    """Return a transposed convolution; its padding is cut off the result."""
    rank = x.dim() - 2
    steps, wide = several(strides, rank, 1), several(dilations, rank, 1)
    full = _TRANSPOSED[rank - 1](x, weight, None, steps, 0, 0, int(number(groups)), wide)
    sizes = full.shape[2:]
    if pad_type in ("same", "same_lower"):
        wanted = [size * step for size, step in zip(x.shape[2:], steps, strict=True)]
        extra = [max(0, a - b) for a, b in zip(sizes, wanted, strict=True)]
        low = [one // 2 if pad_type == "same" else one - one // 2 for one in extra]
    else:
        pads = _padding(pad_type, pad, sizes, sizes, steps)
        low = [before for before, _ in pads]
        wanted = [size - sum(pair) for size, pair in zip(sizes, pads, strict=True)]
    if output_shape is not None:
        wanted = ints(output_shape)[-rank:]
    ends = [start + size for start, size in zip(low, wanted, strict=True)]
    missing = [(0, max(0, end - size)) for end, size in zip(ends, sizes, strict=True)]
    made = _padded(full, missing)
    place = tuple(slice(a, b) for a, b in zip(low, ends, strict=True))
    made = made[(slice(None), slice(None), *place)]
    return made if bias is None else made + bias.reshape(-1, *[1] * rank)


def _pool_places(
    x: Tensor, kernel: Sequence[int], strides: Sequence[int], kind: str, pad: Given
) -> tuple[list[tuple[int, int]], list[int] | None]:
    pads = _padding(kind, pad, x.shape[2:], kernel, strides)
    around = _symmetric(pads)
    fits = around is not None and all(
        2 * one <= width for one, width in zip(around, kernel, strict=True)
    )
    return pads, around if fits else None


def avg_pool(  # noqa: PLR0913 - those of the operator
    x: Tensor,
    kernel_sizes: Given,
    strides: Given = None,
    pad_type: str = "valid",
    pad: Given = None,
    exclude_padding_from_average: Given = False,
    ceil_mode: Given = False,
) -> Tensor:
    """Return averages of windows, with or without the padding."""
    rank = x.dim() - 2
    kernel, steps = ints(kernel_sizes), several(strides, rank, 1)
    pads, around = _pool_places(x, kernel, steps, pad_type, pad)
    counts = not exclude_padding_from_average
    run: Callable[..., Tensor] = _AVERAGES[rank - 1]
    if around is not None:
        return run(x, kernel, steps, around, bool(ceil_mode), counts)
    made = run(_padded(x, pads), kernel, steps, 0, bool(ceil_mode))
    if counts:
        return made
    ones = torch.ones_like(x[:1, :1])
    return made / run(_padded(ones, pads), kernel, steps, 0, bool(ceil_mode))


def max_pool(
    x: Tensor,
    kernel_sizes: Given,
    strides: Given = None,
    pad_type: str = "valid",
    pad: Given = None,
    ceil_mode: Given = False,
) -> Tensor:
    """Return maxima of windows."""
    rank = x.dim() - 2
    kernel, steps = ints(kernel_sizes), several(strides, rank, 1)
    pads, around = _pool_places(x, kernel, steps, pad_type, pad)
    run: Callable[..., Tensor] = _MAXIMA[rank - 1]
    if around is None:
        x, around = _padded(x, pads, -torch.inf), [0] * rank
    return run(x, kernel, steps, around, 1, bool(ceil_mode))


def l2_pool(x: Tensor, kernel_sizes: Given, **facts: Given) -> Tensor:
    """Return roots of the sums of squares of windows."""
    kernel = ints(kernel_sizes)
    count = 1
    for width in kernel:
        count *= width
    return (avg_pool(x * x, kernel, **facts) * count).sqrt()


def positions(mode: str, size: float, target: int) -> Tensor:
    """Return where a row of pixels is sampled."""
    at = torch.arange(target, dtype=torch.float32)
    if mode == "ALIGN_CORNERS" and target == 1:
        return torch.tensor([(size - 1) / 2])
    if mode in ("ALIGN_CORNERS", "STRICT_ALIGN_CORNERS"):
        found = at * ((size - 1) / max(1, target - 1))
    elif mode == "DEFAULT":
        found = at * (size / target)
    elif mode == "UNALIGN_CORNERS":
        found = (at + 0.5) * (size / target) - 0.5
    elif mode == "OFFSET_CORNERS":
        found = (at + 0.5) * (max(1, size - 1) / target)
    else:
        raise ValueError(f"the sampling mode {mode} is not known")
    return found.clamp(0, size - 1)


def _along(x: Tensor, dim: int, target: int, mode: str, *, nearest: bool) -> Tensor:
    size = x.shape[dim]
    at = positions(mode, size, target)
    if nearest:
        places = (at if mode == "DEFAULT" else at + 0.5).floor().long().clamp(0, size - 1)
        return x.index_select(dim, places)
    low = at.floor().long()
    share = (at - low).reshape([-1 if one == dim % x.dim() else 1 for one in range(x.dim())])
    first = x.index_select(dim, low)
    second = x.index_select(dim, (low + 1).clamp(max=size - 1))
    return first + (second - first) * share


def _sized(x: Tensor, height: int, width: int, mode: str, *, nearest: bool = False) -> Tensor:
    """Return the last two dimensions resized."""
    torchs = {"UNALIGN_CORNERS": False, "STRICT_ALIGN_CORNERS": True}
    if not nearest and mode in torchs:
        flat = x.reshape(1, -1, *x.shape[-2:])
        made = F.interpolate(flat, (height, width), mode="bilinear", align_corners=torchs[mode])
        return made.reshape(*x.shape[:-2], height, width)
    rows = _along(x, -2, height, mode, nearest=nearest)
    return _along(rows, -1, width, mode, nearest=nearest)


def _scaled(x: Tensor, height: Given, width: Given) -> tuple[int, int]:
    return int(x.shape[-2] * number(height)), int(x.shape[-1] * number(width))


def _upsample_nearest(
    x: Tensor, scale_factor_height: Given = 1, scale_factor_width: Given = 1
) -> Tensor:
    sizes = _scaled(x, scale_factor_height, scale_factor_width)
    return _sized(x, *sizes, "DEFAULT", nearest=True)


def _upsample_bilinear(
    x: Tensor,
    scale_factor_height: Given = 1,
    scale_factor_width: Given = 1,
    align_corners: Given = True,
    half_pixel_centers: Given = None,
) -> Tensor:
    sizes = _scaled(x, scale_factor_height, scale_factor_width)
    if align_corners:
        return _sized(x, *sizes, "STRICT_ALIGN_CORNERS")
    return _sized(x, *sizes, "DEFAULT" if half_pixel_centers is False else "UNALIGN_CORNERS")


def _resize_nearest(x: Tensor, target_size_height: Given, target_size_width: Given) -> Tensor:
    sizes = int(number(target_size_height)), int(number(target_size_width))
    return _sized(x, *sizes, "DEFAULT", nearest=True)


def _resize_bilinear(
    x: Tensor,
    target_size_height: Given = 1,
    target_size_width: Given = 1,
    sampling_mode: str = "DEFAULT",
) -> Tensor:
    sizes = int(number(target_size_height)), int(number(target_size_width))
    return _sized(x, *sizes, sampling_mode)


def _resize(
    x: Tensor,
    shape: Given,
    resized_dims: Given,
    interpolation_mode: str = "LINEAR",
    sampling_mode: str = "DEFAULT",
) -> Tensor:
    count = int(number(resized_dims))
    wanted = ints(shape)[-count:] if count else []
    for place, target in enumerate(wanted):
        dim = x.dim() - count + place
        if target and target != x.shape[dim]:
            nearest = interpolation_mode == "NEAREST_NEIGHBOR"
            x = _along(x, dim, target, sampling_mode, nearest=nearest)
    return x


def _crop(x: Tensor, crop_height: Given, crop_width: Given) -> Tensor:
    (top, bottom), (left, right) = ints(crop_height), ints(crop_width)
    return x[..., top : x.shape[-2] - bottom, left : x.shape[-1] - right]


_MODES = {"constant": "zeros", "border": "border", "reflection": "reflection"}


def _resample(  # noqa: PLR0913 - those of the operator
    x: Tensor,
    coordinates: Tensor,
    sampling_mode: str,
    padding_mode: str,
    padding_value: Given,
    coordinates_mode: str,
    align_corners: Given,
) -> Tensor:
    grid = coordinates.to(x.dtype)
    if coordinates_mode == "unnormalized":
        sizes = torch.tensor([x.shape[-1], x.shape[-2]], dtype=x.dtype)
        grid, align_corners = 2 * grid / (sizes - 1).clamp(min=1) - 1, True
    elif coordinates_mode == "normalized_zero_to_one":
        grid = 2 * grid - 1
    if padding_mode not in _MODES:
        raise ValueError(f"the padding mode {padding_mode} is not known")
    fill = float(number(padding_value)) if padding_mode == "constant" else 0.0
    made = F.grid_sample(
        x - fill if fill else x, grid, sampling_mode, _MODES[padding_mode], bool(align_corners)
    )
    return made + fill if fill else made


def _affine(  # noqa: PLR0913 - those of the operator
    x: Tensor,
    transform_matrix: Tensor,
    output_height: Given,
    output_width: Given,
    sampling_mode: str = "bilinear",
    padding_mode: str = "constant",
    padding_value: Given = 0.0,
    coordinates_mode: str = "normalized_minus_one_to_one",
    align_corners: Given = True,
) -> Tensor:
    if coordinates_mode != "normalized_minus_one_to_one" or not align_corners:
        raise ValueError("only normalised coordinates with aligned corners are known")
    theta = transform_matrix.reshape(-1, 2, 3).expand(x.shape[0], 2, 3)
    sizes = [*x.shape[:2], int(number(output_height)), int(number(output_width))]
    grid = F.affine_grid(theta, sizes, align_corners=True)
    return _resample(
        x, grid, sampling_mode, padding_mode, padding_value, coordinates_mode, align_corners
    )


TABLE: dict[str, Callable[..., Any]] = {
    "affine": _affine,
    "avg_pool": avg_pool,
    "conv": conv,
    "conv_transpose": conv_transpose,
    "crop": _crop,
    "l2_pool": l2_pool,
    "max_pool": max_pool,
    "resample": _resample,
    "resize": _resize,
    "resize_bilinear": _resize_bilinear,
    "resize_nearest_neighbor": _resize_nearest,
    "upsample_bilinear": _upsample_bilinear,
    "upsample_nearest_neighbor": _upsample_nearest,
}
