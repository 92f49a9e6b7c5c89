"""Annotation of operators with their quantization."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch

from compiler.backends.xnnpack.quantizer.torchao import (
    ANNOTATION,
    QuantizationAnnotation,
    SharedQuantizationSpec,
)
from compiler.untyped import aten

Node = torch.fx.Node
Config = Any  # a QuantizationConfig of torchao
CONVOLUTIONS = frozenset(
    (
        aten.conv1d.default,
        aten.conv1d.padding,
        aten.conv2d.default,
        aten.conv2d.padding,
        aten.convolution.default,
    )
)
TRANSPOSED = frozenset((aten.conv_transpose1d.default, aten.conv_transpose2d.input))
LAYERS = CONVOLUTIONS | TRANSPOSED | {aten.linear.default}
_SUMS = frozenset((aten.add.Tensor, aten.add_.Tensor, aten.mul.Tensor, aten.mul_.Tensor))
_POOL = aten.adaptive_avg_pool2d.default
_RELU = frozenset((aten.relu.default, aten.relu_.default))
_NORM = frozenset((aten.batch_norm.default,))
OPERATORS = LAYERS | _SUMS | {_POOL, aten.cat.default}
"""Operators that are quantized on their own."""
_LARGEST = 3.4028235e15  # the histogram observer overflows above it

PASSING = frozenset(
    (
        aten.relu.default,
        aten.relu_.default,
        aten.hardtanh.default,
        aten.hardtanh_.default,
        aten.max_pool2d.default,
        aten.mean.default,
        aten.mean.dim,
        aten.permute.default,
        aten.permute_copy.default,
        aten.transpose.int,
        aten.squeeze.dim,
        aten.squeeze_copy.dim,
        _POOL,
        aten.view_copy.default,
        aten.view.default,
        aten.reshape.default,
        aten.slice.Tensor,
        aten.slice_copy.Tensor,
        aten.flatten.using_ints,
        aten.unsqueeze.default,
        aten.dropout.default,
        aten.dropout_.default,
    )
)
"""Operators that keep the scale of their operand."""


def is_annotated(node: Node) -> bool:
    """Return whether a node is annotated already."""
    found = node.meta.get(ANNOTATION)
    return found is not None and bool(found._annotated)


def annotate(node: Node, config: Config) -> None:
    """Annotate a node with the parts of a configuration that apply to it."""
    target = node.target
    if target in LAYERS:
        _annotate_layer(node, config)
    elif config.input_activation is None or config.input_activation.is_dynamic:
        return  # only layers have weights and quantize their inputs
    elif target in _SUMS:
        _annotate_sum(node, config)
    elif target is aten.cat.default:
        _annotate_cat(node, config)
    elif target is _POOL:
        _annotate_pool(node, config)


def _annotate_layer(node: Node, config: Config) -> None:
    args: Any = node.args
    activation = config.input_activation
    dynamic = activation is not None and activation.is_dynamic
    if is_annotated(args[1]) or not _is_float(args[0], *((torch.float16,) if dynamic else ())):
        return
    if node.target in TRANSPOSED and _groups(node) != 1:
        return  # no kernel supports quantized weights in groups there
    if dynamic and not _runs_dynamically(node):
        return
    # torchao uses the first as the activation when it folds a batch norm for training.
    specs: dict[Node, Any] = {} if activation is None else {args[0]: activation}
    specs[args[1]] = _weight_spec(node, config)
    if len(args) > 2 and isinstance(args[2], Node) and config.bias is not None:
        specs[args[2]] = config.bias
    *inner, last = _with_followers(node)
    built = None if activation is None else config.output_activation
    for one in inner:
        _put(one, {}, None)
    _put(last, {}, built)
    _put(node, specs, built if last is node else None)


def _runs_dynamically(node: Node) -> bool:
    """Return whether kernels quantize the input of a layer: linear, non-depthwise convolution."""
    if node.target is aten.linear.default:
        return True
    args: Any = node.args
    if node.target is aten.conv_transpose2d.input:
        return True
    weight = args[1].meta["val"]
    if node.target is aten.conv2d.padding and _pads_one_side_more(node):
        return False  # the padding would separate the layer from its quantized input
    image = node.target in (aten.conv2d.default, aten.conv2d.padding)
    return image and not (_groups(node) > 1 and weight.shape[1] == 1)


def _pads_one_side_more(node: Node) -> bool:
    """Return whether a convolution that keeps sizes pads one side of an image more."""
    args: Any = node.args
    named: Any = node.kwargs
    sizes: list[int] = list(args[1].meta["val"].shape[2:])
    spread: list[int] = list(args[5] if len(args) > 5 else named.get("dilation", [1]))
    spread = spread * len(sizes) if len(spread) == 1 else spread
    reach = [by * (size - 1) for by, size in zip(spread, sizes, strict=True)]
    return args[4] == "same" and any(size % 2 for size in reach)


def _groups(node: Node) -> int:
    """Return the groups of a convolution, transposed or not."""
    args: Any = node.args
    named: Any = node.kwargs
    return args[6] if len(args) > 6 else named.get("groups", 1)


def _weight_spec(node: Node, config: Config) -> Any:  # noqa: ANN401
    """Return the weight's specification, whose channels are the second dimension if transposed."""
    spec = config.weight
    if node.target not in TRANSPOSED or spec is None or spec.qscheme is torch.per_tensor_symmetric:
        return spec
    return dataclasses.replace(spec, ch_axis=1)


