"""Dtypes, layouts and formats as numbered by the serde JSON, and as named by pickles.

Source: exir/serde/schema.py (schema 5.x and before), torch/_export/serde/schema.py (6 and later).
"""

from __future__ import annotations

from schema.dtypes.scalar_type import BY_NAME

_COMMON = (
    *("", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"),
    *("complex32", "complex64", "complex128", "bool", "bfloat16"),
)
_EXIR = {14: "uint16", 15: "float8_e5m2", 16: "float8_e4m3fn"}
_TORCH = {14: "float8_e4m3fn", 15: "float8_e5m2"}  # 8.1 only; renumbered 29 and 30 since
_LATER = {
    28: "uint16",
    29: "float8_e4m3fn",
    30: "float8_e5m2",
    31: "float8_e4m3fnuz",
    32: "float8_e5m2fnuz",
    33: "float8_e8m0fnu",
    34: "uint32",
    35: "uint64",
}
MEMORY_FORMATS = {
    1: "contiguous_format",
    2: "channels_last",
    3: "channels_last_3d",
    4: "preserve_format",
}
LAYOUTS = {
    1: "sparse_coo",
    2: "sparse_csr",
    3: "sparse_csc",
    4: "sparse_bsr",
    5: "sparse_bsc",
    6: "_mkldnn",
    7: "strided",
}
FIRST_TORCH_MAJOR = 6  # the exir fork stopped at 5
_STORAGES = {
    "Byte": "uint8",
    "Char": "int8",
    "Short": "int16",
    "Int": "int32",
    "Long": "int64",
    "Half": "float16",
    "Float": "float32",
    "Double": "float64",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
    "Bool": "bool",
    "QInt8": "qint8",
    "QUInt8": "quint8",
    "QInt32": "qint32",
    "BFloat16": "bfloat16",
    "QUInt4x2": "quint4x2",
    "QUInt2x4": "quint2x4",
    "Untyped": "uint8",
}
# dtypes of torch without an ExecuTorch code: shown by name, never decoded
UNKNOWN_TYPE = -1


def serde_dtype_names(major: int) -> dict[int, str]:
    """Return the names of the dtypes by their code in a schema of this major version."""
    forked = _TORCH if major >= FIRST_TORCH_MAJOR else _EXIR
    return {**dict(enumerate(_COMMON)), **_LATER, **forked}


def scalar_type_number(name: str) -> int:
    """Return the scalar type code of a torch dtype name, -1 if unknown."""
    known = BY_NAME.get(name)
    return known.code if known else UNKNOWN_TYPE


STORAGE_TYPES = {f"{name}Storage": BY_NAME[dtype].code for name, dtype in _STORAGES.items()}
