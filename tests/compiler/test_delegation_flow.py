"""Delegation and control flow: inside branches and bodies, and of a whole branch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from functorch.experimental.control_flow import map as torch_map
from torch import nn

from compiler import (
    AllNodePartitioner,
    PartitionError,
    PartitionRules,
    SteeredPartitioner,
    to_edge_transform_and_lower,
)
from compiler.backends.demo import AddMulPartitionerDemo
from schema import etrecord
from schema import program as pte
from schema.etrecord.parts.verdicts import NodeOutcome
from schema.program import model as m
from tests.compiler.delegation import ByNode, aten, calls, edge, exported, payloads

pytestmark = pytest.mark.slow
X = torch.randn(3, 3)


def _branching(x: torch.Tensor) -> torch.Tensor:
    def taken(a: torch.Tensor) -> torch.Tensor:
        return (a + a).relu() + a

    return torch.cond(x.sum() > 0, taken, lambda a: a.neg(), (x + x,))


def _mapped(x: torch.Tensor) -> torch.Tensor:
    return torch_map(lambda row: (row + row).relu(), x)


def _nested(x: torch.Tensor) -> torch.Tensor:
    def outer(a: torch.Tensor) -> torch.Tensor:
        return torch.cond(a.max() > 1, lambda b: b + b, lambda b: b.neg(), (a + 1,))

    return torch.cond(x.sum() > 0, outer, lambda a: a.neg(), (x,))


@pytest.mark.parametrize(("function", "count"), [(_branching, 3), (_mapped, 1), (_nested, 2)])
def test_parts_of_bodies_are_delegated(function: Any, count: int) -> None:
    manager = edge(function, X, generate_etrecord=True)
    text = str(manager.exported_program())
    delegated = manager.to_backend(AddMulPartitionerDemo())
    assert str(manager.exported_program()) == text
    program = delegated.exported_program()
    assert torch.equal(program.module()(X), function(X))
    emitted = delegated.to_executorch()
    plan = pte.decode(emitted.buffer).plan("forward")
    steps = [i.instr_args for i in plan.chains[0].instructions]
    assert sum(isinstance(step, m.DelegateCall) for step in steps) == count
    assert len(plan.delegates) == count
    maps = emitted.delegate_map["forward"]
    assert [isinstance(steps[at], m.DelegateCall) for at in maps] == [True] * count


def test_verdicts_of_bodies_are_named_by_their_body() -> None:
    manager = edge(_branching, X, generate_etrecord=True).to_backend(AddMulPartitionerDemo())
    found = {verdict.node: verdict for verdict in manager.verdicts["forward"]}
    assert found["true_graph_0/aten_add_tensor"].outcome is NodeOutcome.DELEGATED
    assert found["true_graph_0/aten_relu_default"].outcome is NodeOutcome.NO_RULE
    assert found["aten_add_tensor"].outcome is NodeOutcome.DELEGATED
    assert found["false_graph_0/aten_neg_default"].reason


def test_whole_control_flow_can_be_delegated() -> None:
    manager = edge(_branching, X).to_backend(AllNodePartitioner("NameBackend", []))
    program = manager.exported_program()
    assert calls(program) == ["executorch_call_delegate", "getitem"]
    assert [name for name, _ in program.graph_module.named_children()] == ["lowered_module_0"]
    assert torch.equal(program.module()(X), _branching(X))
    manager.to_executorch()


def test_rules_hold_inside_bodies() -> None:
    rules = PartitionRules(deny_nodes=("aten_add_tensor_1",))
    manager = edge(_branching, X).to_backend(SteeredPartitioner(AddMulPartitionerDemo(), rules))
    found = {verdict.node: verdict.outcome for verdict in manager.verdicts["forward"]}
    assert found["true_graph_0/aten_add_tensor_1"] is NodeOutcome.VETOED
    assert found["true_graph_0/aten_add_tensor"] is NodeOutcome.DELEGATED


def test_tagged_operand_of_a_body_is_refused() -> None:
    def tag(program: Any) -> None:
        body = program.graph_module.true_graph_0
        next(iter(body.graph.nodes)).meta["delegation_tag"] = "t"

    with pytest.raises(PartitionError, match="non-tensor constants should not be tagged"):
        edge(_branching, X).to_backend(ByNode(lambda _: None, tag))


def test_record_of_a_program_with_delegated_bodies_is_sound(tmp_path: Any) -> None:
    manager = edge(_branching, X, generate_etrecord=True).to_backend(AddMulPartitionerDemo())
    path = tmp_path / "model.etrecord"
    manager.to_executorch().get_etrecord().save(path)
    record = etrecord.decode(path.read_bytes())
    assert record.check() == ()
    assert len(record.delegate_map["forward"]) == 3  # pyright: ignore[reportOptionalSubscript]


class _Recurrent(nn.Module):
    """Layers that torch makes of linear ones, out of sight of an export."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(3, 4, batch_first=True)
        self.cell = nn.GRUCell(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.cell(self.layer(x)[0][:, -1])


def test_operators_inside_of_others_are_kept_whole() -> None:
    class Keeping(ByNode):
        def ops_to_not_decompose(self, ep: Any) -> Any:
            return [torch.ops.aten.linear.default], None

    x, net = torch.randn(2, 2, 3), _Recurrent()
    take = Keeping(lambda n: n.name if n.target is aten.linear.default else None)
    manager = to_edge_transform_and_lower(exported(net, x), partitioner=take)
    # one over the whole input and one a step, then two of the cell
    assert payloads(manager) == ["aten.linear.default"] * 5
    assert "aten.addmm.default" not in calls(manager.exported_program())
    assert torch.allclose(manager.exported_program().module()(x), net(x), atol=1e-6)
    denied = SteeredPartitioner(take, PartitionRules(deny_ops=("aten.linear.default",)))
    plain = to_edge_transform_and_lower(exported(net, x), partitioner=denied)
    assert calls(plain.exported_program()).count("aten.addmm.default") == 5
