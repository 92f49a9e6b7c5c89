"""Operators that libraries register with torch, as kernels of a runtime."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from runtime import untyped
from runtime.errors import ErrorCode, ExecutionError

_torch_ops: Any = torch.ops
# Adopted by name only: operators without a kernel here have none in ExecuTorch either.
_TORCHS = ("aten", "prim", "prims")


def operator_names() -> frozenset[str]:
    """Return the full names of all operators that torch has now."""
    return frozenset(untyped.operator_names())


def matching(requested: str) -> frozenset[str]:
    """Return the overloads of torch operators that a name selects.

    Args:
        requested: an overload (``my::scaled.out``), an operator (``my::scaled``), which selects its
            overloads, or a namespace (``my``)

    Raises: ExecutionError NotFound if torch has no such operator
    """
    found = {name for name in operator_names() if requested in _names_of(name)}
    if not found:
        raise ExecutionError(
            ErrorCode.NotFound,
            f"torch has no operator {requested!r}",
            remedy="Import or load the library that registers it first "
            '(torch.ops.load_library("FILE.so")).',
        )
    return frozenset(found)


def _names_of(name: str) -> tuple[str, str, str]:
    return name, name.partition(".")[0], name.partition("::")[0]


def of_libraries(names: Iterable[str]) -> frozenset[str]:
    """Return the names that are not torch's own operators."""
    return frozenset(name for name in names if name.partition("::")[0] not in _TORCHS)


def overload_named(name: str) -> Any:  # noqa: ANN401 - torch's operators have no type
    """Return an operator of torch, None if the implementation has no schema."""
    namespace, _, rest = name.partition("::")
    operator, _, overload = rest.partition(".")
    try:
        return getattr(getattr(getattr(_torch_ops, namespace), operator), overload or "default")
    except AttributeError:
        return None


def functional_variant(overload: Any) -> Any:  # noqa: ANN401
    """Return the functional variant of an out variant, None if it has none."""
    packet = overload.overloadpacket
    requested = _inputs(overload)
    returned = len([entry for entry in overload._schema.arguments if entry.is_out])
    for name in packet.overloads():
        other = getattr(packet, name)
        schema = other._schema
        functional = not any(entry.is_out for entry in schema.arguments)
        if functional and len(schema.returns) == returned and _inputs(other) == requested:
            return other
    return None


def _inputs(overload: Any) -> list[tuple[str, str]]:  # noqa: ANN401
    arguments = overload._schema.arguments
    return [(entry.name, str(entry.type)) for entry in arguments if not entry.is_out]
