"""The nodes of an XNNPACK payload: one dataclass a table, shared by the kinds that share it.

Source: backends/xnnpack/serialization/schema.fbs
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Unary:
    """A node with one operand; ``kind`` says which."""

    kind: str
    input_id: int = 0
    output_id: int = 0
    flags: int = 0


@dataclass(frozen=True, slots=True)
class Binary:
    """A node with two operands; ``kind`` says which."""

    kind: str
    input1_id: int = 0
    input2_id: int = 0
    output_id: int = 0
    flags: int = 0


@dataclass(frozen=True, slots=True)
class Concatenate:
    """Concatenate2 to Concatenate5; ids beyond the number in the kind are unused."""

    kind: str
    axis: int = 0
    input1_id: int = 0
    input2_id: int = 0
    input3_id: int = 0
    input4_id: int = 0
    output_id: int = 0
    flags: int = 0
    input5_id: int = 0


@dataclass(frozen=True, slots=True)
class Convolution:
    """Conv2d, DepthwiseConv2d and ConvTranspose2d."""

    kind: str
    padding_top: int = 0
    padding_right: int = 0
    padding_bottom: int = 0
    padding_left: int = 0
    kernel_height: int = 0
    kernel_width: int = 0
    subsampling_height: int = 0
    subsampling_width: int = 0
    dilation_height: int = 0
    dilation_width: int = 0
    group_input_channels: int = 0
    group_output_channels: int = 0
    groups: int = 0
    adjustment_height: int = 0
    adjustment_width: int = 0
    input1_id: int = 0
    filter_id: int = 0
    bias_id: int = 0
    output_id: int = 0
    flags: int = 0


@dataclass(frozen=True, slots=True)
class Pooling:
    """AvgPooling2d and MaxPooling2d."""

    kind: str
    padding_top: int = 0
    padding_right: int = 0
    padding_bottom: int = 0
    padding_left: int = 0
    pooling_height: int = 0
    pooling_width: int = 0
    stride_height: int = 0
    stride_width: int = 0
    dilation_height: int = 0
    dilation_width: int = 0
    input_id: int = 0
    output_id: int = 0
    flags: int = 0


@dataclass(frozen=True, slots=True)
class ArgMaxPooling:
    """ArgMaxPooling2d: the largest value of each window and its index."""

    kind: str
    padding_top: int = 0
    padding_right: int = 0
    padding_bottom: int = 0
    padding_left: int = 0
    pooling_height: int = 0
    pooling_width: int = 0
    input_id: int = 0
    output_value_id: int = 0
    output_index_id: int = 0
    flags: int = 0


@dataclass(frozen=True, slots=True)
class FullyConnected:
    """A linear layer; flag 1 says that the weight is [in, out]."""

    kind: str
    input1_id: int = 0
    filter_id: int = 0
    bias_id: int = 0
    output_id: int = 0
    flags: int = 0


@dataclass(frozen=True, slots=True)
class StaticTranspose:
    """A permutation of dimensions known at compile time."""

    kind: str
    num_dims: int = 0
    perm: tuple[int, ...] = ()
    input_id: int = 0
    output_id: int = 0
    flags: int = 0


@dataclass(frozen=True, slots=True)
class StaticResize:
    """StaticResizeBilinear2D."""

    kind: str
    new_height: int = 0
    new_width: int = 0
    input_id: int = 0
    output_id: int = 0
    flags: int = 0


@dataclass(frozen=True, slots=True)
class StaticPad:
    """StaticConstantPad; paddings a dimension in memory order."""

    kind: str
    pre_paddings: tuple[int, ...] = ()
    post_paddings: tuple[int, ...] = ()
    padding_value: float = 0.0
    input_id: int = 0
    output_id: int = 0
    flags: int = 0


@dataclass(frozen=True, slots=True)
class StaticReshape:
    """A reshape; a 0 in the new shape is inferred."""

    kind: str
    num_dims: int = 0
    new_shape: tuple[int, ...] = ()
    input_id: int = 0
    output_id: int = 0
    flags: int = 0


@dataclass(frozen=True, slots=True)
class StaticSlice:
    """A slice with step 1."""

    kind: str
    num_dims: int = 0
    offsets: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    input_id: int = 0
    output_id: int = 0
    flags: int = 0


@dataclass(frozen=True, slots=True)
class LeakyReLU:
    """LeakyReLU."""

    kind: str
    negative_slope: float = 0.0
    input_id: int = 0
    output_id: int = 0
    flags: int = 0


@dataclass(frozen=True, slots=True)
class ELU:
    """ELU."""

    kind: str
    alpha: float = 0.0
    input_id: int = 0
    output_id: int = 0
    flags: int = 0


@dataclass(frozen=True, slots=True)
class Attention:
    """ScaledDotProductAttention; in the schema, not implemented by the stock runtime."""

    kind: str
    query_id: int = 0
    key_id: int = 0
    value_id: int = 0
    scale_id: int = 0
    mask_id: int = 0
    output_id: int = 0
    flags: int = 0


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
