"""Kinds of the events of a block: a complete run, a call, a kernel, or inside a delegate.

A run is ``Method::execute`` around its instructions. An instruction is logged as a call
(``OPERATOR_CALL``, ``DELEGATE_CALL``, control flow); the kernel inside an operator call logs a
separate event, with ``native_call_`` before its name, and a delegate may log its nodes with private
ids. Times of a method are sums over calls, so that nothing counts twice.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from inspector.trace.blocks import Block

Mask = NDArray[np.bool_]
EXECUTE = ("Method::execute", "Method::step")
OPERATOR_CALL, DELEGATE_CALL = "OPERATOR_CALL", "DELEGATE_CALL"
CONTROL = ("JF_CALL", "MOVE_CALL", "FREE_CALL")
CALLS = (OPERATOR_CALL, DELEGATE_CALL, *CONTROL)
KERNEL_PREFIX = "native_call_"


def inside_delegates(block: Block) -> Mask:
    """Return which events have an id of a backend: bool[events]."""
    return (block.layout.delegate_int != -1) | (block.layout.delegate_str >= 0)


def named_events(block: Block, names: Collection[str]) -> Mask:
    """Return which events outside of delegates have one of some names: bool[events]."""
    numbers = [number for number, text in enumerate(block.strings) if text in names]
    return np.isin(block.layout.name, numbers) & ~inside_delegates(block)


def whole_runs(block: Block) -> Mask:
    """Return which events are complete runs of a method: bool[events]."""
    return named_events(block, EXECUTE)
