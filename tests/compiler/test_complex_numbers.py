"""Programs with complex tensors: moved, rotated, made of pairs and taken apart again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch._export.verifier import SpecViolationError
from torch.export import Dim, export
from torch.utils import _pytree as pytree

from compiler import to_edge
from runtime.api import Runtime
from tests.compiler.stock import Stock

Made = tuple[bytes, list[torch.Tensor], list[torch.Tensor]]


class Call(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *given: torch.Tensor) -> Any:
        return self.function(*given)


class Rotary(nn.Module):
    """Rotates pairs of features by angles, as language models do."""

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        angles = torch.outer(torch.arange(length), 0.5 ** torch.arange(width // 2))
        self.register_buffer("turns", torch.polar(torch.ones_like(angles), angles))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        turns = self.turns[: x.shape[1]].view(1, x.shape[1], 1, pairs.shape[-1])
        return torch.view_as_real(pairs * turns).flatten(3).type_as(x)


def _complex(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes, dtype=torch.complex64)


def _moves() -> dict[str, tuple[Any, ...]]:
    """Return functions that move complex elements, with inputs."""
    torch.manual_seed(0)
    x, picked = _complex(4, 8), torch.tensor([1, 3])
    return {
        "unsqueeze": (lambda a: a.unsqueeze(0), x),
        "squeeze": (lambda a: a.squeeze(1), _complex(4, 1, 8)),
        "expand": (lambda a: a.expand(3, 4, 8), x),
        "view": (lambda a: a.view(8, 4), x),
        "cat": (lambda a, b: torch.cat([a, b], 1), x, _complex(4, 2)),
        "stack": (lambda a, b: torch.stack([a, b], 1), x, _complex(4, 8)),
        "permute": (lambda a: a.permute(1, 0), x),
        "transpose": (lambda a: a.transpose(0, 1).reshape(-1), x),
        "slice": (lambda a: a[1:3, ::2], x),
        "select": (lambda a: a[1], x),
        "split": (lambda a: torch.split(a, 3, 1), x),
        "chunk": (lambda a: a.chunk(2), x),
        "unbind": (lambda a: a.unbind(0), x),
        "repeat": (lambda a: a.repeat(2, 1), x),
        "roll": (lambda a: a.roll(1, 0), x),
        "index": (lambda a, i: a[i], x, picked),
        "index_select": (lambda a, i: a.index_select(1, i), x, picked),
        "embedding": (lambda a, i: nn.functional.embedding(i, a), x, picked),
        "clone": (lambda a: a.clone(), x),
    }


def _sums() -> dict[str, tuple[Any, ...]]:
    """Return functions that compute with complex numbers, or change from and to them."""
    torch.manual_seed(1)
    x, y, row, real = _complex(4, 8), _complex(4, 8), _complex(8), torch.randn(4, 8)
    one = _complex(1, 1, 1)
    return {
        "add": (torch.add, x, y),
        "add of a number": (lambda a: a + 1.5, x),
        "add of a row": (torch.add, x, row),
        "sub of a column": (torch.sub, x, _complex(4, 1)),
        "mul": (torch.mul, x, y),
        "mul with a row": (torch.mul, row, x),
        "mul with real numbers": (torch.mul, x, real),
        "add of a constant": (lambda a: a + torch.tensor([1 + 2j, 3j]), _complex(4, 2)),
        "mul with a number": (lambda a: a * 2.0, x),
        "mul with an imaginary number": (lambda a: a * 1j, x),
        "mul of real numbers with an imaginary one": (lambda a: a * 1j, real),
        "mul with a wide number of no dimension": (torch.mul, x, torch.tensor(0.5).double()),
        "sub of a number": (lambda a: a - 1j, x),
        "sub from a number": (lambda a: 1.0 - a, x),
        "add of a multiple of a number": (lambda a: torch.add(a, 1j, alpha=2), x),
        "mul of one": (torch.mul, one, one),
        "mul of one with a number": (lambda a: a * 2.5, one),
        "mul without dimensions": (lambda a: a[0, 0] * a[0, 0], x),
        "sub of one": (torch.sub, one, x[:1, :1]),
        "div": (torch.div, x, y),
        "div by a row": (torch.div, x, row),
        "div of a row": (torch.div, row, x),
        "div by real numbers": (torch.div, x, real),
        "div of real numbers": (torch.div, real, x),
        "div by a number": (lambda a: a / 2.5, x),
        "div by an imaginary number": (lambda a: a / (1 + 2j), x),
        "div of a number": (lambda a: 2.5 / a, x),
        "div of large and small numbers": (torch.div, x * 1e30, y * 1e-5),
        "div by large and small numbers": (
            torch.div,
            x * 1e-25,
            torch.cat([y[:2] * 1e30, y[2:] / 1e30]),
        ),
        "div without dimensions": (lambda a: a[0, 0] / a[1, 1], x),
        "reciprocal": (torch.reciprocal, x),
        "neg": (torch.neg, x),
        "sum": (lambda a: a.sum(1), x),
        "abs": (torch.abs, x),
        "mm": (torch.mm, x, _complex(8, 3)),
        "bmm": (torch.bmm, _complex(2, 4, 8), _complex(2, 8, 3)),
        "conj": (lambda a: (a * a.conj()).real, x),
        "real and imag": (lambda a: (a.real, a.imag), x),
        "to": (lambda a: a.to(torch.complex64), real),
        "complex": (torch.complex, real, real[0]),
        "polar": (torch.polar, real.abs(), real),
        "view_as_complex": (torch.view_as_complex, torch.randn(4, 3, 2)),
        "view_as_real": (torch.view_as_real, x),
    }


def _made(module: nn.Module, inputs: tuple[torch.Tensor, ...], dynamic: Any = None) -> Made:
    program = export(module, inputs, dynamic_shapes=dynamic, strict=True)
    wanted = [leaf.resolve_conj() for leaf in pytree.tree_leaves(module(*inputs))]
    return bytes(to_edge(program).to_executorch().buffer), [*inputs], wanted


def _all_made() -> dict[str, Made]:
    simple = {**_moves(), **_sums()}
    made = {name: _made(Call(case[0]), case[1:]) for name, case in simple.items()}
    torch.manual_seed(2)
    made["rotary"] = _made(Rotary(6, 8), (torch.randn(2, 6, 3, 8),))
    return made


def _run(buffer: bytes, inputs: list[torch.Tensor]) -> list[Any]:
    return [*Runtime().load_program(buffer).load_method("forward").execute(inputs)]


@pytest.mark.slow
def test_complex_programs_run_here_as_eager_does() -> None:
    for name, (buffer, inputs, wanted) in _all_made().items():
        torch.testing.assert_close(
            _run(buffer, inputs), wanted, msg=lambda text, name=name: f"{name}: {text}"
        )


@pytest.mark.slow
@pytest.mark.interop
def test_complex_programs_run_on_the_stock_runtime(stock: Stock) -> None:
    made = _all_made()
    found = stock.run_each([(buffer, inputs) for buffer, inputs, _ in made.values()])
    for (name, (_, _, wanted)), ours in zip(made.items(), found, strict=True):
        assert not isinstance(ours, str), f"{name}: {ours}"
        torch.testing.assert_close([*ours], wanted, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.interop
def test_rotary_embedding_of_any_length_runs_on_both_runtimes(stock: Stock) -> None:
    torch.manual_seed(3)
    net, length = Rotary(16, 8), Dim("length", min=2, max=16)
    buffer, _, _ = _made(net, (torch.randn(2, 6, 3, 8),), ({1: length},))
    for size in (2, 9, 16):
        x = torch.randn(2, size, 3, 8)
        torch.testing.assert_close(_run(buffer, [x]), [net(x)])
        torch.testing.assert_close([*stock.run(buffer, [("forward", (x,))])[0]], [net(x)])


@pytest.mark.parametrize(
    "function",
    [
        lambda a: torch.where(a.real > 0, a, a * 2),
        lambda a: torch.exp(a),
        lambda a: torch.cat([a, torch.zeros(1, 8, dtype=torch.complex64)]),
    ],
)
def test_complex_operator_without_a_kernel_is_refused_with_its_dtype(function: Any) -> None:
    torch.manual_seed(4)
    program = export(Call(function), (_complex(4, 8),), strict=True)
    with pytest.raises(SpecViolationError, match="complex64"):
        to_edge(program)
