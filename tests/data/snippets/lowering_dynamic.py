"""Model export and lowering: sizes that change, XNNPACK, and a run from a file."""

import json
import tempfile
from pathlib import Path

import torch
from torch.export import Dim, export

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Program, Runtime, Verification


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.seq = torch.nn.Sequential(
            torch.nn.Conv2d(1, 8, 3),
            torch.nn.ReLU(),
            torch.nn.Conv2d(8, 16, 3),
            torch.nn.ReLU(),
            torch.nn.AdaptiveAvgPool2d((1, 1)),
        )
        self.linear = torch.nn.Linear(16, 10)

    def forward(self, x):
        y = self.seq(x)
        y = torch.flatten(y, 1)
        return self.linear(y)


numbers = {}
torch.manual_seed(1)
model = Model().eval()
inputs = (torch.randn(1, 1, 16, 16),)
dynamic_shapes = {"x": {2: Dim("h", min=16, max=1024), 3: Dim("w", min=16, max=1024)}}
exported_program = export(model, inputs, dynamic_shapes=dynamic_shapes)
executorch_program = to_edge_transform_and_lower(
    exported_program, partitioner=[XnnpackPartitioner()]
).to_executorch()

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.pte"
    with open(path, "wb") as file:
        file.write(executorch_program.buffer)
    runtime = Runtime.get()
    program: Program = runtime.load_program(path, verification=Verification.Minimal)
    method = program.load_method("forward")
    for size in ((16, 16), (17, 40), (64, 20)):
        x = torch.randn(1, 1, *size, generator=torch.Generator().manual_seed(sum(size)))
        output = method.execute([x])[0]
        torch.testing.assert_close(output, model(x), rtol=1e-3, atol=1e-4)
        numbers[str(size)] = output.flatten().tolist()
print(json.dumps(numbers))
