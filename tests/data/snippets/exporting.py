"""Export and lower: edge, methods by name, passes, backends, composition, and the program."""

import json

import torch
from torch.export import Dim, export

import executorch.exir as exir
from executorch.exir import EdgeCompileConfig, EdgeProgramManager, ExecutorchProgramManager, to_edge
from executorch.exir.backend.backend_api import to_backend, LoweredBackendModule
from executorch.exir.backend.test.backend_with_compiler_demo import BackendWithCompilerDemo
from executorch.exir.backend.test.op_partitioner_demo import AddMulPartitionerDemo
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass
from executorch.runtime import Runtime

numbers = {}


def run(program, inputs, method="forward"):
    loaded = Runtime.get().load_program(program.buffer)
    return loaded.load_method(method).execute(list(inputs))


class Conv(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.relu = torch.nn.ReLU()

    def forward(self, x, constant):
        return self.relu(self.conv(x) + constant)


# One method, to the edge dialect and on
torch.manual_seed(0)
conv, inputs = Conv().eval(), (torch.randn(1, 3, 16, 16), torch.ones(1, 8, 16, 16))
edge: EdgeProgramManager = to_edge(export(conv, inputs))
targets = [str(node.target) for node in edge.exported_program().graph.nodes]
assert any("convolution" in target for target in targets), targets
program: ExecutorchProgramManager = edge.to_executorch()
(output,) = run(program, inputs)
torch.testing.assert_close(output, conv(*inputs), rtol=1e-4, atol=1e-5)
numbers["conv"] = float(output.sum())


# Several methods, out of one dictionary
class Encode(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.linear(x, torch.ones(5, 10))


class Decode(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.linear(x, torch.ones(10, 5)) - 1


methods = {
    "encode": export(Encode(), (torch.ones(1, 10),)),
    "decode": export(Decode(), (torch.ones(1, 5),)),
}
several = to_edge(methods)
assert sorted(several.methods) == ["decode", "encode"]
both = several.to_executorch()
numbers["encode"] = run(both, (torch.ones(1, 10),), "encode")[0].tolist()
numbers["decode"] = run(both, (torch.ones(1, 5),), "decode")[0].tolist()
assert numbers["encode"] == [[10.0] * 5]
assert numbers["decode"] == [[4.0] * 10]


# A pass over all methods, or over one
class AddToSub(ExportPass):
    def call_operator(self, op, args, kwargs, meta):
        if op == exir_ops.edge.aten.add.Tensor:
            op = exir_ops.edge.aten.sub.Tensor
        return super().call_operator(op, args, kwargs, meta)


class Add(torch.nn.Module):
    def forward(self, x, y):
        return x + y


pair = (torch.tensor([5.0, 7.0]), torch.tensor([1.0, 2.0]))
added = to_edge({"first": export(Add(), pair), "second": export(Add(), pair)})
everywhere = added.transform([AddToSub()]).to_executorch()
numbers["transformed"] = [run(everywhere, pair, name)[0].tolist() for name in ("first", "second")]
assert numbers["transformed"] == [[4.0, 5.0], [4.0, 5.0]]
once = to_edge({"first": export(Add(), pair), "second": export(Add(), pair)})
once = once.transform({"first": [AddToSub()]}).to_executorch()
numbers["transformed once"] = [run(once, pair, name)[0].tolist() for name in ("first", "second")]
assert numbers["transformed once"] == [[4.0, 5.0], [6.0, 9.0]]


# A whole module to a backend, alone and inside another
class Sin(torch.nn.Module):
    def forward(self, x):
        return torch.sin(x)


x = torch.linspace(0.0, 1.0, 4)
lowered: LoweredBackendModule = to_backend(
    BackendWithCompilerDemo.__name__, to_edge(export(Sin(), (x,))).exported_program(), []
)
assert lowered.backend_id == "BackendWithCompilerDemo"
numbers["processed"] = len(lowered.processed_bytes) > 0


class Composed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lowered = lowered

    def forward(self, x):
        return self.lowered(x) + 1


composed = exir.to_edge(export(Composed(), (x,)))
called = [str(node.target) for node in composed.exported_program().graph.nodes]
assert any("executorch_call_delegate" in name for name in called), called
numbers["composed"] = len(composed.to_executorch().buffer) > 0


# A part of a module to a backend, by a partitioner
class Mixed(torch.nn.Module):
    def forward(self, a, x, b):
        y = torch.mm(a, x)
        z = y + b
        a = z - a
        y = torch.mm(a, x)
        return y + b


square = (torch.randn(2, 2), torch.randn(2, 2), torch.randn(2, 2))
partitioned = exir.to_edge(export(Mixed(), square)).to_backend(AddMulPartitionerDemo())
calls = [
    node
    for node in partitioned.exported_program().graph.nodes
    if "executorch_call_delegate" in str(node.target)
]
numbers["delegate calls"] = len(calls)
assert numbers["delegate calls"] == 2

# Sizes that change
config = EdgeCompileConfig(_check_ir_validity=False)
batch = Dim("batch", min=1, max=8)
dynamic = torch.export.export(
    Encode(), (torch.ones(2, 10),), dynamic_shapes={"x": {0: batch}}, strict=False
)
dynamic_program = to_edge(dynamic, compile_config=config).to_executorch()
numbers["sizes"] = [
    list(run(dynamic_program, (torch.ones(size, 10),))[0].shape) for size in (1, 5, 8)
]
assert numbers["sizes"] == [[1, 5], [5, 5], [8, 5]]
print(json.dumps(numbers))
