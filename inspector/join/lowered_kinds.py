"""The kinds of payload nodes that recorded operators are lowered to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from inspector.join.node_index import base_operator
from schema.graph import GraphNode

BATCH_NORM = "aten::_native_batch_norm_legit_no_training"  # what backends fold into convolutions
# payload kind -> operators that are lowered to it, where the names differ
_CONVOLUTION = ("convolution", "conv1d", "conv2d")
_LINEAR = ("addmm", "mm", "linear")
_BECOMES: dict[str, tuple[str, ...]] = {
    "Subtract": ("sub",),
    "Multiply": ("mul",),
    "Divide": ("div",),
    "FullyConnected": _LINEAR,
    "BatchMatrixMultiply": ("bmm", "mm", "matmul"),
    "Conv2d": ("convolution",),
    "DepthwiseConv2d": ("convolution",),
    "ConvTranspose2d": ("convolution",),
    "StaticTranspose": ("permute_copy", "transpose_copy", "permute", "t_copy"),
    "StaticSlice": ("slice_copy",),
    "StaticReshape": ("view_copy", "squeeze_copy", "unsqueeze_copy"),
    "Softmax": ("_softmax",),
    "SquareRoot": ("sqrt",),
    "ReciprocalSquareRoot": ("rsqrt",),
    "Square": ("pow", "square"),
    "Negate": ("neg",),
    "Copy": ("clone", "_clone_dim_order", "_to_dim_order_copy", "alias_copy"),
    "Clamp": ("clamp", "relu", "hardtanh"),
    "PReLU": ("_prelu_kernel", "prelu"),
    # Vulkan
    "aten.linear.default": _LINEAR,
    "aten.clone.default": ("clone", "_clone_dim_order", "_to_dim_order_copy"),
    "aten.addmm.default": ("addmm",),
    "et_vk.conv_with_clamp.default": ("convolution",),
    # MPS
    "AvgPool2D": ("avg_pool2d",),
    "BatchNorm": ("_native_batch_norm_legit_no_training",),
    "ConstantPadND": ("constant_pad_nd",),
    "Conv2D": _CONVOLUTION,
    "DepthwiseConv2D": _CONVOLUTION,
    "IndexSelect": ("index_select",),
    "LayerNorm": ("native_layer_norm",),
    "LeakyReLU": ("leaky_relu",),
    "LogSoftmax": ("_log_softmax",),
    "MatMul": ("mm", "bmm"),
    "MaxPool2DWithIndices": ("max_pool2d_with_indices",),
    "Permute": ("permute_copy", "permute", "transpose_copy", "t_copy"),
    "PixelShuffle": ("pixel_shuffle",),
    "View": ("view_copy", "_unsafe_view"),
    # Core ML
    "cast": ("_to_dim_order_copy", "_to_copy"),
    "dequantize": ("dequantize_per_tensor", "dequantize_per_channel"),
    "quantize": ("quantize_per_tensor", "quantize_per_channel"),
    # TOSA, for what it does not take apart
    "AVG_POOL2D": ("avg_pool2d",),
    "CLAMP": ("clamp", "relu", "hardtanh"),
    "CONCAT": ("cat",),
    "CONV2D": ("convolution", *_LINEAR),
    "DEPTHWISE_CONV2D": ("convolution",),
    "EQUAL": ("eq",),
    "GREATER": ("gt",),
    "GREATER_EQUAL": ("ge",),
    "LOGICAL_AND": ("logical_and", "bitwise_and"),
    "LOGICAL_NOT": ("logical_not", "bitwise_not"),
    "LOGICAL_OR": ("logical_or", "bitwise_or"),
    "MATMUL": ("bmm", "matmul", "mm"),
    "MAX_POOL2D": ("max_pool2d", "max_pool2d_with_indices"),
    "NEGATE": ("neg",),
    "SELECT": ("where",),
    "TRANSPOSE_CONV2D": ("convolution",),
}
_MATMULS = {*_LINEAR, *_CONVOLUTION, "bmm", "matmul"}
_NAMES = {"concatenate": "cat"}
_COPY = "_copy"
_COPIES = frozenset(
    ("clone", "_clone_dim_order", "_to_copy", "_to_dim_order_copy", "alias_copy", "lift_fresh_copy")
)


def operation(target: str) -> str:
    """Return what an operator or a payload node computes, in one spelling for all backends.

    Operators that are lowered to one kind of payload node, as relu and clamp are, have one.
    """
    stem = base_operator(target).rpartition("::")[2]
    found = _operations()
    plain = _plain(stem)
    return found.get(stem) or found.get(plain) or plain


def _plain(stem: str) -> str:
    low = stem.lower()
    plain = low.rstrip("0123456789") or low
    return _NAMES.get(plain, plain).strip("_").removesuffix(_COPY)


@cache
def _operations() -> Mapping[str, str]:
    """Return kind of payload node or operator -> the first operator that is lowered alike.

    Kinds are in their own spelling only: SELECT of TOSA is a choice, not a ``select``.
    """
    found: dict[str, str] = {}
    for kind, operators in _BECOMES.items():
        first = found.get(operators[0], _plain(operators[0]))
        own = base_operator(kind).rpartition("::")[2]
        for form in (*operators, *map(_plain, operators), own):
            found.setdefault(form, first)  # an operator of two kinds is of the first
    return found


def becomes(operator: str, kind: str) -> bool:
    """Return whether an operator is lowered to a payload node of a kind."""
    stem = operator.rpartition("::")[2].split(".")[0]
    if kind in _BECOMES:
        return stem in _BECOMES[kind]
    if "." in kind:  # the payload has names of ATen
        own = kind.split(".")[1]
        return own.removesuffix(_COPY) == stem.removesuffix(_COPY)
    plain = kind.lower().rstrip("0123456789")
    return stem.strip("_").removesuffix(_COPY) == _NAMES.get(plain, plain)


def is_lowered_to_one(kind: str) -> bool:
    """Return whether a payload node is all of its operator: a bias may follow a matmul."""
    return not _MATMULS & {kind.lower(), *_BECOMES.get(kind, ())}


def _is_copy(kind: str) -> bool:
    return "." in kind and kind.split(".")[1] in _COPIES


def recorded_of_kinds(
    payload: Sequence[GraphNode], recorded: Sequence[GraphNode]
) -> Mapping[str, tuple[str, bool]]:
    """Return payload node -> recorded node, and whether it is the only one that it can be.

    A node of the same name is; else kinds are matched in order that both have equally often. A
    copy proves nothing alone: a compiler removes those of the program and adds its own.

    Args:
        payload: computing nodes of a delegate's payload
        recorded: of the same delegate, in graph order
    """
    names = {node.name for node in recorded}
    if {node.name for node in payload} & names:
        return {node.name: (node.name, True) for node in payload if node.name in names}
    found: dict[str, tuple[str, bool]] = {}
    kinds = dict.fromkeys(node.target for node in payload)
    fitting = {
        node.name: frozenset(kind for kind in kinds if becomes(base_operator(node.target), kind))
        for node in recorded
    }
    for alike in _connected(fitting.values()):
        own = [node for node in payload if node.target in alike]
        theirs = [name for name, fits in fitting.items() if fits & alike]
        pairs = [(node, name) for node, name in zip(own, theirs, strict=False)]
        if len(own) == len(theirs) and all(node.target in fitting[name] for node, name in pairs):
            alone = len(own) == 1 and not _is_copy(own[0].target)
            found.update((node.name, (name, alone)) for node, name in pairs)
    return found


def _connected(groups: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """Return groups with those together that share a member: a convolution has several kinds."""
    found: list[frozenset[str]] = []
    for group in filter(None, groups):
        touching = [one for one in found if one & group]
        found = [one for one in found if not one & group]
        found.append(group.union(*touching))
    return found
