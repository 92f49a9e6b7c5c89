"""Rules around any partitioner: what they keep out, how they cut, and what stays consistent."""

from __future__ import annotations

from typing import Any

import networkx
import pytest
import torch
import torch.ao.quantization.fx._decomposed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from compiler import (
    DelegationSpec,
    Granularity,
    PartitionRules,
    SteeredPartitioner,
    TensorRule,
    ops,
    tag_constant_data,
    to_edge_transform_and_lower,
)
from compiler.delegate.to_backend import part
from compiler.partition.unmatched_rules import unmatched_rules
from compiler.quantize.program import quantize_program
from schema.etrecord.parts.verdicts import NodeOutcome, Verdict
from tests.compiler.delegation import ByNode, edge, exported, long_program, payloads

pytestmark = pytest.mark.slow
aten = torch.ops.aten


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * self.weight).relu()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Block(), Block()
        self.head = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.second(self.first(x)) + x
        return self.head(y.sigmoid())


X = torch.randn(2, 3)
EVERYTHING = ByNode(lambda _: "t", tag_constant_data)


def _steered(rules: PartitionRules, inner: Any = EVERYTHING) -> Any:
    program = exported(Net(), X)
    return to_edge_transform_and_lower(program, partitioner=SteeredPartitioner(inner, rules))


def _found(manager: Any) -> dict[str, Verdict]:
    return {verdict.node: verdict for verdict in manager.verdicts["forward"]}


def _vetoed(manager: Any) -> set[str]:
    return {n for n, v in _found(manager).items() if v.outcome is NodeOutcome.VETOED}


RELUS = {"aten_relu_default", "aten_relu_default_1"}
HEAD = {"aten_permute_copy_default", "aten_addmm_default"}
FIRST = {"aten_mul_tensor", "aten_relu_default"}
SECOND = {"aten_mul_tensor_1", "aten_relu_default_1"}
ALL = {*RELUS, *HEAD, *FIRST, *SECOND, "aten_add_tensor", "aten_sigmoid_default"}
DENIED: list[tuple[str, PartitionRules, set[str]]] = [
    ("op", PartitionRules(deny_ops=("aten.relu.default",)), RELUS),
    ("packet", PartitionRules(deny_ops=(aten.relu,)), RELUS),
    ("edge op", PartitionRules(deny_ops=(ops.edge.aten.relu.default,)), RELUS),
    ("pattern", PartitionRules(deny_ops=("aten.rel*",)), RELUS),
    ("source op", PartitionRules(deny_ops=("aten.linear.default",)), HEAD),
    ("allowed ops", PartitionRules(allow_ops=("aten.mul", "aten.relu")), ALL - FIRST - SECOND),
    ("node", PartitionRules(deny_nodes=("aten_relu_default_1",)), {"aten_relu_default_1"}),
    ("source node", PartitionRules(deny_nodes=("linear",)), HEAD),
    ("allowed nodes", PartitionRules(allow_nodes=("aten_re*",)), ALL - RELUS),
    ("handle", PartitionRules(deny_handles=(2,)), {"aten_relu_default"}),
    ("allowed handles", PartitionRules(allow_handles=(1, 2)), ALL - FIRST),
    ("module", PartitionRules(deny_modules=("first",)), FIRST),
    ("class", PartitionRules(deny_modules=("Block",)), FIRST | SECOND),
    ("allowed module", PartitionRules(allow_modules=("Linear",)), ALL - HEAD),
    (
        "rank",
        PartitionRules(deny_tensors=(TensorRule(max_rank=1),)),
        {"aten_mul_tensor", "aten_mul_tensor_1", "aten_addmm_default"},
    ),
    (
        "elements",
        PartitionRules(allow_tensors=(TensorRule(max_elements=4),)),
        ALL - {"aten_addmm_default"},
    ),
    ("dtype", PartitionRules(deny_tensors=(TensorRule(dtypes=("float32",)),)), ALL),
]


