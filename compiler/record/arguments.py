"""Arguments and tensor metadata as the record's JSON writes them, schema 5.4.

Source: exir/serde/schema.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from compiler.errors import UnsupportedError
from compiler.untyped import expression_of, simplified
from schema.etrecord.graph.dtypes import LAYOUTS, MEMORY_FORMATS, serde_dtype_names

Json = dict[str, Any]
# export schema version of ExecuTorch's serializer, which decides the codes of dtypes
MAJOR, MINOR = 5, 4
_DTYPES = {name: number for number, name in serde_dtype_names(MAJOR).items()}
_FORMATS = {name: number for number, name in MEMORY_FORMATS.items()}
_LAYOUTS = {name: number for number, name in LAYOUTS.items()}
_EMPTY = (("bool", "as_bools"), ("float", "as_floats"), ("Tensor", "as_tensors"))


def argument(value: Any, kind: str = "") -> Json:  # noqa: ANN401
    """Return an argument; its declared type determines the item type of an empty list."""
    if isinstance(value, torch.fx.Node):
        return _node(value)
    if isinstance(value, (list, tuple)):
        return _list([*value], kind)
    return _constant(value)


def _node(node: torch.fx.Node) -> Json:
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        return {"as_tensor": {"name": node.name}}
    if isinstance(value, torch.SymBool):
        return {"as_sym_bool": {"as_name": node.name}}
    return {"as_sym_int": {"as_name": node.name}}  # floats too: the format has no such argument


def _constant(value: Any) -> Json:  # noqa: ANN401
    if value is None:
        return {"as_none": []}
    for kind, tag in ((bool, "as_bool"), (int, "as_int"), (float, "as_float"), (str, "as_string")):
        if isinstance(value, kind):
            return {tag: value}
    if isinstance(value, torch.dtype):
        return {"as_scalar_type": dtype_code(value)}
    if isinstance(value, torch.device):
        return {"as_device": {"type": value.type, "index": value.index}}
    if isinstance(value, torch.memory_format):
        return {"as_memory_format": _FORMATS[_plain(value)]}
    if isinstance(value, torch.layout):
        return {"as_layout": _LAYOUTS[_plain(value)]}
    raise UnsupportedError(f"{value!r} cannot be written into a record")


def _list(items: list[Any], kind: str) -> Json:
    if not items:
        return {next((tag for word, tag in _EMPTY if word in kind), "as_ints"): []}
    nodes = [item for item in items if isinstance(item, torch.fx.Node)]
    if any(not isinstance(node.meta.get("val"), torch.Tensor) for node in nodes):
        return {"as_sym_ints": [_sym_int(item) for item in items]}
    if nodes and len(nodes) == len(items):
        return {"as_tensors": [{"name": node.name} for node in nodes]}
    if nodes and len(nodes) + items.count(None) == len(items):
        return {"as_optional_tensors": [_constant(i) if i is None else _node(i) for i in items]}
    tags = ((bool, "as_bools"), (int, "as_ints"), (float, "as_floats"), (str, "as_strings"))
    for kind_of_item, tag in tags:
        if all(isinstance(item, kind_of_item) for item in items):
            return {tag: items}
    remedy = "; pass a tensor for each scalar, such as torch.tensor(0)" if nodes else ""
    raise UnsupportedError(f"the list {items!r} cannot be written into a record{remedy}")


def _sym_int(item: Any) -> Json:  # noqa: ANN401
    return {"as_name": item.name} if isinstance(item, torch.fx.Node) else {"as_int": item}


def dtype_code(dtype: torch.dtype) -> int:
    """Return the code of a dtype.

    Raises: UnsupportedError if it has no code
    """
    number = _DTYPES.get(_plain(dtype))
    if number is None:
        raise UnsupportedError(f"{dtype} has no code in records")
    return number


def size(value: Any) -> Json:  # noqa: ANN401 - an int or a symbolic one
    """Return a size: an integer, or an expression with its value at export."""
    if isinstance(value, int):
        return {"as_int": value}
    hint = {"as_int": value.node.hint} if value.node.has_hint() else None
    return {"as_expr": {"expr_str": formula(value), "hint": hint}}


def formula(value: Any) -> str:  # noqa: ANN401 - a symbolic number or condition
    """Return the expression of a symbolic number.

    Readers simplify it: one that comes to a symbol they know already, as ``s0 // 1`` does, is
    refused by the package's.
    """
    return str(simplified(expression_of(value)))


def tensor_meta(tensor: torch.Tensor) -> Json:
    """Return dtype, sizes and strides of a tensor."""
    return {
        "dtype": dtype_code(tensor.dtype),
        "sizes": _sizes(tensor.shape),
        "requires_grad": tensor.requires_grad,
        "device": {"type": "cpu"},
        "strides": _sizes(tensor.stride()),
        "storage_offset": {"as_int": 0},
        "layout": _LAYOUTS["strided"],
    }


def _sizes(values: Sequence[Any]) -> list[Json]:
    return [size(value) for value in values]


def _plain(value: object) -> str:
    return str(value).removeprefix("torch.")
