"""Changes of what is delegated: each does what it says, and its program runs on stock."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest
import torch
from torch import nn

from compiler import (
    PartitionRules,
    SteeredPartitioner,
    ops,
    to_edge_transform_and_lower,
)
from compiler.backends.xnnpack import XnnpackPartitioner
from compiler.partition.forced_nodes import NOT_FORCED
from compiler.pipeline.precision import PrecisionError, Precisions
from compiler.pipeline.preview import previewed
from compiler.quantize.program import QuantizationModes, quantize_program
from schema.etrecord.parts.verdicts import NodeOutcome, Verdict
from tests.compiler.delegation import ByNode
from tests.compiler.stock import Stock

pytestmark = pytest.mark.slow


class Net(nn.Module):
    """Layers with activations, a branch, and something in between that XNNPACK has no rule for."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.ReLU())
        self.head = nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x)
        z = self.second(y) + y
        z = torch.cumsum(z, 3).sigmoid() * z
        return self.head(z.mean((2, 3))).softmax(-1)


X = (torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1)),)
WAYS = ("", "static", "dynamic")


@cache
def program(way: str) -> torch.export.ExportedProgram:
    torch.manual_seed(0)
    exported = torch.export.export(Net().eval(), X)
    return quantize_program(exported, way) if way else exported


def lowered(rules: PartitionRules, way: str = "", *others: Any, **options: Any) -> Any:
    partitioners = [*others, SteeredPartitioner(XnnpackPartitioner(), rules)]
    return to_edge_transform_and_lower(program(way), partitioner=partitioners, **options)


def verdicts(manager: Any) -> dict[str, Verdict]:
    found: dict[str, Verdict] = {}
    for verdict in manager.verdicts["forward"]:
        if verdict.node not in found or verdict.outcome is NodeOutcome.DELEGATED:
            found[verdict.node] = verdict
    return found


def names(way: str) -> list[str]:
    (found,) = previewed({"forward": program(way)}, None, [XnnpackPartitioner()]).values()
    return [node.name for node in found.program.graph.nodes if node.op == "call_function"]


def test_forced_node_is_taken_whatever_the_user_said_elsewhere() -> None:
    node = "aten_sigmoid_default"
    for rules in (
        PartitionRules(min_nodes=99, force_nodes=(node,)),
        PartitionRules(deny_ops=("aten.sigmoid",), force_nodes=(node,)),
        PartitionRules(allow_ops=("aten.convolution",), force_nodes=("sigmoid",)),
        PartitionRules(max_partitions=1, force_nodes=(node,)),
        PartitionRules(deny_modules=("*",), deny_nodes=("aten_sig*",), force_nodes=("aten_sig*",)),
    ):
        assert verdicts(lowered(rules))[node].outcome is NodeOutcome.DELEGATED


def test_forced_node_that_no_rule_takes_says_so() -> None:
    found = verdicts(lowered(PartitionRules(force_nodes=("aten_cumsum_default",))))
    verdict = found["aten_cumsum_default"]
    assert verdict.outcome is NodeOutcome.NO_RULE
    assert verdict.reason.startswith(f"{NOT_FORCED}: no rule for aten.cumsum.default")


def test_forced_node_goes_to_the_partitioner_that_is_named() -> None:
    everything = ByNode(lambda n: "t" if "sigmoid" in n.name or "softmax" in n.name else None)
    for name, backend in (("xnnpack", "XnnpackBackend"), ("ByNode", "NameBackend"), ("", "")):
        text = f"aten_sigmoid_default={name}" if name else "aten_mul_tensor"
        rules = PartitionRules(force_nodes=(text,))
        found = verdicts(lowered(rules, "", SteeredPartitioner(everything, rules)))
        assert found["aten_sigmoid_default"].backend == (backend or "NameBackend")
        assert found["aten__softmax_default"].backend == "NameBackend"


