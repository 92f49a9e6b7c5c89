"""Recorded graphs: values, placeholders, outputs, whole programs."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from schema.errors import FormatError
from schema.etrecord import decode
from schema.etrecord.budget import Budget
from schema.etrecord.graph.graph_json import read_program
from schema.etrecord.graph.json_text import measure
from schema.graph import Graph, GraphNode, NodeKind
from tests.schema.etrecord_samples import (
    DATA,
    graph,
    node,
    program_tree,
    read_nodes,
    read_tree,
    symbol,
    tensor,
    tensor_meta,
)

ADD = "executorch.exir.dialects.edge.ops.aten.add.Tensor"


def first_call(*args: Any, target: str = ADD, **metadata: str) -> GraphNode:
    return read_nodes(node("n", target, *args, **metadata), inputs=("x", "y")).graph.calls()[0]


# ---- values
def metas(**tensors: Any) -> Graph:
    return read_tree(program_tree(graph(tensor_values=tensors))).graph


@pytest.mark.parametrize(
    ("major", "number", "name"),
    [
        (5, 1, "uint8"),
        (5, 13, "bfloat16"),
        (5, 14, "uint16"),
        (5, 15, "float8_e5m2"),
        (5, 16, "float8_e4m3fn"),
        (8, 14, "float8_e4m3fn"),
        (8, 28, "uint16"),
        (8, 29, "float8_e4m3fn"),
        (8, 33, "float8_e8m0fnu"),
        (5, 77, "dtype_77"),
    ],
)
def test_dtype_number_depends_on_the_schema_version(major: int, number: int, name: str) -> None:
    body = graph(tensor_values={"t": tensor_meta(2, dtype=number)})
    meta = read_tree(program_tree(body, major=major)).graph.values["t"].tensor
    assert meta is not None
    assert meta.dtype == name


def test_tensor_sizes_symbolic_are_shown_as_expressions() -> None:
    meta = tensor_meta(symbol("s0", 4), 3, strides=(3, 1))
    found = metas(t=meta, u=tensor_meta({"as_symbol": "s1"}, 2, strides=(2, 1))).values
    assert found["t"].tensor.sizes == ("s0", 3)  # pyright: ignore[reportOptionalMemberAccess]
    assert found["t"].tensor.nbytes is None  # pyright: ignore[reportOptionalMemberAccess]
    assert found["u"].tensor.sizes == ("s1", 2)  # pyright: ignore[reportOptionalMemberAccess]


@pytest.mark.parametrize(
    ("strides", "order"),
    [
        ((60, 20, 5, 1), (0, 1, 2, 3)),
        ((60, 1, 15, 3), (0, 2, 3, 1)),
        ((symbol("s0", 60), 1, 15, 3), (0, 2, 3, 1)),
        ((symbol("s0"), 1, 15, 3), ()),
        ((0, 5, 1, 1), (1, 2, 3, 0)),
    ],
)
def test_dim_order_follows_strides(strides: Any, order: tuple[int, ...]) -> None:
    meta = metas(t=tensor_meta(2, 3, 4, 5, strides=strides)).values["t"].tensor
    assert meta is not None
    assert meta.dim_order == order


def test_tensor_meta_repeated_is_kept_once() -> None:
    found = metas(a=tensor_meta(2), b=tensor_meta(2)).values
    assert found["a"].tensor is found["b"].tensor


@pytest.mark.parametrize("bad", [{}, 5, tensor_meta(1 << 70), tensor_meta("x"), tensor_meta(-1)])
def test_tensor_meta_unreadable_leaves_the_value_and_an_issue(bad: Any) -> None:
    found = read_tree(program_tree(graph(tensor_values={"t": bad, "u": tensor_meta(1)})))
    assert found.graph.values["t"].tensor is None
    assert found.graph.values["u"].tensor is not None
    assert "1 tensor" in found.issues[0].message


def test_symbols_and_numbers_are_told_apart() -> None:
    body = graph(
        sym_int_values={"s": symbol("2*s0", 8), "n": {"as_int": 4}},
        sym_bool_values={"b": {"as_bool": True}},
        sym_float_values={"f": {}},
    )
    found = read_tree(program_tree(body)).graph
    kinds = {name: (value.kind, value.literal) for name, value in found.values.items()}
    assert kinds == {
        "s": ("symint", None),
        "n": ("int", 4),
        "b": ("bool", None),
        "f": ("float", None),
    }
    assert dict(found.attributes["symbols"]) == {"s": "2*s0"}  # pyright: ignore[reportArgumentType, reportCallIssue]


def test_value_mentioned_but_not_described_exists() -> None:
    body = graph(node("n", ADD, tensor("ghost")), tensor_values={})
    found = read_tree(program_tree(body)).graph
    assert found.values["ghost"].kind == "other"
    assert found.values["n"].tensor is None


# ---- placeholders and output
def spec(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {kind: {"arg": {"name": name}, **more}}


def test_placeholders_say_what_they_are() -> None:
    inputs = [
        spec("parameter", "w", parameter_name="fc.weight"),
        spec("buffer", "k", buffer_name="cache", persistent=False),
        spec("tensor_constant", "c", tensor_constant_name="lifted"),
        {"user_input": {"arg": tensor("x")}},
        {"constant_input": {"name": "n", "value": {"as_int": 3}}},
        {"constant_input": {"name": "o", "value": {"as_none": []}}},
        {"constant_input": {"name": "s", "value": {"as_string": "hi"}}},
        {"user_input": {"arg": {"as_sym_int": {"as_name": "size"}}}},
    ]
    body = graph(inputs=("w", "k", "c", "x"))
    body["inputs"] += [{"as_int": 3}, {"as_none": []}, {"as_string": "hi"}]
    body["inputs"].append({"as_sym_int": {"as_name": "size"}})
    body["sym_int_values"] = {"size": symbol("s0")}
    found = read_tree(program_tree(body, {"input_specs": inputs, "output_specs": []})).graph
    facts = [
        (entry.name, entry.attributes["input_kind"], entry.attributes.get("target"))
        for entry in found.nodes[:-1]
    ]
    assert facts == [
        ("w", "parameter", "fc.weight"),
        ("k", "buffer", "cache"),
        ("c", "tensor_constant", "lifted"),
        ("x", "user_input", None),
        ("n", "constant_input", None),
        ("o", "constant_input", None),
        ("s", "constant_input", None),
        ("size", "user_input", None),
    ]
    assert found.inputs == ("x", "n", "o", "s", "size")
    assert found.nodes[1].attributes["persistent"] is False
    weight = found.values["w"]
    assert (weight.constant, weight.constant_bytes) == ("fc.weight", 24)
    kinds = [(found.values[name].kind, found.values[name].literal) for name in found.inputs[1:]]
    assert kinds == [("int", 3), ("none", None), ("str", "hi"), ("symint", None)]


def test_outputs_say_what_they_are() -> None:
    outputs = [
        spec("buffer_mutation", "m", buffer_name="cache"),
        {"user_output": {"arg": tensor("y")}},
        {"user_output": {"arg": {"as_none": []}}},
    ]
    body = graph(node("m", ADD), node("y", ADD), outputs=("m", "y"))
    body["outputs"].append({"as_none": []})
    found = read_tree(program_tree(body, {"input_specs": [], "output_specs": outputs})).graph
    last = found.nodes[-1]
    assert (last.kind, last.inputs, found.outputs) == (NodeKind.OUTPUT, ("m", "y"), ("y",))
    assert last.attributes["output_kinds"] == ("buffer_mutation", "user_output", "user_output")
    assert last.attributes["output_targets"] == ("cache", "", "")


def test_placeholders_unreadable_or_repeated_are_left_out_with_an_issue() -> None:
    body = graph(inputs=("x", "x"))
    body["inputs"].append({"as_tensor": {}})
    found = read_tree(program_tree(body))
    assert found.graph.inputs == ("x",)
    assert "2 nodes" in found.issues[0].message


def test_output_unreadable_is_shown_as_such() -> None:
    body = {**graph(), "outputs": [{"as_tensor": 5}]}
    found = read_tree(program_tree(body))
    assert found.graph.nodes[-1].args[0].literal == "unreadable"
    assert found.issues


def test_signature_unreadable_is_an_issue_and_inputs_remain() -> None:
    body = graph(inputs=("x",))
    found = read_tree(program_tree(body, {"input_specs": [5], "output_specs": []}))
    assert found.graph.inputs == ("x",)
    assert "signature" in found.issues[0].message


# ---- whole programs
def test_program_says_versions_ranges_and_dialect() -> None:
    tree = program_tree(graph())
    tree["range_constraints"] = {"s0": {"min_val": 2, "max_val": float("inf")}, "s1": {}}
    found = read_tree(tree)
    assert (found.schema_version, found.verifiers) == ((5, 4), ("EDGE",))
    assert found.range_constraints == {"s0": (2, None), "s1": (None, None)}


def test_program_rewritten_by_memory_planning_is_flagged() -> None:
    path = DATA / "records/mutated.etrecord"
    found = decode(path.read_bytes()).program("edge_dialect_exported_program/forward")
    assert found.mutated
    assert "memory planning" in found.issues[0].message
    targets = {call.target for call in found.graph.calls()}
    assert {"memory.alloc", "memory.view", "aten.addmm.out"} <= targets


@pytest.mark.parametrize("bad", [None, 5, "x", [], {}, {"inputs": {}}, {"target": 5}])
def test_node_unreadable_leaves_the_others_and_an_issue(bad: Any) -> None:
    found = read_tree(program_tree({**graph(), "nodes": [bad, node("good", ADD)]}))
    assert [call.name for call in found.graph.calls()] == ["good"]
    assert "1 node" in found.issues[0].message


def test_nodes_of_one_name_are_renamed_with_an_issue() -> None:
    found = read_nodes(node("n", ADD), node("n", ADD), node("output", ADD))
    names = [entry.name for entry in found.graph.nodes]
    assert len(set(names)) == len(names) == 4
    assert "several nodes are named" in found.issues[0].message


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "JSON"),
        (b"[1, 2", "JSON"),
        (b"\xff\xfe", "UTF-8"),
        (b"[]", "program"),
        (b"{}", "graph_module"),
        (b'{"graph_module": {"graph": {}}}', "nodes"),
        (b'{"graph_module": {"graph": {"nodes": {}}}}', "list"),
        (b"[" * 300 + b"]" * 300, "at most 200"),
        (b"[" + b"9" * 5000 + b"]", "limit"),
        (b"[" + b"[]," * 2_000_000 + b"0]", "bytes for a file of this size"),
    ],
)
def test_program_that_is_none_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(FormatError, match=reason) as caught:
        read_program(data, "sample", Budget(len(data)))
    assert caught.value.field.startswith("sample")


def test_text_with_brackets_and_quotes_does_not_count_as_nesting() -> None:
    trace = '\\" [[[[ {{{{ "' * 100
    assert first_call(stack_trace=trace).stack_trace == trace


@pytest.mark.parametrize("size", [(1 << 22) - 40, (1 << 22) + 1, (1 << 23) + 7])
def test_text_across_blocks_keeps_escapes_together(size: int) -> None:
    for run in (1, 2, 3, 60):
        tail = "\\" * run + '"[[['
        data = json.dumps(["x" * (size - run), tail])
        deepest, cost = measure(np.frombuffer(data.encode(), np.uint8))
        assert deepest == 1
        assert cost >= len(data)


def test_text_with_lone_surrogates_can_be_encoded() -> None:
    found = first_call(stack_trace="a\ud800b 😀")
    assert found.stack_trace.encode().decode() == "a�b 😀"
