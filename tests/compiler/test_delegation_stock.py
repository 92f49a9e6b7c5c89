"""Delegation beside the stock compiler: its demonstrations, deserialiser, runtime and Inspector."""

from __future__ import annotations

import base64
import gc
import importlib.util
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, final

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  torch's own habit

from compiler import (
    AllNodePartitioner,
    BackendDetails,
    CompileSpec,
    EdgeProgramManager,
    NamedDataStore,
    PreprocessResult,
    to_backend,
    to_edge,
    to_edge_transform_and_lower,
)
from compiler.backends.demo import BackendWithCompilerDemo
from inspector.compat.porting.port import port_source
from schema import etrecord
from tests.compiler.delegation import ByNode, edge, exported, payloads
from tests.compiler.stock import Stock

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def _ask(stock: Stock, verb: str, **arguments: Path) -> Any:
    facts = stock.ask(verb, **{name: str(value) for name, value in arguments.items()})
    assert "error" not in facts, facts["error"]
    return facts


class MulAdd(nn.Module):
    def forward(self, a: Any, x: Any, b: Any) -> Any:
        y = torch.add(torch.mm(a, x), b)
        return torch.add(torch.mm(y - a, x), b)


class Mixed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4, bias=False)

    def forward(self, x: Any) -> Any:
        y = self.second(F.relu(self.first(x)) + x)
        return y + F.scaled_dot_product_attention(y[None], y[None], y[None])[0]


class Branches(nn.Module):
    def forward(self, x: Any, y: Any) -> Any:
        left, right = x + y, torch.mm(x, y)
        return left.sigmoid() + right, (left + right).neg(), torch.mm(x, y).relu() + x


PROGRAMS: dict[str, tuple[nn.Module, tuple[torch.Tensor, ...]]] = {
    "mul_add": (MulAdd(), tuple(torch.randn(2, 2) for _ in range(3))),
    "mixed": (Mixed(), (torch.randn(4, 4),)),
    "branches": (Branches(), tuple(torch.randn(3, 3) for _ in range(2))),
}


@pytest.fixture(autouse=True)
def _no_backend_outlives_its_test() -> Iterator[None]:
    """The newest class of a name is the backend of that name, in the tests after these too."""
    yield
    for name in [name for name in sys.modules if name.startswith("of_the_wheel_")]:
        del sys.modules[name]
    gc.collect()


def _wheel_module(name: str, known: dict[str, Any]) -> Any:
    """Run a file of the wheel with nothing but its import lines changed as the table says."""
    spec = importlib.util.find_spec("executorch")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    file = Path(next(iter(spec.submodule_search_locations))) / "exir/backend/test" / f"{name}.py"
    text = port_source(file.read_text()).text
    assert "executorch.exir" not in re.sub(r'""".*?"""', "", text, flags=re.DOTALL)
    module = types.ModuleType(f"of_the_wheel_{name}")
    sys.modules[module.__name__] = module
    module.__dict__.update(known)
    exec(compile(text, str(file), "exec"), module.__dict__)
    return module


def test_demonstrations_of_the_wheel_run_with_only_their_imports_changed(
    stock: Stock, tmp_path: Path
) -> None:
    programs = {name: exported(module, *inputs) for name, (module, inputs) in PROGRAMS.items()}
    for name, program in programs.items():
        torch.export.save(program, tmp_path / f"{name}.pt2")
    theirs = _ask(stock, "demos", folder=tmp_path)
    demo = _wheel_module("op_partitioner_demo", {})
    for name, program in programs.items():
        for maker in ("AddMulPartitionerDemo", "NonDecompTestPartitioner"):
            partitioner = getattr(demo, maker)()
            if maker == "AddMulPartitionerDemo":
                ours = to_edge(program).to_backend(partitioner)
            else:
                ours = to_edge_transform_and_lower(program, partitioner=[partitioner])
            wanted = theirs[f"{name} {maker}"]
            mine, stocks = payloads(ours), wanted["payloads"]
            if name == "branches":  # parallel branches may be cut elsewhere
                mine, stocks = (re.findall(r"op:[^,]*", " ".join(p)) for p in (mine, stocks))
            assert _without_handles(mine) == _without_handles(stocks), name


def _without_handles(texts: list[str]) -> list[str]:
    return sorted(re.sub(r"<debug_handle>\d+", "", text) for text in texts)


def test_backend_of_the_wheel_makes_the_documented_payload() -> None:
    module = _wheel_module("backend_with_compiler_demo", {})
    program = edge(torch.sin, torch.ones(1)).exported_program()
    result = module.BackendWithCompilerDemo.preprocess(program, [])
    lowered = to_backend("BackendWithCompilerDemo", program, [])
    assert result.processed_bytes == lowered.processed_bytes
    mapping = _wheel_module("backend_with_delegate_mapping_demo", {})
    assert issubclass(mapping.BackendWithDelegateMappingDemo, BackendDetails)


