"""The out variant of a functional operator, which is the name of the runtime's kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from compiler.dialect import quantized
from compiler.dialect.mutating_ops import is_write, writer_of
from compiler.dialect.ops import EdgeOp, edge_op
from compiler.errors import MissingOutVariantsError, source_line
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


def find_out_variant(op: EdgeOp) -> OutVariant | None:
    """Return the overload whose other arguments are those of the operator, in order."""
    known = _found.get(op) or _search(op)
    if known is not None:  # one that is missing may be registered later
        _found[op] = known
    return known


_found: dict[EdgeOp, OutVariant] = {}


def _search(op: EdgeOp) -> OutVariant | None:
    requested = {a.name: str(a.type) for a in op.op._schema.arguments}
    for found in _overloads(op):
        formals = formals_of(found)
        if _fits(formals, requested):
            name = edge_op(found).schema_name
            return OutVariant(name, found._schema.overload_name, formals, found)
    return None


def formals_of(op: Any) -> tuple[Formal, ...]:  # noqa: ANN401 - an operator overload of torch
    """Return the arguments of an operator."""
    return tuple(
        Formal(a.name, str(a.type), a.default_value, a.is_out) for a in op._schema.arguments
    )


def _overloads(op: EdgeOp) -> Iterator[Any]:
    packets = [op.op.overloadpacket]
    if op.namespace == quantized.WRITTEN:  # torch has no forms that write into given memory
        packets.append(getattr(quantized.own_packets, op.op._schema.name.split("::")[1], None))
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


def check_out_variants(nodes: Iterable[torch.fx.Node]) -> None:
    """Check that every edge operator has an out variant.

    Raises: MissingOutVariantsError naming all operators without one
    """
    first: dict[EdgeOp, torch.fx.Node] = {}
    for node in nodes:
        if isinstance(node.target, EdgeOp):
            first.setdefault(node.target, node)
        elif is_write(node) and writer_of(node).op._schema.returns:
            first.setdefault(writer_of(node), node)
    missing = {op.name(): node for op, node in first.items() if find_out_variant(op) is None}
    if missing:
        lines = dict.fromkeys(source_line(node) for node in missing.values())
        raise MissingOutVariantsError(sorted(missing), [line for line in lines if line])
