"""Field tables of the XNNPACK payload, and its node kinds in union order.

Source: backends/xnnpack/serialization/runtime_schema.fbs, of which schema.fbs is a part
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from schema.flatbuf.spec import F32, I16, I32, U16, U32, U64, Blob, Spec, Text, Union, Vec, spec
from schema.payloads.xnnpack import model as m
from schema.payloads.xnnpack import nodes as n

MAGIC = b"XH00"
IDENTIFIERS = (b"XN01", b"XN00")

# number in the file -> name, scalar type of the raw elements (-1: packed or none)
DATATYPES: dict[int, tuple[str, int]] = {
    0: ("invalid", -1),
    1: ("float32", 6),
    2: ("float16", 5),
    3: ("qint8", 1),
    4: ("quint8", 0),
    5: ("qint32", 3),
    6: ("qcint8", 1),
    7: ("qcint32", 3),
    8: ("qcint4", -1),
    9: ("qdint8", 1),
    10: ("qbint4", -1),
    11: ("qpint8", -1),
    12: ("int32", 3),
    13: ("pfp32", -1),
    14: ("bfloat16", 15),
}

NODE_FLAGS = {
    0x1: "transpose_weights",
    0x2: "transpose_a",
    0x4: "same_padding",
    0x8: "align_corners",
    0x40: "keep_dims",
    0x80: "fp32_static_biases",
    0x1000: "no_broadcast",
}


def _u32(names: str) -> list[tuple[str, Any]]:
    return [(name, U32) for name in names.split()]


_PADDING = "padding_top padding_right padding_bottom padding_left"
_ENDS = "input_id output_id flags"
_FORMS: dict[type[Any], list[tuple[Any, ...]]] = {
    n.Unary: _u32(_ENDS),
    n.Binary: _u32("input1_id input2_id output_id flags"),
    n.Concatenate: _u32("axis input1_id input2_id input3_id input4_id output_id flags input5_id"),
    n.Convolution: _u32(
        f"{_PADDING} kernel_height kernel_width subsampling_height subsampling_width "
        "dilation_height dilation_width group_input_channels group_output_channels groups "
        "adjustment_height adjustment_width input1_id filter_id bias_id output_id flags"
    ),
    n.Pooling: _u32(
        f"{_PADDING} pooling_height pooling_width stride_height stride_width "
        f"dilation_height dilation_width {_ENDS}"
    ),
    n.ArgMaxPooling: _u32(
        f"{_PADDING} pooling_height pooling_width input_id output_value_id output_index_id flags"
    ),
    n.FullyConnected: _u32("input1_id filter_id bias_id output_id flags"),
    n.StaticTranspose: [("num_dims", U32), ("perm", Vec(U32)), *_u32(_ENDS)],
    n.StaticResize: _u32(f"new_height new_width {_ENDS}"),
    n.StaticPad: [
        ("pre_paddings", Vec(U32)),
        ("post_paddings", Vec(U32)),
        ("padding_value", F32),
        *_u32(_ENDS),
    ],
    n.StaticReshape: [("num_dims", U32), ("new_shape", Vec(U32)), *_u32(_ENDS)],
    n.StaticSlice: [
        ("num_dims", U32),
        ("offsets", Vec(U32)),
        ("sizes", Vec(U32)),
        *_u32(_ENDS),
    ],
    n.LeakyReLU: [("negative_slope", F32), *_u32(_ENDS)],
    n.ELU: [("alpha", F32), *_u32(_ENDS)],
    n.Attention: _u32("query_id key_id value_id scale_id mask_id output_id flags"),
}

# The position is the union tag; the first is NONE.
NODE_KINDS: tuple[tuple[str, type[Any]], ...] = (
    ("Add", n.Binary),
    ("FullyConnected", n.FullyConnected),
    ("Softmax", n.Unary),
    ("Sigmoid", n.Unary),
    ("StaticTranspose", n.StaticTranspose),
    ("Clamp", n.Unary),
    ("Conv2d", n.Convolution),
    ("Div", n.Binary),
    ("StaticResizeBilinear2D", n.StaticResize),
    ("StaticConstantPad", n.StaticPad),
    ("AvgPooling2d", n.Pooling),
    ("Minimum", n.Binary),
    ("DepthwiseConv2d", n.Convolution),
    ("MaxPooling2d", n.Pooling),
    ("Multiply", n.Binary),
    ("Subtract", n.Binary),
    ("Floor", n.Unary),
    ("Convert", n.Unary),
    ("GlobalAvgPooling2d", n.Unary),
    ("StaticReshape", n.StaticReshape),
    ("ArgMaxPooling2d", n.ArgMaxPooling),
    ("SquareRoot", n.Unary),
    ("Ceiling", n.Unary),
    ("Hardswish", n.Unary),
    ("LeakyReLU", n.LeakyReLU),
    ("Maximum", n.Binary),
    ("Negate", n.Unary),
    ("Square", n.Unary),
    ("ELU", n.ELU),
    ("Abs", n.Unary),
    ("PReLU", n.Binary),
    ("Concatenate2", n.Concatenate),
    ("Concatenate3", n.Concatenate),
    ("Concatenate4", n.Concatenate),
    ("StaticSlice", n.StaticSlice),
    ("ScaledDotProductAttention", n.Attention),
    ("BatchMatrixMultiply", n.Binary),
    ("Concatenate5", n.Concatenate),
    ("ConvTranspose2d", n.Convolution),
    ("ReciprocalSquareRoot", n.Unary),
    ("Log", n.Unary),
    ("Gelu", n.Unary),
    ("Tanh", n.Unary),
    ("Exp", n.Unary),
    ("Sin", n.Unary),
    ("Copy", n.Unary),
    ("Cos", n.Unary),
)
TAG_OF_KIND = {kind: tag for tag, (kind, _) in enumerate(NODE_KINDS, start=1)}
FORM_OF_KIND = dict(NODE_KINDS)


def _node(kind: str, form: type[Any]) -> Spec[Any]:
    make: Callable[..., Any] = partial(form, kind)
    return spec(f"XNN{kind}", make, *_FORMS[form])


def _tag(value: Any) -> int:  # noqa: ANN401 - one of the node forms
    return TAG_OF_KIND[value.kind]


NODE_UNION = Union("XNodeUnion", (None, *(_node(*row) for row in NODE_KINDS)), _tag)
OUTPUT_MIN_MAX = spec("OutputMinMax", m.OutputMinMax, ("output_min", F32), ("output_max", F32))
XNODE = spec(
    "XNode",
    m.XNode,
    ("xnode_union", NODE_UNION),
    ("debug_handle", U32),
    ("output_min_max", OUTPUT_MIN_MAX),
)
TENSOR_VALUE = spec(
    "XNNTensorValue",
    m.TensorValue,
    ("datatype", I16),
    ("num_dims", U32),
    ("dims", Vec(U32)),
    ("constant_buffer_idx", U32),
    ("external_id", U32),
    ("flags", U32),
    ("id_out", U32),
    ("dq_datatype", I16),
)
PER_CHANNEL = spec(
    "PerChannelQuant",
    m.PerChannelQuant,
    ("scale", Vec(F32)),
    ("channel_dim", I32),
    ("scale_buffer_idx", U32),
    ("num_scales", U32),
)
PER_TENSOR = spec("PerTensorQuant", m.PerTensorQuant, ("scale", F32), ("zero_point", I32))
PER_TOKEN = spec("PerTokenDynamicQuant", m.PerTokenDynamicQuant, ("num_nonbatch_dims", I32))
PER_GROUP = spec(
    "PerChannelGroupQuant",
    m.PerChannelGroupQuant,
    ("scale", Vec(F32)),
    ("channel_dim", I32),
    ("group_size", I32),
    ("scale_bf16", Vec(U16)),
    ("scale_buffer_idx", U32),
    ("num_scales", U32),
)
QUANT_UNION = Union("XNNQuantParams", (None, PER_CHANNEL, PER_TENSOR, PER_TOKEN, PER_GROUP))
QUANTIZED_VALUE = spec(
    "XNNQuantizedTensorValue",
    m.QuantizedTensorValue,
    ("tensor_value", TENSOR_VALUE),
    ("quant_params", QUANT_UNION),
)
VALUE_UNION = Union("XValueUnion", (None, TENSOR_VALUE, QUANTIZED_VALUE))
XVALUE = spec("XValue", m.XValue, ("xvalue_union", VALUE_UNION))
BUFFER = spec("Buffer", m.Buffer, ("storage", Blob(align=16)))
CONSTANT_DATA = spec(
    "ConstantDataOffset",
    m.ConstantDataOffset,
    ("offset", U64),
    ("size", U64),
    ("named_key", Text(), None),
)
GRAPH = spec(
    "XNNGraph",
    m.GraphTable,
    ("version", Text(), None),
    ("xnodes", Vec(XNODE)),
    ("xvalues", Vec(XVALUE)),
    ("num_externs", U32),
    ("input_ids", Vec(U32)),
    ("output_ids", Vec(U32)),
    ("constant_buffer", Vec(BUFFER), None),
    ("mem_buffer_sizes", Vec(U32), None),
    ("constant_data", Vec(CONSTANT_DATA), None),
)
