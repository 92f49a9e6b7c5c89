"""Field tables of the XNNPACK payload, and its node kinds in union order.

Source: backends/xnnpack/serialization/runtime_schema.fbs, of which schema.fbs is a part
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from schema.flatbuf.spec import F32, I16, I32, U16, U32, U64, Blob, Spec, Text, Union, Vec, spec
from schema.payloads.xnnpack import model as m

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
    m.Unary: _u32(_ENDS),
    m.Binary: _u32("input1_id input2_id output_id flags"),
    m.Concatenate: _u32("axis input1_id input2_id input3_id input4_id output_id flags input5_id"),
    m.Convolution: _u32(
        f"{_PADDING} kernel_height kernel_width subsampling_height subsampling_width "
        "dilation_height dilation_width group_input_channels group_output_channels groups "
        "adjustment_height adjustment_width input1_id filter_id bias_id output_id flags"
    ),
    m.Pooling: _u32(
        f"{_PADDING} pooling_height pooling_width stride_height stride_width "
        f"dilation_height dilation_width {_ENDS}"
    ),
    m.ArgMaxPooling: _u32(
        f"{_PADDING} pooling_height pooling_width input_id output_value_id output_index_id flags"
    ),
    m.FullyConnected: _u32("input1_id filter_id bias_id output_id flags"),
    m.StaticTranspose: [("num_dims", U32), ("perm", Vec(U32)), *_u32(_ENDS)],
    m.StaticResize: _u32(f"new_height new_width {_ENDS}"),
    m.StaticPad: [
        ("pre_paddings", Vec(U32)),
        ("post_paddings", Vec(U32)),
        ("padding_value", F32),
        *_u32(_ENDS),
    ],
    m.StaticReshape: [("num_dims", U32), ("new_shape", Vec(U32)), *_u32(_ENDS)],
    m.StaticSlice: [
        ("num_dims", U32),
        ("offsets", Vec(U32)),
        ("sizes", Vec(U32)),
        *_u32(_ENDS),
    ],
    m.LeakyReLU: [("negative_slope", F32), *_u32(_ENDS)],
    m.ELU: [("alpha", F32), *_u32(_ENDS)],
    m.Attention: _u32("query_id key_id value_id scale_id mask_id output_id flags"),
}

# The position is the union tag; the first is NONE.
NODE_KINDS: tuple[tuple[str, type[Any]], ...] = (
    ("Add", m.Binary),
    ("FullyConnected", m.FullyConnected),
    ("Softmax", m.Unary),
    ("Sigmoid", m.Unary),
    ("StaticTranspose", m.StaticTranspose),
    ("Clamp", m.Unary),
    ("Conv2d", m.Convolution),
    ("Div", m.Binary),
    ("StaticResizeBilinear2D", m.StaticResize),
    ("StaticConstantPad", m.StaticPad),
    ("AvgPooling2d", m.Pooling),
    ("Minimum", m.Binary),
    ("DepthwiseConv2d", m.Convolution),
    ("MaxPooling2d", m.Pooling),
    ("Multiply", m.Binary),
    ("Subtract", m.Binary),
    ("Floor", m.Unary),
    ("Convert", m.Unary),
    ("GlobalAvgPooling2d", m.Unary),
    ("StaticReshape", m.StaticReshape),
    ("ArgMaxPooling2d", m.ArgMaxPooling),
    ("SquareRoot", m.Unary),
    ("Ceiling", m.Unary),
    ("Hardswish", m.Unary),
    ("LeakyReLU", m.LeakyReLU),
    ("Maximum", m.Binary),
    ("Negate", m.Unary),
    ("Square", m.Unary),
    ("ELU", m.ELU),
    ("Abs", m.Unary),
    ("PReLU", m.Binary),
    ("Concatenate2", m.Concatenate),
    ("Concatenate3", m.Concatenate),
    ("Concatenate4", m.Concatenate),
    ("StaticSlice", m.StaticSlice),
    ("ScaledDotProductAttention", m.Attention),
    ("BatchMatrixMultiply", m.Binary),
    ("Concatenate5", m.Concatenate),
    ("ConvTranspose2d", m.Convolution),
    ("ReciprocalSquareRoot", m.Unary),
    ("Log", m.Unary),
    ("Gelu", m.Unary),
    ("Tanh", m.Unary),
    ("Exp", m.Unary),
    ("Sin", m.Unary),
    ("Copy", m.Unary),
    ("Cos", m.Unary),
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
