"""Delegates inside branches and loops, and records of programs with bodies or constants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch._higher_order_ops import while_loop
from torch._higher_order_ops.map import map as _typed_map
from torch.nn import functional as F  # noqa: N812  torch's own habit

import inspector
from compiler import (
    DelegationSpec,
    EdgeProgramManager,
    Partitioner,
    PartitionResult,
    get_control_flow_submodules,
    to_edge_transform_and_lower,
)
from compiler.backends.xnnpack import XnnpackPartitioner
from tests.compiler.compare import exported, module_of
from tests.compiler.control_flow import SAMPLES
from tests.compiler.programs import of
from tests.compiler.stock import Stock

pytestmark = pytest.mark.slow
_map: Any = _typed_map
_TAKEN = ("add.Tensor", "mul.Tensor", "relu.default", "abs.default")


class InBodies(Partitioner):
    """Takes what it knows inside branches and loops, and nothing outside."""

    def partition(self, exported_program: Any) -> PartitionResult:
        tags: dict[str, DelegationSpec] = {}
        self._tag(exported_program.graph_module, "", tags)
        return PartitionResult(exported_program, tags)

    def _tag(self, module: Any, path: str, tags: dict[str, DelegationSpec]) -> None:
        for name, body, _ in get_control_flow_submodules(module):
            here = f"{path}{name}"
            for node in body.graph.nodes:
                if _is_taken(node):
                    node.meta["delegation_tag"] = here
                    tags[here] = DelegationSpec("XnnpackBackend", [])
            self._tag(body, here, tags)


def _is_taken(node: torch.fx.Node) -> bool:
    known = node.op == "call_function" and str(getattr(node.target, "op", "")).endswith(_TAKEN)
    return known and node.meta["val"].dtype == torch.float32


def _branches(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(
        x.sum() > 0, lambda y: (y.relu() + y) * y, lambda y: (y * y).abs(), (x,)
    ).sin()


def _map_of_branches(x: torch.Tensor) -> torch.Tensor:
    def body(row: torch.Tensor) -> torch.Tensor:
        return torch.cond(row.sum() > 0, lambda a: (a + a).relu(), lambda a: a * a, (row,))

    return _map(body, x)


def _loop(x: torch.Tensor) -> torch.Tensor:
    start = torch.zeros((), dtype=torch.int64)
    return while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, (a + a).relu()), (start, x))[1]


X = torch.linspace(-2, 3, 24).reshape(3, 2, 4)
CALLS = [(X,), (X.abs(),), (-X.abs(),)]


@pytest.mark.interop
@pytest.mark.parametrize(
    ("function", "delegates"), [(_branches, 2), (_map_of_branches, 2), (_loop, 1)]
)
def test_delegates_inside_bodies_run_on_the_stock_runtime(
    function: Any, delegates: int, stock: Stock, tmp_path: Path
) -> None:
    program = exported(of(function, X), module_of(of(function, X)))
    manager = to_edge_transform_and_lower(program, partitioner=InBodies(), generate_etrecord=True)
    emitted = manager.to_executorch()
    assert len(emitted.executorch_program.plan("forward").delegates) == delegates
    found = stock.run(emitted.buffer, [("forward", inputs) for inputs in CALLS])
    for outputs, inputs in zip(found, CALLS, strict=True):
        torch.testing.assert_close(outputs, [function(*inputs)])
    facts = _joined(stock, emitted, (X,), tmp_path)
    assert any(row["name"] == "DELEGATE_CALL" for row in facts["rows"])


def _joined(stock: Stock, emitted: Any, inputs: Any, folder: Path) -> dict[str, Any]:
    """Return what the stock Inspector makes of a record and of a trace of the stock runtime."""
    record, trace = folder / "model.etrecord", folder / "run"
    emitted.get_etrecord().save(record)
    stock.run(emitted.buffer, [("forward", inputs)], trace=str(trace))
    facts = stock.ask("record", etrecord=str(record), trace=str(trace))
    assert "error" not in facts, facts["error"]
    return facts


@pytest.mark.interop
@pytest.mark.parametrize("name", ["cond", "map_two", "scan", "while_loop", "while_loop_until"])
def test_record_of_control_flow_and_constant_methods_joins_with_stock(
    name: str, stock: Stock, tmp_path: Path
) -> None:
    sample = SAMPLES[name]
    constants = {"size": 5, "names": ["a", "b"], "table": torch.arange(3)}
    program = exported(sample, module_of(sample))
    manager: EdgeProgramManager = to_edge_transform_and_lower(
        program, constant_methods=constants, generate_etrecord=True
    )
    emitted = manager.to_executorch()
    facts = _joined(stock, emitted, sample.inputs, tmp_path)
    edge = manager.exported_program().graph
    outside = [n.name for n in edge.nodes if hasattr(n.target, "_schema")]
    assert facts["edge_nodes"] == outside
    rows = [row for row in facts["rows"] if row["name"].startswith("native_call")]
    # The stock tool reads the graph outside of bodies only; ours reads the program too.
    assert sum(bool(row["op_types"]) for row in rows) >= len(outside)
    (tmp_path / "model.pte").write_bytes(emitted.buffer)
    ours = inspector.Inspector(
        etdump_path=str(tmp_path / "run.etdp"),
        etrecord=str(tmp_path / "model.etrecord"),
        debug_buffer_path=str(tmp_path / "run.debug"),
        program=str(tmp_path / "model.pte"),
    )
    events = [e for b in ours.event_blocks for e in b.events if e.name.startswith("native_call")]
    assert len(events) == len(rows)
    assert [e.name for e in events if not e.op_types] == []


def test_operator_wanted_whole_is_decomposed_in_a_body_where_nobody_takes_it() -> None:
    class Pools(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            def pool(y: torch.Tensor) -> torch.Tensor:
                return F.max_pool2d(self.linear(y), 2)

            return torch.cond(x.sum() > 0, pool, lambda y: pool(y) * 2, (x,))

    program = torch.export.export(Pools().eval(), (torch.randn(1, 2, 4, 4),))
    manager = to_edge_transform_and_lower(program, partitioner=XnnpackPartitioner())
    modules = manager.exported_program().graph_module.modules()
    nodes = [n for m in modules if isinstance(m, torch.fx.GraphModule) for n in m.graph.nodes]
    assert not any("linear" in str(n.target) for n in nodes if n.op == "call_function")
    assert manager.to_executorch().buffer
