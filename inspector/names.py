"""Operator names: the stock tool's types, and which operators only move or convert data."""

from __future__ import annotations

import re

_SUFFIX = re.compile(r"_\d+$")
_MOVERS = re.compile(
    r"getitem|quantize|dequantize|choose_qparams|view|permute|transpose|reshape|clone|to_copy"
    r"|_to_dim_order_copy|sym_size|expand|squeeze|unsqueeze|slice_copy|select_copy|alias|Convert"
    r"|StaticTranspose|StaticReshape|Copy",
)


def op_type(node_name: str) -> str:
    """Return the stock tool's operator type: a node name without its number."""
    return _SUFFIX.sub("", node_name)


def is_compute(name: str) -> bool:
    """Return whether an operator computes, as opposed to moving or converting data."""
    return _MOVERS.search(name) is None
