"""Titles and second lines of graph nodes, as short as they can be read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from inspector.graph.model_graph import ModelNode
from inspector.units import format_bytes
from schema.dtypes.scalar_type import scalar_type
from schema.graph import Dim, GraphNode, GraphValue, NodeKind

_NAME = re.compile(r"[\w:]+(?:\.\w+)+")
_TYPE = re.compile(r"(\w+)\[")
_SHORT = {scalar_type(code).name: scalar_type(code).short for code in range(30)}


def node_title(node: ModelNode) -> str:
    """Return the operator without default overloads, or the name of an input."""
    kind = node.node.kind
    if kind is NodeKind.PLACEHOLDER:
        return node.node.outputs[0] if node.node.outputs else node.node.name
    if kind is NodeKind.OUTPUT:
        return "output"
    return operator_title(node.node.target)


def exported_name(node: GraphNode) -> str:
    """Return the node of the exported program that a node comes from, empty if unknown."""
    name, _, number = node.from_node[0].rpartition(".") if node.from_node else ("", "", "")
    return name if number.isdecimal() else ""


@lru_cache(maxsize=4096)  # a program has few operators, and tables and drawings hold their titles
def operator_title(target: str) -> str:
    """Return ``aten.add.Tensor`` for ``aten::add.Tensor``; ``.default`` and ``.out`` dropped."""
    title = target.replace("::", ".")
    for ending in (".default", ".out"):
        title = title.removesuffix(ending)
    return title or "unknown operator"


def value_text(value: GraphValue) -> str:
    """Return dtype and shape in short, as in ``f32 [1, 64, 98]``."""
    tensor = value.tensor
    if tensor is None:
        return value.kind
    return _type_text(tensor.dtype, tensor.sizes)


@lru_cache(maxsize=4096)  # layers repeat: drawings hold one string for all values of a shape
def _type_text(dtype: str, sizes: tuple[Dim, ...]) -> str:
    return f"{_SHORT.get(dtype, dtype)} [{', '.join(map(str, sizes))}]"


def short_description(description: str) -> str:
    """Return ``f32 [8, 3]`` for ``float32 [8, 3]``."""
    dtype, blank, sizes = description.partition(" ")
    return f"{_SHORT.get(dtype, dtype)}{blank}{sizes}"


def short_operators(text: str) -> str:
    """Return ``conv2d → gelu`` for ``aten.conv2d.default → aten.gelu.default``."""
    return _NAME.sub(lambda found: operator_title(found[0]).removeprefix("aten."), text)


def short_list(text: str, most: int = 3) -> str:
    """Return the first names of a list divided by commas; further ones are counted."""
    names = text.split(", ")
    rest = len(names) - most
    return ", ".join([*names[:most], f"+{rest}"]) if rest > 0 else text


def short_types(text: str) -> str:
    """Return ``f32 [8, 3], i64 [1]`` for ``float32[8, 3], int64[1]``."""
    return _TYPE.sub(lambda found: f"{_SHORT.get(found[1], found[1])} [", text)


def short_place(text: str) -> str:
    """Return ``net.py:3`` for ``/home/ada/net.py:3``."""
    return re.split(r"[/\\]", text)[-1]


def shape_text(values: tuple[GraphValue, ...], most: int = 2) -> str:
    """Return the outputs of a node in short; further ones are counted, unused ones omitted."""
    values = tuple(value for value in values if "_unused_" not in value.name)
    return in_short([value_text(value) for value in values], most)


def in_short(texts: Sequence[str], most: int = 2) -> str:
    """Return the first of some labels, and how many more there are."""
    rest = len(texts) - most
    return ", ".join(texts[:most]) + (f", +{rest}" if rest > 0 else "")


def summary_text(name: str, value: object) -> str:
    """Return a fact of a payload as shown: counts in groups of digits, bytes with their unit."""
    if isinstance(value, bool) or not isinstance(value, int):
        return str(value)
    return format_bytes(value) if name.endswith("bytes") else f"{value:,}"
