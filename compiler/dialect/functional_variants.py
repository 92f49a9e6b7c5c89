"""The operator that computes the same without sharing or overwriting memory."""

from __future__ import annotations

import functools
from typing import Any

import torch

from compiler.errors import UnsupportedError
from compiler.untyped import aten


@functools.cache
def is_view(op: Any) -> bool:  # noqa: ANN401 - an operator overload of torch
    """Return whether the result of an operator shares the memory of its input."""
    return op is aten._unsafe_view.default or bool(op.is_view)


@functools.cache
def returns_alias(op: Any) -> bool:  # noqa: ANN401
    """Return whether a result may alias an input, by the schema."""
    return any(r.alias_info and not r.alias_info.is_write for r in op._schema.returns)


@functools.cache
def copy_variant(op: Any) -> Any:  # noqa: ANN401
    """Return the ``*_copy`` operator of a view operator."""
    name = op._schema.name.split("::")[1].removeprefix("_unsafe_") + "_copy"
    return _overload(op, name, "a copying form")


@functools.cache
def functional_variant(op: Any) -> Any:  # noqa: ANN401
    """Return the functional variant of an in-place operator."""
    return _overload(op, op._schema.name.split("::")[1].removesuffix("_"), "a functional form")


def has_functional_variant(op: Any) -> bool:  # noqa: ANN401
    """Return whether an in-place operator has one result and a functional form."""
    try:
        variant = functional_variant(op)
    except UnsupportedError:
        return False
    writes = [a for a in op._schema.arguments if a.alias_info and a.alias_info.is_write]
    return len(writes) == 1 and variant is not op and not variant._schema.is_mutable


def _overload(op: Any, name: str, what: str) -> Any:  # noqa: ANN401
    packet = getattr(getattr(torch.ops, op.namespace), name, None)
    variant = getattr(packet, op._overloadname, None)
    if variant is None:
        raise UnsupportedError(f"{op} has no {what}: no operator {op.namespace}::{name}")
    return variant
