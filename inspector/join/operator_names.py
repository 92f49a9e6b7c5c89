"""Operator names: the stock tool's types, and which operators convert to integers and back."""

from __future__ import annotations

import re

_WRAPPED = "auto_functionalized"  # torch's call of an operator that writes to its arguments
_SUFFIX = re.compile(r"_\d+$")


def op_type(node_name: str) -> str:
    """Return the stock tool's operator type: a node name without its index."""
    return _SUFFIX.sub("", node_name)


def wraps_a_write(target: str) -> bool:
    """Return whether a raw target is torch's call of an operator that writes to its arguments."""
    return target.rpartition(".")[2].startswith(_WRAPPED)


def node_type(name: str, target: str) -> str:
    """Return the type of a recorded node; for a mutating node, the operator that mutates.

    Args:
        name: of the node
        target: its operator, without dialect
    """
    wrapped = op_type(name).startswith(_WRAPPED) and not wraps_a_write(target)
    return target.replace(".", "_").lower() if wrapped else op_type(name)


def quantizes(target: str) -> int:
    """Return 1 for an operator that quantizes, -1 for one that dequantizes, 0 for others."""
    name = target.replace("::", ".").split(".")
    words = name[1] if len(name) > 1 else name[0]
    if words.startswith("dequantize"):
        return -1
    return 1 if words.startswith(("quantize", "choose_qparams")) else 0
