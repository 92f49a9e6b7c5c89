"""Custom passes: one operator for one, several for one, a manager with checks, matching, partitions."""

import json

import torch
from torch.export import export
from torch.fx import GraphModule
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase
from torch.fx.passes.utils.matcher_utils import SubgraphMatcher

from executorch import exir
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass, PassResult
from executorch.exir.pass_manager import PassManager
from executorch.runtime import Runtime

numbers = {}


def values(edge, inputs):
    program = Runtime.get().load_program(edge.to_executorch().buffer)
    return program.load_method("forward").execute(list(inputs))[0].tolist()


class Both(torch.nn.Module):
    def forward(self, x, y):
        return torch.add(x, y) * y


pair = (torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0]))


class ReplaceAddWithSub(ExportPass):
    """One operator for one."""

    def call_operator(self, op, args, kwargs, meta):
        if op != exir_ops.edge.aten.add.Tensor:
            return super().call_operator(op, args, kwargs, meta)
        return super().call_operator(exir_ops.edge.aten.sub.Tensor, args, kwargs, meta)


edge = exir.to_edge(export(Both(), pair)).transform([ReplaceAddWithSub()])
numbers["one to one"] = values(edge, pair)
assert numbers["one to one"] == [-6.0, -15.0]


class ReplaceMulWithTwo(ExportPass):
    """Two operators for one."""

    def call_operator(self, op, args, kwargs, meta):
        if op != exir_ops.edge.aten.mul.Tensor:
            return super().call_operator(op, args, kwargs, meta)
        product = super().call_operator(op, args, {}, meta)
        return super().call_operator(exir_ops.edge.aten.add.Tensor, (product, product), {}, meta)


edge = exir.to_edge(export(Both(), pair)).transform([ReplaceMulWithTwo()])
numbers["one to two"] = values(edge, pair)
assert numbers["one to two"] == [24.0, 70.0]


def add_to_div(graph_module: GraphModule) -> PassResult:
    """A pass that is a function and edits the graph."""
    changed = False
    for node in graph_module.graph.nodes:
        if node.target == exir_ops.edge.aten.add.Tensor:
            node.target = exir_ops.edge.aten.div.Tensor
            changed = True
    graph_module.recompile()
    return PassResult(graph_module, changed)


checked = []


def no_relu(graph_module: GraphModule) -> None:
    checked.append(len(graph_module.graph.nodes))
    for node in graph_module.graph.nodes:
        assert node.target != exir_ops.edge.aten.relu.default


graph_module = exir.to_edge(export(Both(), pair)).exported_program().graph_module
manager = PassManager(passes=[add_to_div, ReplaceAddWithSub()], run_checks_after_each_pass=True)
manager.add_checks(no_relu)
result = manager(graph_module)
assert result.modified
assert len(checked) >= 2
managed = [node.target for node in result.graph_module.graph.nodes]
numbers["managed"] = [
    op in managed for op in (exir_ops.edge.aten.div.Tensor, exir_ops.edge.aten.add.Tensor)
]
assert numbers["managed"] == [True, False]


class LinearAct(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x):
        return torch.relu(torch.relu(self.linear(x)) + self.linear(x))


large = exir.to_edge(export(LinearAct(), (torch.ones(3, 3),))).exported_program().graph_module


class Pattern(torch.nn.Module):
    def forward(self, x, weight, bias):
        return torch.ops.aten.addmm.default(bias, x, torch.ops.aten.permute.default(weight, [1, 0]))


matched = torch.export.export(Pattern(), (torch.ones(3, 3), torch.ones(3, 3), torch.ones(3)))
pattern = exir.to_edge(matched).exported_program().graph_module.graph
matches = SubgraphMatcher(pattern, ignore_literals=True).match(large.graph)
numbers["matches"] = len(matches)
assert numbers["matches"] == 2


class AddMulSupport(OperatorSupportBase):
    def is_node_supported(self, submodules, node):
        return node.op == "call_function" and node.target in (
            exir_ops.edge.aten.add.Tensor,
            exir_ops.edge.aten.mul.Tensor,
        )


graph_module = exir.to_edge(export(Both(), pair)).exported_program().graph_module
partitions = CapabilityBasedPartitioner(
    graph_module, AddMulSupport(), allows_single_node_partition=True
).propose_partitions()
numbers["partitions"] = [len(one.nodes) for one in partitions]
assert numbers["partitions"] == [2]
print(json.dumps(numbers))
