"""Verdicts: every node has one, with the values that decided; they travel and are shown."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner as TorchPartitioner

from compiler import (
    CapabilityBasedPartitioner,
    DelegationSpec,
    OperatorSupport,
    Partitioner,
    PartitionResult,
    PartitionRules,
    SteeredPartitioner,
    WhyNoPartitionReporter,
    any_chain,
    to_edge_transform_and_lower,
)
from compiler.backends.xnnpack.partitioner import XnnpackPartitioner
from inspector.cli.main import main
from inspector.files.load import load_session
from inspector.graph.delegation import analyse_delegation
from schema import etrecord
from schema.errors import FormatError
from schema.etrecord.parts.verdicts import (
    MEMBER,
    NodeOutcome,
    Verdict,
    decode_members,
    decode_verdicts,
    encode_verdicts,
)
from tests.compiler.delegation import ByNode, Only, aten, edge, exported
from tests.compiler.stock import Stock

pytestmark = pytest.mark.slow


class Net(nn.Module):
    def forward(self, x: torch.Tensor, i: torch.Tensor) -> Any:
        y = x.relu() + x.sigmoid().neg()
        return (*torch.max(y, 1), (i + i).neg())


INPUTS = (torch.randn(2, 3), torch.arange(6).reshape(2, 3))


class Supported(Partitioner):
    """Takes float sums, relus and sigmoids, each pair or more."""

    def partition(self, exported_program: Any) -> PartitionResult:
        floats = ([(torch.float32,), None], {})
        table = {aten.add.Tensor: floats, "aten.relu.default": None}
        support = any_chain(OperatorSupport(table), Only(aten.sigmoid.default))
        tags = {}
        found = CapabilityBasedPartitioner(exported_program.graph_module, support)
        for partition in found.propose_partitions():
            for node in partition.nodes:
                node.meta["delegation_tag"] = f"tag{partition.id}"
                tags[f"tag{partition.id}"] = DelegationSpec("NameBackend", [])
        return PartitionResult(exported_program, tags)


def _verdicts(partitioner: Any) -> dict[str, Verdict]:
    manager = to_edge_transform_and_lower(exported(Net(), *INPUTS), partitioner=partitioner)
    return {verdict.node: verdict for verdict in manager.verdicts["forward"]}


def test_every_call_has_a_verdict_with_reason_rule_and_source() -> None:
    before = edge(Net(), *INPUTS).exported_program()
    found = _verdicts(Supported())
    calls = [node.name for node in before.graph.nodes if node.op == "call_function"]
    assert sorted(found) == sorted(calls)
    assert all(v.reason and v.rule and v.partitioner == "Supported" for v in found.values())
    assert all("test_verdicts.py:" in v.source for v in found.values())
    handles = {n.name: n.meta["debug_handle"] for n in before.graph.nodes if n.name in calls}
    assert {name: v.debug_handle for name, v in found.items()} == handles


def test_reasons_hold_the_offending_values() -> None:
    found = _verdicts(Supported())
    outcomes = {name: verdict.outcome for name, verdict in found.items()}
    assert outcomes["aten_relu_default"] is NodeOutcome.DELEGATED
    assert outcomes["aten_sigmoid_default"] is NodeOutcome.TOO_SMALL
    assert "1 computing node, fewer than 2" in found["aten_sigmoid_default"].reason
    assert outcomes["aten_add_tensor_1"] is NodeOutcome.REJECTED
    text = found["aten_add_tensor_1"].reason
    assert "argument 0 of aten.add.Tensor is int64[2, 3], allowed: float32" in text
    assert found["aten_add_tensor_1"].rule == "OperatorSupport.dtypes"
    assert outcomes["aten_neg_default"] is NodeOutcome.NO_RULE
    assert "aten.neg.default" in found["aten_neg_default"].reason


def test_partitioner_that_explains_nothing_is_said_to_explain_nothing() -> None:
    found = _verdicts(ByNode(lambda n: "t" if n.name == "aten_neg_default" else None))
    assert found["aten_neg_default_1"].outcome is NodeOutcome.REJECTED
    assert "took 1 of 2 aten.neg.default, not this one; without a reason" in (
        found["aten_neg_default_1"].reason
    )
    assert found["aten_relu_default"].outcome is NodeOutcome.NO_RULE
    assert "no rule for aten.relu.default in ByNode" in found["aten_relu_default"].reason


def _rounded(x: torch.Tensor) -> torch.Tensor:
    how = (0.1, 0, -128, 127, torch.int8)
    rounding = torch.ops.quantized_decomposed
    return rounding.dequantize_per_tensor(rounding.quantize_per_tensor(x, *how), *how)


def test_quantization_of_what_stays_outside_says_what_that_is() -> None:
    manager = edge(lambda x: _rounded(_rounded(x).relu()), torch.ones(2))
    whole = manager.to_backend(ByNode(lambda n: "t" if "relu" in n.name else None))
    apart = edge(lambda x: _rounded(_rounded(x).relu()), torch.ones(2))
    apart = apart.to_backend(ByNode(lambda n: "t" if n.name.endswith("default_1") else None))
    name = "quantized_decomposed_{}quantize_per_tensor_default{}"

    def reason(found: Any, *words: str) -> str:
        return {one.node: one.reason for one in found.verdicts["forward"]}[name.format(*words)]

    end = "outside of every partition"
    assert reason(whole, "", "") == f"it quantizes an input of the program, {end}"
    assert reason(whole, "de", "_1") == f"it dequantizes for an output of the program, {end}"
    assert "without a reason" in reason(whole, "de", "")  # what reads it is inside
    assert reason(apart, "de", "") == f"it dequantizes for aten_relu_default, {end}"


def test_partitioner_that_explains_itself_is_quoted() -> None:
    class Telling(Partitioner):
        def partition(self, exported_program: Any) -> PartitionResult:
            reporter = WhyNoPartitionReporter()
            for node in exported_program.graph.nodes:
                if node.op == "call_function":
                    reporter.report_reject(node, f"rank {node.name} is 2")
            assert "rank aten_relu_default is 2" in reporter.get_table_report()
            return PartitionResult(exported_program, {})

    found = _verdicts(Telling())
    assert found["aten_relu_default"].reason == "rank aten_relu_default is 2"
    assert {verdict.outcome for verdict in found.values()} == {NodeOutcome.REJECTED}


def test_later_partitioner_is_told_who_claimed_a_node() -> None:
    first = ByNode(lambda n: "t" if "relu" in n.name else None)
    manager = to_edge_transform_and_lower(
        exported(Net(), *INPUTS), partitioner=[first, Supported()]
    )
    told = [v for v in manager.verdicts["forward"] if v.node == "aten_relu_default"]
    assert [(v.partitioner, v.outcome) for v in told] == [
        ("ByNode", NodeOutcome.DELEGATED),
        ("Supported", NodeOutcome.CLAIMED),
    ]
    assert told[1].reason == "claimed earlier by ByNode, in its partition t"
    both = Counter(verdict.node for verdict in manager.verdicts["forward"])
    assert set(both.values()) == {2}
    assert not any("delegate" in name for name in both)


def test_verdicts_survive_emission_and_do_not_change_with_later_ones() -> None:
    manager = edge(Net(), *INPUTS).to_backend(Supported())
    before = manager.verdicts
    manager.to_backend(ByNode(lambda _: None))
    assert manager.verdicts == before
    assert manager.to_executorch().verdicts == before
    assert edge(Net(), *INPUTS).verdicts == {"forward": ()}


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rules = PartitionRules(deny_nodes=("aten_relu_default",))
    manager = edge(Net(), *INPUTS, generate_etrecord=True)
    delegated = manager.to_backend(SteeredPartitioner(Supported(), rules))
    folder = tmp_path_factory.mktemp("verdicts")
    program = delegated.to_executorch()
    program.get_etrecord().save(folder / "model.etrecord")
    program.save(folder / "model.pte")
    return folder / "model.etrecord"


def test_record_carries_verdicts_that_are_read_back(record: Path) -> None:
    found = etrecord.decode(record.read_bytes())
    assert found.check() == ()
    verdicts = {v.node: v for v in found.verdicts()["forward"]}
    assert verdicts["aten_relu_default"].outcome is NodeOutcome.VETOED
    assert verdicts["aten_relu_default"].rule == "deny_nodes"
    graph = found.edge_graph()
    assert graph is not None
    assert {node.name for node in graph.calls()} <= set(verdicts)


def test_command_shows_verdicts(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(record.with_suffix(".pte")), str(record)]
    assert main(["delegation", *files, "--format", "json"]) == 0
    entry = json.loads(capsys.readouterr().out)["data"]["methods"]["forward"]
    relu = next(v for v in entry["verdicts"] if v["node"] == "aten_relu_default")
    assert relu["outcome"] == "vetoed_by_user"
    assert relu["operator"] == "aten.relu.default"
    assert "aten_relu_default is denied" in relu["reason"]
    main(["delegation", *files])
    assert "vetoed by the user" in capsys.readouterr().out


def test_program_alone_has_no_verdicts(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["delegation", str(record.with_suffix(".pte")), "--format", "json"]) == 0
    entry = json.loads(capsys.readouterr().out)["data"]["methods"]["forward"]
    assert entry["verdicts"] == []


BROKEN: list[Any] = [
    [],
    {"version": 1},
    {"version": 2, "methods": {}},
    {"version": 1, "methods": {"forward": [{}]}},
    {"version": 1, "methods": {"forward": [{"node": 3, "outcome": "delegated"}]}},
    {"version": 1, "methods": {"forward": [{"node": "a", "outcome": "no such"}]}},
    {"version": 1, "methods": {"forward": [{"outcome": "delegated", "debug_handle": "x"}]}},
    {"version": 1, "methods": {"forward": "text"}},
]


@pytest.mark.parametrize("tree", BROKEN, ids=range(len(BROKEN)))
def test_verdicts_of_another_shape_are_one_error(tree: Any) -> None:
    with pytest.raises(FormatError):
        decode_verdicts(tree)


def test_encoded_verdicts_decode_to_the_same() -> None:
    one = Verdict("n", "aten.add.Tensor", 3, "P", "r", NodeOutcome.CYCLE, "why", "f.py:1", "b", "t")
    other = Verdict("m", "aten.add.Tensor", None, "P", "r", NodeOutcome.DECOMPOSED, "ü")
    given = {"forward": (one, other), "empty": ()}
    taken = {"forward": {3: ("n", "ü"), 7: ()}, "empty": {}}
    written = json.loads(encode_verdicts(given, taken))
    assert decode_verdicts(written) == given
    assert decode_members(written) == {"forward": taken["forward"]}
    assert decode_members(json.loads(encode_verdicts(given, {}))) == {}


@pytest.mark.parametrize("calls", [[], 3, {"forward": []}, {"forward": {"a": []}}, {"f": {"1": 2}}])
def test_nodes_of_calls_of_another_shape_are_one_error(calls: Any) -> None:
    with pytest.raises(FormatError):
        decode_members({"version": 1, "methods": {}, "calls": calls})


def test_damaged_verdicts_leave_the_record_readable(record: Path) -> None:
    data = record.read_bytes().replace(b'"outcome": "vetoed', b'"outcome": "vetOed')
    found = etrecord.decode(data)
    assert [issue.where for issue in found.check()] == [MEMBER]
    assert found.edge_graph() is not None
    with pytest.raises(FormatError):
        found.verdicts()


def test_session_without_readable_verdicts_has_none(record: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.etrecord"
    path.write_bytes(
        record.read_bytes().replace(b'"version": 1, "methods"', b'"version": 7, "methods"')
    )
    (entry,) = analyse_delegation(load_session([str(path)]))
    assert entry.verdicts == ()


@pytest.mark.interop
def test_stock_tool_reads_a_record_with_verdicts(record: Path, stock: Stock) -> None:
    facts = stock.ask("joined", etrecord=str(record))
    assert "error" not in facts, facts["error"]
    assert facts["graphs"] == []
    maps = facts["delegates"]["forward"].values()
    assert {entry["name"] for entry in maps} == {"NameBackend"}


def test_operator_that_is_not_kept_whole_says_what_is_in_the_way() -> None:
    def told(program: Any, rules: PartitionRules) -> str:
        partitioner = SteeredPartitioner(XnnpackPartitioner(), rules)
        found = to_edge_transform_and_lower(program, partitioner=[partitioner]).verdicts["forward"]
        (one,) = [v for v in found if v.outcome is NodeOutcome.DECOMPOSED]
        return one.reason

    prelu = exported(torch.nn.functional.prelu, torch.randn(1, 3, 4, 4), torch.randn(3))
    said = told(prelu, PartitionRules())
    assert said.endswith("preserve this node: its weight inputs_1 is not a static parameter"), said
    denied = told(exported(nn.Linear(3, 2), INPUTS[0]), PartitionRules(deny_ops=("aten.addmm",)))
    wanted = "vetoed by the user: aten.addmm.default is denied by aten.addmm.*"
    assert denied.endswith(wanted), denied


def test_partitioner_of_torch_says_what_it_refused_and_what_it_dropped() -> None:
    class Tutorial(Partitioner):
        def partition(self, exported_program: Any) -> PartitionResult:
            support = Only(aten.add.Tensor, aten.relu.default, aten.neg.default)
            proposer = TorchPartitioner(exported_program.graph_module, support)
            proposed = proposer.propose_partitions()
            assert proposer.operator_support is support  # nothing of ours is left in it
            for partition in proposed:
                for node in partition.nodes:
                    node.meta["delegation_tag"] = f"tag{partition.id}"
            spec = DelegationSpec("NameBackend", [])
            return PartitionResult(exported_program, {f"tag{p.id}": spec for p in proposed})

    program = exported(lambda x: (x.relu() + x).sigmoid().neg().exp(), torch.randn(3))
    before = TorchPartitioner.propose_partitions
    for partitioner in (Tutorial(), SteeredPartitioner(Tutorial(), PartitionRules())):
        edge_ = to_edge_transform_and_lower(program, partitioner=partitioner)
        told = {v.operator: (v.outcome, v.rule, v.reason) for v in edge_.verdicts["forward"]}
        assert told["aten.relu.default"][0] is told["aten.add.Tensor"][0] is NodeOutcome.DELEGATED
        assert told["aten.neg.default"] == (
            NodeOutcome.TOO_SMALL,
            "allows_single_node_partition",
            "its partition has fewer than 2 computing nodes",
        )
        for name in ("aten.sigmoid.default", "aten.exp.default"):
            text = f"Only.is_node_supported refuses this {name}"
            assert told[name] == (NodeOutcome.NO_RULE, "Only", text)
    assert TorchPartitioner.propose_partitions is before


class MyXnnpackPartitioner(XnnpackPartitioner):
    """A partitioner of the user's over that of the backend."""


@pytest.mark.parametrize(
    ("partitioner", "name"),
    [
        (XnnpackPartitioner, "compiler.backends.xnnpack.partition"),
        (MyXnnpackPartitioner, "compiler.backends.xnnpack.partition"),
        (Supported, "compiler.partition"),
    ],
)
def test_what_stays_outside_is_logged_where_somebody_listens(
    partitioner: type[Partitioner], name: str, caplog: pytest.LogCaptureFixture
) -> None:
    def lowered() -> Any:
        program = exported(lambda x: x.relu().cumsum(0).sigmoid(), torch.randn(3))
        return to_edge_transform_and_lower(program, partitioner=partitioner())

    caplog.set_level("WARNING", logger=name)  # whatever tests before have asked for
    lowered()
    assert [record for record in caplog.records if record.name == name] == []
    caplog.set_level("DEBUG", logger=name)
    outside = [v for v in lowered().verdicts["forward"] if v.outcome is not NodeOutcome.DELEGATED]
    assert {one.operator for one in outside} >= {"aten.cumsum.default"}
    logged = [record.getMessage() for record in caplog.records if record.name == name]
    assert len(logged) >= len(outside)
    for verdict in outside:
        assert any(verdict.node in line and verdict.reason in line for line in logged)
