"""Vulkan payloads: calls of ATen operators by name, and the delegate's own fused ones."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from runtime.backends.graph import Fixed, GraphBackend, Operand, Operation, OperatorTable
from runtime.backends.graph.torch_call import call_of, literal, torch_operator
from runtime.backends.vulkan import attention, float_operators, quantized, training
from runtime.memory.slots import dtype_of
from schema.graph import Argument, Graph, GraphNode

_INT8 = torch.int8
# Storage types and layouts of tensors change no value; the dtype is that of the result.
_SAME = (
    "aten._to_copy.default",
    "aten.alias_copy.default",
    "aten.clone.default",
    "dim_order_ops._clone_dim_order.default",
    "dim_order_ops._to_dim_order_copy.default",
    "et_vk.prepack.default",
)
_CHECKS = ("_assert_scalar.default", "sym_constrain_range_for_size.default")
_SIZES = ("add", "sub", "mul", "floordiv", "lt", "gt", "ge", "le", "eq")


def _same(x: Any, *_: Any) -> Any:  # noqa: ANN401 - a tensor, then its layout
    return x


def _checked(*_: Any) -> None:  # noqa: ANN401
    """Check nothing: sizes were checked when the program was exported."""


def _size(x: torch.Tensor, dim: int) -> int:
    return x.shape[int(dim)]


OWN: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(_SAME, _same),
    **dict.fromkeys(_CHECKS, _checked),
    **{name: getattr(operator, name) for name in _SIZES},
    "sym_size.int": _size,
    "aten.sym_size.int": _size,
    **float_operators.TABLE,
    **quantized.TABLE,
    **attention.TABLE,
    **training.TABLE,
}
"""Operators of the payload that torch lacks, or whose arguments mean something else here."""


_PREPACK = "et_vk.prepack.default"  # of a constant, when the payload is loaded


def bind(node: GraphNode, graph: Graph) -> Operation | None:
    """Return the call of a node, None for an unknown operator."""
    own = OWN.get(node.target)
    if own is not None:
        return Operation(own, tuple(map(_operand, node.args)))
    run = torch_operator(node.target)
    if run is None or len(run._schema.arguments) < len(node.args):
        return None
    return call_of(run, node.args, partial(_missing, node, graph))


def _operand(argument: Argument) -> Operand:
    if len(argument.values) == 1:
        return argument.values[0]
    return argument.values or Fixed(literal(argument.literal, ""))


def _missing(node: GraphNode, graph: Graph, name: str, kind: str) -> Any:  # noqa: ANN401
    """Return the dtype of an argument that payloads leave out: that of the value it is about."""
    if "ScalarType" not in kind and name != "dtype" and not name.endswith("_dtype"):
        return None
    if "choose_qparams" in node.target:
        return _INT8  # its range is given; the dtype is checked only
    about_input = "dequantize" in node.target and not name.startswith("out")
    values = node.inputs[:1] if about_input else node.outputs[:1]
    tensor = graph.values[values[0]].tensor if values else None
    return None if tensor is None else dtype_of(tensor.scalar_type)


class VulkanBackend(GraphBackend):
    """Runs payloads of the Vulkan and WebGPU partitioners."""

    id = "VulkanBackend"
    table = OperatorTable(bind, once=lambda node: node.target == _PREPACK)
    state_option = "; compile with vulkan:alias_buffer_mutations=true, which keeps it inside"