def test_forced_node_that_a_partitioner_dropped_for_its_size_is_taken() -> None:
    from compiler import (
        CapabilityBasedPartitioner,
        DelegationSpec,
        Partitioner,
        PartitionResult,
        create_op_support,
    )

    class Large(Partitioner):
        delegation_spec = DelegationSpec("NameBackend", [])

        def partition(self, exported_program: Any) -> PartitionResult:
            support = create_op_support(lambda _, n: n.target is ops.edge.aten.sigmoid.default)
            graph = exported_program.graph_module
            made = CapabilityBasedPartitioner(graph, support).propose_partitions()
            tags = {f"t{one.id}": self.delegation_spec for one in made}
            for one in made:
                for node in one.nodes:
                    node.meta["delegation_tag"] = f"t{one.id}"
            return PartitionResult(exported_program, tags)

    node = "aten_sigmoid_default"
    for forced, outcome in (((), NodeOutcome.TOO_SMALL), ((node,), NodeOutcome.DELEGATED)):
        steered = SteeredPartitioner(Large(), PartitionRules(force_nodes=forced))
        manager = to_edge_transform_and_lower(program(""), partitioner=[steered])
        assert verdicts(manager)[node].outcome is outcome


@pytest.mark.parametrize("way", WAYS)
def test_cut_is_between_a_layer_with_what_quantizes_for_it_and_the_rest(way: str) -> None:
    layer = "aten_convolution_default_1"
    before = verdicts(lowered(PartitionRules(cut_before=(layer,)), way))
    relu = "aten_relu_default"
    assert before[layer].partition
    assert before[relu].partition
    assert before[layer].partition != before[relu].partition
    mine = {n for n, v in before.items() if v.partition == before[layer].partition}
    assert len(mine) > 1, "its activation goes along"
    after = verdicts(lowered(PartitionRules(cut_after=(layer,)), way))
    assert after["aten_add_tensor"].partition != after[layer].partition
    assert after["aten_relu_default_1"].partition == after[layer].partition


@pytest.mark.parametrize("way", WAYS)
def test_node_alone_keeps_what_belongs_to_it(way: str) -> None:
    found = verdicts(lowered(PartitionRules(alone_ops=("aten.convolution",)), way))
    layers = ["aten_convolution_default", "aten_convolution_default_1"]
    tags = [found[layer].partition for layer in layers]
    assert len({*tags}) == 2
    for tag, relu in zip(tags, ("aten_relu_default", "aten_relu_default_1"), strict=True):
        inside = {v.operator for v in found.values() if v.partition == tag}
        assert found[relu].partition == tag
        kinds = ("quantized_decomposed.", "torchao.", "aten.convolution", "aten.relu")
        assert all(operator.startswith((*kinds, "getitem")) for operator in inside), inside


def test_rule_turned_off_takes_nothing_and_says_so() -> None:
    found = verdicts(lowered(PartitionRules(deny_rules=("ConvolutionConfig", "Sig*"))))
    off = {n: v.rule for n, v in found.items() if v.outcome is NodeOutcome.VETOED}
    assert off == {
        "aten_convolution_default": "ConvolutionConfig",
        "aten_convolution_default_1": "ConvolutionConfig",
        "aten_sigmoid_default": "SigmoidConfig",
    }
    assert "ConvolutionConfig is disabled" in found["aten_convolution_default"].reason
    assert found["aten_relu_default"].outcome is NodeOutcome.DELEGATED
    anyone = ByNode(lambda _: "t")
    steered = SteeredPartitioner(anyone, PartitionRules(deny_rules=("ByNode",)))
    manager = to_edge_transform_and_lower(program(""), partitioner=steered)
    assert {v.outcome for v in verdicts(manager).values()} == {NodeOutcome.VETOED}


def _random_rules(chance: random.Random, nodes: list[str]) -> PartitionRules:
    def some(most: int) -> tuple[str, ...]:
        return tuple(chance.sample(nodes, chance.randint(0, most)))

    return PartitionRules(
        deny_nodes=some(3),
        force_nodes=some(2),
        cut_before=some(2),
        cut_after=some(2),
        alone_nodes=some(3),
        alone_ops=tuple(chance.sample(["aten.relu", "aten.convolution", "aten.linear"], 1)),
        deny_rules=tuple(
            chance.sample(["AddConfig", "LinearConfig", "ConvolutionConfig", "ReLUConfig"], 1)
        ),
        min_nodes=chance.choice([1, 1, 2]),
        max_partitions=chance.choice([None, 3]),
    )


