"""Records against the stock tool in the same run: graphs, maps, tensors, and what we write."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schema.etrecord import (
    LoweredModule,
    RecordFile,
    TensorData,
    decode,
    encode,
    node_list,
    replace_members,
)
from schema.graph import Graph
from tests.oracle.client import Oracle
from tests.schema.etrecord_samples import RECORDS, record_id

pytestmark = pytest.mark.interop
EDGE = "edge_dialect_exported_program"
# Operators of a vendor are known to stock only in a process that has imported the vendor's part.
READ_BY_STOCK = [path for path in RECORDS if path.name != "cadence_m1_int8.etrecord"]
LEGACY = ("reference_outputs", "representative_inputs")
KINDS = {"CONSTANT_TENSOR": "TENSOR_CONSTANT"}
_EDGE_TARGET = re.compile(r"<(?:Edge|Backend)OpOverload: ([^>]*)>.*", re.DOTALL)
_FUNCTION = re.compile(r"<(?:built-in )?function (\w+).*>")
FUNCTIONS = {"getitem": "_operator.getitem", "alloc": "memory.alloc", "view": "memory.view"}


def stock(path: Path, oracle: Oracle, folder: Path) -> tuple[RecordFile, dict[str, Any]]:
    """Our record and the stock facts; members that stock cannot unpickle are left out."""
    record = decode(path.read_bytes())
    if record.representative_inputs().issues:
        record = replace_members(record, dict.fromkeys(LEGACY))
        path = folder / "model.etrecord"
        path.write_bytes(encode(record))
    facts = oracle.ask("record", path=path)
    assert "error" not in facts, facts
    return record, facts


def short(text: str, op: str) -> str:
    """A target of the stock graph in our words."""
    if op != "call_function":
        return text
    if match := _EDGE_TARGET.fullmatch(text):
        return match[1]
    if match := _FUNCTION.fullmatch(text):
        return FUNCTIONS.get(match[1], match[1])
    return text


def our_words(target: str) -> str:
    """Our target without the parts stock does not print."""
    return (
        target.removeprefix("higher_order.")
        .removeprefix("math.")
        .replace("_operator.", "" if target != "_operator.getitem" else "_operator.")
    )


def assert_same_nodes(graph: Graph, nodes: list[dict[str, Any]]) -> None:
    mine = [
        (entry.name, entry.op, our_words(entry.target), entry.debug_handle, entry.stack_trace)
        for entry in node_list(graph)
    ]
    theirs = [
        (n["name"], n["op"], short(n["target"], n["op"]), n["debug_handle"], n["stack_trace"] or "")
        for n in nodes
    ]
    assert mine == theirs
    calls = {entry.name: entry for entry in graph.nodes}
    sources = {entry.name: entry.source for entry in node_list(graph)}
    for facts in nodes:
        if "graph" in facts:
            assert_same_nodes(graph.subgraphs[facts["target"]], facts["graph"])
        if "processed" in facts:
            module = calls[sources[facts["name"]]].attributes["lowered_module"]
            assert_same_payload(module, facts)
        if facts["op"] == "call_function":
            assert_same_modules(calls[sources[facts["name"]]], facts["nn_module_stack"])
        if "dtype" in (facts["value"] if isinstance(facts["value"], dict) else {}):
            assert_same_value(graph, facts)


def assert_same_payload(module: object, facts: dict[str, Any]) -> None:
    assert isinstance(module, LoweredModule)
    assert module.backend_id == facts["backend_id"]
    assert hashlib.sha256(module.processed).hexdigest() == facts["processed"]["sha256"]


def assert_same_modules(call: Any, stack: dict[str, list[str]] | None) -> None:
    """Stock keeps keys too, and an entry that says there is no stack."""
    theirs = [tuple(pair) for pair in (stack or {}).values() if not pair[0].startswith("_empty")]
    if call.target != "memory.view":
        assert [(frame.path, frame.type_name) for frame in call.modules] == theirs


def assert_same_value(graph: Graph, facts: dict[str, Any]) -> None:
    value = graph.values.get(facts["name"])
    if value is None or value.tensor is None:
        return
    assert value.tensor.dtype == facts["value"]["dtype"]
    sizes = [size for size in value.tensor.sizes if isinstance(size, int)]
    if len(sizes) == len(value.tensor.sizes):
        assert sizes == facts["value"]["shape"]


def assert_same_signature(graph: Graph, facts: dict[str, Any]) -> None:
    inputs = [node for node in graph.nodes if node.kind.value == "placeholder"]
    assert len(inputs) == len(facts["inputs"])
    for node, (kind, name, target) in zip(inputs, facts["inputs"], strict=True):
        mine = str(node.attributes["input_kind"]).upper()
        assert mine.replace("CONSTANT_INPUT", "USER_INPUT") == KINDS.get(kind, kind)
        assert node.name == (name or node.name)
        assert node.attributes.get("target") == target
    last = graph.nodes[-1]
    kinds: Any = last.attributes["output_kinds"]
    targets: Any = last.attributes["output_targets"]
    assert [kind.upper() for kind in kinds] == [kind for kind, _, _ in facts["outputs"]]
    assert [target or None for target in targets] == [target for _, _, target in facts["outputs"]]


def assert_same_tensor(found: Any, facts: Any) -> None:
    if isinstance(found, TensorData):
        assert list(found.sizes) == facts["shape"]
        if facts["type"] == "tensor" and found.data is not None:
            assert (found.dtype, list(found.strides)) == (facts["dtype"], facts["strides"])
            assert digest(found) == facts["sha256"]
    elif isinstance(found, dict):
        assert [str(key) for key in found] == list(facts)
        for key, item in found.items():
            assert_same_tensor(item, facts[str(key)])
    elif isinstance(found, (list, tuple)):
        assert len(found) == len(facts)
        for item, fact in zip(found, facts, strict=True):
            assert_same_tensor(item, fact)
    else:
        assert found == facts


def digest(found: TensorData) -> str:
    """The digest of the elements in row-major order, in their stored type."""
    assert found.data is not None
    item = found.nbytes // max(int(np.prod(found.sizes)), 1)
    if not found.nbytes:
        return hashlib.sha256(b"").hexdigest()
    raw = np.frombuffer(found.data, np.dtype(f"V{item}"))
    steps = [stride * item for stride in found.strides]
    view = np.lib.stride_tricks.as_strided(raw, found.sizes, steps)
    return hashlib.sha256(np.ascontiguousarray(view).tobytes()).hexdigest()


def text_keys(tree: Any) -> Any:
    """Our maps the way JSON has them."""
    if isinstance(tree, (tuple, list)):
        return list(tree)
    if hasattr(tree, "items"):
        return {str(key): text_keys(value) for key, value in tree.items()}
    if hasattr(tree, "handles"):
        return {"name": tree.name, "delegate_map": text_keys(tree.handles)}
    return tree


def without_none(delegates: Any) -> Any:
    """The stock map, empty for backends that return none: MPS, native and TOSA."""
    return {
        method: {
            key: {**one, "delegate_map": one["delegate_map"] or {}} for key, one in each.items()
        }
        for method, each in delegates.items()
    }


def in_lists(handles: Any) -> Any:
    return {
        method: {key: value if isinstance(value, list) else [value] for key, value in found.items()}
        for method, found in handles.items()
    }


@pytest.mark.parametrize("path", READ_BY_STOCK, ids=record_id)
def test_record_holds_what_the_stock_tool_finds(path: Path, oracle: Oracle, tmp_path: Path) -> None:
    record, facts = stock(path, oracle, tmp_path)
    flat = record.roles.edge.get("forward") == EDGE  # stock names it as if it had a method
    assert len(record.program_names) == len(facts["programs"])
    for listed, theirs in facts["programs"].items():
        name = EDGE if flat and listed == f"{EDGE}/forward" else listed
        graph = record.graph(name)
        assert_same_nodes(graph, theirs["nodes"])
        assert_same_signature(graph, theirs["signature"])
        assert_same_tensor(dict(record.state_dict(name)), theirs["state_dict"])
        assert_same_tensor(dict(record.constants(name)), theirs["constants"])
    assert (record.export_graph_id or 0) == facts["export_graph_id"]
    assert text_keys(record.debug_handle_map) == in_lists(facts["debug_handle_map"])
    assert text_keys(record.delegate_map) == without_none(facts["delegate_map"])
    counts = record.instruction_id_to_num_outs_map
    assert text_keys(counts) == facts["instruction_id_to_num_outs_map"]
    assert_same_tensor(record.reference_outputs().value, facts["reference_outputs"])
    assert_same_tensor(record.representative_inputs().value, facts["representative_inputs"])


@pytest.mark.parametrize("path", READ_BY_STOCK, ids=record_id)
def test_record_written_by_us_is_the_same_to_the_stock_tool(
    path: Path, oracle: Oracle, tmp_path: Path
) -> None:
    record, facts = stock(path, oracle, tmp_path)
    own = {"etscope/notes_constants": b'{"kept": true}'}
    written = tmp_path / "written.etrecord"
    written.write_bytes(encode(replace_members(record, own)))
    assert oracle.ask("record", path=written) == facts


def test_record_with_changed_handles_is_read_by_the_stock_tool(
    oracle: Oracle, tmp_path: Path
) -> None:
    path = next(path for path in RECORDS if "mm_xnnpack" in str(path) and "v1.5.1" in str(path))
    changed = replace_members(
        decode(path.read_bytes()), {"debug_handle_map": b'{"forward": {"7": [1, 3]}}'}
    )
    written = tmp_path / "changed.etrecord"
    written.write_bytes(encode(changed))
    facts = oracle.ask("record", path=written)
    assert facts["debug_handle_map"] == {"forward": {"7": [1, 3]}}