def test_stock_deserialiser_reads_delegates_and_named_data(stock: Stock, tmp_path: Path) -> None:
    store = NamedDataStore()
    store.add_named_data("key", b"blob", alignment=64)

    @final
    class KeyBackend(BackendDetails):
        @staticmethod
        def preprocess(edge_program: Any, compile_specs: Any) -> PreprocessResult:
            return PreprocessResult(b"payload", None, store.get_named_data_store_output())

    specs = [CompileSpec("max_value", b"\x04")]
    program = edge(torch.relu, torch.ones(2)).to_backend(AllNodePartitioner("KeyBackend", specs))
    path = tmp_path / "model.pte"
    program.to_executorch().save(path)
    facts = _ask(stock, "deserialise", path=path)
    assert facts["delegates"] == [["KeyBackend", [["max_value", "04"]], b"payload".hex()]]
    assert facts["named"] == ["key"]
    assert KeyBackend is not None


class Convolved(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(torch.relu(self.linear(x)))


@pytest.fixture(scope="module")
def delegated(
    stock: Stock, tmp_path_factory: pytest.TempPathFactory
) -> tuple[EdgeProgramManager, Path]:
    """A program of ours whose delegate holds a payload that stock XNNPACK made."""
    folder = tmp_path_factory.mktemp("xnnpack")
    program = exported(Convolved(), torch.randn(2, 8))
    torch.export.save(program, folder / "program.pt2")
    made = _ask(stock, "xnnpack", exported=folder / "program.pt2")
    store = NamedDataStore()
    for key, (data, alignment) in made["data"].items():
        store.add_named_data(key, base64.b64decode(data), alignment)
    specs = [CompileSpec(key, base64.b64decode(value)) for key, value in made["specs"]]

    @final
    class XnnpackBackend(BackendDetails):
        @staticmethod
        def preprocess(edge_program: Any, compile_specs: Any) -> PreprocessResult:
            return PreprocessResult(
                base64.b64decode(made["payload"]), None, store.get_named_data_store_output()
            )

    manager = to_edge(program, generate_etrecord=True)
    lowered = manager.to_backend(AllNodePartitioner("XnnpackBackend", specs))
    del XnnpackBackend  # backends are found by the name of their class while there is one
    gc.collect()
    return lowered, folder


def test_delegate_runs_on_the_stock_runtime_and_equals_eager(
    delegated: tuple[EdgeProgramManager, Path], stock: Stock
) -> None:
    manager, folder = delegated
    program = manager.to_executorch()
    x = torch.randn(2, 8)
    ((found,),) = stock.run(program.buffer, [("forward", (x,))], trace=str(folder / "run"))
    wanted = manager.exported_program().module()(x)
    assert torch.allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_stock_inspector_joins_the_trace_of_a_delegate(
    delegated: tuple[EdgeProgramManager, Path], stock: Stock
) -> None:
    manager, folder = delegated
    program = manager.to_executorch()
    stock.run(program.buffer, [("forward", (torch.randn(2, 8),))], trace=str(folder / "run"))
    record = folder / "model.etrecord"
    program.get_etrecord().save(record)
    facts = _ask(stock, "joined", etrecord=record, trace=folder / "run.etdp")
    assert facts["graphs"] == []
    assert facts["delegates"]["forward"]["0"]["name"] == "XnnpackBackend"
    handles = facts["handles"]["forward"]["0"]
    assert sorted(set(handles)) == [1, 2, 3]
    (call,) = [row for row in facts["rows"] if row["name"] == "DELEGATE_CALL"]
    assert {"aten.addmm.default", "aten.sigmoid.default"} <= set(call["op_types"])
    assert any("test_delegation_stock.py" in line for line in call["lines"]) or call["lines"]
    ours = etrecord.decode(record.read_bytes())
    assert {v.backend for v in ours.verdicts()["forward"]} == {"XnnpackBackend"}


def test_stock_tool_reads_records_of_composed_modules_and_of_verdicts(
    stock: Stock, tmp_path: Path
) -> None:
    class Composed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            program = edge(torch.sin, torch.ones(1)).exported_program()
            self.lowered = to_backend(BackendWithCompilerDemo.__name__, program, [])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.lowered(self.lowered(x).relu())

    manager = edge(Composed(), torch.ones(1), generate_etrecord=True)
    manager = manager.to_backend(ByNode(lambda n: "t" if "relu" in n.name else None))
    program = manager.to_executorch()
    path = tmp_path / "model.etrecord"
    program.get_etrecord().save(path)
    facts = _ask(stock, "joined", etrecord=path)
    assert facts["graphs"] == []
    assert set(facts["delegates"]["forward"]) == {"0", "1", "2"}
    ours = etrecord.decode(path.read_bytes())
    assert ours.check() == ()
    assert [v.node for v in ours.verdicts()["forward"]] == ["aten_relu_default"]
