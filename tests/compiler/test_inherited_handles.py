"""Debug handles through passes that fuse, insert and remove nodes, and maps beyond the program."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from compiler.interface.inherited_handles import HANDLE, HandlesBefore, handle_of, inheriting


def chain(*handles: int | None) -> tuple[Any, list[torch.fx.Node]]:
    """Return a program of calls, each reading the one before, with these handles."""
    graph = torch.fx.Graph()
    last = graph.placeholder("x")
    calls: list[torch.fx.Node] = []
    for handle in handles:
        last = graph.call_function(torch.relu, (last,))
        if handle is not None:
            last.meta[HANDLE] = handle
        calls.append(last)
    graph.output(last)
    program: Any = SimpleNamespace(graph=graph)
    return program, calls


def test_fused_node_stands_for_both_that_it_replaces() -> None:
    program, (conv, relu, linear) = chain(1, 2, 3)
    before = HandlesBefore(program)
    with inheriting(), program.graph.inserting_after(relu):
        fused = program.graph.call_function(torch.relu, (conv.args[0],))
        relu.replace_all_uses_with(fused)
    assert fused.meta[HANDLE] == 2
    assert before.completed({0: (2,), 1: (3,)}, "x") == {0: (1, 2), 1: (3,)}
    assert linear.args == (fused,)


@pytest.mark.parametrize(
    ("target", "more", "kept"),
    [
        (torch.ops.aten.view_copy.default, (), 1),
        (torch.ops.aten.squeeze_copy.dims, (), 1),
        (torch.ops.aten.unsqueeze_copy.default, (), 1),
        (torch.ops.aten.view.default, (), 1),
        (torch.ops.aten.permute_copy.default, ([0, 1, 2],), 1),
        (torch.ops.aten.permute.default, ([0],), 1),
        (torch.ops.aten.permute_copy.default, ([0, 2, 1],), 2),  # another order of elements
        (torch.ops.aten.permute_copy.default, (), 2),
        (torch.ops.aten.relu.default, (), 2),
        (torch.ops.aten.mul.Tensor, (), 2),
    ],
)
def test_value_whose_view_is_dropped_keeps_its_handle(
    target: Any, more: tuple[Any, ...], kept: int
) -> None:
    """The view belongs to a layer behind, whose passes make it; an activation changes the value."""
    program, (mean, view, _layer) = chain(1, 2, 3)
    view.target, view.args = target, (mean, *more)
    with inheriting():
        view.replace_all_uses_with(mean)
    assert mean.meta[HANDLE] == kept
    other = program.graph.call_function(torch.relu, (mean.args[0],))
    with inheriting():
        view.replace_all_uses_with(other)  # a new node stands for it, whatever it is
    assert other.meta[HANDLE] == 2


_SQUARE, _OTHER = (2, 8, 8), (2, 8, 5)
_AROUND = [
    ((0, 2, 3, 1), (1, 2, 3, 4), True),
    ((0, 3, 1, 2), (1, 2, 3, 4), True),
    ((0, 2, 3, 4, 1), (1, 2, 3, 4, 5), True),
    ((0, 4, 1, 2, 3), (1, 2, 3, 4, 5), True),
    ((0, 2, 1), _OTHER, True),
    ((0, 2, 1), _SQUARE, False),  # a value of it does not show its layout
    ((0, 2, 1, 3), (1, 2, 3, 4), False),
    ((1, 2, 3, 0), (1, 2, 3, 4), False),
    ((1, 0), (2, 3), False),
]


@pytest.mark.parametrize("own", [False, True], ids=["added", "of the program"])
@pytest.mark.parametrize(("order", "shape", "layout"), _AROUND)
def test_activation_whose_layouts_are_dropped_keeps_its_handle(
    order: tuple[int, ...], shape: tuple[int, ...], layout: bool, own: bool
) -> None:
    """The layer behind has added the second of them; permutations of the program are steps."""
    program, (tanh, _layer) = chain(1, 2)
    if own:
        _layer.target = torch.ops.aten.permute_copy.default
    with inheriting(program), program.graph.inserting_after(tanh):
        added = program.graph.call_function(
            torch.ops.aten.permute_copy.default, (tanh, list(order))
        )
        added.meta |= {HANDLE: 2, "val": torch.empty(shape)}
        added.replace_all_uses_with(tanh)
    assert tanh.meta[HANDLE] == (1 if layout and not own else 2)


def test_removed_node_belongs_to_what_is_left() -> None:
    program, _ = chain(1, 2, 3)
    assert HandlesBefore(program).completed({"a": (3,)}, "x") == {"a": (1, 2, 3)}


def test_inserted_node_has_the_handle_of_what_it_reads() -> None:
    _, (first, inserted, _last) = chain(4, None, 5)
    assert handle_of(inserted) == 4
    assert handle_of(first) == 4
    assert handle_of(first.args[0]) is None


def test_replacing_is_as_before_afterwards() -> None:
    original = torch.fx.Node.replace_all_uses_with
    with inheriting():
        assert torch.fx.Node.replace_all_uses_with is not original
    assert torch.fx.Node.replace_all_uses_with is original


@pytest.mark.parametrize("found", [None, {}])
def test_no_map_stays_none(found: Any) -> None:
    assert HandlesBefore(chain(1)[0]).completed(found, "x") is found


def test_map_of_another_program_is_dropped_and_told(caplog: pytest.LogCaptureFixture) -> None:
    before = HandlesBefore(chain(1, 2)[0])
    with caplog.at_level(logging.WARNING, "compiler.delegate"):
        assert before.completed({0: (7,)}, "SomeBackend") is None
    assert "the map of SomeBackend names debug handle 7, which the program has not" in caplog.text
