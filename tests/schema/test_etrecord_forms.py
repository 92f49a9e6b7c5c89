"""Forms of old releases, made by rewriting records of a new one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from schema.etrecord import (
    DelegateMap,
    RecordFile,
    decode,
)
from schema.graph import Graph, GraphNode
from tests.schema.etrecord_samples import (
    DATA,
    graph,
    node,
    pickled,
    program_tree,
    record_id,
    record_of,
    saved,
    with_all_keys,
    without_names,
)

EDGE = "edge_dialect_exported_program"
CONVNET = DATA / "corpus/v1.5.1/convnet_xnnpack/model.etrecord"
PROGRAM = json.dumps(program_tree(graph(node("n", "torch.ops.aten.sin.default")))).encode()


def opened(path: Path) -> RecordFile:
    return decode(path.read_bytes(), file=str(path))


def made(**members: bytes) -> RecordFile:
    return decode(record_of({name.replace("__", "/"): data for name, data in members.items()}))


OLD = [
    DATA / "corpus/v1.5.1" / name / "model.etrecord" for name in ("convnet_xnnpack", "mm_xnnpack")
]
OLD += [DATA / "records/branches.etrecord", DATA / "corpus/special/dynamic/model.etrecord"]


def edge_tree(path: Path) -> Any:
    return json.loads(bytes(opened(path).read(f"{EDGE}/forward")))


def rewritten(path: Path, tree: Any) -> Graph:
    """The edge graph after its JSON was put into a flat record."""
    return made(edge_dialect_exported_program=json.dumps(tree).encode()).graph(EDGE)


def facts(entry: GraphNode) -> tuple[Any, ...]:
    head = (entry.kind, entry.target, entry.args, entry.outputs, entry.debug_handle)
    return (*head, entry.modules, entry.stack_trace, entry.subgraphs)


@pytest.mark.parametrize("path", OLD, ids=record_id)
def test_unions_with_all_keys_are_read_like_those_with_one(path: Path) -> None:
    tree = edge_tree(path)
    plain, full = rewritten(path, tree), rewritten(path, with_all_keys(tree))
    assert full == plain


@pytest.mark.parametrize("path", OLD, ids=record_id)
def test_nodes_without_names_are_named_after_their_outputs(path: Path) -> None:
    tree = edge_tree(path)
    plain, bare = rewritten(path, tree), rewritten(path, without_names(tree))
    assert list(map(facts, bare.nodes)) == list(map(facts, plain.nodes))
    single = [entry for entry in plain.nodes if len(entry.outputs) == 1]
    names = {entry.name for entry in bare.nodes}
    assert {entry.name for entry in single if "outputs" not in entry.attributes} <= names
    assert len(names) == len(bare.nodes)


def test_signature_of_release_0_1_is_read_like_a_new_one() -> None:
    tree = edge_tree(OLD[0])
    specs = tree["graph_module"]["signature"]
    plain = rewritten(OLD[0], tree)
    old: dict[str, Any] = {"inputs_to_parameters": {}, "inputs_to_buffers": {}, "user_inputs": []}
    for entry in specs["input_specs"]:
        ((kind, spec),) = entry.items()
        if kind == "user_input":
            old["user_inputs"].append(spec["arg"]["as_tensor"]["name"])
        else:
            old[f"inputs_to_{kind}s"][spec["arg"]["name"]] = spec[f"{kind}_name"]
    old["buffers_to_mutate"] = {}
    old["user_outputs"] = list(plain.outputs)
    tree["graph_module"]["signature"] = old
    found = rewritten(OLD[0], tree)
    assert (found.inputs, found.outputs) == (plain.inputs, plain.outputs)
    constants = [(value.constant, value.constant_bytes) for value in found.values.values()]
    assert constants == [(v.constant, v.constant_bytes) for v in plain.values.values()]


def test_schema_version_of_release_0_1_is_one_number() -> None:
    tree = program_tree(graph())
    tree["schema_version"] = 1
    record = made(edge_dialect_exported_program=json.dumps(tree).encode())
    assert record.program(EDGE).schema_version == (1, 0)


def test_record_of_release_0_1_has_graph_and_maps_only() -> None:
    members = {
        EDGE: PROGRAM,
        f"{EDGE}_state_dict": saved(pickled(b"}")),
        "debug_handle_map": b'{"0": 7, "1": [1, 2]}',
        "delegate_map": b'{"1": {"name": "B", "delegate_map": {"0": [1], "x": [2]}}}',
    }
    record = decode(record_of(members))
    assert record.debug_handle_map == {"forward": {0: (7,), 1: (1, 2)}}
    expected = DelegateMap("B", {"0": (1,), "x": (2,)})
    assert record.delegate_map == {"forward": {1: expected}}
    assert record.instruction_id_to_num_outs_map is None
    assert (record.constants(EDGE), record.example_inputs(EDGE).loaded) == ({}, False)
    assert record.check() == ()
