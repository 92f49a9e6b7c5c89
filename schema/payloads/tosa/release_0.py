"""TOSA 0.80, written by releases up to 0.7: other numbers, attributes shared between operators.

Source: backends/arm/tosa/schemas/tosa_0.80.fbs of release 0.7
"""

from __future__ import annotations

from typing import Any

from schema.flatbuf.spec import BOOL, I16, I32, U32, Blob, Text, Vec, spec
from schema.payloads.tosa.ops import Release

_OPERATORS = (
    "UNKNOWN ARGMAX AVG_POOL2D CONV2D CONV3D DEPTHWISE_CONV2D FULLY_CONNECTED MATMUL MAX_POOL2D "
    "TRANSPOSE_CONV2D CLAMP RESERVED SIGMOID TANH ADD ARITHMETIC_RIGHT_SHIFT BITWISE_AND "
    "BITWISE_OR BITWISE_XOR INTDIV LOGICAL_AND LOGICAL_LEFT_SHIFT LOGICAL_RIGHT_SHIFT LOGICAL_OR "
    "LOGICAL_XOR MAXIMUM MINIMUM MUL POW SUB TABLE ABS BITWISE_NOT CEIL CLZ EXP FLOOR LOG "
    "LOGICAL_NOT NEGATE RECIPROCAL RSQRT SELECT EQUAL GREATER GREATER_EQUAL REDUCE_ANY REDUCE_ALL "
    "REDUCE_MAX REDUCE_MIN REDUCE_PRODUCT REDUCE_SUM CONCAT PAD RESHAPE REVERSE SLICE TILE "
    "TRANSPOSE GATHER SCATTER RESIZE CAST RESCALE CONST IDENTITY CUSTOM COND_IF WHILE_LOOP FFT2D "
    "RFFT2D ERF DIM"
)
_DTYPES: tuple[tuple[str, int], ...] = (
    ("unknown", -1),
    ("bool", 11),
    ("uint8", 0),
    ("int4", -1),
    ("int8", 1),
    ("int16", 2),
    ("int32", 3),
    ("int48", -1),
    ("float32", 6),
    ("uint16", 27),
    ("float16", 5),
    ("bfloat16", 15),
    ("shape", -1),
)
_INTS, _SHORTS = Vec(I32), Vec(I16)
_ATTRIBUTES: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] = (
    (
        "Pool",
        (
            ("pad", _INTS),
            ("kernel", _INTS),
            ("stride", _INTS),
            ("input_zp", I32),
            ("output_zp", I32),
            ("accum_dtype", U32),
        ),
    ),
    (
        "Conv",
        (
            ("pad", _INTS),
            ("stride", _INTS),
            ("dilation", _INTS),
            ("input_zp", I32),
            ("weight_zp", I32),
            ("local_bound", BOOL),
        ),
    ),
    (
        "TransposeConv",
        (
            ("out_pad", _INTS),
            ("stride", _INTS),
            ("output_shape", _INTS),
            ("input_zp", I32),
            ("weight_zp", I32),
            ("local_bound", BOOL),
        ),
    ),
    ("Pad", (("padding", _INTS), ("pad_const_int", I32), ("pad_const_fp", Blob(align=8)))),
    ("Axis", (("axis", I32),)),
    ("Reshape", (("new_shape", _INTS),)),
    ("Slice", (("start", _INTS), ("size", _INTS))),
    ("Tile", (("multiples", _INTS),)),
    (
        "Resize",
        (("scale", _SHORTS), ("offset", _SHORTS), ("border", _SHORTS), ("mode", U32)),
    ),
    (
        "Clamp",
        (
            ("min_int", I32),
            ("max_int", I32),
            ("min_fp", Blob(align=8)),
            ("max_fp", Blob(align=8)),
        ),
    ),
    (
        "Rescale",
        (
            ("input_zp", I32),
            ("output_zp", I32),
            ("multiplier", _INTS),
            ("shift", _INTS),
            ("scale32", BOOL),
            ("double_round", BOOL),
            ("per_channel", BOOL),
            ("input_unsigned", BOOL),
            ("output_unsigned", BOOL),
        ),
    ),
    ("Mul", (("shift", I32),)),
    ("ArithmeticRightShift", (("round", BOOL),)),
    ("CondIf", (("then_graph", Text()), ("else_graph", Text()))),
    ("WhileLoop", (("cond_graph", Text()), ("body_graph", Text()))),
    ("Transpose", (("perms", _INTS),)),
    ("Table", (("table", _SHORTS),)),
    ("MatMul", (("a_zp", I32), ("b_zp", I32))),
    ("FullyConnected", (("input_zp", I32), ("weight_zp", I32))),
    ("Negate", (("input1_zp", I32), ("output_zp", I32))),
    (
        "Custom",
        (("operator_name", Text()), ("domain_name", Text()), ("implementation_attrs", Blob())),
    ),
    ("FFT", (("inverse", BOOL), ("local_bound", BOOL))),
    ("RFFT", (("local_bound", BOOL),)),
)

RELEASE_0 = Release(
    tuple(_OPERATORS.split()),
    _DTYPES,
    (None, *(spec(f"{name}Attribute", dict, *columns) for name, columns in _ATTRIBUTES)),
)
