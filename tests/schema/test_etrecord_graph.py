"""Serde JSON as graphs: values, placeholders, calls, branches, delegates, sources."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest

from schema.errors import FormatError
from schema.etrecord import CompileSpec, NamedData, decode, lowered_modules
from schema.etrecord.budget import Budget
from schema.etrecord.graph_json import read_program
from schema.etrecord.json_text import measure
from schema.etrecord.names import FxNames, callable_name, short_target
from schema.etrecord.source_meta import module_path
from schema.graph import Argument, Graph, GraphNode, ModuleFrame, NodeKind
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


# ---- targets and names
@pytest.mark.parametrize(
    ("raw", "short", "called"),
    [
        (ADD, "aten.add.Tensor", "aten.add.Tensor"),
        ("executorch.exir.dialects.backend.ops.m.q.default", "m.q.default", "m.q.default"),
        ("torch.ops.aten.add.Tensor", "aten.add.Tensor", "add.Tensor"),
        ("torch.ops.higher_order.cond", "higher_order.cond", "cond"),
        ("_operator.mul", "_operator.mul", "mul"),
        ("math.ceil", "math.ceil", "ceil"),
        ("executorch.exir.memory.view", "memory.view", "view"),
        ("memory.alloc", "memory.alloc", "alloc"),
    ],
)
def test_target_loses_its_dialect(raw: str, short: str, called: str) -> None:
    assert (short_target(raw), callable_name(raw)) == (short, called)
    found = first_call(target=raw)
    assert (found.target, found.attributes["raw_target"]) == (short, raw)


def test_names_taken_or_illegal_get_a_number() -> None:
    names = FxNames()
    wanted = ["a", "a", "a_1", "input", "input", "7x", "a.b-c", "", "a_5", "a"]
    made = [names.create(name) for name in wanted]
    assert made == [
        *("a", "a_1", "a_2", "input_1", "input_2", "_7x", "a_b_c", "_unnamed", "a_5", "a_6")
    ]
    assert names.of_target("torch.ops.aten.maxPool.default") == "max_pool_default"


def test_names_made_to_collide_stay_fast_and_unique() -> None:
    names = FxNames()
    made = {names.create(f"a_{index}") for index in range(20_000)}
    for _ in range(50):
        made.add(names.create("a_00"))
        made.add(names.create("a"))
    assert len(made) == 20_100


@pytest.mark.parametrize(
    "raw",
    [
        "features.0",
        "L['self'].features.0",
        "L['self'].features[0]",
        "L['self'].features['0']",
        "getattr(L['self'].features, '0')",
        "L['self']._modules['features']._modules['0']",
        "L['self']._modules['features'][0]",
        "self.features.0",
        "features@1.0@2",
        " features.0 ",
    ],
)
def test_module_path_of_any_release_is_dotted(raw: str) -> None:
    assert module_path(raw) == "features.0"


@pytest.mark.parametrize("raw", ["", "L['self']", "L__self__", "self"])
def test_module_path_of_the_root_is_empty(raw: str) -> None:
    assert module_path(raw) == ""


def test_module_path_nested_getattr_is_flattened() -> None:
    raw = "getattr(getattr(getattr(L['self'].a, '0').b, '1').c, '2')"
    assert module_path(raw) == "a.0.b.1.c.2"


@pytest.mark.parametrize("raw", ["getattr(f(), 'x')", "a." * 2000])
def test_module_path_of_an_unknown_form_stays_readable(raw: str) -> None:
    assert module_path(raw) in (raw, raw.strip("."))


# ---- metadata
def test_module_stack_becomes_frames_outermost_first() -> None:
    stack = "L__self__,,m.Net;k,getattr(L['self'].b, '0'),m.Block;k2,b.0.fc,torch.nn.Linear"
    found = first_call(nn_module_stack=stack)
    assert found.modules == (
        ModuleFrame("", "m.Net"),
        ModuleFrame("b.0", "m.Block"),
        ModuleFrame("b.0.fc", "torch.nn.Linear"),
    )
    assert found.module_path == "b.0.fc"
    assert found.attributes["nn_module_stack"] == stack


def test_module_stack_made_up_by_torch_is_empty() -> None:
    word = "_empty_nn_module_stack_from_metadata_hook"
    assert first_call(nn_module_stack=f"{word},{word},{word}").modules == ()


@pytest.mark.parametrize(("written", "read"), [("7", 7), ("0", None), ("x", None), ("", None)])
def test_debug_handle_is_a_positive_number_or_unset(written: str, read: int | None) -> None:
    found = first_call(debug_handle=written)
    assert found.debug_handle == read
    assert found.attributes.get("debug_handle") == (None if read else written)


def source(name: str, graph_id: int, *older: Any) -> dict[str, Any]:
    return {"name": name, "target": "t", "graph_id": graph_id, "from_node": list(older)}


def test_from_node_follows_the_last_entry_nearest_first() -> None:
    chain = [source("old", 1), source("b", 2, source("x", 9), source("c", 3, source("d", 4)))]
    assert first_call(from_node=json.dumps(chain)).from_node == ("b.2", "c.3", "d.4")


@pytest.mark.parametrize("written", ["[", "{}", '"x"', "[1]", '[{"name": 1}]', "[" * 5000])
def test_from_node_unreadable_becomes_an_issue(written: str) -> None:
    found = read_nodes(node("n", ADD, from_node=written))
    assert found.graph.calls()[0].from_node == ()
    assert any("from_node" in issue.message for issue in found.issues) or written == "{}"


def test_metadata_of_other_kinds_stays_as_text() -> None:
    found = first_call(torch_fn="add_1;builtin.add", custom="{}", stack_trace="File x")
    assert found.stack_trace == "File x"
    assert (found.attributes["torch_fn"], found.attributes["custom"]) == ("add_1;builtin.add", "{}")


def test_metadata_repeated_is_kept_once() -> None:
    nodes = [node(f"n{i}", ADD, stack_trace="File " + "x" * 50) for i in range(3)]
    traces = {id(call.stack_trace) for call in read_nodes(*nodes).graph.calls()}
    assert len(traces) == 1


# ---- arguments
ARGUMENTS: list[tuple[Any, tuple[str, ...], object]] = [
    (tensor("x"), ("x",), None),
    ({"as_none": []}, (), None),
    ({"as_none": True}, (), None),
    ({"as_tensors": [{"name": "x"}, {"name": "y"}]}, ("x", "y"), None),
    ({"as_optional_tensors": [{"as_none": []}, tensor("x")]}, ("x",), "[None, x]"),
    ({"as_optional_tensors": [tensor("x"), tensor("y")]}, ("x", "y"), None),
    ({"as_optional_tensor": tensor("x")}, ("x",), None),
    ({"as_int": 5}, (), 5),
    ({"as_ints": [1, 2]}, (), (1, 2)),
    ({"as_float": 0.5}, (), 0.5),
    ({"as_floats": []}, (), ()),
    ({"as_bool": False}, (), False),
    ({"as_bools": [True]}, (), (True,)),
    ({"as_string": "none"}, (), "none"),
    ({"as_strings": ["a"]}, (), ("a",)),
    ({"as_sym_int": {"as_name": "x"}}, ("x",), None),
    ({"as_sym_int": {"as_int": 3}}, (), 3),
    ({"as_sym_ints": [{"as_name": "x"}, {"as_int": 2}]}, ("x",), "[x, 2]"),
    ({"as_sym_ints": [{"as_int": 1}, {"as_int": 2}]}, (), (1, 2)),
    ({"as_sym_bool": {"as_bool": True}}, (), True),
    ({"as_sym_float": {"as_float": 2.5}}, (), 2.5),
    ({"as_scalar_type": 7}, (), "float32"),
    ({"as_scalar_type": 99}, (), "dtype_99"),
    ({"as_memory_format": 2}, (), "channels_last"),
    ({"as_layout": 7}, (), "strided"),
    ({"as_device": {"type": "cpu"}}, (), "cpu"),
    ({"as_device": {"type": "cuda", "index": 1}}, (), "cuda:1"),
    ({"as_operator": ADD}, (), "aten.add.Tensor"),
    ({"as_custom_obj": {"name": "o", "class_fqn": "a.B"}}, (), "o: a.B"),
    ({"as_complex": {"real": 1.0, "imag": -2.0}}, (), 1 - 2j),
    ({"as_nested_tensors": [[{"name": "x"}], [{"name": "y"}]]}, ("x", "y"), "[[x], [y]]"),
    ({"as_int_lists": [[1], [2, 3]]}, (), ((1,), (2, 3))),
    ({"as_string_to_argument": {"k": tensor("x")}}, ("x",), "{'k': ('x',)}"),
    ({"as_future_kind": [1]}, (), "[1]"),
]


@pytest.mark.parametrize(("union", "values", "literal"), ARGUMENTS, ids=lambda case: str(case)[:40])
def test_argument_of_each_kind_reads_values_or_prints(
    union: Any, values: tuple[str, ...], literal: object
) -> None:
    found = first_call(("arg", union)).args
    assert found == (Argument("arg", values, literal),)


def test_argument_of_unknown_kind_is_an_issue() -> None:
    found = read_nodes(node("n", ADD, {"as_future_kind": [1]}))
    assert "as_future_kind" in found.issues[0].message


def test_argument_with_all_keys_uses_the_one_that_is_set() -> None:
    keys = {"as_none": None, "as_tensor": None, "as_int": None, "as_bool": None}
    found = first_call({**keys, "as_bool": False}, {**keys, "as_tensor": {"name": "x"}}, keys)
    assert [(arg.values, arg.literal) for arg in found.args] == [
        *(((), False), (("x",), None), ((), None))
    ]


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
    assert "1 tensors" in found.issues[0].message


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


# ---- several outputs, branches, delegates
def test_outputs_of_one_node_keep_their_nesting() -> None:
    outputs = [tensor("a"), {"as_none": []}, {"as_tensors": [{"name": "b"}, {"name": "c"}]}]
    found = read_nodes(node("split", ADD, outputs=outputs)).graph.calls()[0]
    assert found.outputs == ("a", "b", "c")
    assert found.attributes["outputs"] == ("a", None, ("b", "c"))


def test_list_read_by_the_name_of_its_node_is_read_as_its_values() -> None:
    made = node("alloc_18", "memory.alloc", outputs=[tensor("a"), tensor("b")])
    reader = node("copy", ADD, ("out", tensor("alloc_18")), tensor("x"))
    found = read_nodes(made, reader, tensor_values={"a": tensor_meta(2), "b": tensor_meta(2)})
    assert found.graph.calls()[1].args == (Argument("out", ("a", "b")), Argument("", ("x",)))


def branch(name: str, target: str) -> dict[str, Any]:
    body = graph(node("r", target, tensor("x")), inputs=("x",), outputs=("r",))
    return {"as_graph": {"name": name, "graph": body}}


def test_branches_become_subgraphs_of_a_control_node() -> None:
    cond = node(
        "cond",
        "torch.ops.higher_order.cond",
        *(tensor("p"), branch("true_0", ADD), branch("false_0", "torch.ops.aten.sin.default")),
        {"as_tensors": [{"name": "x"}]},
        outputs=[{"as_tensors": [{"name": "getitem"}]}],
    )
    found = read_nodes(cond, inputs=("p", "x")).graph
    call = found.calls()[0]
    assert (call.kind, call.subgraphs) == (NodeKind.CONTROL, ("true_0", "false_0"))
    assert [arg.name for arg in call.args] == ["pred", "true_fn", "false_fn", "operands"]
    assert found.subgraphs["false_0"].calls()[0].target == "aten.sin.default"
    assert found.subgraphs["true_0"].inputs == ("x",)


def test_branches_of_one_name_are_kept_apart_unless_equal() -> None:
    calls = [
        node(f"c{i}", "torch.ops.higher_order.cond", branch("s", target))
        for i, target in enumerate([ADD, ADD, "torch.ops.aten.sin.default"])
    ]
    found = read_nodes(*calls).graph
    names = [call.subgraphs[0] for call in found.calls()]
    assert names[0] == names[1] != names[2]
    assert found.subgraphs[names[2]].calls()[0].target == "aten.sin.default"


def lowered(**more: Any) -> dict[str, Any]:
    inner = program_tree(graph(node("relu", ADD, debug_handle="3"), outputs=("relu",)))
    return {
        "backend_id": "B",
        "processed_bytes": base64.b64encode(b"payload").decode(),
        "compile_specs": [{"key": "k", "value": base64.b64encode(b"v").decode()}],
        "original_module": inner,
        "original_state_dict": "",
        "original_constants": "",
        **more,
    }


def delegate_call(content: Any) -> Any:
    source_text = content if isinstance(content, str) else json.dumps(content)
    first = ("lowered_module_0", {"as_string": source_text})
    return node(
        "executorch_call_delegate",
        "torch.ops.higher_order.executorch_call_delegate",
        *(first, ("delegate_arg_0", tensor("x"))),
        outputs=[{"as_tensors": [{"name": "getitem"}]}],
    )


def test_delegate_call_holds_payload_and_original_graph() -> None:
    found = read_nodes(delegate_call(lowered()), inputs=("x",)).graph
    call = found.calls()[0]
    module = lowered_modules(found)[call.name]
    assert (call.kind, call.subgraphs, call.inputs) == (
        *(NodeKind.DELEGATE, ("lowered_module_0",), ("x",)),
    )
    assert call.args[0] == Argument("lowered_module_0", (), "B")
    assert (module.backend_id, module.processed) == ("B", b"payload")
    assert module.compile_specs == (CompileSpec("k", b"v"),)
    assert found.subgraphs["lowered_module_0"] is module.original
    assert module.original.calls()[0].debug_handle == 3
    assert not module.state_dict().loaded
    assert not module.constants().loaded


BLOB = base64.b64encode(b"blob").decode()


@pytest.mark.parametrize(
    ("store", "alignment"),
    [
        ({"buffers": [BLOB], "pte_data": {"key": {"buffer_index": 0, "alignment": 16}}}, 16),
        ({"buffers": [{"buffer": BLOB, "alignment": 8}], "pte_data": {"key": 0}}, 8),  # 0.6 to 1.0
    ],
)
def test_named_data_of_each_release_is_read(store: Any, alignment: int) -> None:
    store = {**store, "external_data": {"weights": dict(store["pte_data"])}}
    found = read_nodes(delegate_call(lowered(named_data_store=json.dumps(store)))).graph
    module = next(iter(lowered_modules(found).values()))
    assert module.named_data == (
        NamedData("key", b"blob", alignment),
        NamedData("key", b"blob", alignment, "weights"),
    )


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[1]",
        "{",
        lowered(processed_bytes="?"),
        lowered(original_module={}),
        lowered(named_data_store='{"buffers": [], "pte_data": {"k": 7}}'),
        {key: value for key, value in lowered().items() if key != "backend_id"},
    ],
)
def test_delegate_unreadable_leaves_the_call_and_an_issue(content: Any) -> None:
    found = read_nodes(delegate_call(content), inputs=("x",))
    call = found.graph.calls()[0]
    assert (call.kind, call.subgraphs, call.inputs) == (NodeKind.DELEGATE, (), ("x",))
    assert "lowered module" in found.issues[0].message


def test_delegates_in_each_other_end_somewhere() -> None:
    content: Any = lowered()
    for _ in range(10):
        inner = program_tree(graph(delegate_call(content)))
        content = lowered(original_module=inner)
    found = read_tree(program_tree(graph(delegate_call(content))), 1 << 28)
    assert any("8 delegates in each other" in issue.message for issue in found.issues)


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
    assert "1 nodes" in found.issues[0].message


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
