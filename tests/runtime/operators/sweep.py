"""Runs every operator on the stock runtime and on ours, for each element type."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from runtime import EventTracer, ExecutionError, Runtime
from runtime.kernels import TABLE, built_in
from runtime.kernels.rule import Kernel, Style
from tests.runtime.one_op import Meta, one_operator
from tests.runtime.operators.cases import Case, all_cases, applies
from tests.runtime.operators.inputs import DTYPES, Maker
from tests.runtime.stock import Stock

_CASES = {torch.uint8: 1, torch.int16: 1, torch.float64: 1, torch.int8: 2, torch.bfloat16: 2}
_TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2, torch.float32: 1e-5, torch.float64: 1e-5}


@dataclass
class Trial:
    """One call of an operator and what came of it: outputs, or the error's text."""

    operator: str
    dtype: torch.dtype
    number: int
    program: bytes
    given: list[Any]
    ours: list[Any] | str = ""
    stock: list[Any] | str = ""

    @property
    def verdict(self) -> str:
        """`equal`, `differs`, `stock only`, `ours only`, or `neither`."""
        if isinstance(self.stock, str):
            return "neither" if isinstance(self.ours, str) else "ours only"
        if isinstance(self.ours, str):
            return "stock only"
        return "equal" if _equal(self.ours, self.stock) else "differs"


def trials() -> list[Trial]:
    """Return all calls to be made, but those whose result's type torch cannot say."""
    made: list[Trial] = []
    for name, cases in sorted(all_cases().items()):
        for dtype in filter(partial(applies, name), DTYPES):
            torch.manual_seed(3)
            entries = list(cases(Maker(dtype)))
            for number, entry in enumerate(entries[: _CASES.get(dtype)]):
                case = entry if isinstance(entry, Case) else Case(entry)
                outs = case.outs if case.outs is not None else _outs(name, case.arguments)
                if outs is not None:
                    program, given = one_operator(name, case.arguments, outs)
                    made.append(Trial(name, dtype, number, program, given))
    return made


def _outs(name: str, arguments: list[Any]) -> tuple[Meta, ...] | None:
    kernel = built_in(name)
    assert kernel is not None
    assert kernel.rule.style is Style.RESULT, name
    try:
        results = _direct(kernel, arguments)
    except (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError):
        results = _direct_as_float(kernel, arguments)
    if results is None:
        return None
    found = [results] if isinstance(results, torch.Tensor) else list(results)
    return tuple((value.dtype, tuple(value.shape)) for value in found)


def _direct(kernel: Kernel, arguments: list[Any]) -> Any:
    named = {e.name: v for e, v in zip(kernel.inputs, arguments, strict=True) if e.keyword}
    plain = [
        v.clone() if isinstance(v, torch.Tensor) else v
        for e, v in zip(kernel.inputs, arguments, strict=True)
        if not e.keyword
    ]
    return kernel.rule.run(*plain, **named)


def _direct_as_float(kernel: Kernel, arguments: list[Any]) -> Any:
    """What float32 gives, in the type of the first tensor: torch has no kernel, stock may have."""
    first = next((v for v in arguments if isinstance(v, torch.Tensor)), None)
    if first is None or first.dtype.is_complex:
        return None
    wide = [
        v.float() if isinstance(v, torch.Tensor) and v.dtype is first.dtype else v
        for v in arguments
    ]
    try:
        results = _direct(kernel, wide)
    except (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError):
        return None
    found = [results] if isinstance(results, torch.Tensor) else list(results)
    return [v.to(first.dtype) if v.dtype is torch.float32 else v for v in found]


def run_all(stock: Stock, made: list[Trial]) -> None:
    """Run the calls on both runtimes."""
    answers = stock.each([(trial.program, trial.given) for trial in made])
    for trial, answer in zip(made, answers, strict=True):
        trial.stock = answer
        trial.ours = run_ours(trial.program, trial.given)


def run_ours(program: bytes, given: list[Any]) -> list[Any] | str:
    """Run a program as it is first run; the later ways of running it must give the same bits."""
    try:
        method = Runtime.get().load_program(program).load_method("forward")
        found = method.execute(given)
    except ExecutionError as error:
        return str(error)
    if not any(name in program for name in (b"aten::rand", b"empty")):
        for tracer in (None, EventTracer(), None):
            method.tracer = tracer
            again = method.execute(given)
            assert all(map(_same, again, found)), tracer
    return found


def _same(a: Any, b: Any) -> bool:
    if not isinstance(a, torch.Tensor):
        return a == b or a != a
    laid = a.dtype is b.dtype and a.stride() == b.stride()
    return laid and torch.equal(a.nan_to_num(7.0), b.nan_to_num(7.0))


def _equal(ours: list[Any], stock: list[Any]) -> bool:
    if len(ours) != len(stock):
        return False
    return all(_equal_value(a, b) for a, b in zip(ours, stock, strict=True))


def _equal_value(ours: Any, stock: Any) -> bool:
    if not isinstance(stock, torch.Tensor):
        return ours == stock
    if ours.shape != stock.shape or ours.dtype is not stock.dtype:
        return False
    if stock.dtype.is_complex:
        return _equal_value(torch.view_as_real(ours), torch.view_as_real(stock))
    if not stock.dtype.is_floating_point:
        return torch.equal(ours, stock)
    a, b = ours.double(), stock.double()
    usual = torch.isfinite(b)
    if not torch.equal(a[~usual].nan_to_num(7.0), b[~usual].nan_to_num(7.0)):
        return False
    largest = b[usual].abs().max().clamp(min=1e-3) if usual.any() else torch.tensor(1.0)
    return bool(((a - b)[usual].abs() <= _TOLERANCE[stock.dtype] * largest).all())


def untried() -> set[str]:
    """Return the operators without cases."""
    return set(TABLE) - set(all_cases())
