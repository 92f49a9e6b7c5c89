"""Binds payload nodes that are calls of torch's own operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch

from runtime.backends.graph.operation import Fixed, Operand, Operation
from runtime.kernels import literals
from runtime.kernels.named_by_files import operator_of_file
from runtime.untyped import aten
from schema.graph import Argument

_PACKED = "_weight_int"  # products with packed weights of 8 or 4 bits
_LARGEST = 1.797e308  # FlatBuffers' JSON has no infinity: writers store the largest double


def torch_operator(target: str) -> Any:  # noqa: ANN401 - torch's operators have no type
    """Return the functional operator ``namespace.name.overload``, None if torch has none."""
    found: Any = operator_of_file(target)
    if found is None:
        return None
    writes = any(one.alias_info and one.alias_info.is_write for one in found._schema.arguments)
    return None if writes else found


def call_of(
    run: Any,  # noqa: ANN401 - of torch
    arguments: Sequence[Argument],
    missing: Callable[[str, str], Any],
) -> Operation:
    """Return the call of an operator, whose literals become those that its schema wants.

    Args:
        run: the operator
        arguments: by name, or in the order of the schema
        missing: returns the dtype for an argument that the payload leaves out, by name and type
    """
    entries: list[Any] = list(run._schema.arguments)
    operands: list[Operand] = []
    keywords: dict[str, Operand] = {}
    by_name = {one.name: one for one in arguments if one.name}
    for place, entry in enumerate(entries):
        given = by_name.get(entry.name)
        if not by_name and place < len(arguments):
            given = arguments[place]
        kind = str(getattr(entry, "real_type", entry.type))
        operand = _operand(given, kind)
        if operand == Fixed(None) and "Optional" not in kind:
            operand = Fixed(missing(entry.name, kind))
        absent = given is None or operand == Fixed(None)
        if absent and entry.has_default_value() and isinstance(operand, Fixed):
            if entry.kwarg_only:
                continue
            operand = Fixed(entry.default_value)
        if entry.kwarg_only:
            keywords[entry.name] = operand
        else:
            operands.append(operand)
    called = _fast(run)
    if not keywords:
        return Operation(called, tuple(operands))
    names, count = tuple(keywords), len(operands)

    def with_keywords(*given: Any) -> Any:  # noqa: ANN401 - whatever the operator returns
        return called(*given[:count], **dict(zip(names, given[count:], strict=True)))

    return Operation(with_keywords, (*operands, *keywords.values()))


def _fast(run: Any) -> Callable[..., Any]:  # noqa: ANN401 - of torch
    """Return the callable of an operator: of copies of a view the view, as nothing writes to it."""
    name = run._schema.name.removeprefix("aten::")
    if name.endswith("_copy") and name != "as_strided_copy":
        plain = "reshape" if name == "view_copy" else name.removesuffix("_copy")
        view = getattr(getattr(aten, plain, None), run._overloadname or "default", None)
        run = view or run
    called = getattr(run, "_op", run)
    return _contiguous(called) if name.startswith(_PACKED) else called


def _contiguous(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call whose tensors are contiguous, which kernels of packed weights want."""

    def packed(*given: Any) -> Any:  # noqa: ANN401 - whatever the operator returns
        dense = (one.contiguous() if isinstance(one, torch.Tensor) else one for one in given)
        return run(*dense)

    return packed


def _operand(argument: Argument | None, kind: str) -> Operand:
    if argument is None:
        return Fixed(None)
    if argument.values:
        several = kind.startswith(("List", "Optional[List")) or "[]" in kind
        return tuple(argument.values) if several else argument.values[0]
    return Fixed(literal(argument.literal, kind))


def literal(value: object, kind: str) -> Any:  # noqa: ANN401 - as the schema wants it
    """Return a literal of a payload in the type of an operator's argument, infinities included."""
    if "Layout" in kind or "Device" in kind:
        return None  # of the values, which are dense and here
    return literals.literal(_infinite(value), kind)


def _infinite(value: object) -> object:
    if isinstance(value, (list, tuple)):
        return [_infinite(one) for one in cast("Sequence[object]", value)]
    if isinstance(value, float) and abs(value) >= _LARGEST:
        return math.copysign(math.inf, value)
    return value
