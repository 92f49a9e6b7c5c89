"""Values and placeholders of one graph of the serde JSON."""

from __future__ import annotations

from types import MappingProxyType

from schema.etrecord.graph.json_text import Json
from schema.etrecord.graph.shared import Shared
from schema.etrecord.graph.signature import Signature, Slot
from schema.etrecord.graph.unions import BROKEN, dim, mapping, text, unfold
from schema.graph import GraphNode, GraphValue, NodeKind
from schema.objects.plural import plural

_CONSTANT_KINDS = frozenset(("parameter", "buffer", "tensor_constant", "custom_obj"))
_VALUE_KINDS = {
    "as_tensor": "tensor",
    "as_sym_int": "symint",
    "as_sym_bool": "bool",
    "as_sym_float": "float",
    "as_custom_obj": "other",
}
_OTHER_VALUES = (
    ("sym_bool_values", "bool"),
    ("sym_float_values", "float"),
    ("custom_obj_values", "other"),
)


def read_values(tree: Json, shared: Shared) -> tuple[dict[str, GraphValue], dict[str, str]]:
    """Return the described values by name, and the expressions of symbolic sizes.

    The tensor entries of the tree are dropped on the way, to bound memory.
    """
    values: dict[str, GraphValue] = {}
    symbols: dict[str, str] = {}
    tensors = mapping(tree.get("tensor_values"))
    unread = 0
    for name in tensors:
        try:
            meta = shared.metas.read(tensors[name])
        except BROKEN:
            meta, unread = None, unread + 1
        tensors[name] = None
        values[name] = GraphValue(name, meta)
    if unread:
        shared.note(f"the metadata of {plural(unread, 'tensor')} cannot be read")
    for name, symbol in mapping(tree.get("sym_int_values")).items():
        values[name] = _number(name, symbol, symbols)
    for key, kind in _OTHER_VALUES:
        for name in mapping(tree.get(key)):
            values[name] = GraphValue(name, None, kind)
    return values, symbols


def read_placeholder(
    entry: Json, index: int, signature: Signature, values: dict[str, GraphValue]
) -> tuple[GraphNode, Slot]:
    """Return the node of a graph input and its role; its value is added or completed."""
    tag, inner = unfold(entry)
    named = tag in _VALUE_KINDS
    name = text(inner.get("name") or inner["as_name"]) if named else ""
    slot = signature.input(index, name)
    name = name or slot.name or f"input_{index}"
    if named:
        found = values.get(name) or GraphValue(name, None, _VALUE_KINDS[tag])
    else:
        found = _constant(name, tag, inner)
    if slot.kind in _CONSTANT_KINDS:
        nbytes = found.tensor.nbytes if found.tensor else None
        found = GraphValue(name, found.tensor, found.kind, None, slot.target, nbytes)
    values[name] = found
    attributes: dict[str, object] = {"input_kind": slot.kind}
    if slot.target:
        attributes["target"] = slot.target
    if slot.persistent is not None:
        attributes["persistent"] = slot.persistent
    shown = MappingProxyType(attributes)
    return GraphNode(name, NodeKind.PLACEHOLDER, name, (), (name,), attributes=shown), slot


def complete_values(nodes: list[GraphNode], values: dict[str, GraphValue]) -> None:
    """Add values that nodes mention but the file does not describe."""
    for node in nodes:
        for name in (*node.inputs, *node.outputs):
            if name not in values:
                values[name] = GraphValue(name, None, "other")


def _number(name: str, symbol: Json, symbols: dict[str, str]) -> GraphValue:
    try:
        extent = dim(symbol)[0]
    except BROKEN:
        return GraphValue(name, None, "symint")
    if isinstance(extent, int):
        return GraphValue(name, None, "int", extent)
    symbols[name] = extent
    return GraphValue(name, None, "symint")


def _constant(name: str, tag: str, inner: Json) -> GraphValue:
    if tag == "as_none":
        return GraphValue(name, None, "none")
    kind = {"as_string": "str"}.get(tag, tag.removeprefix("as_"))
    literal: object = inner if isinstance(inner, (int, float, str)) else None
    return GraphValue(name, None, kind, literal)
