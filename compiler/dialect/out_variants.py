"""The out variant of a functional operator, which is the name of the runtime's kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from compiler.dialect import quantized
from compiler.dialect.written import schema_name, written_namespace
from compiler.untyped import native

# Arguments that only a call without `out` needs: dtype, layout and device of the result.
_OPTIONS = {"dtype", "layout", "device", "pin_memory"}


@dataclass(frozen=True, slots=True)
class Formal:
    """One argument of a kernel."""

    name: str
    kind: str
    default: Any
    is_out: bool


@dataclass(frozen=True, slots=True)
class OutVariant:
    """A kernel's name, overload, and arguments in order, and torch's operator of that schema."""

    name: str
    overload: str
    arguments: tuple[Formal, ...]
    op: Any


def find_out_variant(op: Any) -> OutVariant | None:  # noqa: ANN401 - an overload of torch
    """Return the overload whose other arguments are those of the operator, in order."""
    known = _found.get(op) or _search(op)
    if known is not None:  # one that is missing may be registered later
        _found[op] = known
    return known


_found: dict[Any, OutVariant] = {}


def _search(op: Any) -> OutVariant | None:  # noqa: ANN401
    requested = {a.name: str(a.type) for a in op._schema.arguments}
    for found in _overloads(op):
        formals = formals_of(found)
        if _fits(formals, requested):
            return OutVariant(schema_name(found), found._schema.overload_name, formals, found)
    return None


def formals_of(op: Any) -> tuple[Formal, ...]:  # noqa: ANN401 - an operator overload of torch
    """Return the arguments of an operator."""
    return tuple(
        Formal(a.name, str(a.type), a.default_value, a.is_out) for a in op._schema.arguments
    )


def _overloads(op: Any) -> Iterator[Any]:  # noqa: ANN401
    packets = [op.overloadpacket]
    # Torch has no forms of these that write into given memory.
    if written_namespace(op) == quantized.WRITTEN:
        packets.append(getattr(quantized.own_packets, op._schema.name.split("::")[1], None))
    for packet in packets:
        if packet is not None:
            # A packet lists the overloads there were when it was first used.
            for schema in native._jit_get_schemas_for_operator(packet._qualified_op_name):
                yield getattr(packet, schema.overload_name or "default")


def _fits(formals: tuple[Formal, ...], requested: dict[str, str]) -> bool:
    given = {formal.name: formal.kind for formal in formals if not formal.is_out}
    if len(given) == len(formals) or not given.items() <= requested.items():
        return False
    left_out = requested.keys() - given.keys()
    return left_out <= _OPTIONS and [name for name in requested if name in given] == list(given)
