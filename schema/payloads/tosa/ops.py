"""TOSA operators, element types and attributes by number.

Source: backends/arm/tosa/schemas/tosa_1.0.fbs and tosa_1.1.fbs, which appends to it
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from schema.flatbuf.spec import BOOL, I32, U32, Blob, Spec, Text, Vec, spec

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

# position + 1 = number of the operator and tag of its attribute
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

_Columns = tuple[tuple[str, Any], ...]
_INTS = Vec(I32)
_AXIS: _Columns = (("axis", I32),)
_NAN: _Columns = (("nan_mode", U32),)
_CONV: _Columns = (
    ("pad", _INTS),
    ("stride", _INTS),
    ("dilation", _INTS),
    ("local_bound", BOOL),
    ("acc_type", U32),
)
_BLOCK: _Columns = (("block_size", U32),)
_COLUMNS: dict[str, _Columns] = {
    "ARGMAX": (*_AXIS, *_NAN),
    "AVG_POOL2D": (("kernel", _INTS), ("stride", _INTS), ("pad", _INTS), ("acc_type", U32)),
    "CONV2D": _CONV,
    "CONV3D": _CONV,
    "DEPTHWISE_CONV2D": _CONV,
    "FFT2D": (("inverse", BOOL), ("local_bound", BOOL)),
    "MAX_POOL2D": (("kernel", _INTS), ("stride", _INTS), ("pad", _INTS), *_NAN),
    "RFFT2D": (("local_bound", BOOL),),
    "TRANSPOSE_CONV2D": (
        ("out_pad", _INTS),
        ("stride", _INTS),
        ("local_bound", BOOL),
        ("acc_type", U32),
    ),
    "CLAMP": (("min_val", Blob(align=8)), ("max_val", Blob(align=8)), *_NAN),
    "ARITHMETIC_RIGHT_SHIFT": (("round", BOOL),),
    "MAXIMUM": _NAN,
    "MINIMUM": _NAN,
    "REDUCE_ALL": _AXIS,
    "REDUCE_ANY": _AXIS,
    "REDUCE_MAX": (*_AXIS, *_NAN),
    "REDUCE_MIN": (*_AXIS, *_NAN),
    "REDUCE_PRODUCT": _AXIS,
    "REDUCE_SUM": _AXIS,
    "CONCAT": _AXIS,
    "REVERSE": _AXIS,
    "TRANSPOSE": (("perms", _INTS),),
    "RESIZE": (("mode", U32),),
    "RESCALE": (
        ("scale32", BOOL),
        ("rounding_mode", U32),
        ("per_channel", BOOL),
        ("input_unsigned", BOOL),
        ("output_unsigned", BOOL),
    ),
    "CUSTOM": (
        ("operator_name", Text()),
        ("domain_name", Text()),
        ("implementation_attrs", Blob()),
    ),
    "COND_IF": (("then_graph", Text()), ("else_graph", Text())),
    "WHILE_LOOP": (("cond_graph", Text()), ("body_graph", Text())),
    "MATMUL_T_BLOCK_SCALED": _BLOCK,
    "CAST_FROM_BLOCK_SCALED": _BLOCK,
    "CAST_TO_BLOCK_SCALED": _BLOCK,
    "DIM": _AXIS,
    "ASSERT_EQUAL_SHAPE": (("allow_broadcast", BOOL),),
    "CONV2D_BLOCK_SCALED": _BLOCK,
    "MAX_POOL2D_ADAPTIVE": _NAN,
    "AVG_POOL2D_ADAPTIVE": (("acc_type", U32),),
}


@dataclass(frozen=True, slots=True)
class Release:
    """The numbering of one generation of the specification.

    Attributes:
        operators: name by number, 0 is UNKNOWN
        dtypes: name and scalar type by number; -1 where there is no equal type
        attributes: attribute table by union tag
    """

    operators: tuple[str, ...]
    dtypes: tuple[tuple[str, int], ...]
    attributes: tuple[Spec[Any] | None, ...]

    def operator(self, number: int) -> str:
        """Return the name of an operator; one of a newer schema is named by its number."""
        known = 0 < number < len(self.operators)
        return self.operators[number] if known else f"op {number}"

    def dtype(self, number: int) -> tuple[str, int]:
        """Return name and scalar type of an element type."""
        return self.dtypes[number] if number < len(self.dtypes) else (f"dtype {number}", -1)

    def attribute_text(self, field: str, number: int) -> str:
        """Return the name of an enum attribute's value."""
        names = [name for name, _ in self.dtypes] if field in _TYPES else _ENUMS[field]
        return names[number] if number < len(names) else str(number)


def is_enum(field: str) -> bool:
    """Return whether an attribute is the number of a name."""
    return field in _ENUMS or field in _TYPES


RELEASE_1 = Release(
    ("UNKNOWN", *OPERATORS),
    DTYPES,
    (None, *(spec(f"{name} attribute", dict, *_COLUMNS.get(name, ())) for name in OPERATORS)),
)
