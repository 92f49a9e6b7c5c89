"""Why nodes are not delegated: the partitioner says so in its logger."""

import io
import json
import logging

import torch
from torch.export import export

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower

lines = io.StringIO()
logger = logging.getLogger("executorch.backends.xnnpack.partition")
logger.setLevel(logging.DEBUG)
logger.addHandler(logging.StreamHandler(lines))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        return torch.cumsum(
            torch.nn.functional.conv3d(self.linear(x), torch.ones(1, 1, 1, 1, 1)), 1
        )


inputs = (torch.randn(1, 1, 2, 2, 4),)
to_edge_transform_and_lower(export(Net(), inputs), partitioner=[XnnpackPartitioner()])
said = lines.getvalue()
assert "convolution" in said, said
print(json.dumps({"said": len(said) > 0}))
