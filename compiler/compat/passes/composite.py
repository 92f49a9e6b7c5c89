"""Custom operators of a backend whose Python kernel is a pattern."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from compiler.untyped import native

_KERNELS = ("CompositeExplicitAutograd", "CompositeImplicitAutograd", "Meta")
Pattern = Callable[..., Any]


def bind_pattern_to_op(library: Any, schema_or_name: str) -> Callable[[Pattern], Pattern]:  # noqa: ANN401
    """Register a pattern as the kernel of an operator, so that graphs with it run and retrace.

    Used as a decorator of the pattern. An operator that already has a kernel keeps it. Afterwards
    the
    operator is ``ops.backend.NAMESPACE.NAME.OVERLOAD``.

    Args:
        library: a ``torch.library.Library``
        schema_or_name: the schema of a new operator, or the name of an existing one

    Raises: RuntimeError if torch cannot parse the schema
    """
    text = schema_or_name.split("::")[-1]
    is_schema = "(" in text
    name = text.split("(")[0].strip()

    def bind(pattern: Pattern) -> Pattern:
        if is_schema:
            library.define(text)
        has = native._dispatch_has_kernel_for_dispatch_key
        base, _, overload = name.partition(".")
        packet = getattr(getattr(torch.ops, library.ns), base)
        op = getattr(packet, overload or "default")
        if not any(has(op.name(), key) for key in _KERNELS):
            library.impl(name, pattern, "CompositeImplicitAutograd")
        return pattern

    return bind
