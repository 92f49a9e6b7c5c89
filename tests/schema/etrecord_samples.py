"""Records, program JSON and pickles made by hand, and rewriters to the forms of old releases."""

from __future__ import annotations

import copy
import json
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from schema.etrecord.archive.zip_write import Content, write_archive
from schema.etrecord.budget import Budget
from schema.etrecord.graph.graph_json import RecordedProgram, read_program

DATA = Path(__file__).parents[1] / "data"
RECORDS = sorted(DATA.rglob("*.etrecord"))
SIDE = ("_state_dict", "_constants", "_example_inputs")


def record_id(path: Path) -> str:
    return path.relative_to(DATA).with_suffix("").as_posix()


# ---- program JSON
def tensor_meta(
    *sizes: Any, dtype: int = 7, strides: Iterable[Any] | None = None
) -> dict[str, Any]:
    if strides is None:
        strides = [_product(sizes[axis + 1 :]) for axis in range(len(sizes))]
    return {
        "dtype": dtype,
        "sizes": [extent(size) for size in sizes],
        "requires_grad": False,
        "device": {"type": "cpu"},
        "strides": [extent(stride) for stride in strides],
        "storage_offset": {"as_int": 0},
        "layout": 7,
    }


def extent(size: Any) -> Any:
    return {"as_int": size} if isinstance(size, int) else size


def symbol(expression: str, hint: int | None = None) -> dict[str, Any]:
    inner: dict[str, Any] = {"expr_str": expression}
    if hint is not None:
        inner["hint"] = {"as_int": hint}
    return {"as_expr": inner}


def _product(sizes: Iterable[Any]) -> int:
    total = 1
    for size in sizes:
        total *= size if isinstance(size, int) else 2
    return total


def tensor(name: str) -> dict[str, Any]:
    return {"as_tensor": {"name": name}}


def node(
    name: str, target: str, *args: Any, outputs: Any = None, **metadata: str
) -> dict[str, Any]:
    """A node; args are (name, union) pairs or bare unions."""
    pairs = [arg if isinstance(arg, tuple) else ("", arg) for arg in args]
    return {
        "name": name,
        "target": target,
        "inputs": [{"name": key, "arg": union} for key, union in pairs],
        "outputs": [tensor(name)] if outputs is None else outputs,
        "metadata": metadata,
    }


def graph(*nodes: Any, inputs: Any = (), outputs: Any = (), **values: Any) -> dict[str, Any]:
    names = [*inputs, *(entry["name"] for entry in nodes)]
    return {
        "inputs": [tensor(name) for name in inputs],
        "outputs": [tensor(name) for name in outputs],
        "nodes": list(nodes),
        "tensor_values": {name: tensor_meta(2, 3) for name in names},
        "sym_int_values": {},
        "sym_bool_values": {},
        "is_single_tensor_return": False,
        "custom_obj_values": {},
        **values,
    }


def program_tree(body: Any, signature: Any = None, major: int = 5) -> dict[str, Any]:
    return {
        "graph_module": {"graph": body, "signature": signature, "module_call_graph": []},
        "opset_version": {"aten": 10},
        "range_constraints": {},
        "schema_version": {"major": major, "minor": 4},
        "verifiers": ["EDGE"],
        "dialect": "",
    }


def read_tree(tree: Any, file_bytes: int = 1 << 20) -> RecordedProgram:
    return read_program(json.dumps(tree).encode(), "sample", Budget(file_bytes))


def read_nodes(*nodes: Any, **values: Any) -> RecordedProgram:
    return read_tree(program_tree(graph(*nodes, **values)))


# ---- rewriting to old forms
_ARGUMENTS = (
    *("as_none", "as_tensor", "as_tensors", "as_int", "as_ints", "as_float", "as_floats"),
    *("as_string", "as_strings", "as_sym_int", "as_sym_ints", "as_scalar_type", "as_layout"),
    *("as_memory_format", "as_device", "as_bool", "as_bools", "as_sym_bool", "as_sym_bools"),
    *("as_graph", "as_optional_tensors", "as_operator"),
)
_UNIONS = (
    {"as_expr", "as_int"},
    {"as_name", "as_int"},
    {"as_tensor", "as_none"},
    set(_ARGUMENTS),
    {"user_input", "parameter", "buffer", "tensor_constant", "constant_input", "token"},
    {"user_output", "buffer_mutation", "user_input_mutation", "loss_output"},
)


def with_all_keys(tree: Any) -> Any:
    """Return the tree with every union carrying all its keys, as release 0.1 wrote them."""
    if isinstance(tree, list):
        return [with_all_keys(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    result = {key: with_all_keys(value) for key, value in tree.items()}
    if len(tree) == 1:
        fitting = [keys for keys in _UNIONS if set(tree) <= keys]
        if fitting:
            return {**dict.fromkeys(sorted(max(fitting, key=len))), **result}
    return result


def without_names(tree: Any) -> Any:
    """Return program JSON as releases before 1.0 wrote it: nodes have neither names nor sources."""
    result = copy.deepcopy(tree)
    for entry in every_node(result["graph_module"]["graph"]):
        del entry["name"]
        entry["metadata"].pop("from_node", None)
    return result


def every_node(body: Any) -> list[Any]:
    found: list[Any] = []
    for entry in body["nodes"]:
        found.append(entry)
        for argument in entry["inputs"]:
            if "as_graph" in argument["arg"]:
                found += every_node(argument["arg"]["as_graph"]["graph"])
    return found


# ---- archives and pickles
def archive(members: dict[str, bytes]) -> bytes:
    return write_archive(Content(name, data) for name, data in members.items())


def record_of(members: dict[str, bytes]) -> bytes:
    return archive({"ETRECORD_V0": b"", **members})


def saved(pickle: bytes, *storages: bytes, order: bytes = b"little") -> bytes:
    """A torch.save file with this pickle and these storages."""
    members = {"archive/data.pkl": pickle, "archive/byteorder": order}
    members |= {f"archive/data/{index}": data for index, data in enumerate(storages)}
    return archive(members)


def text(value: str) -> bytes:
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def number(value: int) -> bytes:
    return b"\x8a\x08" + struct.pack("<q", value)


def numbers(*values: int) -> bytes:
    return b"(" + b"".join(map(number, values)) + b"t"


def storage(kind: str, key: str, count: int) -> bytes:
    module, name = kind.rsplit(".", 1)
    identity = text("storage") + f"c{module}\n{name}\n".encode() + text(key) + text("cpu")
    return b"(" + identity + number(count) + b"tQ"


def rebuilt(
    kind: str, sizes: Iterable[int], strides: Iterable[int], *, offset: int = 0, count: int = 6
) -> bytes:
    """The opcodes of one tensor over storage 0."""
    head = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage(kind, "0", count)
    layout = number(offset) + numbers(*sizes) + numbers(*strides)
    return head + layout + b"\x89ccollections\nOrderedDict\n)RtR"


def pickled(body: bytes) -> bytes:
    return b"\x80\x02" + body + b"."
