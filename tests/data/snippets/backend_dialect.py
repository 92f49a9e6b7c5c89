"""The backend dialect: a pattern becomes one operator of the backend's own."""

import json

import torch
from torch.export import export
from torch.library import impl, Library

from executorch.exir import to_edge
from executorch.exir.dialects._ops import bind_pattern_to_op, ops
from executorch.exir.passes import EdgeToBackendOpsPass

numbers = {}
library = Library("snippet_backend", "DEF")


def pattern(x, y):
    return torch.ops.aten.relu.default(torch.ops.aten.add.Tensor(x, y))


@bind_pattern_to_op(library, "add_relu(Tensor x, Tensor y) -> Tensor")
def add_relu(x, y):
    return pattern(x, y)


ones = torch.ones(2, 3)
torch.testing.assert_close(torch.ops.snippet_backend.add_relu(-2 * ones, ones), torch.zeros(2, 3))
numbers["called"] = torch.ops.snippet_backend.add_relu(ones, 2 * ones).tolist()


class Net(torch.nn.Module):
    def forward(self, x, y):
        return torch.relu(torch.add(x, y)) * 2


program = to_edge(export(Net(), (ones, ones))).transform([EdgeToBackendOpsPass()])
targets = [
    str(node.target.__name__)
    for node in program.exported_program().graph.nodes
    if node.op == "call_function" and "aten" in str(node.target.__name__)
]
assert targets == ["aten.add.Tensor", "aten.relu.default", "aten.mul.Tensor"], targets
numbers["operators"] = len(targets)
assert ops.backend.snippet_backend.add_relu.default is not None
print(json.dumps(numbers))
