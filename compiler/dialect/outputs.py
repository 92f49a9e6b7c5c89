"""Kinds of results of a program: outputs for the caller, and values written back to state."""

from __future__ import annotations

from torch.export.graph_signature import OutputKind, OutputSpec

GRADIENT = OutputKind.GRADIENT_TO_PARAMETER
TRAINED = OutputKind.TOKEN
"""A weight that is returned with its gradient; programs have no output kind for that."""

_HANDED_OUT = (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT, GRADIENT, TRAINED)


def is_user_output(spec: OutputSpec) -> bool:
    """Return whether a result is an output for the caller."""
    return spec.kind in _HANDED_OUT
