"""Partitioners and backends of the executorch package under our rules; run in a process of its own.

Writes the programs, and what was seen of each case.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir._serialize._named_data_store import NamedDataStore
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.test.op_partitioner_demo import AddMulPartitionerDemo
from executorch.exir.backend.utils import (
    WhyNoPartition,
    WhyNoPartitionReporter,
    tag_constant_data,
)
from executorch.exir.dialects._ops import ops as exir_ops
from torch import nn
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from compiler import (
    PartitionRules,
    SteeredPartitioner,
    to_backend,
    to_edge,
    to_edge_transform_and_lower,
)
from compiler.partition.rules import Granularity, TensorRule
from compiler.partition.tags import check_cycles, tag_of

aten: Any = exir_ops.edge.aten


class ForeignNames(BackendDetails):
    """Its payload names operators; weights are blobs by key; sees all methods together."""

    together: list[dict[str, int]] = []  # noqa: RUF012

    @staticmethod
    def preprocess(edge_program: Any, compile_specs: Any) -> PreprocessResult:
        store = NamedDataStore()
        for name, tensor in edge_program.state_dict.items():
            store.add_named_data(name, tensor.detach())
        nodes = [n for n in edge_program.graph.nodes if n.op == "call_function"]
        assert all(n.target in (aten.mul.Tensor, aten.add.Tensor) for n in nodes)
        text = f"{compile_specs[0].value.decode()}: {len(nodes)}"
        return PreprocessResult(text.encode(), {1: (7,)}, store.get_named_data_store_output())

    @classmethod
    def preprocess_multimethod(cls, edge_programs: Any, compile_specs: Any) -> Any:
        cls.together.append({name: len(found) for name, found in edge_programs.items()})
        return super().preprocess_multimethod(edge_programs, compile_specs)


class ForeignRubbish(BackendDetails):
    @staticmethod
    def preprocess(edge_program: Any, compile_specs: Any) -> Any:
        del edge_program, compile_specs
        return PreprocessResult("text")  # pyright: ignore[reportArgumentType]


class AddMul(OperatorSupportBase):
    def is_node_supported(self, submodules: Any, node: torch.fx.Node) -> bool:
        del submodules
        return node.op == "call_function" and node.target in {aten.add.Tensor, aten.mul.Tensor}


class Capable(Partitioner):
    """Built on torch's partitioner; it knows nothing of ours."""

    def __init__(self, backend: str = "ForeignNames") -> None:
        super().__init__()
        self.delegation_spec = DelegationSpec(backend, [CompileSpec("k", b"v")])

    def partition(self, exported_program: Any) -> PartitionResult:
        found = CapabilityBasedPartitioner(
            exported_program.graph_module, AddMul(), allows_single_node_partition=True
        )
        tags: dict[str, DelegationSpec] = {}
        for part in found.propose_partitions():
            tags[f"part{part.id}"] = self.delegation_spec
            for node in part.nodes:
                node.meta["delegation_tag"] = f"part{part.id}"
        tag_constant_data(exported_program)
        return PartitionResult(exported_program, tags)


class Changing(Capable):
    def partition(self, exported_program: Any) -> PartitionResult:
        last = [n for n in exported_program.graph.nodes if n.op == "call_function"][-1]
        last.target = aten.exp.default
        return PartitionResult(exported_program, {})


class OnInput(Capable):
    def partition(self, exported_program: Any) -> PartitionResult:
        for node in exported_program.graph.nodes:
            if node.name == "x":
                node.meta["delegation_tag"] = "part0"
        return PartitionResult(exported_program, {"part0": self.delegation_spec})


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.head = nn.Linear(4, 5)
        self.scale = nn.Parameter(torch.rand(4, 1, 1))
        self.seen: torch.Tensor
        self.register_buffer("seen", torch.zeros(5))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.relu(self.conv(x)) * self.scale + 1
        z = torch.cumsum(y, 3) * y
        out = self.head((z + y).mean((2, 3))).softmax(-1)
        self.seen.add_(out.sum(0))
        return out, self.seen * 2


