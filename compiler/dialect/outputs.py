"""Which results of a program are handed out, and which are written back into its state."""

from __future__ import annotations

from torch.export.graph_signature import OutputKind, OutputSpec

GRADIENT = OutputKind.GRADIENT_TO_PARAMETER
TRAINED = OutputKind.TOKEN
"""A weight that is handed out beside its gradient; programs have no kind for that."""

_HANDED_OUT = (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT, GRADIENT, TRAINED)


def is_handed_out(spec: OutputSpec) -> bool:
    """Return whether a result goes to whoever runs the program."""
    return spec.kind in _HANDED_OUT
