"""Operators of other names: squares and divisions that are products, reductions of TOSA."""

from __future__ import annotations

from inspector.join.lowered_kinds import operation
from inspector.numerics.flat_graph import FlatNode
from inspector.numerics.payload_values import PayloadValues
from inspector.numerics.shared_handles import DelegateEvent

RECIPROCAL = "RECIPROCAL"  # TOSA has no division
_SQUARE = "square"
REDUCED = {
    "REDUCE_MAX": "amax",
    "REDUCE_MIN": "amin",
    "REDUCE_PRODUCT": "prod",
    "REDUCE_SUM": "sum",
}


def other_form(values: PayloadValues, event: DelegateEvent) -> tuple[str, list[object]] | None:
    """Return what else a product may be, and what that reads: values, None for unknown ones.

    None for products that are nothing else, and for other operators.
    """
    data = values.data(event)
    if operation(event.kind) != "mul" or len(data) != 2:
        return None
    if data[0] == data[1]:
        return _SQUARE, [values.of(data[0])]
    for name, other in (data, data[::-1]):
        maker = values.writers.get(values.place(name))
        if maker is not None and maker.kind == RECIPROCAL:
            return "div", [values.of(other), values.of(maker.reads[0])]
    return None


def form_of(node: FlatNode) -> str:
    """Return the operation of a node by the names of ``other_form``."""
    kind = operation(node.operator)
    exponents = [one.literal for one in node.node.args if not one.values]
    return _SQUARE if kind == "pow" and exponents == [2] else kind
