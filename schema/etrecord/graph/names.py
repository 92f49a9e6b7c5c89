"""Operator names as shown, and node names as torch.fx would choose them."""

from __future__ import annotations

import builtins
import keyword
import re

_PREFIXES = (
    "executorch.exir.dialects.edge.ops.",
    "executorch.exir.dialects.backend.ops.",
    "torch.ops.",
    "executorch.exir.",  # memory.view
)
_FX_WORDS = ("inf", "nan", "NoneType", "torch", "device", "fx_pytree", "pytree")
_RESERVED = frozenset((*keyword.kwlist, *dir(builtins), *_FX_WORDS))
_MAX_STEPS = 1000  # then steps grow: colliding names could take quadratic time
_VALID = re.compile(r"([a-zA-Z_][0-9a-zA-Z_]*?)(?:_(\d+))?")
_ILLEGAL = re.compile(r"[^0-9a-zA-Z_]+")
_CAMEL = re.compile(r"(?<=[a-z])([A-Z])")


def short_target(raw: str) -> str:
    """Return an operator without the dialect it was written in, as in ``aten.add.Tensor``."""
    for prefix in _PREFIXES:
        if raw.startswith(prefix):
            return raw[len(prefix) :]
    return raw


def callable_name(raw: str) -> str:
    """Return the ``__name__`` of the Python object a target names.

    An edge operator carries its namespace, a torch operator does not, anything else is a function.
    """
    if raw.startswith(_PREFIXES[:2]):
        return short_target(raw)
    parts = raw.split(".")
    is_operator = raw.startswith("torch.ops.") and len(parts) == 5
    return ".".join(parts[3:]) if is_operator else parts[-1]


class FxNames:
    """Creates node names unique as torch.fx does.

    Source: torch/fx/graph.py, ``_Namespace.create_name`` and ``Graph._target_to_str``
    """

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._counts: dict[str, int] = {}

    def of_target(self, raw: str) -> str:
        """Return a new name for a node that is only known by its target."""
        return self.create(_CAMEL.sub(r"_\1", callable_name(raw)).lower())

    def create(self, requested: str) -> str:
        """Return the name if it is legal and unused, else the next one with a suffix."""
        match = _VALID.fullmatch(requested)
        if match is None:
            requested = _ILLEGAL.sub("_", requested) or "_unnamed"
            requested = f"_{requested}" if requested[0].isdigit() else requested
            match = _VALID.fullmatch(requested)
        base, digits = match.groups() if match else (requested, None)
        if digits is None or requested in self._used:
            number = self._counts.get(base, 0)
            if requested in _RESERVED:
                number += 1
                requested = f"{base}_{number}"
        else:
            number = int(digits[:18])
        tries = 0
        while requested in self._used:
            tries += 1
            number += (
                1 if tries < _MAX_STEPS else tries
            )  # bounds the search if names collide maliciously
            requested = f"{base}_{number}"
        self._used.add(requested)
        self._counts[base] = number
        return requested
