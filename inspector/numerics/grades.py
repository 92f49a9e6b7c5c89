"""How it is known which recorded node something of a run is."""

from __future__ import annotations

INSTRUCTION = "INSTRUCTION"  # the compiler recorded the node of the instruction
HANDLE = "DEBUG_HANDLE"  # one node alone has the debug handle
DELEGATE_ID = "DELEGATE_ID"  # the compiler recorded the nodes of what the delegate logged
FLOW = "FLOW"  # one node alone fits what is read and made
ORDER = "ORDER"  # several fit, and this is the next one: it may be another
EXACT = (INSTRUCTION, HANDLE, DELEGATE_ID)
