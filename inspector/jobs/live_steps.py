"""Commands to a delegate call that is stepped through: ``JobRun(StepJob(...), live=True)``.

The call stops before its first node. Its messages are ``Stepped``, one at the beginning and one for
each command, and its outcome is that of a ``StepJob``; ``stop`` and ``replacements`` of the request
mean nothing. ``JobRun.send`` takes a command.
"""

from __future__ import annotations

from typing import Any

RUN_TO, LOOK, REPLACE, FINISH = "run to", "look", "replace", "finish"


def run_to(node: int) -> dict[str, Any]:
    """Return the command that runs all nodes before a node; behind the last is the end."""
    return {"do": RUN_TO, "node": node}


def look(value: int) -> dict[str, Any]:
    """Return the command that asks for the elements of a value that is there."""
    return {"do": LOOK, "value": value}


def replace(value: int, what: str) -> dict[str, Any]:
    """Return the command that replaces a value for the nodes that run from now on.

    Args:
        value: its id, of one that is there
        what: ``zeros``, ``ones``, a scalar, or a file of one tensor
    """
    return {"do": REPLACE, "value": value, "what": what}


def finish() -> dict[str, Any]:
    """Return the command that runs what is left of the call and of the method."""
    return {"do": FINISH}
