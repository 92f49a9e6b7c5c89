"""Literals of payloads and recorded graphs as the arguments of torch's operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch

from runtime.errors import ErrorCode, ExecutionError

_CASTS: Mapping[str, Callable[[Any], Any]] = {
    "int": int,
    "SymInt": int,
    "float": float,
    "bool": bool,
}
_TYPES: Mapping[str, type[object]] = {
    "ScalarType": torch.dtype,
    "MemoryFormat": torch.memory_format,
}


def literal(value: object, kind: str) -> Any:  # noqa: ANN401 - as the schema wants it
    """Return a literal in the type of an operator's argument.

    Writers store equal numbers once, so that 1.0 is read as 1, and numbers without a form in
    JSON as strings.

    Args:
        value: a scalar, a string or a sequence of them
        kind: the type in the schema of the operator, such as ``Optional[List[int]]``

    Raises: ExecutionError NotSupported for dtypes and memory formats that torch has not
    """
    inner = kind.removeprefix("Optional[").removesuffix("]") if "Optional" in kind else kind
    if isinstance(value, (list, tuple)):
        element = inner.removeprefix("List[").removesuffix("]").removesuffix("[]")
        return [literal(one, element) for one in cast("Sequence[object]", value)]
    if isinstance(value, str):
        return _word(value, inner)
    cast_to = _CASTS.get(inner)
    return cast_to(value) if cast_to is not None and isinstance(value, (int, float)) else value


def _word(value: str, kind: str) -> Any:  # noqa: ANN401
    if "float" in kind or "number" in kind:
        return float(value)
    for name, wanted in _TYPES.items():
        if name in kind:
            found: Any = getattr(torch, value.removeprefix("torch."), None)
            if not isinstance(found, wanted):
                raise ExecutionError(ErrorCode.NotSupported, f"torch has no {value}", remedy="")
            return found
    return value