def _with_followers(node: Node) -> list[Node]:
    """Return a layer, and the batch norm and relu that are fused with it."""
    found = [node]
    for kinds in (_NORM if node.target is not aten.linear.default else (), _RELU):
        users = list(found[-1].users)
        if len(users) == 1 and users[0].target in kinds and not is_annotated(users[0]):
            found.append(users[0])
    return found


def _annotate_sum(node: Node, config: Config) -> None:
    operands = [given for given in node.args[:2] if isinstance(given, Node)]
    if not all(map(_is_float, operands)) or any(map(_is_huge, operands)):
        return
    *_, last = _with_relu(node)
    specs = dict.fromkeys(operands, config.input_activation)
    _put(last, {}, config.output_activation)
    _put(node, specs, config.output_activation if last is node else None)


def _with_relu(node: Node) -> list[Node]:
    users = list(node.users)
    fused = len(users) == 1 and users[0].target in _RELU and not is_annotated(users[0])
    return [node, *users] if fused else [node]


def _annotate_cat(node: Node, config: Config) -> None:
    parts: Any = list(dict.fromkeys(node.all_input_nodes))
    if not all(map(_is_float, parts)):
        return
    owner = next((part for part in parts if _has_scale(part)), parts[0])
    shared = SharedQuantizationSpec((owner, node))
    specs = {owner: config.input_activation, **{p: shared for p in parts if p is not owner}}
    _put(node, specs, shared)


def _has_scale(node: Node) -> bool:
    """Return whether a value has an annotated scale, through operators that keep scales."""
    while True:
        found = node.meta.get(ANNOTATION)
        if found is not None and found._annotated and found.output_qspec is not None:
            return True
        if node.target not in PASSING or not isinstance(node.args[0], Node):
            return False
        node = node.args[0]


def _annotate_pool(node: Node, config: Config) -> None:
    given: Any = node.args[0]
    if not _is_float(given):
        return
    found = given.meta.get(ANNOTATION)
    known = found is not None and found._annotated and found.output_qspec is not None
    spec = SharedQuantizationSpec(given) if known else config.input_activation
    _put(node, {given: spec}, SharedQuantizationSpec((given, node)))


def pass_on(nodes: Sequence[Node]) -> None:
    """Annotate operators that keep the scale of their operand to share it."""
    for node in nodes:
        given: Any = node.args[0] if node.target in PASSING and node.args else None
        found = given.meta.get(ANNOTATION) if isinstance(given, Node) else None
        if found is None or not found.output_qspec or is_annotated(node):
            continue
        shared = SharedQuantizationSpec(given)
        _put(node, {given: shared}, shared)


def _put(node: Node, specs: dict[Any, Any], built: Any) -> None:  # noqa: ANN401
    node.meta[ANNOTATION] = QuantizationAnnotation(
        input_qspec_map=specs, output_qspec=built, _annotated=True
    )


def _is_float(node: object, *narrow: torch.dtype) -> bool:
    """Return whether a value is a tensor whose dtype kernels can quantize, such as float32."""
    value = node.meta.get("val") if isinstance(node, Node) else None
    return isinstance(value, torch.Tensor) and value.dtype in (torch.float32, *narrow)


def _is_huge(node: Node) -> bool:
    """Return whether a value is a scalar too large for a histogram observer."""
    if node.op != "get_attr":
        return False
    owner: Any = node.graph.owning_module
    home, _, name = str(node.target).rpartition(".")
    tensor: Any = getattr(owner.get_submodule(home), name)
    return tensor.numel() == 1 and abs(tensor.item()) > _LARGEST
