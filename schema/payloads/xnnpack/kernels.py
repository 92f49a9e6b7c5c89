"""Names of each node kind in the profile of the XNNPACK runtime.

The stock runtime logs one event per operator, in node order, named after the kernel family
with a running index: ``Convolution (NHWC, F32) IGEMM #2``. They have no node id, so events can
only be joined by order and name.
"""

from __future__ import annotations

import math

from schema.flatbuf.spec import UnknownMember
from schema.payloads.model import RuntimeOperator
from schema.payloads.xnnpack import model as m
from schema.payloads.xnnpack import nodes as n

# Families as printed before the first parenthesis. The second and later ones are other
# releases' names, or kernels for special shapes (1x1 convolution = linear).
FAMILIES: dict[str, tuple[str, ...]] = {
    "Add": ("Add",),
    "FullyConnected": ("Fully Connected", "Dynamic Fully Connected"),
    "Softmax": ("Softmax",),
    "Sigmoid": ("Sigmoid",),
    "StaticTranspose": ("Transpose",),
    "Clamp": ("Clamp",),
    "Conv2d": ("Convolution", "Fully Connected"),
    "Div": ("Divide",),
    "StaticResizeBilinear2D": ("Resize Bilinear",),
    "StaticConstantPad": ("Constant Pad",),
    "AvgPooling2d": ("Average Pooling",),
    "Minimum": ("Minimum",),
    "DepthwiseConv2d": ("Convolution",),
    "MaxPooling2d": ("Max Pooling",),
    "Multiply": ("Multiply",),
    "Subtract": ("Subtract",),
    "Floor": ("Floor",),
    "Convert": ("Convert",),
    "GlobalAvgPooling2d": ("Mean", "Global Average Pooling"),
    "StaticReshape": ("Static Reshape", "Copy"),
    "ArgMaxPooling2d": ("ArgMax Pooling",),
    "SquareRoot": ("Square Root",),
    "Ceiling": ("Ceiling",),
    "Hardswish": ("HardSwish",),
    "LeakyReLU": ("LeakyReLU", "Leaky ReLU"),
    "Maximum": ("Maximum",),
    "Negate": ("Negate",),
    "Square": ("Square",),
    "ELU": ("ELU",),
    "Abs": ("Abs",),
    "PReLU": ("PReLU",),
    "Concatenate2": ("Copy",),
    "Concatenate3": ("Copy",),
    "Concatenate4": ("Copy",),
    "StaticSlice": ("Slice",),
    "ScaledDotProductAttention": ("Scaled Dot-Product Attention",),
    "BatchMatrixMultiply": ("Batch Matrix Multiply",),
    "Concatenate5": ("Copy",),
    "ConvTranspose2d": ("Deconvolution",),
    "ReciprocalSquareRoot": ("Reciprocal Square Root",),
    "Log": ("Log",),
    "Gelu": ("GELU",),
    "Tanh": ("TanH", "Tanh"),
    "Exp": ("Exp",),
    "Sin": ("Sine",),
    "Copy": ("Copy",),
    "Cos": ("Cosine",),
}

# The runtime applies the bounds of these in a separate operator.
_SPLIT_BOUNDS = frozenset({"Add", "Subtract", "Multiply", "Div", "GlobalAvgPooling2d"})
# These may be fused into a neighbour: a convert into a dynamically quantized linear, a pad into
# a convolution, a clamp into its producer, one reshape or copy into the next.
_MERGEABLE = frozenset({"Convert", "StaticConstantPad", "Clamp", "Copy", "StaticReshape"})
_QUANTIZED_UNARY = "Invalid Unary Op"  # an 8-bit unary node becomes a table lookup


def runtime_operators(graph: m.XNNGraph, names: tuple[str, ...]) -> tuple[RuntimeOperator, ...]:
    """Return the events to expect of a graph, a row per node.

    Args:
        graph: the payload
        names: the graph node's name of each entry of ``xnodes``
    """
    used = _used_values(graph)
    return tuple(
        _operator(node, name, used) for node, name in zip(graph.table.xnodes, names, strict=True)
    )


def _operator(node: m.XNode, name: str, used: frozenset[int]) -> RuntimeOperator:
    form = node.xnode_union
    if form is None or isinstance(form, UnknownMember):
        return RuntimeOperator(name, ())
    families = FAMILIES[form.kind]
    if isinstance(form, n.Binary) and form.kind == "Multiply" and form.input1_id == form.input2_id:
        families = (*families, "Square")
    if isinstance(form, n.Unary | n.LeakyReLU | n.ELU):
        families = (*families, _QUANTIZED_UNARY)
    split = form.kind in _SPLIT_BOUNDS and is_bounded(node.output_min_max)
    unused = not any(ident in used for ident in output_ids(form))
    return RuntimeOperator(
        name, families, ("Clamp",) if split else (), unused or form.kind in _MERGEABLE
    )


def is_bounded(bounds: m.OutputMinMax | None) -> bool:
    """Return whether bounds exclude anything."""
    if bounds is None:
        return False
    return math.isfinite(bounds.output_min) or math.isfinite(bounds.output_max)


def output_ids(form: n.NodeForm) -> tuple[int, ...]:
    """Return the ids of the outputs of a node, in order."""
    if isinstance(form, n.ArgMaxPooling):
        return form.output_value_id, form.output_index_id
    return (form.output_id,)


def _used_values(graph: m.XNNGraph) -> frozenset[int]:
    used = {
        value.tensor.id_out
        for value in graph.table.xvalues
        if value.tensor is not None and value.tensor.flags & m.EXTERNAL_OUTPUT
    }
    for node in graph.table.xnodes:
        form = node.xnode_union
        if form is not None and not isinstance(form, UnknownMember):
            used.update(ident for _, ident in input_ids(form))
    return frozenset(used)


def input_ids(form: n.NodeForm) -> list[tuple[str, int]]:
    """Return name and id of the values a node reads, in the order of its fields."""
    built = {"output_id", "output_value_id", "output_index_id"}
    names = [name for name in form.__slots__ if name.endswith("_id") and name not in built]
    if isinstance(form, n.Concatenate):
        names = sorted(names)[: int(form.kind[-1])]
    return [(name, getattr(form, name)) for name in names]
