"""Passes and element types beside the stock compiler, which runs in a process of its own."""

from __future__ import annotations

import importlib
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from compiler import ExecutorchBackendConfig, ops, to_edge
from compiler.compat.passes.export_pass import ExportPass
from compiler.dialect.dtype_rules import _LETTERS, _RULES, dtype_rule_of
from schema import program as pte
from tests.compiler.compare import assert_equal, eager_outputs
from tests.compiler.programs import Apply
from tests.compiler.stock import Stock
from tests.compiler.tutorial_passes import passes_of
from tests.tools.forked import run_stock

pytestmark = [pytest.mark.slow, pytest.mark.interop]


def _program() -> torch.export.ExportedProgram:
    inputs = (torch.randn(2, 3), torch.randn(3, 3), torch.randn(2, 3))
    return torch.export.export(Apply(lambda x, w, y: ((x.relu() @ w).sin() + y).relu()), inputs)


def _formals(name: str) -> tuple[list[str], list[str]]:
    packet, _, overload = name.partition(".")
    op = getattr(getattr(torch.ops.aten, packet), overload or "default")
    inputs = [a.name for a in op._schema.arguments if "Tensor" in str(a.type)]
    return inputs, [r.name or f"__ret_{i}" for i, r in enumerate(op._schema.returns)]


def _operators() -> dict[str, list[str]]:
    found = {name: _formals(name) for name in _RULES}
    return {name: [*i, *o] for name, (i, o) in found.items() if len(i) + len(o) <= 4}


@pytest.fixture(scope="module")
def stock_answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("passes") / "program.pt2"
    torch.export.save(_program(), path)
    letters = {letter: str(dtype).removeprefix("torch.") for letter, dtype in _LETTERS.items()}
    questions = json.dumps({"letters": letters, "operators": _operators()})
    return _ask(path, questions)


def _ask(path: Path, questions: str) -> dict[str, Any]:
    return json.loads(run_stock(["-m", "tests.compiler.stock_passes", path, questions]).stdout)


@pytest.mark.parametrize("name", ["OneToOne", "OneToMany", "OneToNone", "Local"])
def test_tutorial_pass_gives_the_graph_that_the_stock_base_gives(
    name: str, stock_answers: dict[str, Any]
) -> None:
    changed = to_edge(_program()).transform([passes_of(ops, ExportPass)[name]])
    nodes = [n for n in changed.exported_program().graph.nodes if n.op == "call_function"]
    found = [
        [n.target.__name__, n.meta["debug_handle"], str(tuple(n.meta["val"].shape))] for n in nodes
    ]
    assert found == stock_answers["graphs"][name]


def test_element_types_are_those_of_the_stock_tables(stock_answers: dict[str, Any]) -> None:
    tables = stock_answers["dtypes"]
    assert len(tables) > 100
    different: dict[str, set[str]] = {}
    for name, accepted in tables.items():
        inputs, results = _formals(name)
        rule = dtype_rule_of(_overload(name))
        assert rule is not None
        width = len(inputs) + len(results)
        choices = _LETTERS if width <= 3 else "bylf"
        ours = {
            "".join(given)
            for given in itertools.product(choices, repeat=width)
            if rule.accepts(
                {n: _LETTERS[g] for n, g in zip(inputs, given, strict=False)},
                [_LETTERS[g] for g in given[len(inputs) :]],
            )
        }
        odd = {given for given in ours ^ set(accepted) if not _is_known(given)}
        if odd:
            different[name] = odd
    assert different == {}


def _overload(name: str) -> Any:
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def _is_known(given: str) -> bool:
    """Return whether our rule differs on purpose.

    The stock tables let float16 and bfloat16 mix, which torch promotes to float32, and leave out
    uint16 in places where torch computes with it, and complex numbers everywhere.
    """
    return bool({"u", "z", "Z"} & set(given)) or {"h", "g"} <= set(given)


class Cache(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(400, 3))

    def forward(self, place: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        self.cache.index_put_((place,), row.neg())
        return self.cache.neg().index_put((place,), row).sum(0)


def test_result_written_over_an_input_is_right_and_takes_less_memory(stock: Stock) -> None:
    calls = [(torch.tensor([at % 2 + 1]), torch.randn(1, 3)) for at in range(3)]
    wanted = eager_outputs(Cache().eval(), list(calls))
    manager = to_edge(torch.export.export(Cache().eval(), calls[0]))
    plain = manager.to_executorch()
    config = ExecutorchBackendConfig(run_reinplace_pass=True)
    over = manager.to_executorch(config)
    assert over.memory_plans["forward"].nbytes < plain.memory_plans["forward"].nbytes - 4000
    found = stock.run(over.buffer, [("forward", given) for given in calls])
    assert_equal(found, wanted, 1e-6)


class Sums(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        q = torch.ops.quantized_decomposed
        x = q.dequantize_per_tensor(a, 0.1, 3, 0, 255, torch.uint8)
        y = q.dequantize_per_tensor(b, 0.2, 4, 0, 255, torch.uint8)
        return q.quantize_per_tensor(x + y, 0.3, 5, 0, 255, torch.uint8)


class Embeds(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.randint(-100, 100, (10, 4), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(10) + 0.1)
        self.register_buffer("zeros", torch.randint(0, 5, (10,)))

    def forward(self, places: torch.Tensor) -> torch.Tensor:
        weight = torch.ops.quantized_decomposed.dequantize_per_channel(
            self.rows, self.scales, self.zeros, 0, -128, 127, torch.int8
        )
        return torch.nn.functional.embedding(places, weight)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("kind", [Sums, Embeds])
def test_quantized_operators_run_on_the_stock_kernels(
    kind: type[torch.nn.Module], fused: bool, stock: Stock
) -> None:
    importlib.import_module("torch.ao.quantization.fx._decomposed")
    module = kind().eval()
    bytes_of = [torch.randint(0, 200, (4, 5), dtype=torch.uint8) for _ in range(2)]
    given = tuple(bytes_of) if kind is Sums else (torch.tensor([1, 7]),)
    config = ExecutorchBackendConfig(do_quant_fusion_and_const_prop=fused)
    program = to_edge(torch.export.export(module, given)).to_executorch(config)
    names = [o.name for o in pte.decode(program.buffer).plan("forward").operators]
    if fused:
        one = "add" if kind is Sums else "embedding_byte"
        assert names == [f"quantized_decomposed::{one}"]
    found = stock.run(program.buffer, [("forward", given)])
    wanted = eager_outputs(module, [given])
    if kind is Sums:  # the kernel rounds halves away from zero, torch to even
        assert int((found[0][0].int() - wanted[0][0].int()).abs().max()) <= 1
    else:
        assert_equal(found, wanted, 1e-6)
