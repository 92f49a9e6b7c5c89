"""Grades of joins between a run and the recorded graph."""

from __future__ import annotations

INSTRUCTION = "INSTRUCTION"  # the compiler recorded the node of the instruction
HANDLE = "DEBUG_HANDLE"  # only one node has the debug handle
DELEGATE_ID = "DELEGATE_ID"  # the compiler recorded the nodes of what the delegate logged
FLOW = "FLOW"  # only one node fits by operands and results
ORDER = "ORDER"  # several fit, the next one is taken: it may be wrong
EXACT = (INSTRUCTION, HANDLE, DELEGATE_ID)