RULES: dict[str, PartitionRules | None] = {
    "bare": None,
    "none": PartitionRules(),
    "deny_ops": PartitionRules(deny_ops=("aten.mul.Tensor", "aten.addmm.default")),
    "allow_ops": PartitionRules(allow_ops=("aten.convolution", "aten.mul")),
    "deny_nodes": PartitionRules(deny_nodes=("aten_mul_tensor",)),
    "deny_handles": PartitionRules(deny_handles=(2, 3)),
    "deny_modules": PartitionRules(deny_modules=("head", "Conv2d")),
    "tensors": PartitionRules(deny_tensors=(TensorRule(max_rank=2, dtypes=("float32",)),)),
    "min_nodes": PartitionRules(min_nodes=3),
    "max_partitions": PartitionRules(max_partitions=1),
    "module": PartitionRules(granularity=Granularity.MODULE),
    "operator": PartitionRules(granularity=Granularity.OPERATOR),
    "cut": PartitionRules(cut_edges=(("aten_mul_tensor", "aten_add_tensor"),)),
    "priority": PartitionRules(priority=2),
}


def steered(inner: Any, rules: PartitionRules | None) -> Any:
    return inner if rules is None else SteeredPartitioner(inner, rules)


def seen(edge: Any) -> dict[str, Any]:
    graph = edge.exported_program("forward").graph
    calls = [n for n in graph.nodes if n.op == "call_function" and "getitem" not in n.name]
    check_cycles(graph, {n: tag for n in calls if (tag := tag_of(n))})
    left = [n.name for n in calls if "delegate" not in n.name]
    verdicts = edge.verdicts["forward"]
    return {
        "delegates": len(calls) - len(left),
        "unjudged": sorted({*left} - {v.node for v in verdicts}),
        "outcomes": sorted({v.outcome.value for v in verdicts}),
        "delegated": sorted(v.operator for v in verdicts if v.outcome.value == "delegated"),
    }


class Refused(nn.Module):
    """Nothing of it is taken by the package's XNNPACK partitioner."""

    def forward(self, x: torch.Tensor, w: torch.Tensor) -> Any:
        pooled = torch.nn.functional.avg_pool2d(x, 2, ceil_mode=True)
        return pooled, x.softmax(0), torch.nn.functional.linear(x, w)


class NotedBackend(BackendDetails):
    """Its payload is what the partitioner has noted of the nodes."""

    @staticmethod
    def preprocess(edge_program: Any, compile_specs: Any) -> PreprocessResult:
        del compile_specs
        calls = [n for n in edge_program.graph.nodes if n.op == "call_function"]
        return PreprocessResult(" ".join(n.meta["noted"] for n in calls).encode())


class Reporting(Partitioner):
    """Takes softmax, and tells the package's reporter why nothing else."""

    def partition(self, exported_program: Any) -> PartitionResult:
        reporter = WhyNoPartitionReporter()
        for node in exported_program.graph.nodes:
            if node.target is aten._softmax.default:
                node.meta |= {"delegation_tag": "t", "noted": f"dim {node.args[1]}"}
            elif node.op == "call_function":
                reporter.report_reject(node, f"{len(node.args)} arguments are too many")
        return PartitionResult(exported_program, {"t": DelegationSpec("NotedBackend", [])})


class Mixed(nn.Module):
    """Inputs of integers, a size, a written buffer, results of several kinds, a branch."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: torch.Tensor
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x: torch.Tensor, places: torch.Tensor) -> Any:
        self.seen.add_(x)
        high = torch.cond(x.sum() > 0, lambda v: v + 1, lambda v: v * 2, (x,))
        return (x + 1) * 2, places + 1, x.sum(), 5, high


class Reading(Capable):
    """Looks at the value of every node, the output among them, as Arm's does; its backend too."""

    asked: list[list[str]] = []  # noqa: RUF012

    def partition(self, exported_program: Any) -> PartitionResult:
        self.asked.append(values_in(exported_program.graph_module))
        return super().partition(exported_program)


class ReadingBackend(BackendDetails):
    asked: list[list[str]] = []  # noqa: RUF012

    @staticmethod
    def preprocess(edge_program: Any, compile_specs: Any) -> PreprocessResult:
        del compile_specs
        ReadingBackend.asked.append(values_in(edge_program.graph_module))
        return PreprocessResult(b"")


