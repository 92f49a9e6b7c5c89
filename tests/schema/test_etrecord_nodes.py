"""Calls of recorded graphs: targets, sources, arguments, branches, delegates."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from schema.etrecord import RecordedCompileSpec, RecordedNamedData, lowered_modules
from schema.etrecord.graph.names import FxNames, callable_name, short_target
from schema.etrecord.graph.source_meta import module_path
from schema.graph import Argument, GraphNode, ModuleFrame, NodeKind
from tests.schema.etrecord_samples import (
    graph,
    node,
    program_tree,
    read_nodes,
    read_tree,
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
    assert module.compile_specs == (RecordedCompileSpec("k", b"v"),)
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
        RecordedNamedData("key", b"blob", alignment),
        RecordedNamedData("key", b"blob", alignment, "weights"),
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
