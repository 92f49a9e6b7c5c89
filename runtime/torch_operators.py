"""Operators that somebody's library has registered with torch, as kernels of a runtime."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from runtime import untyped
from runtime.errors import ExecutionError
from runtime.registry import KernelRegistry

_torch_ops: Any = torch.ops
_TORCHS = (
    "aten",
    "prim",
    "prims",
)  # what of these has no kernel here has none in ExecuTorch either


def operator_names() -> frozenset[str]:
    """Return the full names of all operators torch has at this moment."""
    return frozenset(untyped.operator_names())


def adopt(registry: KernelRegistry, names: Iterable[str]) -> tuple[str, ...]:
    """Register the operators of torch that a program can call: out variants, and those that write.

    An out variant is run by the operator it is a variant of, where there is one with the same
    arguments, else as it is, over the memory of its results. Whatever a program cannot call,
    belongs to torch itself, or has a kernel already is left out.

    Args:
        registry: of the runtime that is to run them
        names: full names, as ``my::scaled.out``

    Returns: the names that have a kernel now and had none
    """
    return tuple(name for name in sorted(names) if _adopted(registry, name))


def _adopted(registry: KernelRegistry, name: str) -> bool:
    if name.partition("::")[0] in _TORCHS or registry.find(name) is not None:
        return False
    overload = _overload(name)
    schema = overload._schema
    outs = [entry.name for entry in schema.arguments if entry.is_out]
    run = _same_without_outs(overload) if outs else overload
    try:
        if run is not None:
            registry.register(str(schema))(run)
        else:
            registry.register_filling(str(schema))(overload)
    except ExecutionError:  # no program can call it
        return False
    return True


def _overload(name: str) -> Any:  # noqa: ANN401 - torch's operators have no type
    namespace, _, rest = name.partition("::")
    operator, _, overload = rest.partition(".")
    return getattr(getattr(getattr(_torch_ops, namespace), operator), overload or "default")


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
