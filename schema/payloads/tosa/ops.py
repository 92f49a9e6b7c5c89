"""TOSA operators, dtypes and attributes by code.

Source: backends/arm/tosa/schemas/tosa_1.0.fbs and tosa_1.1.fbs, which appends to it
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from schema.flatbuf.spec import Spec, columns, spec

DTYPES: tuple[tuple[str, int], ...] = (
    ("unknown", -1),
    ("bool", 11),
    ("int4", -1),
    ("int8", 1),
    ("int16", 2),
    ("int32", 3),
    ("int48", -1),
    ("float32", 6),
    ("float16", 5),
    ("bfloat16", 15),
    ("shape", -1),
    ("float8_e4m3", 24),
    ("float8_e5m2", 23),
    ("float6_e2m3", -1),
    ("float6_e3m2", -1),
    ("float4_e2m1", -1),
    ("float8_ue8m0", -1),
    ("int64", 4),
    ("mxint8", -1),
)
_ENUMS: dict[str, tuple[str, ...]] = {
    "nan_mode": ("unknown", "propagate", "ignore"),
    "mode": ("unknown", "nearest", "bilinear"),
    "rounding_mode": ("unknown", "single_round", "inexact_round", "double_round"),
}
_TYPES = frozenset({"acc_type", "accum_dtype"})

# position + 1 = code of the operator and tag of its attribute
_NAMES_1_0 = (
    "ARGMAX AVG_POOL2D CONV2D CONV3D DEPTHWISE_CONV2D FFT2D MATMUL MAX_POOL2D RFFT2D "
    "TRANSPOSE_CONV2D CLAMP ERF SIGMOID TANH ADD ARITHMETIC_RIGHT_SHIFT BITWISE_AND BITWISE_OR "
    "BITWISE_XOR INTDIV LOGICAL_AND LOGICAL_LEFT_SHIFT LOGICAL_RIGHT_SHIFT LOGICAL_OR "
    "LOGICAL_XOR MAXIMUM MINIMUM MUL POW SUB TABLE ABS BITWISE_NOT CEIL CLZ COS EXP FLOOR LOG "
    "LOGICAL_NOT NEGATE RECIPROCAL RSQRT SIN SELECT EQUAL GREATER GREATER_EQUAL REDUCE_ALL "
    "REDUCE_ANY REDUCE_MAX REDUCE_MIN REDUCE_PRODUCT REDUCE_SUM CONCAT PAD RESHAPE REVERSE SLICE "
    "TILE TRANSPOSE GATHER SCATTER RESIZE CAST RESCALE CONST IDENTITY CUSTOM COND_IF WHILE_LOOP "
    "VARIABLE VARIABLE_WRITE VARIABLE_READ CONST_SHAPE"
)
_NAMES_1_1 = (
    "MATMUL_T_BLOCK_SCALED CAST_FROM_BLOCK_SCALED CAST_TO_BLOCK_SCALED DIM CONCAT_SHAPE ADD_SHAPE "
    "SUB_SHAPE MUL_SHAPE SLICE_SHAPE EXP2_SHAPE LOG2_CEIL_SHAPE LOG2_FLOOR_SHAPE MAX_SHAPE "
    "MIN_SHAPE MOD_SHAPE DIV_CEIL_SHAPE DIV_FLOOR_SHAPE ASSERT_EQUAL_SHAPE CONV2D_BLOCK_SCALED "
    "MAX_POOL2D_ADAPTIVE AVG_POOL2D_ADAPTIVE"
)
OPERATORS: tuple[str, ...] = (*_NAMES_1_0.split(), *_NAMES_1_1.split())
CONSTANTS = frozenset({"CONST", "CONST_SHAPE"})

_CONV = "pad:[i32] stride:[i32] dilation:[i32] local_bound:bool acc_type:u32"
# The attributes of operators, operators without any are omitted; see `columns`.
_ATTRIBUTES: Mapping[str, str] = MappingProxyType(
    {
        "ARGMAX REDUCE_MAX REDUCE_MIN": "axis:i32 nan_mode:u32",
        "AVG_POOL2D": "kernel:[i32] stride:[i32] pad:[i32] acc_type:u32",
        "CONV2D CONV3D DEPTHWISE_CONV2D": _CONV,
        "FFT2D": "inverse:bool local_bound:bool",
        "MAX_POOL2D": "kernel:[i32] stride:[i32] pad:[i32] nan_mode:u32",
        "RFFT2D": "local_bound:bool",
        "TRANSPOSE_CONV2D": "out_pad:[i32] stride:[i32] local_bound:bool acc_type:u32",
        "CLAMP": "min_val:bytes8 max_val:bytes8 nan_mode:u32",
        "ARITHMETIC_RIGHT_SHIFT": "round:bool",
        "MAXIMUM MINIMUM MAX_POOL2D_ADAPTIVE": "nan_mode:u32",
        "REDUCE_ALL REDUCE_ANY REDUCE_PRODUCT REDUCE_SUM CONCAT REVERSE DIM": "axis:i32",
        "TRANSPOSE": "perms:[i32]",
        "RESIZE": "mode:u32",
        "RESCALE": "scale32:bool rounding_mode:u32 per_channel:bool input_unsigned:bool "
        "output_unsigned:bool",
        "CUSTOM": "operator_name:str domain_name:str implementation_attrs:bytes",
        "COND_IF": "then_graph:str else_graph:str",
        "WHILE_LOOP": "cond_graph:str body_graph:str",
        "MATMUL_T_BLOCK_SCALED CAST_FROM_BLOCK_SCALED CAST_TO_BLOCK_SCALED CONV2D_BLOCK_SCALED": (
            "block_size:u32"
        ),
        "ASSERT_EQUAL_SHAPE": "allow_broadcast:bool",
        "AVG_POOL2D_ADAPTIVE": "acc_type:u32",
    }
)
_ROW_OF = {name: row for names, row in _ATTRIBUTES.items() for name in names.split()}

ATTRIBUTE_NAMES: Mapping[str, tuple[str, ...]] = {
    name: tuple(entry.partition(":")[0] for entry in row.split()) for name, row in _ROW_OF.items()
}
"""Names of the attributes of an operator, in the order of its table."""


@dataclass(frozen=True, slots=True)
class Release:
    """The numbering of one generation of the specification.

    Attributes:
        operators: name by code, 0 is UNKNOWN
        dtypes: name and scalar type by code; -1 without an equivalent type
        attributes: attribute table by union tag
    """

    operators: tuple[str, ...]
    dtypes: tuple[tuple[str, int], ...]
    attributes: tuple[Spec[Any] | None, ...]

    def operator(self, number: int) -> str:
        """Return the name of an operator; one of a newer schema is named by its code."""
        known = 0 < number < len(self.operators)
        return self.operators[number] if known else f"op {number}"

    def dtype(self, number: int) -> tuple[str, int]:
        """Return name and scalar type of a dtype."""
        return self.dtypes[number] if number < len(self.dtypes) else (f"dtype {number}", -1)

    def attribute_text(self, field: str, number: int) -> str:
        """Return the name of an enum attribute's value."""
        names = [name for name, _ in self.dtypes] if field in _TYPES else _ENUMS[field]
        return names[number] if number < len(names) else str(number)


def is_enum(field: str) -> bool:
    """Return whether an attribute is an enumeration."""
    return field in _ENUMS or field in _TYPES


RELEASE_1 = Release(
    ("UNKNOWN", *OPERATORS),
    DTYPES,
    (
        None,
        *(spec(f"{name} attribute", dict, *columns(_ROW_OF.get(name, ""))) for name in OPERATORS),
    ),
)