@pytest.mark.interop
def test_program_after_any_changes_computes_the_same_on_the_stock_runtime(stock: Stock) -> None:
    made: list[tuple[str, bytes]] = []
    for way in WAYS:
        nodes = names(way)
        for seed in range(4):
            rules = _random_rules(random.Random(seed), nodes)
            made.append((f"{way} {seed}", lowered(rules, way).to_executorch().buffer))
    found = stock.run_each([(buffer, X) for _, buffer in made])
    for (label, _), outputs in zip(made, found, strict=True):
        way = label.rpartition(" ")[0]
        wanted = program(way).module()(*X)
        assert not isinstance(outputs, str), (label, outputs)
        assert torch.allclose(outputs[0], wanted, atol=2e-2 if way else 1e-5), label


TYPED: list[tuple[str, Precisions, float, set[str]]] = [
    ("module", Precisions(modules={"head": "float16"}), 1e-3, {"float16"}),
    ("class", Precisions(modules={"Conv2d": "float64"}), 1e-5, {"float64"}),
    ("operator", Precisions(operators={"aten.sigmoid": "float64"}), 1e-5, {"float64"}),
    ("edge node", Precisions(nodes={"aten_mul_tensor": "float16"}), 1e-3, {"float16"}),
    ("exported node", Precisions(nodes={"sigmoid": "bfloat16"}), 1e-2, {"bfloat16"}),
    (
        "inner before outer",
        Precisions(modules={"*": "float64", "second.0": "float32"}),
        1e-5,
        {"float64"},
    ),
]


def _types(manager: Any) -> set[str]:
    values = [n.meta.get("val") for n in manager.exported_program().graph.nodes]
    tensors = [v for v in values if isinstance(v, torch.Tensor) and v.is_floating_point()]
    return {str(v.dtype).removeprefix("torch.") for v in tensors} - {"float32"}


@pytest.mark.interop
def test_parts_in_another_type_run_on_the_stock_runtime(stock: Stock) -> None:
    made: list[tuple[str, float, bytes]] = []
    for label, precisions, tolerance, types in TYPED:
        plain = to_edge_transform_and_lower(program(""), transform_passes=precisions.passes())
        assert _types(plain) == types, label
        taken = lowered(PartitionRules(), transform_passes=precisions.passes())
        made += [(label, tolerance, m.to_executorch().buffer) for m in (plain, taken)]
    found = stock.run_each([(buffer, X) for *_, buffer in made])
    wanted = program("").module()(*X)
    for (label, tolerance, _), outputs in zip(made, found, strict=True):
        assert not isinstance(outputs, str), (label, outputs)
        assert outputs[0].dtype == torch.float32
        assert torch.allclose(outputs[0], wanted, atol=tolerance), label


def test_weights_read_in_another_type_only_are_kept_in_it() -> None:
    passes = Precisions(modules={"head": "float16"}).passes()
    made = to_edge_transform_and_lower(program(""), transform_passes=passes).exported_program()
    held = [*made.state_dict.values(), *made.constants.values()]
    sizes = sorted(tuple(t.shape) for t in held if t.dtype == torch.float16)
    assert sizes == [(5,), (5, 4)] or sizes == [(4, 5), (5,)]
    assert not {"head.weight", "head.bias"} & set(made.state_dict)
    casts = [n for n in made.graph.nodes if "to_dim_order_copy" in n.name]
    assert len(casts) == 2, "in and out of the module, none inside"


def test_type_that_an_operator_has_not_is_one_sentence() -> None:
    with pytest.raises(PrecisionError, match="unknown dtype 'int8' for head; available: float16"):
        Precisions(modules={"head": "int8"})


def test_types_that_fit_nothing_are_named() -> None:
    found = previewed({"forward": program("")})["forward"].program
    precisions = Precisions(
        {"head": "float16", "tail": "float16"}, {"aten.sin": "float64"}, {"mul": "float16"}
    )
    assert precisions.unmatched([found]) == [("modules", "tail"), ("operators", "aten.sin")]


@pytest.mark.parametrize(
    ("how", "layers"),
    [
        (QuantizationModes("none", modules={"first": "static"}), {"conv2d"}),
        (QuantizationModes("none", nodes={"conv2d_1": "static"}), {"conv2d_1"}),
        (QuantizationModes("static", nodes={"conv2d": "none", "linear": "none"}), {"conv2d_1"}),
    ],
)
def test_only_what_is_named_is_quantized(how: QuantizationModes, layers: set[str]) -> None:
    made = quantize_program(program(""), how)
    found = {
        node.name
        for node in made.graph.nodes
        if node.name.startswith(("conv2d", "linear"))
        and "dequantize" in node.all_input_nodes[1].name  # its weight
    }
    assert found == layers
