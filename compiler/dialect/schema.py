"""The schema of an edge operator: that of ATen, with the dtypes each tensor may have."""

from __future__ import annotations

from typing import Any

import torch

from compiler.dialect.dtype_rules import allowed_types


class EdgeArgument:
    """An argument or result of an edge operator, with its dtypes.

    Attributes:
        allowed_types: dtypes it may have; empty where that is not known
    """

    def __init__(self, below: Any, allowed: frozenset[torch.dtype]) -> None:  # noqa: ANN401
        self._below = below
        self.allowed_types = allowed

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._below, name)

    def __repr__(self) -> str:
        return repr(self._below)


class EdgeSchema:
    """The schema of an operator overload, with dtypes at its arguments and results."""

    def __init__(self, op: Any) -> None:  # noqa: ANN401 - an operator overload of torch
        self._below = op._schema
        allowed = allowed_types(op)
        nothing: frozenset[torch.dtype] = frozenset()
        self.arguments = [
            EdgeArgument(a, allowed.get(a.name, nothing)) for a in self._below.arguments
        ]
        self.returns = [
            EdgeArgument(r, allowed.get(r.name or f"__ret_{i}", nothing))
            for i, r in enumerate(self._below.returns)
        ]

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._below, name)

    def __str__(self) -> str:
        return str(self._below)

    def __repr__(self) -> str:
        return f"<EdgeSchema: {self._below}>"
