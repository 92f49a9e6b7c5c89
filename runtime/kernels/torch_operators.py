"""Operators that somebody's library has registered with torch, as kernels of a runtime."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch

from runtime import untyped
from runtime.errors import ErrorCode, ExecutionError

if TYPE_CHECKING:
    from runtime.kernels.registry import KernelRegistry

_torch_ops: Any = torch.ops
_TORCHS = (
    "aten",
    "prim",
    "prims",
)  # adopted by name only: what of these has no kernel here has none in ExecuTorch either


def operator_names() -> frozenset[str]:
    """Return the full names of all operators torch has at this moment."""
    return frozenset(untyped.operator_names())


def matching(wanted: str) -> frozenset[str]:
    """Return the operators of torch that a name stands for.

    Args:
        wanted: an overload (``my::scaled.out``), an operator, which stands for its overloads
            (``my::scaled``), or a namespace (``my``)

    Raises: ExecutionError NotFound if torch has no such operator
    """
    found = {name for name in operator_names() if wanted in _names_of(name)}
    if not found:
        raise ExecutionError(
            ErrorCode.NotFound,
            f"torch has no operator {wanted!r}",
            remedy="Import or load the library that registers it first "
            '(torch.ops.load_library("FILE.so")).',
        )
    return frozenset(found)


def _names_of(name: str) -> tuple[str, str, str]:
    return name, name.partition(".")[0], name.partition("::")[0]


def adopt(registry: KernelRegistry, names: Iterable[str]) -> tuple[str, ...]:
    """Register the operators of torch that a program can call: out variants, and those that write.

    An out variant is run by the operator it is a variant of, where there is one with the same
    arguments, else as it is, over the memory of its results. Whatever a program cannot call or
    has a kernel already is left out.

    Args:
        registry: of the runtime that is to run them
        names: full names, as ``my::scaled.out``

    Returns: the names that have a kernel now and had none
    """
    return tuple(name for name in sorted(names) if _adopted(registry, name))


def of_libraries(names: Iterable[str]) -> frozenset[str]:
    """Return those names that are not torch's own operators."""
    return frozenset(name for name in names if name.partition("::")[0] not in _TORCHS)


def _adopted(registry: KernelRegistry, name: str) -> bool:
    overload = None if registry.find(name) is not None else _overload(name)
    if overload is None:
        return False
    schema = overload._schema
    outs = [entry.name for entry in schema.arguments if entry.is_out]
    run = _same_without_outs(overload) if outs else overload
    try:
        if run is not None:
            registry.register(str(schema))(run)
        else:
            registry.register_filling(str(schema))(overload)
    except ExecutionError as error:
        if error.code is not ErrorCode.InvalidArgument:
            raise
        return False  # no program can call it
    return True


def _overload(name: str) -> Any:  # noqa: ANN401 - torch's operators have no type
    """Return an operator of torch, None for an implementation without a schema."""
    namespace, _, rest = name.partition("::")
    operator, _, overload = rest.partition(".")
    try:
        return getattr(getattr(getattr(_torch_ops, namespace), operator), overload or "default")
    except AttributeError:
        return None


def _same_without_outs(overload: Any) -> Any:  # noqa: ANN401
    """Return the operator that takes the same and makes its results itself, None for none."""
    packet = overload.overloadpacket
    wanted = _inputs(overload)
    returned = len([entry for entry in overload._schema.arguments if entry.is_out])
    for name in packet.overloads():
        other = getattr(packet, name)
        schema = other._schema
        makes = not any(entry.is_out for entry in schema.arguments)
        if makes and len(schema.returns) == returned and _inputs(other) == wanted:
            return other
    return None


def _inputs(overload: Any) -> list[tuple[str, str]]:  # noqa: ANN401
    arguments = overload._schema.arguments
    return [(entry.name, str(entry.type)) for entry in arguments if not entry.is_out]
