"""The operations of the MLX payload and their fields.

The schema has only been appended to since release 1.3.0, its first. Source:
backends/mlx/serialization/schema.fbs of releases 1.3.0 to 1.5.1
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from schema.flatbuf.spec import BOOL, F32, I8, I32, U32, U64, Spec, String, Union, columns, spec

# The members of the union, in the order of their tags.
_UNION_MEMBERS = (
    "Noop IdCopy Addmm ItemInt ExpandDims Tile TakeAlongAxis Take RMSNorm LayerNorm Rope Sdpa Add "
    "AddInt SubtractInt MultiplyInt FloorDivideInt SymSize Multiply Divide Subtract Conv1D Conv2D "
    "Conv3D Gelu ARange Silu Sigmoid Tanh Squeeze Split Rsqrt Maximum Minimum Log Softmax "
    "BroadcastTo Pad Where Reshape Transpose AsStrided Contiguous Gather Slice AsType Concatenate "
    "Full FullLike Argmax SliceUpdate IndexCopy Dequantize Less LessEqual Greater GreaterEqual "
    "Equal NotEqual LogicalNot LogicalAnd LogicalOr Tri Tril Triu Floor Ceil Square Exp Sin Cos "
    "Tan Arcsin Arccos Arctan Sinh Cosh Arcsinh Arccosh Arctanh Log2 Log10 Log1p Erf Expm1 Round "
    "Reciprocal Sqrt Abs Neg Atan2 LogAddExp FloorDivide Power LogSumExp Sum Mean Var Std Prod "
    "Max Min Argmin Median ModInt Remainder ConvTranspose1D ConvTranspose2D ConvTranspose3D Clip "
    "Cumsum Stack Sign Any All Repeat Sort Argsort Partition ArgPartition QuantizedMatmul "
    "ScatterAdd GatherMm GatherQmm Scan MetalKernel BitwiseInvert Roll BitwiseAnd BitwiseOr "
    "BitwiseXor If RandomBits UpdateAndAttend Trunc Flip"
)
NAMES: tuple[str, ...] = tuple(_UNION_MEMBERS.split())

# Operations that share their fields, and those fields in slot order as name:type or
# name:type=default. Types: t a tensor slot, v a value slot, d an int or value slot, g a float
# or value slot, w a value or tensor slot, k an int, value or tensor slot; i u L f b scalars, s a
# string, y a dtype; [x] several. A star marks a chain of instructions, by its index.
_FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "IdCopy Silu Sigmoid Tanh Rsqrt Log Contiguous LogicalNot BitwiseInvert Sign Floor Ceil "
        "Square Exp Sin Cos Tan Arcsin Arccos Arctan Sinh Cosh Arcsinh Arccosh Arctanh Log2 Log10 "
        "Log1p Erf Expm1 Reciprocal Sqrt Abs Neg Trunc": "x:t out:t",
        "Add Multiply Divide Subtract Maximum Minimum Less LessEqual Greater GreaterEqual Equal "
        "NotEqual LogicalAnd LogicalOr BitwiseAnd BitwiseOr BitwiseXor Atan2 LogAddExp "
        "FloorDivide Remainder Power": "a:t b:t out:t",
        "AddInt SubtractInt MultiplyInt FloorDivideInt ModInt": "a:d b:d out:v",
        "LogSumExp Sum Mean Prod Max Min Median Any All": "x:t out:t axes:[i] keepdims:b",
        "Var Std": "x:t out:t axes:[i] keepdims:b ddof:i",
        "Argmax Argmin": "x:t out:t axis:i keepdims:b",
        "ExpandDims Sort Argsort": "x:t out:t axis:i",
        "Partition ArgPartition": "x:t out:t kth:d axis:i",
        "Tril Triu": "x:t out:t k:i",
        "BroadcastTo Reshape": "x:t out:t shape:[d]",
        "Concatenate Stack": "tensors:[t] out:t axis:i",
        "Slice": "x:t out:t axis:d start:d stop:d step:i=1",
        "SliceUpdate": "dst:t update:t out:t axis:d start:d stop:d step:i=1",
        "IndexCopy": "dst:t update:t indices:t out:t axis:i",
        "Noop": "",
        "Addmm": "mat1:t mat2:t out:t bias:t alpha:f=1 beta:f=1",
        "ItemInt": "x:t out:v",
        "Tile": "x:t out:t reps:[d]",
        "TakeAlongAxis": "x:t indices:t out:t axis:i",
        "Take": "x:t out:t index:k axis:i",
        "RMSNorm": "x:t weight:t out:t eps:f",
        "LayerNorm": "x:t out:t weight:t bias:t eps:f",
        "Rope": "x:t out:t dims:i offset:w freqs:t traditional:b base:f=500000 scale:f=1",
        "Sdpa": "q:t k:t v:t out:t scale:f mask:t causal:b",
        "UpdateAndAttend": "q:t k:t v:t position:t out:t layer_id:i? scale:f? out_dtype:y?",
        "SymSize": "a:t dim:i out:v",
        "Conv1D": "x:t w:t out:t stride:i=1 padding:i dilation:i=1 groups:i=1",
        "Conv2D": "x:t w:t out:t stride_h:i=1 stride_w:i=1 padding_h:i padding_w:i "
        "dilation_h:i=1 dilation_w:i=1 groups:i=1",
        "Conv3D": "x:t w:t out:t stride_d:i=1 stride_h:i=1 stride_w:i=1 padding_d:i padding_h:i "
        "padding_w:i dilation_d:i=1 dilation_h:i=1 dilation_w:i=1 groups:i=1",
        "ConvTranspose1D": "x:t w:t out:t stride:i=1 padding:i dilation:i=1 output_padding:i "
        "groups:i=1",
        "ConvTranspose2D": "x:t w:t out:t stride_h:i=1 stride_w:i=1 padding_h:i padding_w:i "
        "dilation_h:i=1 dilation_w:i=1 output_padding_h:i output_padding_w:i groups:i=1",
        "ConvTranspose3D": "x:t w:t out:t stride_d:i=1 stride_h:i=1 stride_w:i=1 padding_d:i "
        "padding_h:i padding_w:i dilation_d:i=1 dilation_h:i=1 dilation_w:i=1 output_padding_d:i "
        "output_padding_h:i output_padding_w:i groups:i=1",
        "Gelu": "x:t out:t approximate:s",
        "ARange": "out:t start:d stop:d step:d scalar_type:y?",
        "Squeeze": "x:t out:t dims:[i]",
        "Split": "x:t outs:[t] sizes:[d] axis:i",
        "Softmax": "x:t out:t axis:i precise:b",
        "Pad": "x:t out:t pad_width:[d] mode:s constant_value:f",
        "Where": "condition:t x:t y:t out:t",
        "Transpose": "x:t out:t perm:[i]",
        "AsStrided": "x:t out:t shape:[d] strides:[d] offset:L",
        "Gather": "x:t indices:[t] out:t axes:[i] slice_sizes:[i]",
        "AsType": "x:t out:t scalar_type:y",
        "QuantizedMatmul": "x:t w:t scales:t out:t biases:t group_size:i bits:i mode:s "
        "transpose:b=1",
        "ScatterAdd": "x:t indices:t updates:t out:t axis:i",
        "Full": "out:t shape:[d] v:g scalar_type:y",
        "FullLike": "x:t out:t v:g scalar_type:y?",
        "Dequantize": "w:t scales:t out:t biases:t group_size:i bits:i mode:s global_scale:t "
        "dtype:y?",
        "Tri": "out:t n:d m:d k:i scalar_type:y",
        "Clip": "x:t out:t a_min:t a_max:t",
        "Cumsum": "x:t out:t axis:i reverse:b inclusive:b=1",
        "Repeat": "x:t out:t repeats:d axis:i",
        "Roll": "x:t out:t shift:[d] axes:[i]",
        "Round": "x:t out:t decimals:i",
        "GatherMm": "a:t b:t out:t lhs_indices:t rhs_indices:t sorted_indices:b "
        "sorted_indices_flag:d",
        "GatherQmm": "x:t w:t scales:t out:t mode:s biases:t lhs_indices:t rhs_indices:t "
        "transpose:b=1 group_size:i bits:i sorted_indices:b sorted_indices_flag:d",
        "Scan": "originals:[t] sliced:[t] outputs:[t] carry:[t] body_chain_idx:*i scan_axis:i=1",
        "If": "cond:d then_chain_idx:*u else_chain_idx:*u",
        "RandomBits": "out:t shape:[d] seed:v width:i=4",
        "MetalKernel": "name:s source:s inputs:[t] outputs:[t] grid:[d] threadgroup:[d] header:s "
        "input_names:[s] output_names:[s] ensure_row_contiguous:b=1 atomic_outputs:b "
        "output_shapes_flat:[d] output_shape_lengths:[i] output_dtypes:[y] template_arg_names:[s] "
        "template_arg_kinds:[y] template_arg_values:[i] init_value:f?",
        "Flip": "x:t out:t axes:[i]",
    }
)


@dataclass(frozen=True, slots=True)
class MlxOperation:
    """An operation: its name, and its fields by name."""

    kind: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OperationColumn:
    """A field: its name, and its type in the letters of the table above."""

    name: str
    code: str

    @property
    def is_output(self) -> bool:
        """Return whether the operation writes the slots it names."""
        return self.name in ("out", "outs", "outputs", "sliced", "carry")

    @property
    def is_input(self) -> bool:
        """Return whether the operation reads the slots it names."""
        return self.name == "carry" or not self.is_output


_TYPES: Mapping[str, Any] = MappingProxyType(
    {
        "t": U32,
        "v": U32,
        "i": I32,
        "u": U32,
        "L": U64,
        "f": F32,
        "b": BOOL,
        "y": I8,
        "s": String(),
    }
    | {
        letter: spec(name, dict[str, Any], *columns(row))
        for letter, name, row in (
            ("d", "IntOrVid", "literal:i64 vid:u32? is_vid:bool"),
            ("g", "FloatOrVid", "literal:f64 vid:u32? is_vid:bool"),
            ("w", "VidOrTid", "vid:u32? tid:u32? is_vid:bool"),
            ("k", "IntOrVidOrTid", "literal:i64 vid:u32? tid:u32? kind:u8"),
        )
    }
)


def _read(item: str) -> tuple[OperationColumn, tuple[Any, ...]]:
    name, _, kind = item.replace("?", "").partition("=")[0].partition(":")
    item = item.replace("*", "")
    if kind.strip("[]") in ("t", "v"):  # a slot is a structure: there, or not
        item += "?"
    return OperationColumn(name, kind), columns(item, _TYPES)[0]


_ALL = {
    name: tuple(map(_read, row.split())) for names, row in _FIELDS.items() for name in names.split()
}
COLUMNS: Mapping[str, tuple[OperationColumn, ...]] = MappingProxyType(
    {name: tuple(column for column, _ in row) for name, row in _ALL.items()}
)


def _make(kind: str, **fields: object) -> MlxOperation:
    return MlxOperation(kind, fields)


def _spec(kind: str) -> Spec[MlxOperation]:
    return spec(f"{kind}Node", partial(_make, kind), *(row for _, row in _ALL[kind]))


def _tag(operation: MlxOperation) -> int:
    return NAMES.index(operation.kind) + 1


UNION = Union("OpNode", (None, *map(_spec, NAMES)), _tag)
