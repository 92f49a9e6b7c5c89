"""Delegates recorded after lowering: the payload together with the graph it was lowered from.

Source: exir/serde/schema.py ``LoweredBackendModule``; exir/_serialize/_named_data_store.py
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass

from schema.errors import FormatError
from schema.etrecord.graph.json_text import Json
from schema.etrecord.graph.unions import text
from schema.etrecord.torch_file.torch_save import SavedTree, read_torch_save
from schema.graph import Graph


@dataclass(frozen=True, slots=True)
class RecordedCompileSpec:
    """One setting the delegate was compiled with."""

    key: str
    value: bytes


@dataclass(frozen=True, slots=True)
class RecordedNamedData:
    """One named blob that the delegate stored in the program.

    Attributes:
        key: name in the program
        data: the bytes
        alignment: bytes
        external_tag: name of its file, empty if it is in the program
    """

    key: str
    data: bytes
    alignment: int
    external_tag: str = ""


@dataclass(frozen=True, slots=True)
class LoweredModule:
    """A delegate inside a recorded graph.

    Attributes:
        name: attribute name, as in ``lowered_module_0``
        backend_id: as in the program
        processed: the delegate payload
        compile_specs: as in the program
        original: the graph it was lowered from
        named_data: blobs referenced by the payload
        saved_state_dict: torch.save file of the parameters of ``original``
        saved_constants: torch.save file of its constants
    """

    name: str
    backend_id: str
    processed: bytes
    compile_specs: tuple[RecordedCompileSpec, ...]
    original: Graph
    named_data: tuple[RecordedNamedData, ...] = ()
    saved_state_dict: bytes = b""
    saved_constants: bytes = b""

    def state_dict(self) -> SavedTree:
        """Return the parameters of the original graph.

        Raises: FormatError if they cannot be read
        """
        return read_torch_save(memoryview(self.saved_state_dict), f"{self.name} state_dict")

    def constants(self) -> SavedTree:
        """Return the constants of the original graph.

        Raises: FormatError if they cannot be read
        """
        return read_torch_save(memoryview(self.saved_constants), f"{self.name} constants")


def lowered_modules(graph: Graph) -> dict[str, LoweredModule]:
    """Return the lowered modules of a graph by the name of the node that calls them."""
    found: dict[str, LoweredModule] = {}
    for node in graph.nodes:
        module = node.attributes.get("lowered_module")
        if isinstance(module, LoweredModule):
            found[node.name] = module
    return found


def read_lowered(name: str, tree: Json, original: Graph, named: Json) -> LoweredModule:
    """Return a lowered module of its JSON, its decoded graph and its parsed named data."""
    specs = [
        RecordedCompileSpec(text(spec["key"]), from_base64(spec["value"]))
        for spec in tree["compile_specs"]
    ]
    return LoweredModule(
        name,
        text(tree["backend_id"]),
        from_base64(tree["processed_bytes"]),
        tuple(specs),
        original,
        _named_data(named),
        from_base64(tree.get("original_state_dict") or ""),
        from_base64(tree.get("original_constants") or ""),
    )


def from_base64(encoded: Json) -> bytes:
    """Return the bytes of a base64 string."""
    try:
        return base64.b64decode(text(encoded).encode(), validate=True)
    except (binascii.Error, TypeError) as error:
        raise FormatError("base64 text", str(error), field="lowered module") from None


def _named_data(tree: Json) -> tuple[RecordedNamedData, ...]:
    if not tree:
        return ()
    blobs = [_blob(entry) for entry in tree["buffers"]]
    found = _entries(blobs, tree.get("pte_data") or {}, "")
    external: Json = tree.get("external_data") or {}
    for tag, entries in external.items():
        found += _entries(blobs, entries, tag)
    return tuple(found)


def _blob(entry: Json) -> tuple[bytes, int]:
    """Return bytes and alignment; releases 0.6 to 1.0 stored the alignment next to the bytes."""
    if isinstance(entry, str):
        return from_base64(entry), 1
    return from_base64(entry["buffer"]), _alignment(entry)


def _alignment(entry: Json) -> int:
    found = entry.get("alignment")
    return found if isinstance(found, int) and found > 0 else 1


def _entries(
    blobs: list[tuple[bytes, int]], entries: Mapping[str, Json], tag: str
) -> list[RecordedNamedData]:
    found: list[RecordedNamedData] = []
    for key, entry in entries.items():
        plain = isinstance(entry, int)
        index: Json = entry if plain else entry["buffer_index"]
        if not isinstance(index, int) or not 0 <= index < len(blobs):
            raise FormatError(f"one of {len(blobs)} buffers", f"{index}", field="named data")
        data, alignment = blobs[index]
        found.append(RecordedNamedData(key, data, alignment if plain else _alignment(entry), tag))
    return found