@pytest.mark.parametrize(("rules", "wanted"), [d[1:] for d in DENIED], ids=[d[0] for d in DENIED])
def test_rule_keeps_out_what_it_is_about(rules: PartitionRules, wanted: set[str]) -> None:
    manager = _steered(rules)
    assert _vetoed(manager) == wanted
    found = _found(manager)
    assert set(found) == ALL
    assert all(v.outcome in (NodeOutcome.VETOED, NodeOutcome.DELEGATED) for v in found.values())
    assert all(v.partitioner == "ByNode" and v.reason for v in found.values())
    manager.to_executorch()


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (TensorRule(), "any tensor"),
        (TensorRule(("float32", "int8")), "float32 or int8"),
        (TensorRule(min_rank=1, max_rank=2), "at least 1 dimensions, at most 2 dimensions"),
        (TensorRule(("int8",), max_elements=9), "int8, at most 9 elements"),
    ],
)
def test_veto_says_which_tensors_its_rule_is_about(rule: TensorRule, said: str) -> None:
    assert str(rule) == f"the rule for {said}"
    reasons = [v.reason for v in _found(_steered(PartitionRules(deny_tensors=(rule,)))).values()]
    assert all("TensorRule(" not in reason for reason in reasons)


def test_without_rules_nothing_changes() -> None:
    plain = to_edge_transform_and_lower(exported(Net(), X), partitioner=EVERYTHING)
    assert payloads(_steered(PartitionRules())) == payloads(plain)


def test_weights_follow_the_nodes_that_are_left() -> None:
    manager = _steered(PartitionRules(deny_modules=("first", "head")))
    program = manager.exported_program()
    assert set(program.state_dict) == {"first.weight", "head.weight", "head.bias"}
    (module,) = program.graph_module.children()
    assert set(module.original_module.state_dict) == {"second.weight"}


def test_small_partitions_are_dropped_and_say_so() -> None:
    manager = _steered(PartitionRules(deny_ops=("aten.add",), min_nodes=3))
    found = _found(manager)
    small = {n for n, v in found.items() if v.outcome is NodeOutcome.TOO_SMALL}
    assert small == {"aten_sigmoid_default", *HEAD}
    assert "2 computing nodes, fewer than 3" in found["aten_sigmoid_default"].reason
    assert found["aten_sigmoid_default"].rule == "min_nodes"
    assert len(payloads(manager)) == 1


@pytest.mark.parametrize(("fewest", "kept"), [(1, 1), (2, 0)])
def test_partition_that_only_moves_data_is_small_where_computing_nodes_are_asked_for(
    fewest: int, kept: int
) -> None:
    manager = edge(lambda x: x.permute(1, 0).permute(1, 0).relu(), X)
    inner = ByNode(lambda node: "t" if "permute" in node.name else None)
    found = manager.to_backend(SteeredPartitioner(inner, PartitionRules(min_nodes=fewest)))
    assert len(payloads(found)) == kept


@pytest.mark.parametrize(("work", "kept"), [(None, 0), (1 << 40, 1)])
def test_what_moves_data_counts_where_calls_are_weighed(work: int | None, kept: int) -> None:
    manager = edge(lambda x: x.permute(1, 0).sigmoid().unsqueeze(0).permute(0, 2, 1), X)
    rules = PartitionRules(min_nodes=3, min_work=work)  # outside the unsqueeze costs no instruction
    found = manager.to_backend(SteeredPartitioner(ByNode(lambda _: "t"), rules))
    assert len(payloads(found)) == kept
    rules = PartitionRules(min_nodes=4, min_work=work)
    assert payloads(manager.to_backend(SteeredPartitioner(ByNode(lambda _: "t"), rules))) == []


def test_largest_partitions_are_kept_up_to_a_number() -> None:
    manager = _steered(PartitionRules(deny_ops=("aten.add",), max_partitions=1))
    assert _found(manager)["aten_sigmoid_default"].rule == "max_partitions"
    assert _found(manager)["aten_sigmoid_default"].outcome is NodeOutcome.VETOED
    block = "aten.mul.Tensor aten.relu.default"
    assert payloads(manager) == [f"{block} {block}"]


def test_granularity_is_one_operator_or_one_module() -> None:
    alone = _steered(PartitionRules(granularity=Granularity.OPERATOR))
    assert sorted(payloads(alone)) == sorted(f"{v.operator}" for v in _found(alone).values())
    modules = payloads(_steered(PartitionRules(granularity=Granularity.MODULE)))
    assert modules.count("aten.mul.Tensor aten.relu.default") == 2
    assert "aten.permute_copy.default aten.addmm.default" in modules


def test_cut_edge_is_between_two_partitions() -> None:
    rules = PartitionRules(cut_edges=(("aten_relu_default", "aten_mul_tensor_1"),))
    found = _found(_steered(rules))
    assert len(payloads(_steered(rules))) == 2
    assert found["aten_relu_default"].partition != found["aten_mul_tensor_1"].partition
    assert len({found[n].partition for n in SECOND}) == 1


