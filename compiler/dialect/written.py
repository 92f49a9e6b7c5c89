"""The names of operators as they are written into program files."""

from __future__ import annotations

from typing import Any

from compiler.dialect.dim_order import NAMESPACE as _DIM_ORDER
from compiler.dialect.llama import NAMESPACE as _LLAMA
from compiler.dialect.quantized import NAMESPACE as _QUANTIZED
from compiler.dialect.quantized import WRITTEN as _QUANTIZED_WRITTEN

# Our namespaces, and the names of their operators in files.
WRITTEN_NAMESPACES = {
    _DIM_ORDER: "dim_order_ops",
    _QUANTIZED: _QUANTIZED_WRITTEN,
    _LLAMA: "llama",
}


def written_namespace(op: Any) -> str:  # noqa: ANN401 - an operator overload of torch
    """Return the namespace of an operator in files, such as ``aten``."""
    below = str(op._schema.name).split("::")[0]
    return WRITTEN_NAMESPACES.get(below, below)


def schema_name(op: Any) -> str:  # noqa: ANN401 - an operator overload of torch
    """Return ``namespace::operator`` of an operator in files."""
    return f"{written_namespace(op)}::{op._schema.name.split('::')[1]}"
