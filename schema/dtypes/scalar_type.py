"""ExecuTorch scalar types: codes, names, sizes and numpy views.

Source: scalar_type.fbs; the codes equal those of c10::ScalarType.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class ScalarType:
    """One dtype.

    Attributes:
        code: value in program, flat tensor, bundled program and ETDump files
        name: torch's name without the prefix, as in ``float32``
        short: compact name, as in ``f32``
        item_bytes: bytes an element; 0 for the packed sub-byte types
        numpy: dtype string of a numpy view of the raw bytes, None where numpy has no such type
    """

    code: int
    name: str
    short: str
    item_bytes: int
    numpy: str | None


_TABLE = (
    ScalarType(0, "uint8", "u8", 1, "u1"),
    ScalarType(1, "int8", "i8", 1, "i1"),
    ScalarType(2, "int16", "i16", 2, "<i2"),
    ScalarType(3, "int32", "i32", 4, "<i4"),
    ScalarType(4, "int64", "i64", 8, "<i8"),
    ScalarType(5, "float16", "f16", 2, "<f2"),
    ScalarType(6, "float32", "f32", 4, "<f4"),
    ScalarType(7, "float64", "f64", 8, "<f8"),
    ScalarType(8, "complex32", "c32", 4, None),
    ScalarType(9, "complex64", "c64", 8, "<c8"),
    ScalarType(10, "complex128", "c128", 16, "<c16"),
    ScalarType(11, "bool", "bool", 1, "?"),
    ScalarType(12, "qint8", "qi8", 1, "i1"),
    ScalarType(13, "quint8", "qu8", 1, "u1"),
    ScalarType(14, "qint32", "qi32", 4, "<i4"),
    ScalarType(15, "bfloat16", "bf16", 2, None),
    ScalarType(16, "quint4x2", "qu4x2", 1, None),
    ScalarType(17, "quint2x4", "qu2x4", 1, None),
    ScalarType(18, "bits1x8", "b1x8", 1, None),
    ScalarType(19, "bits2x4", "b2x4", 1, None),
    ScalarType(20, "bits4x2", "b4x2", 1, None),
    ScalarType(21, "bits8", "b8", 1, "u1"),
    ScalarType(22, "bits16", "b16", 2, "<u2"),
    ScalarType(23, "float8_e5m2", "f8e5m2", 1, None),
    ScalarType(24, "float8_e4m3fn", "f8e4m3fn", 1, None),
    ScalarType(25, "float8_e5m2fnuz", "f8e5m2fnuz", 1, None),
    ScalarType(26, "float8_e4m3fnuz", "f8e4m3fnuz", 1, None),
    ScalarType(27, "uint16", "u16", 2, "<u2"),
    ScalarType(28, "uint32", "u32", 4, "<u4"),
    ScalarType(29, "uint64", "u64", 8, "<u8"),
)
BY_CODE = {entry.code: entry for entry in _TABLE}
BY_NAME = {entry.name: entry for entry in _TABLE}


def scalar_type(code: int) -> ScalarType:
    """Return the type of a code; for an unknown code one with a name and size 0."""
    known = BY_CODE.get(code)
    return known or ScalarType(code, f"scalar_type_{code}", f"?{code}", 0, None)


def numel(sizes: tuple[int, ...]) -> int:
    """Return the number of elements of a shape; 1 for rank 0."""
    count = 1
    for size in sizes:
        count *= size
    return count


def tensor_nbytes(code: int, sizes: tuple[int, ...]) -> int:
    """Return the bytes of a dense tensor; 0 for an unknown scalar type."""
    return numel(sizes) * scalar_type(code).item_bytes


def known_nbytes(code: int, sizes: tuple[int, ...]) -> int | None:
    """Return the bytes of a dense tensor, None if type or a negative size hides them."""
    if min(sizes, default=0) < 0:
        return None
    return tensor_nbytes(code, sizes) or (0 if scalar_type(code).item_bytes else None)


def to_float64(raw: np.ndarray, code: int) -> np.ndarray | None:
    """Return raw bytes as a numpy array of values, None if numpy has no such type.

    Shapes: raw uint8[nbytes] -> values[nbytes / item_bytes]; integers keep their own dtype
    """
    kind = scalar_type(code)
    if kind.name == "bool":  # any non-zero byte is true, as in C++
        return raw != 0
    if kind.numpy is not None:
        return np.frombuffer(raw, dtype=kind.numpy)
    if kind.name == "complex32":
        halves = np.frombuffer(raw, dtype="<f2").astype("<f4")
        return np.frombuffer(halves, dtype="<c8")
    if kind.name == "bfloat16":
        bits = np.frombuffer(raw, dtype="<u2").astype("<u4") << 16
        return np.frombuffer(bits, dtype="<f4")
    layout = _FLOAT8.get(kind.name)
    return _float8(raw, *layout) if layout else None


def widened(values: np.ndarray) -> np.ndarray:
    """Return values as float64, signalling NaN of damaged files without a warning.

    Shapes: values [...] -> float64[...]
    """
    with np.errstate(invalid="ignore"):
        return values.astype(np.float64)


# exponent bits, bias, whether infinity exists, whether 0x80 is the only NaN
_FLOAT8 = {
    "float8_e5m2": (5, 15, True, False),
    "float8_e4m3fn": (4, 7, False, False),
    "float8_e5m2fnuz": (5, 16, False, True),
    "float8_e4m3fnuz": (4, 8, False, True),
}


def _float8(
    raw: np.ndarray, exponent_bits: int, bias: int, has_inf: bool, fnuz: bool
) -> np.ndarray:
    mantissa_bits = 7 - exponent_bits
    codes = np.arange(256)
    sign = np.where(codes & 0x80, -1.0, 1.0)
    exponent = (codes >> mantissa_bits) & ((1 << exponent_bits) - 1)
    mantissa = (codes & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    normal = (1 + mantissa) * np.exp2(exponent.astype(float) - bias)
    table = sign * np.where(exponent == 0, mantissa * np.exp2(1.0 - bias), normal)
    top = exponent == (1 << exponent_bits) - 1
    if fnuz:
        table[0x80] = np.nan
    elif has_inf:
        table[top] = np.where(mantissa[top] == 0, sign[top] * np.inf, np.nan)
    else:
        table[codes & 0x7F == 0x7F] = np.nan
    return table.astype(np.float32)[raw]