def test_denied_operator_is_not_kept_whole_and_its_parts_stay_out() -> None:
    class Keeping(ByNode):
        def ops_to_not_decompose(self, ep: Any) -> Any:
            return [aten.linear.default], None

    inner = Keeping(lambda _: "t", tag_constant_data)
    for rules in (
        PartitionRules(deny_ops=("aten.linear.default",)),
        PartitionRules(deny_ops=("aten.addmm",)),  # linear is made of it
        PartitionRules(deny_nodes=("aten_linear_default",)),
        PartitionRules(deny_modules=("Linear",)),
    ):
        manager = _steered(rules, inner)
        assert "aten_addmm_default" in _vetoed(manager)
        assert "linear" not in " ".join(payloads(manager))
        whole = [v for v in _found(manager).values() if v.outcome is NodeOutcome.DECOMPOSED]
        assert all(v.operator == "aten.linear.default" for v in whole)
        manager.to_executorch()
    kept = payloads(_steered(PartitionRules(), inner))
    assert "aten.linear.default" in " ".join(kept)


def test_priority_comes_before_the_order_of_partitioners() -> None:
    first = SteeredPartitioner(EVERYTHING, PartitionRules())
    spec = DelegationSpec("SecondBackend", [])
    second = SteeredPartitioner(ByNode(lambda _: "t", t=spec), PartitionRules(priority=1))
    manager = to_edge_transform_and_lower(exported(torch.relu, X), partitioner=[first, second])
    assert payloads(manager) == ["second: aten_relu_default"]


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=25)
@given(st.sets(st.integers(1, 40)), st.integers(1, 4), st.sampled_from([*Granularity]))
def test_any_vetoes_leave_partitions_without_cycles(
    denied: set[int], smallest: int, granularity: Granularity
) -> None:
    rules = PartitionRules(deny_handles=tuple(denied), min_nodes=smallest, granularity=granularity)
    parted = part(_LONG, SteeredPartitioner(ByNode(lambda _: "t"), rules))  # raises on a cycle
    home = {node.name: r.tag for r in parted.regions for node in r.nodes}
    graph: Any = networkx.DiGraph()
    for node in parted.program.graph.nodes:
        for user in node.users:
            a, b = home.get(node.name, node.name), home.get(user.name, user.name)
            if a != b:
                graph.add_edge(a, b)
    assert networkx.is_directed_acyclic_graph(graph)
    handles = {n.meta["debug_handle"] for r in parted.regions for n in r.nodes}
    assert not handles & denied
    assert all(len(region.nodes) >= smallest for region in parted.regions)


_LONG = long_program(40)


def test_partitioner_with_a_cyclic_tag_is_cut_instead_of_refused() -> None:
    manager = edge(lambda x: x.relu().neg().relu(), X)
    inner = ByNode(lambda n: "t" if "relu" in n.name else None)
    found = manager.to_backend(SteeredPartitioner(inner, PartitionRules()))
    assert payloads(found) == ["aten.relu.default", "aten.relu.default"]


def test_rules_that_fit_nothing_are_named() -> None:
    lowered = edge(Net(), torch.randn(2, 3)).exported_program()
    programs = [exported(Net(), torch.randn(2, 3)), lowered]
    rules = PartitionRules(
        deny_ops=("aten.linear", "aten.addmm.default", aten.relu, "aten.nosuch*", aten.sin.default),
        allow_ops=("aten.m?l.Tensor", "aten.mull"),
        deny_nodes=("aten_relu_default", "relu", "aten__relu_default"),
        allow_modules=("head", "Block", "second", "third"),
        deny_tensors=(TensorRule(dtypes=("float16", "float32")), TensorRule(min_rank=9)),
    )
    assert unmatched_rules(rules, programs) == [
        ("deny_ops", "aten.nosuch*"),
        ("deny_ops", "aten.sin.default"),
        ("allow_ops", "aten.mull"),
        ("deny_nodes", "aten__relu_default"),
        ("allow_modules", "third"),
        ("deny_dtypes", "float16"),
    ]
    assert unmatched_rules(PartitionRules(min_nodes=3), programs) == []


