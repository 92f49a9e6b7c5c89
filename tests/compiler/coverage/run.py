"""Compiles one call of each operator for each element type and runs it on the stock runtime."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch
from torch.utils import _pytree as pytree

from compiler import CompileError, EdgeCompileConfig, to_edge
from runtime import Runtime
from tests.compiler.coverage.inputs import Arguments, arguments_of, channels_last_of, name_of
from tests.compiler.stock import Stock

_RANDOM = {"rand", "randn", "randperm", "empty.memory_format", "empty_strided"}


class Outcome(str, Enum):
    """What became of one operator with one element type."""

    EQUAL = "equal"
    NO_KERNEL = "no kernel"
    REFUSED_BY_KERNEL = "kernel refuses"
    WRONG = "kernel wrong"
    CRASHED = "kernel crashes"
    REFUSED = "refused by the compiler"
    NOT_IN_TORCH = "not in torch"


@dataclass(frozen=True)
class Cell:
    """An outcome and its reason, empty where it is equal."""

    outcome: Outcome
    reason: str = ""


class Call(torch.nn.Module):
    """One call of an operator; its tensors are the inputs."""

    def __init__(self, op: Any, args: Any, kwargs: dict[str, Any]) -> None:
        super().__init__()
        self.op = op
        leaves, self.spec = pytree.tree_flatten((args, kwargs))
        self.fixed = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self.places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def forward(self, *tensors: torch.Tensor) -> Any:
        leaves = list(self.fixed)
        for place, tensor in zip(self.places, tensors, strict=True):
            leaves[place] = tensor
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return self.op(*args, **kwargs)


@dataclass(frozen=True)
class Compiled:
    """A program to run, with what it has to give."""

    buffer: bytes
    inputs: tuple[torch.Tensor, ...]
    wanted: list[Any]


def cells_of(op: Any, dtypes: tuple[torch.dtype, ...], stock: Stock) -> dict[torch.dtype, Cell]:
    """Return what became of an operator, by element type."""
    made = {dtype: _compiled(op, lambda d=dtype: arguments_of(op, d)) for dtype in dtypes}
    ready = {dtype: found for dtype, found in made.items() if isinstance(found, Compiled)}
    answers = stock.run_each([(found.buffer, found.inputs) for found in ready.values()])
    ran = {
        dtype: _ours_where_stock_has_none(op, found, _judged(op, found.wanted, answer))
        for (dtype, found), answer in zip(ready.items(), answers, strict=True)
    }
    return {dtype: ran.get(dtype) or _cell(made[dtype]) for dtype in dtypes}


def _ours_where_stock_has_none(op: Any, made: Compiled, cell: Cell) -> Cell:
    """Return the cell; where the stock runtime has no kernel ours has to give eager's results."""
    if cell.outcome is not Outcome.NO_KERNEL:
        return cell
    found = Runtime.get().load_program(made.buffer).load_method("forward").execute(made.inputs)
    # Eager leaves results that it does not need empty, by other rules than its shape inference.
    needed = [place for place, wanted in enumerate(made.wanted) if wanted.numel()]
    ours = _judged(op, [made.wanted[at] for at in needed], [found[at] for at in needed])
    if ours.outcome is Outcome.EQUAL:
        return cell
    return Cell(Outcome.WRONG, f"our runtime: {ours.reason}")


def _cell(found: Compiled | Cell) -> Cell:
    assert isinstance(found, Cell)
    return found


def channels_last_cells(ops: Sequence[Any], stock: Stock) -> dict[str, Cell]:
    """Return what became of operators on images whose channels are innermost, by name."""
    made = {op: _compiled(op, lambda op=op: channels_last_of(op)) for op in ops}
    ready = [(op, found) for op, found in made.items() if isinstance(found, Compiled)]
    answers = stock.run_each([(found.buffer, found.inputs) for _, found in ready])
    cells = {name_of(op): found for op, found in made.items() if isinstance(found, Cell)}
    for (op, found), answer in zip(ready, answers, strict=True):
        cells[name_of(op)] = _judged(op, found.wanted, answer)
    return cells


def _compiled(op: Any, arguments: Callable[[], Arguments]) -> Compiled | Cell:
    try:
        args, kwargs = arguments()
        call = Call(op, args, kwargs)
        inputs = tuple(x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor))
        wanted = pytree.tree_leaves(call(*(x.clone() for x in inputs)))
    except (RuntimeError, ValueError, IndexError) as error:  # NotImplementedError is one too
        return Cell(Outcome.NOT_IN_TORCH, _sentence(error))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's own
            exported = torch.export.export(call, inputs)
    except Exception as error:  # noqa: BLE001  torch's export raises all kinds
        return Cell(Outcome.NOT_IN_TORCH, f"torch.export: {_sentence(error)}")
    try:
        edge = to_edge(exported, compile_config=EdgeCompileConfig(_check_ir_validity=False))
        return Compiled(edge.to_executorch().buffer, inputs, wanted)
    except CompileError as error:
        return Cell(Outcome.REFUSED, _sentence(error))


def _sentence(error: Exception) -> str:
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return re.sub(r":? node \w+ \(.*\)$|0x[0-9a-f]{6,}", "", text)[:160]


def _judged(op: Any, wanted: list[Any], answer: Any) -> Cell:
    if isinstance(answer, str):
        return Cell(*_failure(answer))
    if len(answer) != len(wanted):
        return Cell(Outcome.WRONG, f"{len(answer)} outputs, eager has {len(wanted)}")
    for ours, theirs in zip(answer, wanted, strict=True):
        difference = _difference(ours, theirs, alike=name_of(op) in _RANDOM)
        if difference:
            return Cell(Outcome.WRONG, difference)
    return Cell(Outcome.EQUAL)


def _failure(text: str) -> tuple[Outcome, str]:
    code = re.search(r"0x([0-9a-f]+)", text)
    if "ended with code" in text:
        return Outcome.CRASHED, text.removeprefix("the stock runtime's process ")
    if code is None:
        return Outcome.CRASHED, text.strip().splitlines()[-1][:120]
    number = code.group(1).lstrip("0")
    if number == "14":
        return Outcome.NO_KERNEL, "0x14"
    return Outcome.REFUSED_BY_KERNEL, f"0x{number}"


def _difference(ours: Any, theirs: Any, *, alike: bool) -> str:
    if not isinstance(theirs, torch.Tensor):
        return "" if ours == theirs else f"{ours}, eager has {theirs}"
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return f"{ours.dtype}{[*ours.shape]}, eager has {theirs.dtype}{[*theirs.shape]}"
    if alike:
        return ""
    if theirs.dtype.is_complex:
        return _difference(torch.view_as_real(ours), torch.view_as_real(theirs), alike=alike)
    if not theirs.dtype.is_floating_point:
        return "" if torch.equal(ours, theirs) else "integers differ"
    a, b = ours.double(), theirs.double()
    if not torch.equal(a.isfinite(), b.isfinite()) or not torch.equal(a.isnan(), b.isnan()):
        return "infinities or NaNs differ"
    kept = b.isfinite()
    bound = max(1e-5, 2 * torch.finfo(theirs.dtype).eps)
    most = (a - b)[kept].abs().max().item() if kept.any() else 0.0
    size = b[kept].abs().max().item() if kept.any() else 0.0
    if most <= bound * size:
        return ""
    return f"relative difference {most / size if size else most:.1g}"