def values_in(module: Any) -> list[str]:
    """Return element type of each value of each node, and of the nodes of bodies."""
    found: list[str] = []
    for node in module.graph.nodes:
        if node.op == "get_attr":
            continue
        for value in torch.utils._pytree.tree_leaves(node.meta["val"]):
            found.append(f"{node.op} {getattr(value, 'dtype', value)}")
    inner = [m for _, m in module.named_children() if isinstance(m, torch.fx.GraphModule)]
    return [*found, *(text for child in inner for text in values_in(child))]


def read_values() -> dict[str, Any]:
    """Return what a partitioner sees in each flow, and its backend."""
    given = (torch.randn(3), torch.ones(3, dtype=torch.int64))
    program = torch.export.export(Mixed(), given)
    make = [Reading("ReadingBackend"), Reading("ReadingBackend")]
    to_edge_transform_and_lower(program, partitioner=make)
    to_edge_transform_and_lower(program, partitioner=[steered(make[0], PartitionRules())])
    to_edge(program).to_backend(make[0])
    to_edge(program).to_backend({"forward": make[0]})
    to_backend(to_edge(program).exported_program(), make[0])
    return {"partition": Reading.asked, "backend": ReadingBackend.asked}


def reasons(partitioner: Any) -> dict[str, Any]:
    """Return rule and reason of what stays outside, by operator, and the payloads."""
    given = (torch.randn(1, 2, 5, 5), torch.randn(3, 5))
    edge = to_edge_transform_and_lower(
        torch.export.export(Refused(), given), partitioner=[partitioner]
    )
    children = edge.exported_program().graph_module.children()
    left = [v for v in edge.verdicts["forward"] if v.outcome.value != "delegated"]
    return {
        **{v.operator: [v.rule, v.reason] for v in left},
        "payloads": [bytes(child.processed_bytes).decode("latin1") for child in children],
    }


def told(make: Any) -> str:
    try:
        make()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is shown
        return f"{type(error).__name__}: {error}"
    return "nothing"


def main(folder: Path) -> None:
    torch.manual_seed(0)
    x = (torch.randn(2, 3, 8, 8),)
    net = Net().eval()
    program = torch.export.export(net, x)
    found: dict[str, Any] = {}

    def lower(partitioner: Any, given: Any = program) -> Any:
        return to_edge_transform_and_lower(given, partitioner=partitioner)

    for name, rules in RULES.items():
        for kind in (XnnpackPartitioner, Capable):
            edge = lower([steered(kind(), rules)])
            found[f"{kind.__name__} {name}"] = seen(edge)
            if kind is XnnpackPartitioner:
                edge.to_executorch().save(str(folder / f"{name}.pte"))
    lower([]).to_executorch().save(str(folder / "portable.pte"))
    found["demo"] = seen(lower([steered(AddMulPartitionerDemo(), PartitionRules(min_nodes=1))]))
    ForeignNames.together.clear()
    both = {"forward": program, "other": torch.export.export(net, x)}
    many = lower({"forward": [Capable()], "other": [steered(Capable(), RULES["cut"])]}, both)
    data = many.to_executorch().executorch_program.named_data_map()
    found["methods"] = {"together": ForeignNames.together, "keys": sorted(data)}
    for partitioner in (Changing(), OnInput(), Capable("ForeignRubbish"), Capable("Nowhere")):
        name = f"{type(partitioner).__name__} {partitioner.delegation_spec.backend_id}"
        both_ways = (partitioner, steered(partitioner, RULES["none"]))
        found[name] = [told(lambda p=p: lower([p])) for p in both_ways]
    for partitioner in (XnnpackPartitioner(), Reporting()):
        both_ways = (partitioner, steered(partitioner, RULES["none"]))
        found[f"reasons {type(partitioner).__name__}"] = [reasons(one) for one in both_ways]
    doors: tuple[Any, ...] = (WhyNoPartition.__call__, WhyNoPartitionReporter.report_reject)
    found["homes"] = [door.__module__ for door in doors]
    found["values"] = read_values()
    (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