class Converting(nn.Module):
    """Values that are rounded to eight bits before and after a sine."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self._rounded(torch.sin(self._rounded(x))).relu()

    def _rounded(self, x: torch.Tensor) -> torch.Tensor:
        facts = (0.1, 0, -128, 127, torch.int8)
        made = torch.ops.quantized_decomposed.quantize_per_tensor.default(x, *facts)
        return torch.ops.quantized_decomposed.dequantize_per_tensor.default(made, *facts)


@pytest.mark.parametrize("denied", [True, False])
def test_partition_that_only_converts_beside_a_denied_node_is_dropped(denied: bool) -> None:
    rules = PartitionRules(deny_ops=("aten.sin",) if denied else (), min_nodes=1)
    program = exported(Converting(), X)
    result = to_edge_transform_and_lower(program, partitioner=SteeredPartitioner(EVERYTHING, rules))
    found = {one.node: one for one in result.verdicts["forward"]}
    first = found["quantized_decomposed_quantize_per_tensor_default"]
    assert (first.outcome is NodeOutcome.DELEGATED) is not denied
    assert ("only quantize or dequantize" in first.reason) is denied
    last = found["quantized_decomposed_quantize_per_tensor_default_1"]
    assert last.outcome is NodeOutcome.DELEGATED


class Activated(nn.Module):
    """Layers with an activation between them, whose rounding comes from the activation."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.second(torch.relu(self.first(x))))


_LAYERS = ("aten.linear.default", "aten.relu.default", "aten.addmm.default", "aten.permute_copy")


@pytest.mark.parametrize(
    ("rules", "outside"),
    [
        (PartitionRules(deny_ops=("aten.relu.default",)), {"aten_relu_default"}),
        (PartitionRules(deny_ops=("aten.sigmoid.default",)), {"aten_sigmoid_default"}),
        (PartitionRules(allow_ops=_LAYERS), {"aten_sigmoid_default"}),
    ],
    ids=["deny relu", "deny sigmoid", "allow layers"],
)
def test_rules_on_operators_leave_quantization_to_the_neighbours(
    rules: PartitionRules, outside: set[str]
) -> None:
    torch.manual_seed(0)
    program = quantize_program(exported(Activated(), torch.randn(2, 4)), "static")
    result = to_edge_transform_and_lower(program, partitioner=SteeredPartitioner(EVERYTHING, rules))
    verdicts = result.verdicts["forward"]
    out = {one.node for one in verdicts if one.outcome is not NodeOutcome.DELEGATED}
    assert out == outside
    assert sum("quantize_per" in one.node for one in verdicts) >= 8


class Integers(ByNode):
    """Everything is given to a backend; one that a vendor's table knows may take integers only."""

    def __init__(self, backend: str) -> None:
        super().__init__(lambda _: "t", tag_constant_data)
        self.delegation_spec = DelegationSpec(backend, [])


@pytest.mark.parametrize("backend", ["NameBackend", "EthosUBackend"])
@pytest.mark.parametrize(
    ("denied", "with_it"),
    [
        ("aten.relu.default", {"aten_addmm_default", "aten_permute_copy_default"}),
        ("aten.linear.default", {"aten_relu_default"}),
        ("aten.sigmoid.default", set[str]()),
    ],
)
def test_backend_of_integers_loses_what_is_quantized_together(
    backend: str, denied: str, with_it: set[str]
) -> None:
    """A layer and its activation have one rounding between them: one of them alone is real."""
    torch.manual_seed(0)
    program = quantize_program(exported(Activated(), torch.randn(2, 4)), "static")
    rules = PartitionRules(deny_ops=(denied,))
    inner = Integers(backend)
    result = to_edge_transform_and_lower(program, partitioner=SteeredPartitioner(inner, rules))
    found = result.verdicts["forward"]
    together = {one.node for one in found if "cannot be taken out alone" in one.reason}
    assert together == (with_it if backend == "EthosUBackend" else set())
    delegated = {one.node for one in found if one.outcome is NodeOutcome.DELEGATED}
    assert not delegated & together


def test_quantization_is_kept_out_by_its_own_name() -> None:
    made = ["quantized_decomposed.quantize_per_tensor.default", "aten.relu.default"]
    assert PartitionRules(deny_ops=("aten.relu.default",)).veto_of_operators(made) is None
    assert PartitionRules(allow_ops=("aten.add.Tensor",)).veto_of_operators(made) is None
    assert PartitionRules(deny_ops=("aten.relu",)).veto_of_operators(made[1:]) is not None
    denied = PartitionRules(deny_ops=(made[0],)).veto_of_operators(made)
    assert denied is not None
    assert denied[0] == "deny_ops"
