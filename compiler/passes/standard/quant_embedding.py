"""Fuses dequantize and embedding: rows are looked up quantized, and only those are dequantized.

A table is recognized behind ``dequantize_per_channel`` and behind the steps that torchao's
``dequantize_affine`` and torch's ``dequantize_per_channel_group`` decompose into: integers minus
zero
points, times scales, by row or by group of columns. A table of known small values is
packed, two or four of them per byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed as _decomposed

from compiler.dialect import quantized
from compiler.dialect.dim_order import TO_DIM_ORDER_COPY
from compiler.dialect.ops import edge_op, ops
from compiler.interface.external_weights import mark_for_folded
from compiler.passes.fake import fake_mode_of
from compiler.passes.lineage import inherit
from compiler.untyped import aten

Node = torch.fx.Node
Values = Mapping[str, torch.Tensor]
TORCH_OPERATORS = _decomposed  # importing it registers torch's operators
_q: Any = ops.edge.quantized_decomposed
_ROWS = _q.dequantize_per_channel.default
_CAST = edge_op(TO_DIM_ORDER_COPY)
_VIEW = edge_op(aten.view_copy.default)
_SUB, _MUL = edge_op(aten.sub.Tensor), edge_op(aten.mul.Tensor)
_BYTES = (torch.int8, torch.uint8)
# These represent integers of a byte, and their differences, exactly.
_EXACT = (torch.float32, torch.float16, torch.int16, torch.int32, torch.int64)
_RESULTS = (torch.float32, torch.float16)  # dtypes that the runtime's kernels produce


@dataclass(frozen=True, slots=True)
class QuantizedTable:
    """Quantized values, scales and zero points of a graph, and the range of the values."""

    rows: Node
    scales: Node
    zeros: Node | None
    low: int
    high: int


def fused_embedding(module: torch.fx.GraphModule, node: Node, values: Values) -> bool:
    """Replace an embedding of a dequantized table by one of the quantized table.

    Args:
        module: whose graph is changed; packed tensors are added to it
        node: the embedding
        values: of placeholders, by name
    """
    given, places = node.args[:2]  # padding and sparse gradients are of training
    built = node.meta["val"]
    if not isinstance(given, Node) or not isinstance(places, Node):
        return False
    if built.dtype not in _RESULTS or places.meta["val"].dtype != torch.int64:
        return False
    table = _table(given, built.dtype)
    if table is None:
        return False
    known = _known(table, values, built.dtype)
    if known is not None:
        op, first = constant_table(module, node, table, known)
    elif built.dtype == torch.float32 and table.scales.meta["val"].dim() == 1:
        zeros = None if table.zeros is None else _as_float(module.graph, node, table.zeros)
        op, first = quantized.EMBEDDINGS[8], (table.rows, table.scales, zeros)
    else:
        return False
    low, high = operator_bounds(op, table)
    with module.graph.inserting_before(node):
        fused = module.graph.call_function(edge_op(op), (*first, low, high, places))
    inherit(fused, node.meta)
    fused.meta["val"] = built
    node.replace_all_uses_with(fused)
    return True


def known_table(
    given: Node, values: Values
) -> tuple[QuantizedTable, tuple[torch.Tensor, ...]] | None:
    """Return the table that a node dequantizes, and its tensors, if all are constants.

    Args:
        given: the dequantized table
        values: of placeholders, by name
    """
    dtype = given.meta["val"].dtype
    table = _table(given, dtype) if dtype in _RESULTS else None
    known = None if table is None else _known(table, values, dtype)
    return None if table is None or known is None else (table, known)


def table_steps(node: Node) -> frozenset[Node]:
    """Return the nodes that dequantize the table of an embedding, which a fused one does without.

    They are those that nothing else reads; empty for a table in floating point.
    """
    given = node.args[0]
    dtype = node.meta["val"].dtype
    table = _table(given, dtype) if isinstance(given, Node) and dtype in _RESULTS else None
    found: set[Node] = set()
    waiting = [given] if table is not None and isinstance(given, Node) else []
    while waiting:
        step = waiting.pop()
        read = all(user in found or user.target is node.target for user in step.users)
        if step.op == "call_function" and read:
            found.add(step)
            waiting += step.all_input_nodes
    return frozenset(found)


def _table(given: Node, dtype: torch.dtype) -> QuantizedTable | None:
    whole = _bare(given, (dtype,))
    table = _by_channel(whole) or _by_steps(whole, (torch.float32, dtype))
    if table is None or [*table.rows.meta["val"].shape] != [*given.meta["val"].shape]:
        return None
    return table


def _by_channel(given: Node) -> QuantizedTable | None:
    if given.target is not _ROWS:
        return None
    rows, scales, zeros, axis, low, high = given.args[:6]
    if axis != 0 or not isinstance(rows, Node) or not isinstance(scales, Node):
        return None
    if scales.meta["val"].dtype != torch.float32 or not _is_table(rows):
        return None
    return QuantizedTable(rows, scales, zeros if isinstance(zeros, Node) else None, low, high)  # pyright: ignore[reportArgumentType] - numbers


def _by_steps(product: Node, dtypes: Sequence[torch.dtype]) -> QuantizedTable | None:
    """Match ``(values - zero points) * scales``, through views and casts."""
    if product.target is not _MUL or product.meta["val"].dtype not in dtypes:
        return None
    difference, scales = product.args[:2]
    if not isinstance(difference, Node) or not isinstance(scales, Node):
        return None
    if not _is_column(scales, product):
        return None
    numbers, zeros = difference, None
    if difference.target is _SUB and not difference.kwargs:
        if difference.meta["val"].dtype not in dtypes:
            return None  # integers may overflow
        numbers, zeros = difference.args[:2]
        if not isinstance(zeros, Node) or not _is_column(zeros, product):
            return None
    rows = _bare(numbers, _EXACT) if isinstance(numbers, Node) else None
    if rows is None or not _is_table(rows):
        return None
    low, high = (-128, 127) if rows.meta["val"].dtype == torch.int8 else (0, 255)
    zeros = None if zeros is None else _bare(zeros, _EXACT)
    return QuantizedTable(rows, _bare(scales, dtypes), zeros, low, high)


def _bare(node: Node, dtypes: Sequence[torch.dtype]) -> Node:
    """Return the source behind views, and behind casts to some dtypes."""
    while node.target is _VIEW or (node.target is _CAST and node.meta["val"].dtype in dtypes):
        below = node.args[0]
        assert isinstance(below, Node)  # both operands are tensors
        node = below
    return node


def _is_table(node: Node) -> bool:
    value = node.meta["val"]
    return value.dim() == 2 and value.dtype in _BYTES


def _is_column(node: Node, product: Node) -> bool:
    """Return whether a tensor has one value for each row of the other operand."""
    shape = [*product.meta["val"].shape]
    return [*node.meta["val"].shape] == [*shape[:-1], 1] and len(shape) > 1


def _known(
    table: QuantizedTable, values: Values, dtype: torch.dtype
) -> tuple[torch.Tensor, ...] | None:
    """Return values, scales and zero points by row and group, if all are constants.

    Args:
        table: nodes of the graph
        values: of placeholders, by name
        dtype: of scales and zero points, which must be representable in it
    """
    nodes = [table.rows, table.scales, *([] if table.zeros is None else [table.zeros])]
    if any(node.name not in values for node in nodes):
        return None
    rows, scales, *zeros = (values[node.name].detach() for node in nodes)
    count = rows.shape[0]
    if scales.numel() % max(count, 1) or not scales.numel():
        return None
    shape = (count,) if scales.numel() == count else (count, -1)
    if rows.shape[1] % (scales.numel() // count):
        return None
    given = [scales.reshape(shape), *(zero.reshape(shape) for zero in zeros)]
    built = [tensor.to(dtype) for tensor in given]
    same = (one.double().equal(other.double()) for one, other in zip(given, built, strict=True))
    if not all(same) or (dtype != torch.float32 and not all(map(_is_small, built[1:]))):
        return None
    return (rows, *built)


def _is_small(zeros: torch.Tensor) -> bool:
    """Return whether 16 bits hold the difference of any byte and a zero point as it is."""
    return zeros.equal(zeros.round()) and bool((zeros.abs() <= 1024).all())


def constant_table(
    module: torch.fx.GraphModule, node: Node, table: QuantizedTable, known: tuple[torch.Tensor, ...]
) -> tuple[Any, tuple[Any, ...]]:
    """Return the operator for constant values, and its first arguments."""
    rows, scales, *zeros = known
    bits = quantized.bits_of(rows)
    given: list[Any] = [table.rows, None, None]
    with module.graph.inserting_before(node):
        if bits < 8:
            given[0] = held_constant(
                module, table.rows, f"packed{bits}", quantized.packed(rows, bits)
            )
        given[1] = held_constant(module, table.scales, "scales", scales)
        if zeros and zeros[0].count_nonzero():
            given[2] = held_constant(module, table.zeros or node, "zeros", zeros[0])
    return quantized.EMBEDDINGS[bits], tuple(given)


def held_constant(module: torch.fx.GraphModule, of: Node, what: str, value: torch.Tensor) -> Node:
    """Return a node for a tensor that becomes a constant of the program."""
    name = f"_quantized_{of.name}_{what}"
    if not hasattr(module, name):
        module.register_buffer(name, value.contiguous())
    built = module.graph.get_attr(name)
    fake = fake_mode_of([of]).from_tensor(value.contiguous(), static_shapes=True)
    built.meta.update({"val": fake, **mark_for_folded(of)})
    return built


def _as_float(graph: torch.fx.Graph, before: Node, given: Node) -> Node:
    """Return zero points in the kernel's dtype; they become constants by folding."""
    if given.meta["val"].dtype == torch.float32:
        return given
    options: dict[str, Any] = {
        "dtype": torch.float32,
        "dim_order": [*range(given.meta["val"].dim())],
    }
    with graph.inserting_before(before):
        cast = graph.call_function(_CAST, (given,), options)
    inherit(cast, given.meta)
    cast.meta["val"] = given.meta["val"].to(torch.float32)
    return cast


def operator_bounds(op: Any, table: QuantizedTable) -> tuple[int, int]:  # noqa: ANN401 - an operator
    """Return the range of the values in a table, as its operator takes it."""
    bits = next(bits for bits, known in quantized.EMBEDDINGS.items() if known is op)
    return (table.low, table.high) if bits == 8 else (-(1 << bits - 1), (1 << bits - 1) - 1)
