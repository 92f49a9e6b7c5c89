"""The nodes of an XNNPACK payload: one dataclass a table, shared by the kinds that share it.

Source: backends/xnnpack/serialization/schema.fbs
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, TypeAlias

from schema.flatbuf.declare import NOT_STORED, f32, table_of, u32
from schema.flatbuf.spec import Union

Kind: TypeAlias = Annotated[str, NOT_STORED]  # which table of those that share the fields


@dataclass(frozen=True, slots=True)
class Unary:
    """A node with one operand, such as Softmax; see ``kind``."""

    kind: Kind
    input_id: u32 = 0
    output_id: u32 = 0
    flags: u32 = 0


@dataclass(frozen=True, slots=True)
class Binary:
    """A node with two operands, such as Add; see ``kind``."""

    kind: Kind
    input1_id: u32 = 0
    input2_id: u32 = 0
    output_id: u32 = 0
    flags: u32 = 0


@dataclass(frozen=True, slots=True)
class Concatenate:
    """Concatenate2 to Concatenate5; ids beyond the count in the kind are unused."""

    kind: Kind
    axis: u32 = 0
    input1_id: u32 = 0
    input2_id: u32 = 0
    input3_id: u32 = 0
    input4_id: u32 = 0
    output_id: u32 = 0
    flags: u32 = 0
    input5_id: u32 = 0


@dataclass(frozen=True, slots=True)
class Convolution:
    """Conv2d, DepthwiseConv2d and ConvTranspose2d."""

    kind: Kind
    padding_top: u32 = 0
    padding_right: u32 = 0
    padding_bottom: u32 = 0
    padding_left: u32 = 0
    kernel_height: u32 = 0
    kernel_width: u32 = 0
    subsampling_height: u32 = 0
    subsampling_width: u32 = 0
    dilation_height: u32 = 0
    dilation_width: u32 = 0
    group_input_channels: u32 = 0
    group_output_channels: u32 = 0
    groups: u32 = 0
    adjustment_height: u32 = 0
    adjustment_width: u32 = 0
    input1_id: u32 = 0
    filter_id: u32 = 0
    bias_id: u32 = 0
    output_id: u32 = 0
    flags: u32 = 0


@dataclass(frozen=True, slots=True)
class Pooling:
    """AvgPooling2d and MaxPooling2d."""

    kind: Kind
    padding_top: u32 = 0
    padding_right: u32 = 0
    padding_bottom: u32 = 0
    padding_left: u32 = 0
    pooling_height: u32 = 0
    pooling_width: u32 = 0
    stride_height: u32 = 0
    stride_width: u32 = 0
    dilation_height: u32 = 0
    dilation_width: u32 = 0
    input_id: u32 = 0
    output_id: u32 = 0
    flags: u32 = 0


@dataclass(frozen=True, slots=True)
class ArgMaxPooling:
    """ArgMaxPooling2d: the largest value of each window and its index."""

    kind: Kind
    padding_top: u32 = 0
    padding_right: u32 = 0
    padding_bottom: u32 = 0
    padding_left: u32 = 0
    pooling_height: u32 = 0
    pooling_width: u32 = 0
    input_id: u32 = 0
    output_value_id: u32 = 0
    output_index_id: u32 = 0
    flags: u32 = 0


@dataclass(frozen=True, slots=True)
class FullyConnected:
    """A linear layer; with flag 1 the weight is [in, out]."""

    kind: Kind
    input1_id: u32 = 0
    filter_id: u32 = 0
    bias_id: u32 = 0
    output_id: u32 = 0
    flags: u32 = 0


@dataclass(frozen=True, slots=True)
class StaticTranspose:
    """A permutation of dimensions known at compile time."""

    kind: Kind
    num_dims: u32 = 0
    perm: tuple[u32, ...] = ()
    input_id: u32 = 0
    output_id: u32 = 0
    flags: u32 = 0


@dataclass(frozen=True, slots=True)
class StaticResize:
    """StaticResizeBilinear2D."""

    kind: Kind
    new_height: u32 = 0
    new_width: u32 = 0
    input_id: u32 = 0
    output_id: u32 = 0
    flags: u32 = 0


@dataclass(frozen=True, slots=True)
class StaticPad:
    """StaticConstantPad; paddings a dimension in memory order."""

    kind: Kind
    pre_paddings: tuple[u32, ...] = ()
    post_paddings: tuple[u32, ...] = ()
    padding_value: f32 = 0.0
    input_id: u32 = 0
    output_id: u32 = 0
    flags: u32 = 0


@dataclass(frozen=True, slots=True)
class StaticReshape:
    """A reshape; a 0 in the new shape is inferred."""

    kind: Kind
    num_dims: u32 = 0
    new_shape: tuple[u32, ...] = ()
    input_id: u32 = 0
    output_id: u32 = 0
    flags: u32 = 0


@dataclass(frozen=True, slots=True)
class StaticSlice:
    """A slice with step 1."""

    kind: Kind
    num_dims: u32 = 0
    offsets: tuple[u32, ...] = ()
    sizes: tuple[u32, ...] = ()
    input_id: u32 = 0
    output_id: u32 = 0
    flags: u32 = 0


@dataclass(frozen=True, slots=True)
class LeakyReLU:
    """LeakyReLU."""

    kind: Kind
    negative_slope: f32 = 0.0
    input_id: u32 = 0
    output_id: u32 = 0
    flags: u32 = 0


@dataclass(frozen=True, slots=True)
class ELU:
    """ELU."""

    kind: Kind
    alpha: f32 = 0.0
    input_id: u32 = 0
    output_id: u32 = 0
    flags: u32 = 0


@dataclass(frozen=True, slots=True)
class Attention:
    """ScaledDotProductAttention; in the schema, not implemented by the stock runtime."""

    kind: Kind
    query_id: u32 = 0
    key_id: u32 = 0
    value_id: u32 = 0
    scale_id: u32 = 0
    mask_id: u32 = 0
    output_id: u32 = 0
    flags: u32 = 0


NodeForm: TypeAlias = (
    Unary
    | Binary
    | Concatenate
    | Convolution
    | Pooling
    | ArgMaxPooling
    | FullyConnected
    | StaticTranspose
    | StaticResize
    | StaticPad
    | StaticReshape
    | StaticSlice
    | LeakyReLU
    | ELU
    | Attention
)

# The position is the union tag; the first is NONE.
NODE_KINDS: tuple[tuple[str, type[Any]], ...] = (
    ("Add", Binary),
    ("FullyConnected", FullyConnected),
    ("Softmax", Unary),
    ("Sigmoid", Unary),
    ("StaticTranspose", StaticTranspose),
    ("Clamp", Unary),
    ("Conv2d", Convolution),
    ("Div", Binary),
    ("StaticResizeBilinear2D", StaticResize),
    ("StaticConstantPad", StaticPad),
    ("AvgPooling2d", Pooling),
    ("Minimum", Binary),
    ("DepthwiseConv2d", Convolution),
    ("MaxPooling2d", Pooling),
    ("Multiply", Binary),
    ("Subtract", Binary),
    ("Floor", Unary),
    ("Convert", Unary),
    ("GlobalAvgPooling2d", Unary),
    ("StaticReshape", StaticReshape),
    ("ArgMaxPooling2d", ArgMaxPooling),
    ("SquareRoot", Unary),
    ("Ceiling", Unary),
    ("Hardswish", Unary),
    ("LeakyReLU", LeakyReLU),
    ("Maximum", Binary),
    ("Negate", Unary),
    ("Square", Unary),
    ("ELU", ELU),
    ("Abs", Unary),
    ("PReLU", Binary),
    ("Concatenate2", Concatenate),
    ("Concatenate3", Concatenate),
    ("Concatenate4", Concatenate),
    ("StaticSlice", StaticSlice),
    ("ScaledDotProductAttention", Attention),
    ("BatchMatrixMultiply", Binary),
    ("Concatenate5", Concatenate),
    ("ConvTranspose2d", Convolution),
    ("ReciprocalSquareRoot", Unary),
    ("Log", Unary),
    ("Gelu", Unary),
    ("Tanh", Unary),
    ("Exp", Unary),
    ("Sin", Unary),
    ("Copy", Unary),
    ("Cos", Unary),
)
TAG_OF_KIND = {kind: tag for tag, (kind, _) in enumerate(NODE_KINDS, start=1)}
FORM_OF_KIND = dict(NODE_KINDS)


def _tag(value: NodeForm) -> int:
    return TAG_OF_KIND[value.kind]


NODE_UNION = Union(
    "XNodeUnion",
    (None, *(table_of(form, f"XNN{kind}", partial(form, kind)) for kind, form in NODE_KINDS)),
    _tag,
)
