"""Nodes of whole programs through passes that fuse, split, insert and leave out."""

from __future__ import annotations

import operator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from compiler.interface.inherited_handles import HANDLE
from compiler.interface.passed_handles import following, marked, recorded_nodes, represented, settle


def module(*dtypes: torch.dtype) -> tuple[torch.fx.GraphModule, list[torch.fx.Node]]:
    """Return a module of calls of square results, each reading the one before."""
    graph = torch.fx.Graph()
    last = graph.placeholder("x")
    calls: list[torch.fx.Node] = []
    for at, dtype in enumerate(dtypes):
        last = graph.create_node("call_function", torch.relu, (last,), name=f"n{at}")
        last.meta |= {HANDLE: at + 1, "val": torch.empty(2, 2, dtype=dtype)}
        calls.append(last)
    graph.output(last)
    return torch.fx.GraphModule(torch.nn.Module(), graph), calls


F, I = torch.float32, torch.int8  # noqa: E741 - dtypes


def added(root: Any, after: Any, like: Any = None, *reads: Any) -> torch.fx.Node:
    with root.graph.inserting_after(after):
        new = root.graph.call_function(torch.sin, reads or (after,))
    new.meta = dict(like.meta) if like is not None else {"val": after.meta["val"]}
    return new


def values(root: Any) -> dict[str, str]:
    """Return the node whose value each call has, by its name."""
    for at, node in enumerate(root.graph.nodes):
        node.meta[HANDLE] = at
    found = recorded_nodes(root)
    return {node.name: found[at] for at, node in enumerate(root.graph.nodes) if at in found}


def test_quantization_that_became_part_of_a_call_is_its_value() -> None:
    root, (conv, relu, quantize, _) = module(F, F, I, F)
    before = marked(root)
    with following():
        quantize.replace_all_uses_with(relu)
        root.graph.erase_node(quantize)
        relu.replace_all_uses_with(conv)
        root.graph.erase_node(relu)
    conv.meta["val"] = torch.empty(2, 2, dtype=I)
    found = dict(settle(root, before))
    assert found[conv] == (1, 2, 3)
    assert conv.meta[HANDLE] == (1, 2, 3)
    assert values(root) == {"n0": "n2", "n3": "n3"}


def test_call_that_was_left_out_is_the_value_of_its_operand_unless_its_dtype_differs() -> None:
    for dtype, expected in ((I, "n0"), (F, "n1")):
        root, (quantize, left, _) = module(dtype, F, F)
        before = marked(root)
        with following():
            left.replace_all_uses_with(quantize)
            root.graph.erase_node(left)
        settle(root, before)
        assert values(root)["n0"] == expected


@pytest.mark.parametrize("shared", [False, True])
def test_permutation_around_a_new_layout_has_the_value_and_the_call_inside_has_not(
    shared: bool,
) -> None:
    root, (_, conv, _) = module(F, F, F)
    before = marked(root)
    with following():
        inside = added(root, conv, conv)
        outside = added(root, inside, conv)
        if shared:
            inside.meta = outside.meta = conv.meta
        conv.replace_all_uses_with(outside)
        inside.args = (conv.args[0],)
        outside.args = (inside,)
        root.graph.erase_node(conv)
    found = dict(settle(root, before))
    assert found[inside] == found[outside] == (2,)
    assert values(root) == {"n0": "n0", outside.name: "n1", "n2": "n2"}


def test_call_inserted_behind_another_is_not_its_value() -> None:
    root, (first, second) = module(F, F)
    before = marked(root)
    with following():
        new = added(root, first)
        first.replace_all_uses_with(new)
        new.args = (first,)
    settle(root, before)
    assert second.args == (new,)
    assert values(root) == {"n0": "n0", "n1": "n1"}


@pytest.mark.parametrize("taken", [0, 1])
@pytest.mark.parametrize("fused", [True, False], ids=["into its operand", "alone"])
def test_call_that_takes_a_result_is_named_as_a_record_has_it(taken: int, fused: bool) -> None:
    """A batch norm in a convolution: its first result is the node's value, others are not."""
    root, (conv, norm, last) = module(F, F, F)
    norm.meta["val"] = (norm.meta["val"], torch.empty(0))
    with root.graph.inserting_after(norm):
        result = root.graph.call_function(operator.getitem, (norm, taken), name="result")
    result.meta["val"] = last.meta["val"]
    last.args = (result,)
    before = marked(root)
    kept = conv if fused else result
    with following():
        if fused:
            result.replace_all_uses_with(conv)
    named = "n1" if taken == 0 else "result"
    assert represented(kept, before) == (("n0", named) if fused else (named,))


def test_fused_call_represents_what_it_replaced_up_to_the_node_whose_value_it_has() -> None:
    root, (first, second, third) = module(F, F, I)
    before = marked(root)
    with following():
        new = added(root, second)
        first.replace_all_uses_with(new)
        second.replace_all_uses_with(new)
    assert represented(new, before) == ("n0", "n1")
    assert represented(third, before) == ("n2",)
    third.meta["val"] = torch.empty(7, device="meta")
    assert represented(third, before) == ()


def test_graph_that_is_computed_again_names_the_call_that_it_returns() -> None:
    root, (first, second) = module(F, F)
    before = marked(root)
    graph = torch.fx.Graph()

    class Interpreter:
        node: Any = second
        callback = SimpleNamespace(tracer=SimpleNamespace(graph=graph))

        def call_function(self, how: str) -> Any:
            def added() -> torch.fx.Node:
                new = graph.call_function(torch.sin, ())
                new.meta = dict(self.node.meta)
                return new

            if how == "same":
                return SimpleNamespace(node=self.kept)
            part, self.kept = added(), added()
            del part
            return SimpleNamespace(node=self.kept)

    original = Interpreter.call_function
    with following(Interpreter):
        one = Interpreter()
        one.node = first
        one.call_function("two")
        one.node = second
        one.call_function("same")
    assert Interpreter.call_function is original
    again = torch.fx.GraphModule(torch.nn.Module(), graph)
    part, result = graph.nodes
    found = dict(settle(again, before))
    assert found == {part: (1,), result: (1, 2)}
    assert values(again) == {result.name: "n1"}


def test_replacing_is_as_before_afterwards() -> None:
    original = torch.fx.Node.replace_all_uses_with
    with following():
        assert torch.fx.Node.replace_all_uses_with is not original
    assert torch.fx.Node.replace_all_uses_with is original
