"""Graphs to look at: a program with a box for each partition, as a file for Model Explorer."""

import json
import tempfile
from pathlib import Path

import torch
from torch.export import export

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.devtools.visualization import visualize, visualize_with_clusters
from executorch.exir import to_edge


class Net(torch.nn.Module):
    def forward(self, x):
        return torch.cumsum(torch.sigmoid(x) * 2, 0).exp()


edge = to_edge(export(Net(), (torch.ones(3),)))
lowered = edge.to_backend(XnnpackPartitioner())
path = Path(tempfile.mkdtemp()) / "graph.json"
visualize_with_clusters(lowered.exported_program(), str(path))
text = path.read_text()
assert "cumsum" in text
visualize(edge.exported_program(), no_open_in_browser=True)
print(json.dumps({"nodes": len(json.loads(text)) > 0}))
