"""The record of an anonymised copy: its graphs and maps, without tensors, code and names."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, cast

from inspector.export.anonymise_names import Names, is_path_like, without_paths
from schema.errors import FormatError
from schema.etrecord import RecordFile, TensorData, encode, replace_members
from schema.etrecord.members import COUNTS, DELEGATES, GRAPH_ID, HANDLES, MARKER, SIDE_FILES
from schema.etrecord.torch_file.torch_write import write_zeros

Json = Any
_MAPS = (MARKER, GRAPH_ID, HANDLES, DELEGATES, COUNTS)
_NAME_KEYS = ("parameter_name", "buffer_name", "tensor_constant_name", "custom_obj_name", "fqn")
_INPUT_KEYS = ("name", "as_name")
_CONTAINERS = ("in_spec", "out_spec")
_KEPT_META = ("debug_handle", "delegation_tag", "torch_fn", "seq_nr", "val")
_DROPPED = ("guards_code", "example_inputs")
_TENSOR_FILES = ("original_state_dict", "original_constants", "state_dict", "constants")


def anonymous_record(record: RecordFile, names: Names) -> bytes:
    """Return the record with its graphs and maps; weights are zeros of the same layout.

    Inputs, outputs and unknown members are omitted. The stock tool requires three files next to
    each graph, so examples exist but are empty.
    """
    sides = {f"{name}{suffix}" for name in record.program_names for suffix in SIDE_FILES}
    kept = {*_MAPS, *record.program_names, *sides}
    changes: dict[str, bytes | None] = {
        member.name: None for member in record.members if member.name not in kept
    }
    for name in sorted(sides):
        if name in record.archive:
            changes[name] = _zero_tensors(record, name, names)
    for name in record.program_names:
        try:
            tree = json.loads(bytes(record.read(name)))
        except (FormatError, ValueError, RecursionError):
            changes[name] = None
            continue
        changes[name] = json.dumps(_Graph(tree, names).anonymous()).encode()
    for name in _MAPS:  # payload nodes may be called after modules
        if name in record.archive:
            changes[name] = _renamed(record, name, names)
    return encode(replace_members(record, changes))


def _renamed(record: RecordFile, name: str, names: Names) -> bytes | None:
    """Return a member with names replaced, None if it cannot be read."""
    try:
        return names.inside(bytes(record.read(name)))
    except FormatError:
        return None


def _zero_tensors(record: RecordFile, name: str, names: Names) -> bytes:
    """Return zeros under other names, None for anything but a dictionary of tensors."""
    try:
        tree = record.saved(name).value
        if not isinstance(tree, dict):
            return b""
        items = cast("dict[object, object]", tree).items()
        found = {
            names.qualified(str(key)): one for key, one in items if isinstance(one, TensorData)
        }
        return write_zeros(found)
    except (FormatError, ValueError):
        return b""


class _Graph:
    """One recorded program and the names that its signature defines."""

    def __init__(self, tree: Json, names: Names) -> None:
        self._tree = tree
        self._names = names
        self._inputs: dict[str, str] = {}
        self._collect(tree)

    def anonymous(self) -> Json:
        """Return the tree with names replaced and without tensors."""
        return self._value(self._tree)

    def _collect(self, tree: Json) -> None:
        """Note the graph inputs that are named after a parameter or buffer."""
        stack: list[Json] = [tree]
        while stack:
            node = stack.pop()
            if isinstance(node, list):
                stack += cast("list[Json]", node)
            elif isinstance(node, dict):
                found = cast("dict[str, Json]", node)
                stack += found.values()
                for name in _own_inputs(found):
                    self._inputs[name] = self._names.word(name)
                qualified = next((found[key] for key in _NAME_KEYS[:4] if key in found), None)
                arg: Json = found.get("arg")
                name: Json = (
                    cast("dict[str, Json]", arg).get("name") if isinstance(arg, dict) else None
                )
                if isinstance(qualified, str) and isinstance(name, str):
                    self._inputs[name] = self._names.placeholder(name, qualified)

    def _value(self, node: Json) -> Json:
        if isinstance(node, str):
            return self._text(node)
        if isinstance(node, list):
            return [self._value(item) for item in cast("list[Json]", node)]
        if isinstance(node, dict):
            items = cast("dict[str, Json]", node).items()
            return {self._inputs.get(key, key): self._member(key, item) for key, item in items}
        return node

    def _member(self, key: str, item: Json) -> Json:
        if key == "metadata" and isinstance(item, dict):
            return self._metadata(cast("dict[str, Json]", item))
        if key in _DROPPED:
            return [] if isinstance(item, list) else "" if isinstance(item, str) else None
        if isinstance(item, str):
            return self._named_text(key, item)
        if key == "compile_specs" and isinstance(item, list):
            return [self._spec(spec) for spec in cast("list[Json]", item)]
        return self._value(item)

    def _named_text(self, key: str, item: str) -> str:
        if key in _NAME_KEYS:
            return self._names.qualified(item)
        if key in _CONTAINERS:
            return self._names.containers(item)
        if key == "as_string" and item in self._inputs:  # a scalar argument, not the input
            return item
        if key == "processed_bytes":
            return _zeros(item)
        if key in _TENSOR_FILES:
            return ""
        if key == "named_data_store":
            return self._named_data(item)
        return self._text(item)

    def _named_data(self, item: str) -> str:
        try:
            tree = json.loads(item)
        except ValueError:
            return item if not item else ""
        return json.dumps(_blank_buffers(tree))

    def _spec(self, spec: Json) -> Json:
        if not isinstance(spec, dict):
            return spec
        found = cast("dict[str, Json]", spec)
        value = found.get("value")
        if not isinstance(value, str):
            return found
        try:
            raw = base64.b64decode(value, validate=True)
        except ValueError:
            return {**found, "value": self._text(value)}
        return {**found, "value": base64.b64encode(without_paths(raw)).decode()}

    def _metadata(self, meta: Mapping[str, Json]) -> dict[str, Json]:
        kept = {key: self._value(meta[key]) for key in _KEPT_META if key in meta}
        trace, stack, source = (
            meta.get(k) for k in ("stack_trace", "nn_module_stack", "from_node")
        )
        if isinstance(trace, str):
            kept["stack_trace"] = self._names.traceback(trace)
        if isinstance(stack, str):
            kept["nn_module_stack"] = ";".join(map(self._module, stack.split(";")))
        if source is not None:
            kept["from_node"] = self._ancestors(source)
        return kept

    def _module(self, entry: str) -> str:
        """Return one ``key,path,type`` entry."""
        parts = entry.split(",")
        if len(parts) != 3:
            return entry if entry.startswith("_empty") or not entry else "L__self__,,unknown"
        path = self._names.qualified(parts[1])
        return f"L__self__{path},{path},{self._names.module_type(parts[2])}"

    def _ancestors(self, source: Json) -> Json:
        if not isinstance(source, str):
            return self._value(source)
        try:
            return json.dumps(self._value(json.loads(source)))
        except (ValueError, RecursionError):
            return "[]"

    def _text(self, text: str) -> str:
        if text in self._inputs:
            return self._inputs[text]
        if '"processed_bytes"' in text:
            return self._lowered(text)
        return without_paths(text.encode()).decode() if is_path_like(text) else text

    def _lowered(self, text: str) -> str:
        """Return a lowered module, which is a nested JSON document."""
        try:
            return json.dumps(_Graph(json.loads(text), self._names).anonymous())
        except (ValueError, RecursionError):
            return ""


def _own_inputs(node: Mapping[str, Json]) -> list[str]:
    """Return the inputs of a method that an entry of its signature names."""
    stack: list[Json] = [node.get("user_input"), node.get("constant_input")]
    found: list[str] = []
    while stack:  # an argument is in a table that says its kind
        one = stack.pop()
        if isinstance(one, dict):
            items = cast("dict[str, Json]", one)
            found += [v for key, v in items.items() if key in _INPUT_KEYS and isinstance(v, str)]
            stack += items.values()
    return found


def _zeros(encoded: str) -> str:
    """Return base64 of as many zero bytes."""
    padding = len(encoded) - len(encoded.rstrip("="))
    return base64.b64encode(bytes(max(len(encoded) * 3 // 4 - padding, 0))).decode()


def _blank_buffers(node: Json) -> Json:
    """Return a store of named data with every buffer zeroed."""
    if not isinstance(node, dict):
        return node
    found = dict(cast("dict[str, Json]", node))
    buffers: list[Json] = []
    for entry in found.get("buffers") or ():
        if isinstance(entry, str):
            buffers.append(_zeros(entry))
        elif isinstance(entry, dict):
            buffer = cast("dict[str, Json]", entry)
            buffers.append({**buffer, "buffer": _zeros(str(buffer.get("buffer") or ""))})
    return {**found, "buffers": buffers}
