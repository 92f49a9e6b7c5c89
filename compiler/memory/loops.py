"""Control flow as instructions: branches and loops over shared memory.

The runtime supports one chain of instructions and one jump: to an instruction if a condition is
false.
"""

from __future__ import annotations

from typing import Any

import torch

from compiler.memory.instructions import Jump, Label, Move, Raw, Slot, results_of
from compiler.memory.lifetimes import Flow, Scheduling
from compiler.memory.writes import write


def _cond(to: Scheduling, node: torch.fx.Node, owner: torch.fx.GraphModule) -> None:
    predicate, if_true, if_false, operands = _args(node)
    to.results(node)
    slots: list[Slot] = [(node, i) for i, _ in enumerate(results_of(node))]
    otherwise, end = Label((node, "else")), Label((node, "end"))
    to.add(Jump(node, to.resolve(predicate), otherwise))
    _moved(to, node, to.body(_body(owner, if_true), operands, slots), slots)
    to.add(Jump(node, False, end))
    to.add(otherwise)
    _moved(to, node, to.body(_body(owner, if_false), operands, slots), slots)
    to.add(end)


def _moved(to: Scheduling, node: torch.fx.Node, results: list[Any], slots: list[Slot]) -> None:
    for result, slot in zip(results, slots, strict=True):
        shares = to.block_of.get(result) == to.block_of.get(slot)
        if slot in to.specs and not shares:  # two results of the body are one value
            _copied(to, node, [result], [slot])
        else:
            to.add(Move(node, result, slot))


def _map(to: Scheduling, node: torch.fx.Node, owner: torch.fx.GraphModule) -> None:
    body, rows, others = _args(node)
    to.results(node, resized=frozenset(range(len(results_of(node)))))
    first = _begin(to, node, rows[0])
    slices = _slices(to, node, rows)
    results = to.body(_body(owner, body), [*slices, *others])
    _stack(to, node, results, [(node, i) for i, _ in enumerate(results)])
    _next(to, node, first)


def _scan(to: Scheduling, node: torch.fx.Node, owner: torch.fx.GraphModule) -> None:
    body, initial, rows, others = _args(node)
    count = len(initial)
    to.results(node, resized=frozenset(range(count, len(results_of(node)))))
    slots: list[Slot] = [(node, i) for i, _ in enumerate(results_of(node))]
    _copied(to, node, initial, slots[:count])
    first = _begin(to, node, rows[0])
    slices = _slices(to, node, rows)
    results = to.body(_body(owner, body), [*slots[:count], *slices, *others])
    _stack(to, node, results[count:], slots[count:])
    _copied(to, node, results[:count], slots[:count])
    _next(to, node, first)


def _while_loop(to: Scheduling, node: torch.fx.Node, owner: torch.fx.GraphModule) -> None:
    condition, body, carried, others = _args(node)
    to.results(node)
    slots: list[Slot] = [(node, i) for i, _ in enumerate(results_of(node))]
    _copied(to, node, carried, slots)
    begin, end, first = Label((node, "begin")), Label((node, "end")), to.now
    to.add(begin)
    (holds,) = to.body(_body(owner, condition), [*slots, *others])
    to.add(Jump(node, holds, end))
    results = to.body(_body(owner, body), [*slots, *others])
    _copied(to, node, results, slots)
    to.add(Jump(node, False, begin))
    _kept(to, slots)
    to.repeat(first)
    to.add(end)


def _begin(to: Scheduling, node: torch.fx.Node, rows: Any) -> int:  # noqa: ANN401
    """Count the rows and begin a loop over them; return its first instruction."""
    index: Slot = (node, "index")
    to.add(Raw(node, "aten::sym_size", "int", (to.resolve(rows), 0, (node, "count"))))
    to.add(Raw(node, "executorch_prim::sub", "Scalar", (index, index, index)))  # also when rerun
    first = to.now
    to.add(Label((node, "begin")))
    return first


def _slices(to: Scheduling, node: torch.fx.Node, rows: Any) -> list[Slot]:  # noqa: ANN401
    slots: list[Slot] = []
    for place, row in enumerate(rows):
        slot: Slot = (node, f"row{place}")
        to.helper(slot, to.specs[to.resolve(row)].row())
        to.add(Raw(node, "aten::select_copy", "int_out", _selected(to, node, row, slot)))
        slots.append(slot)
    return slots


def _selected(to: Scheduling, node: torch.fx.Node, row: Any, slot: Slot) -> tuple[Any, ...]:  # noqa: ANN401
    return (to.resolve(row), 0, (node, "index"), slot, slot)


def _stack(to: Scheduling, node: torch.fx.Node, results: list[Any], slots: list[Slot]) -> None:
    for result, slot in zip(results, slots, strict=True):
        args = (slot, result, (node, "index"))
        to.add(Raw(node, "executorch_prim::et_copy_index", "tensor", args))


def _copied(to: Scheduling, node: torch.fx.Node, values: Any, slots: list[Slot]) -> None:  # noqa: ANN401
    for value, slot in zip(values, slots, strict=True):
        source = to.resolve(value)
        if slot in to.specs:
            to.add(Raw(node, "aten::clone", "out", (source, None, slot, slot)))
        else:  # a scalar
            to.add(Raw(node, "executorch_prim::add", "Scalar", (source, 0, slot)))


def _next(to: Scheduling, node: torch.fx.Node, first: int) -> None:
    """End the body of a loop over rows."""
    index, done = (node, "index"), (node, "done")
    to.add(Raw(node, "executorch_prim::add", "Scalar", (index, 1, index)))
    to.add(Raw(node, "executorch_prim::eq", "Scalar", (index, (node, "count"), done)))
    to.add(Jump(node, done, Label((node, "begin"))))
    _kept(to, [(node, i) for i, _ in enumerate(results_of(node))])
    to.repeat(first)


def _kept(to: Scheduling, slots: list[Slot]) -> None:
    """Extend the lifetime of results to the last instruction of their loop."""
    for slot in slots:
        to.use(slot, to.now - 1)


def _args(node: torch.fx.Node) -> tuple[Any, ...]:
    return tuple(node.args)


def _body(owner: torch.fx.GraphModule, reference: Any) -> torch.fx.GraphModule:  # noqa: ANN401
    found = getattr(owner, str(reference.target))
    assert isinstance(found, torch.fx.GraphModule)  # the verifier has checked it
    return found


FLOWS: dict[str, Flow] = {
    "cond": _cond,
    "map_impl": _map,
    "scan": _scan,
    "while_loop": _while_loop,
    "auto_functionalized": write,
}
"""How each kind of call that is not a kernel, control flow first of all, becomes steps."""
