"""Checked quantization parameters of a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runtime.backends.xnnpack.model import INT4_ZERO, REAL, Datatype, Floats, ValueQuantization
from runtime.delegates.errors import DelegateError
from schema.payloads.xnnpack import model as m

MakeError = Callable[[str], DelegateError]
Fetch = Callable[[int], memoryview]

_KINDS: dict[Datatype, tuple[type[object], ...]] = {
    Datatype.QINT8: (m.PerTensorQuant,),
    Datatype.QUINT8: (m.PerTensorQuant,),
    Datatype.QINT32: (m.PerTensorQuant,),
    Datatype.QCINT8: (m.PerChannelQuant,),
    Datatype.QCINT32: (m.PerChannelQuant,),
    Datatype.QCINT4: (m.PerChannelQuant,),
    Datatype.QDINT8: (m.PerTokenDynamicQuant,),
    Datatype.QBINT4: (m.PerChannelGroupQuant,),
}
_RANGES = {
    Datatype.QINT8: (-128, 127),
    Datatype.QUINT8: (0, 255),
    Datatype.QINT32: (0, 0),
}
_LEAST_GROUP = 32  # XNN_MIN_BLOCKSIZE


def range_of(datatype: Datatype) -> tuple[int, int]:
    """Return the smallest and the largest integer of a per-tensor quantized type."""
    return _RANGES[datatype]


def quantization_of(
    datatype: Datatype,
    dims: tuple[int, ...],
    params: m.QuantParams | None,
    fetch: Fetch,
    bad: MakeError,
) -> ValueQuantization | None:
    """Return the quantization of a value, None if it is not quantized.

    Args:
        datatype: of the value
        dims: its sizes
        params: as in the file
        fetch: returns the bytes of a constant
        bad: builds the error for this value

    Raises: DelegateError for parameters that do not fit the value
    """
    if datatype in REAL or datatype == Datatype.INT32:
        if params is not None:
            raise bad(f"is {datatype.name.lower()} with quantization parameters")
        return None
    if params is None or type(params) not in _KINDS[datatype]:
        found = "none" if params is None else type(params).__name__
        raise bad(f"is {datatype.name.lower()} with the quantization parameters {found}")
    if isinstance(params, m.PerTokenDynamicQuant):
        if not 0 < params.num_nonbatch_dims <= max(len(dims), 1):
            raise bad(f"has rows of {params.num_nonbatch_dims} of its {len(dims)} dimensions")
        return ValueQuantization(np.ones(1, np.float32), row_dims=params.num_nonbatch_dims)
    if isinstance(params, m.PerTensorQuant):
        return _whole(datatype, params, bad)
    if isinstance(params, m.PerChannelQuant):
        return _channels(datatype, dims, params, fetch, bad)
    return _groups(dims, params, fetch, bad)


def _whole(datatype: Datatype, params: m.PerTensorQuant, bad: MakeError) -> ValueQuantization:
    low, high = _RANGES[datatype]
    if not low <= params.zero_point <= high:
        raise bad(f"has the zero point {params.zero_point}, outside of {low} to {high}")
    return ValueQuantization(_checked(np.array([params.scale], np.float32), bad), params.zero_point)


def _channels(
    datatype: Datatype,
    dims: tuple[int, ...],
    params: m.PerChannelQuant,
    fetch: Fetch,
    bad: MakeError,
) -> ValueQuantization:
    axis = _axis(params.channel_dim, dims, bad)
    scales = _stored(params, fetch, "<f4", bad)
    if len(scales) != dims[axis]:
        raise bad(f"has {len(scales)} scales for {dims[axis]} channels")
    zero = INT4_ZERO if datatype == Datatype.QCINT4 else 0
    return ValueQuantization(_checked(scales, bad), zero, axis)


def _groups(
    dims: tuple[int, ...], params: m.PerChannelGroupQuant, fetch: Fetch, bad: MakeError
) -> ValueQuantization:
    axis = _axis(params.channel_dim, dims, bad)
    size = params.group_size
    if size < _LEAST_GROUP or size % _LEAST_GROUP:
        raise bad(f"has groups of {size}, which must be a multiple of {_LEAST_GROUP}")
    if len(dims) != 2 or axis != 0 or dims[1] % size:
        raise bad(f"has groups of {size} in the sizes {list(dims)} along dimension {axis}")
    scales = _group_scales(params, fetch, bad)
    count = dims[0] * dims[1] // size
    if len(scales) != count:
        raise bad(f"has {len(scales)} scales for {count} groups")
    return ValueQuantization(_checked(scales, bad), INT4_ZERO, axis, size)


def _group_scales(params: m.PerChannelGroupQuant, fetch: Fetch, bad: MakeError) -> Floats:
    if params.scale_buffer_idx:
        return _from_bf16(_stored(params, fetch, "<u2", bad))
    if params.scale_bf16:
        return _from_bf16(np.array(params.scale_bf16, np.uint16))
    # The kernels have bfloat16 scales; the stock runtime multiplies by this before it truncates.
    wide: Any = np.array(params.scale, np.float32) * np.float32(1.00389105)
    return _from_bf16((wide.view(np.uint32) >> 16).astype(np.uint16))


def _from_bf16(raw: Any) -> Floats:  # noqa: ANN401 - an array of 16-bit integers
    return (raw.astype(np.uint32) << 16).view(np.float32)


def _stored(
    params: m.PerChannelQuant | m.PerChannelGroupQuant, fetch: Fetch, dtype: str, bad: MakeError
) -> Any:  # noqa: ANN401 - an array of that type
    if not params.scale_buffer_idx:
        return np.array(params.scale, np.float32)
    data = fetch(params.scale_buffer_idx)
    size = np.dtype(dtype).itemsize
    if len(data) < params.num_scales * size:
        raise bad(f"has {params.num_scales} scales in a constant of {len(data)} bytes")
    return np.frombuffer(data, dtype, params.num_scales)


def _axis(axis: int, dims: tuple[int, ...], bad: MakeError) -> int:
    if not 0 <= axis < len(dims):
        raise bad(f"has its channels in dimension {axis} of {len(dims)}")
    return axis


def _checked(scales: Floats, bad: MakeError) -> Floats:
    wrong = scales[~(np.isfinite(scales) & (scales > 0))]
    if len(wrong):
        raise bad(f"has the scale {float(wrong[0]):g}")
    return scales
