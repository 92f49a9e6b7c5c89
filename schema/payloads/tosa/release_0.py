"""TOSA 0.80, written by releases up to 0.7: other codes, attributes shared between operators.

Source: backends/arm/tosa/schemas/tosa_0.80.fbs of release 0.7
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from schema.flatbuf.spec import columns, spec
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
# The members of the attribute union, in the order of their tags.
_ATTRIBUTES: Mapping[str, str] = MappingProxyType(
    {
        "Pool": "pad:[i32] kernel:[i32] stride:[i32] input_zp:i32 output_zp:i32 accum_dtype:u32",
        "Conv": "pad:[i32] stride:[i32] dilation:[i32] input_zp:i32 weight_zp:i32 local_bound:bool",
        "TransposeConv": "out_pad:[i32] stride:[i32] output_shape:[i32] input_zp:i32 weight_zp:i32 "
        "local_bound:bool",
        "Pad": "padding:[i32] pad_const_int:i32 pad_const_fp:bytes8",
        "Axis": "axis:i32",
        "Reshape": "new_shape:[i32]",
        "Slice": "start:[i32] size:[i32]",
        "Tile": "multiples:[i32]",
        "Resize": "scale:[i16] offset:[i16] border:[i16] mode:u32",
        "Clamp": "min_int:i32 max_int:i32 min_fp:bytes8 max_fp:bytes8",
        "Rescale": "input_zp:i32 output_zp:i32 multiplier:[i32] shift:[i32] scale32:bool "
        "double_round:bool per_channel:bool input_unsigned:bool output_unsigned:bool",
        "Mul": "shift:i32",
        "ArithmeticRightShift": "round:bool",
        "CondIf": "then_graph:str else_graph:str",
        "WhileLoop": "cond_graph:str body_graph:str",
        "Transpose": "perms:[i32]",
        "Table": "table:[i16]",
        "MatMul": "a_zp:i32 b_zp:i32",
        "FullyConnected": "input_zp:i32 weight_zp:i32",
        "Negate": "input1_zp:i32 output_zp:i32",
        "Custom": "operator_name:str domain_name:str implementation_attrs:bytes",
        "FFT": "inverse:bool local_bound:bool",
        "RFFT": "local_bound:bool",
    }
)

RELEASE_0 = Release(
    tuple(_OPERATORS.split()),
    _DTYPES,
    (None, *(spec(f"{name}Attribute", dict, *columns(row)) for name, row in _ATTRIBUTES.items())),
)
