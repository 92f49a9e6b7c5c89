"""Structure of ETRecords: members of the archive, JSON as trees, saved tensors as metadata."""

from __future__ import annotations

from typing import cast

from inspector.structure.node import StructureNode, listed, value_node
from schema.dtypes.scalar_type import scalar_type
from schema.etrecord import RecordFile
from schema.etrecord.archive.zip_index import Member
from schema.etrecord.torch_file.tensor_data import Opaque, TensorData
from schema.etrecord.torch_file.torch_save import read_torch_save
from schema.objects.plural import plural

_ZIP, _JSON = b"PK\x03\x04", b"{["
_TEXT_BYTES = 2000


def record_nodes(record: RecordFile, data: memoryview) -> list[StructureNode]:
    """Return one node per member; JSON and saved tensors have children."""
    return listed(record.members, lambda _, member: _member(record, member, data))


def _member(record: RecordFile, member: Member, data: memoryview) -> StructureNode:
    packing = "deflated" if member.compressed else "stored"
    text = f"{member.size:,} bytes, {packing}"
    if member.problem:
        return StructureNode(
            member.name, "member", member.problem, data, member.header, None, failed=True
        )
    content = None if member.compressed else data
    return StructureNode(
        member.name,
        "member",
        text,
        content if content is not None else data,
        member.offset,
        member.packed,
        opens=lambda: member_nodes(record, member),
    )


def member_nodes(record: RecordFile, member: Member) -> list[StructureNode]:
    """Return the nodes inside a member, by its content."""
    content = record.read(member.name)
    size = len(content)
    base = -1 if member.compressed else member.offset
    whole = StructureNode("bytes", "", f"{size:,} bytes", content, 0, size, base)
    head = bytes(content[:64]).lstrip()
    if head[:4] == _ZIP:
        saved = read_torch_save(content, member.name)
        odd = [
            StructureNode(issue.where, issue.severity.value, issue.message, failed=True)
            for issue in saved.issues
        ]
        return [whole, tree_node("content", saved.value), *odd]
    if head[:1] and head[:1] in _JSON:
        return [whole, value_node("content", record.json(member.name))]
    try:
        text = bytes(content[:_TEXT_BYTES]).decode("utf-8")
    except UnicodeDecodeError:
        return [whole]
    return [whole, StructureNode("text", "utf-8", text)] if text.isprintable() else [whole]


def tree_node(name: str, value: object) -> StructureNode:
    """Return a node for the content of a torch.save file; tensors as metadata."""
    if isinstance(value, TensorData):
        return tensor_node(name, value)
    if isinstance(value, Opaque):
        return StructureNode(name, "object", f"{value.name} (not loaded)")
    if isinstance(value, dict):
        mapping = cast("dict[object, object]", value)
        keys = list(mapping)
        return StructureNode(
            name,
            "dict",
            f"{len(keys):,} keys",
            opens=lambda: listed(keys, lambda _, key: tree_node(str(key), mapping[key])),
        )
    if isinstance(value, (list, tuple)):
        items = list(cast("list[object]", value))
        kind = type(cast(object, value)).__name__
        return StructureNode(
            name,
            kind,
            plural(len(items), "entry", "entries"),
            opens=lambda: listed(items, lambda at, item: tree_node(f"[{at}]", item)),
        )
    return value_node(name, value)


def tensor_node(name: str, tensor: TensorData) -> StructureNode:
    """Return a node for a saved tensor with its layout below."""
    kind = f"{scalar_type(tensor.scalar_type).short} {list(tensor.sizes)}"
    facts: dict[str, object] = {
        "strides": list(tensor.strides),
        "storage": tensor.storage_key,
        "storage offset": tensor.storage_offset,
        "parameter": tensor.is_parameter,
        "requires grad": tensor.requires_grad,
        "big endian": tensor.big_endian,
    }
    rows = [value_node(key, value) for key, value in facts.items()]
    missing = tensor.data is None
    text = "bytes are not in the file" if missing else f"{tensor.nbytes:,} bytes"
    size = None if tensor.data is None else len(tensor.data)
    at = None if missing else 0
    return StructureNode(name, kind, text, tensor.data, at, size, -1, opens=lambda: rows)
