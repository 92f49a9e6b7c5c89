"""Mutating operators, which overwrite the old value if it is not read afterwards.

Otherwise the old value is copied first, and the copy is written. A buffer or an input that the
program replaces by the result is written in place, without copying back.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch

from compiler.dialect.delegate_call import executorch_call_delegate
from compiler.dialect.mutating_ops import first_written, is_write, writer_of, written_by
from compiler.dialect.templates import nodes_in
from compiler.memory.blocks import Role
from compiler.memory.instructions import Raw, Slot, Write, results_of, slot_of
from compiler.memory.lifetimes import Scheduling
from compiler.untyped import HigherOrderOperator

Node = torch.fx.Node


def write(to: Scheduling, node: Node, owner: torch.fx.GraphModule) -> None:
    """Add the instructions of one call."""
    del owner  # it has no bodies
    first = first_written(node)
    names = written_by(writer_of(node))
    bases: dict[int, Any] = {first + i: node.kwargs[name] for i, name in enumerate(names)}
    bases = {index: base for index, base in bases.items() if base is not None}
    over = {i: to.resolve(base) for i, base in bases.items() if _may_overwrite(to, node, base, i)}
    to.results(node, without=frozenset(over))
    targets: dict[str, Slot] = {}
    for index, base in bases.items():
        slot: Slot = (node, index)
        if index in over:
            to.stands_for[slot] = slot = over[index]
        else:
            to.add(Raw(node, "aten::clone", "out", (to.resolve(base), None, slot, slot)))
        targets[names[index - first]] = slot
    for used in nodes_in(node.kwargs):
        to.use(to.resolve(used), to.now)
    for index, _ in enumerate(results_of(node)):
        to.use((node, index), to.now)
    to.add(Write(node, targets))


def _may_overwrite(to: Scheduling, node: Node, base: Node, index: int) -> bool:
    slot: Any = to.resolve(base)
    block = to.block_of.get(slot)
    home: Node = slot[0]
    if block is None or home.graph is not node.graph:
        return False  # a constant, or an input of a body, which may run again
    if home.op == "placeholder":
        if home not in to.written or not _goes_only_to(to, home, node, index):
            return False
    elif to.blocks[block].role is not Role.TEMPORARY or _has_body(home):
        return False
    if nodes_in(node.kwargs).count(base) > 1:
        return False
    return not any(
        _is_read_later(to, holder, node) or (holder is not base and node in holder.users)
        for holder in _holders(to, base, block)
    )


def _goes_only_to(to: Scheduling, home: Node, node: Node, index: int) -> bool:
    """Return whether a new value is only written back to its placeholder, or unused."""
    new = {user for user in node.users if slot_of(user) == (node, index)}
    elsewhere = (value for target, value in to.written.items() if target is not home)
    return new.isdisjoint(elsewhere) and new.isdisjoint(to.outputs)


def _has_body(node: Node) -> bool:
    plain = is_write(node) or node.target is executorch_call_delegate
    return isinstance(node.target, HigherOrderOperator) and not plain


def _is_read_later(to: Scheduling, holder: Node, node: Node) -> bool:
    order = to.order.get(node.graph)
    if order is None:
        order = to.order[node.graph] = {one: place for place, one in enumerate(node.graph.nodes)}
    return any(order[user] > order[node] for user in holder.users)


def _holders(to: Scheduling, base: Node, block: int) -> set[Node]:
    """Return the values that alias one: its views, and the value it overwrites."""
    found, waiting = {base}, [base]
    while waiting:
        for near in _near(waiting.pop()):
            if near not in found and to.block_of.get(to.resolve(near)) == block:
                found.add(near)
                waiting.append(near)
    return found


def _near(node: Node) -> Iterator[Node]:
    made_by: Any = node.args[0] if node.target is operator.getitem else node
    yield from made_by.all_input_nodes
    for user in node.users:
        yield user
        yield from user.users if is_write(user) else ()
