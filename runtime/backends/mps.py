"""The MPS backend: the kinds of nodes of its payloads, as calls of torch.

Source: backends/apple/mps/runtime/operations of release 1.4.1
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from typing_extensions import override

from runtime.backends.graph import Fixed, GraphBackend, Operand, Operation, OperatorTable
from runtime.backends.graph.engine import GraphEngine
from runtime.untyped import aten, dtype_named
from schema.graph import Argument, Graph, GraphNode
from schema.payloads import Payload

Facts = Mapping[str, Any]
Kind = Callable[..., Any]
_IMAGE_DIMS = 4
_HALF = 5  # code of the dtype
_NORM_VALUE = 1  # among the outputs, which are listed as mean, value, variance


def _plain(run: Callable[..., Any]) -> Kind:
    def called(_facts: Facts, *given: Any) -> Any:  # noqa: ANN401 - tensors
        return run(*given)

    return called


def _pads(facts: Facts) -> list[int]:
    return [int(facts[f"padding_{side}"]) for side in ("left", "right", "top", "bottom")]


def _conv(facts: Facts, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    flat = x.dim() < _IMAGE_DIMS
    if flat:  # of one dimension: an image of one row
        x, weight = x.unsqueeze(-2), weight.unsqueeze(-2)
    stride = facts["stride_y"], facts["stride_x"]
    dilation = facts["dilation_y"], facts["dilation_x"]
    padded = F.pad(x, _pads(facts))
    made = F.conv2d(padded, weight, bias, stride, 0, dilation, facts["groups"])
    return made.squeeze(-2) if flat else made


def _batch_norm(
    facts: Facts, x: Tensor, mean: Tensor, variance: Tensor, weight: Tensor, bias: Tensor
) -> tuple[Any, ...]:
    made = F.batch_norm(x, mean, variance, weight, bias, eps=facts["epsilon"])
    return mean, made, None


def _layer_norm(facts: Facts, x: Tensor, weight: Tensor, bias: Tensor | None) -> Any:  # noqa: ANN401
    sizes = list(facts["normalized_shape"])
    dims = tuple(range(x.dim() - len(sizes), x.dim()))
    mean, variance = x.mean(dims, keepdim=True), x.var(dims, unbiased=False, keepdim=True)
    return mean, F.layer_norm(x, sizes, weight, bias, facts["eps"]), variance


def _max_pool(facts: Facts, x: Tensor) -> Any:  # noqa: ANN401
    left, right, top, bottom = pads = _pads(facts)
    is_even = (left, top) == (right, bottom)  # else the padding is for a size that is rounded up
    padded = F.pad(x, pads, value=-math.inf) if any(pads) else x
    made, at = F.max_pool2d(
        padded,
        (facts["kernel_height"], facts["kernel_width"]),
        (facts["stride_height"], facts["stride_width"]),
        0,
        (facts["dilation_height"], facts["dilation_width"]),
        is_even and bool(facts["ceil_mode"]),
        return_indices=True,
    )
    rows, columns = at // padded.shape[-1] - top, at % padded.shape[-1] - left
    return made, rows * x.shape[-1] + columns


def _avg_pool(facts: Facts, x: Tensor) -> Tensor:
    left, _, top, _ = _pads(facts)
    return aten.avg_pool2d.default(
        x,
        [facts["kernel_height"], facts["kernel_width"]],
        [facts["stride_height"], facts["stride_width"]],
        [top, left],
        bool(facts["ceil_mode"]),
        bool(facts["count_include_pad"]) or bool(facts["divisor_override"]),
        facts["divisor_override"] or None,
    )


def _embedding(facts: Facts, weight: Tensor, indices: Tensor) -> Tensor:
    made = F.embedding(indices.long(), weight)
    padding = facts["padding_idx"]
    return made if padding == -1 else made.where((indices != padding).unsqueeze(-1), 0)


def _axis_index(facts: Facts, indices: Sequence[Tensor]) -> tuple[Any, ...]:
    if len(indices) != 1:
        raise ValueError(f"{len(indices)} index tensors; the runtime takes one")
    return (*[slice(None)] * int(facts["axis"]), indices[0].long())


def _index(facts: Facts, x: Tensor, indices: Sequence[Tensor]) -> Tensor:
    return x[_axis_index(facts, indices)]


def _index_put(facts: Facts, x: Tensor, indices: Sequence[Tensor], values: Tensor) -> Tensor:
    made = x.clone()
    made[_axis_index(facts, indices)] = values
    return made


def _times(alpha: float, b: Tensor) -> Tensor:
    return b if alpha == 1 else alpha * b


def _divided(facts: Facts, a: Tensor, b: Tensor) -> Tensor:
    return torch.div(a, b, rounding_mode=facts.get("rounding_mode") or None)


def _slice(facts: Facts, x: Tensor) -> Tensor:
    return aten.slice.Tensor(x, *(int(facts[name]) for name in ("dim", "start", "end", "step")))


_MATH = (
    "Exp Exp2 Reciprocal Sqrt Neg Log Log10 Log2 Erf Floor Ceil Rsqrt Sigmoid Sin Sign Cos Tan Abs "
    "Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Isnan Isinf Round Atan2 MatMul Eq Ne Ge Gt Le "
    "Lt Mul Pow Minimum Fmod Remainder Where"
)
_NAMED = {
    "BitwiseAnd": torch.bitwise_and,
    "BitwiseNot": torch.bitwise_not,
    "BitwiseOr": torch.bitwise_or,
    "BitwiseXor": torch.bitwise_xor,
    "LogicalNot": torch.logical_not,
    "Max": torch.maximum,
    "Min": torch.minimum,
    "ReLU": torch.relu,
}
_NONE: dict[str, Callable[[Facts], Any]] = {
    "Arange": lambda facts: torch.arange(
        facts["start"], facts["end"], facts["step"], dtype=dtype_named(facts["dtype"])
    ),
    "Full": lambda facts: torch.full(
        tuple(facts["shape"]), facts["fill_value"], dtype=dtype_named(facts["dtype"])
    ),
}
_ONE: dict[str, Callable[[Facts, Any], Any]] = {
    "AvgPool2D": _avg_pool,
    "Cast": lambda facts, x: x.to(dtype_named(facts["dtype"])),
    "Cat": lambda facts, parts: torch.cat(parts, facts["dim"]),
    "Clamp": lambda _, x: x,  # by the bounds that any node may have
    "ConstantPadND": lambda facts, x: F.pad(x, list(facts["pad"]), value=facts["value"]),
    "Expand": lambda facts, x: x.expand(tuple(facts["shape"])),
    "FullLike": lambda facts, x: torch.full_like(
        x, facts["fill_value"], dtype=dtype_named(facts["dtype"])
    ),
    "GELU": lambda facts, x: F.gelu(x, approximate=facts.get("approximate") or "none"),
    "HardTanh": lambda facts, x: x.clamp(facts["min_value"], facts["max_value"]),
    "LeakyReLU": lambda facts, x: F.leaky_relu(x, facts["negative_slope"]),
    "LogSoftmax": lambda facts, x: torch.log_softmax(x, facts["dim"]),
    "MaxPool2DWithIndices": _max_pool,
    "Mean": lambda facts, x: x.mean(tuple(facts["dims"]), keepdim=bool(facts["keep_dims"])),
    "Permute": lambda facts, x: x.permute(tuple(facts["perm"])),
    "PixelShuffle": lambda facts, x: F.pixel_shuffle(x, facts["upscale_factor"]),
    "Select": lambda facts, x: x.select(facts["dim"], facts["index"]),
    "Slice": _slice,
    "Softmax": lambda facts, x: torch.softmax(x, facts["dim"]),
    "SplitWithSizes": lambda facts, x: x.split(list(facts["split_sizes"]), facts["dim"]),
    "Squeeze": lambda facts, x: x.squeeze(tuple(facts["dims"])),
    "Unsqueeze": lambda facts, x: x.unsqueeze(facts["dim"]),
    "View": lambda facts, x: x.reshape(tuple(facts["shape"])),
}
_TWO: dict[str, Callable[[Facts, Any, Any], Any]] = {
    "Add": lambda facts, a, b: a + _times(facts["alpha"], b),
    "Div": _divided,
    "Embedding": _embedding,
    "IndexSelect": lambda facts, x, index: x.index_select(facts["dim"], index.long()),
    "IndexTensor": _index,
    "Sub": lambda facts, a, b: a - _times(facts["alpha"], b),
}
_THREE: dict[str, Callable[[Facts, Any, Any, Any], Any]] = {
    "Addmm": lambda facts, c, a, b: torch.addmm(c, a, b, beta=facts["beta"], alpha=facts["alpha"]),
    "Conv2D": _conv,
    "DepthwiseConv2D": _conv,
    "IndexPut": _index_put,
    "LayerNorm": _layer_norm,
    "Scatter": lambda facts, x, index, made: x.scatter(int(facts["dim"]), index.long(), made),
}
KINDS: dict[str, Kind] = {
    **{name: _plain(getattr(torch, name.lower())) for name in _MATH.split()},
    **{name: _plain(run) for name, run in _NAMED.items()},
    **_NONE,
    **_ONE,
    **_TWO,
    **_THREE,
    "BatchNorm": _batch_norm,
}
"""Kinds by name; DequantizePerChannelGroup is left out: its weights are packed by a GPU."""


def bind(node: GraphNode, graph: Graph) -> Operation | None:
    """Return the call of a node, None for an unknown kind."""
    del graph
    kind = KINDS.get(node.target)
    if kind is None:
        return None
    facts, run = node.attributes, partial(kind, node.attributes)
    if node.target != "HardTanh" and "min_value" in facts:
        run = partial(_bounded, run, facts["min_value"], facts["max_value"])
    main = _NORM_VALUE if node.target.endswith("Norm") else 0
    listed = node.target == "Cat"
    given = () if node.target in _NONE else node.args  # an unused field may name any value
    return Operation(run, tuple(_operand(one, listed=listed) for one in given), main)


def _bounded(run: Kind, low: Any, high: Any, *given: Any) -> Any:  # noqa: ANN401
    made = run(*given)
    if isinstance(made, torch.Tensor):
        return _within(made, low, high)
    value, *others = made
    return (_within(value, low, high), *others)


def _within(value: Tensor, low: float, high: float) -> Tensor:
    """Return a tensor between bounds; integers stay integers, which float32 does not all have."""
    if value.is_floating_point():
        return value.clamp(low, high)
    least = math.ceil(low) if math.isfinite(low) else None
    most = math.floor(high) if math.isfinite(high) else None
    return value if least is None and most is None else value.clamp(least, most)


def _operand(argument: Argument, *, listed: bool) -> Operand:
    if listed or argument.name == "indices":
        return argument.values
    return argument.values[0] if argument.values else Fixed(None)


class MpsBackend(GraphBackend):
    """Runs payloads of the MPS partitioner, which release 1.4.1 was the last to have."""

    id = "MPSBackend"
    table = OperatorTable(bind)

    @override
    def engine(self, payload: Payload, partition: int) -> GraphEngine:
        """Return the engine of a payload, whose values are halves between casts at its borders."""
        graph = payload.graph
        return super().engine(
            payload if graph is None else replace(payload, graph=_with_halves(graph)), partition
        )


def _with_halves(graph: Graph) -> Graph:
    """Return a graph with the dtypes that values have in a run.

    A payload in half precision casts its inputs in place, and its outputs back, as no other does;
    the dtypes that it gives are those of the program.
    """
    is_half = any(node.target == "Cast" and node.inputs == node.outputs for node in graph.nodes)
    if not is_half:
        return graph
    real = {
        name: replace(value, tensor=replace(value.tensor, scalar_type=_HALF))
        for name, value in graph.values.items()
        if value.tensor is not None and value.tensor.dtype == "float32" and not value.constant
    }
    return replace(graph, values={**graph.values, **real})
