"""Writes the records of this folder with stock ExecuTorch 1.5.1.

Run from tests/data, so that source paths stay relative:  python records/recipe.py records
"""

import copy
import os
import site
import sys
from pathlib import Path

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.devtools import generate_etrecord
from executorch.exir import to_edge, to_edge_transform_and_lower
from torch.export import export

HERE = os.getcwd() + os.sep
PACKAGES = os.path.dirname(site.getsitepackages()[0]) + os.sep


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = torch.nn.LSTM(4, 6, batch_first=True)
        self.head = torch.nn.Linear(6, 2)

    def forward(self, x):
        y, (h, _) = self.cell(x)
        return self.head(y), h


class ManyKinds(torch.nn.Module):
    """Several outputs, unused outputs, constants among the inputs, buffers of both kinds, bf16."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(8)
        self.register_buffer("count", torch.zeros(2))
        self.register_buffer("bias", torch.ones(8), persistent=False)
        self.weight = torch.nn.Parameter(torch.randn(8, 8).to(torch.bfloat16))

    def forward(self, x, n: int = 3, absent=None):
        self.count.add_(1)
        a, b, c = torch.split(self.norm(x), [2, 3, 3], dim=-1)
        values, _ = torch.topk(x, 3)
        largest, _ = x.max(0)
        z = (x.to(torch.bfloat16) @ self.weight).float()
        total = b.sum() + n
        return {"a": a + 1, "c": c, "v": values, "m": largest, "z": z + self.bias, "q": total}


class TwoOutputs(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.second = torch.nn.Linear(4, 4)

    def forward(self, x):
        a = torch.relu(self.first(x))
        return a, self.second(a), torch.cumsum(a, 0)


class Branches(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, p, x):
        def inner(a):
            return torch.cond(
                a.sum().to(torch.bool),
                lambda b: (b.sin(), b * b),
                lambda b: (b.cos(), b.exp()),
                (a,),
            )[:1]

        return torch.cond(p, inner, lambda a: (a.neg(),), (self.layer(x),))[0]


def exported(module, inputs):
    program = export(module.eval(), inputs)
    graphs = [m.graph for m in program.graph_module.modules() if hasattr(m, "graph")]
    for node in (node for graph in graphs for node in graph.nodes):
        trace = node.meta.get("stack_trace")
        if trace:
            node.meta["stack_trace"] = trace.replace(HERE, "").replace(PACKAGES, "")
    return program


def many_kinds(path):
    x = torch.randn(4, 8)
    program = exported(ManyKinds(), (x, 3, None))
    manager = to_edge_transform_and_lower(program, generate_etrecord=True).to_executorch()
    record = manager.get_etrecord()
    record.update_representative_inputs([x])
    record.update_reference_outputs([[torch.randn(2, 3).t(), torch.ones(2, dtype=torch.int64)]])
    record.save(path)


def mutated(path):
    """The edge manager was not copied before to_executorch changed it."""
    edge = to_edge(exported(Recurrent(), (torch.randn(1, 3, 4),)))
    generate_etrecord(path, edge, edge.to_executorch())


def lowered(path):
    """Recorded after lowering: the record holds the delegate and the graph it was made from."""
    program = exported(TwoOutputs(), (torch.randn(2, 4),))
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    kept = copy.deepcopy(edge)
    generate_etrecord(path, kept, edge.to_executorch(), exported_program=program)


def branches(path):
    program = exported(Branches(), (torch.tensor(True), torch.randn(2, 4)))
    manager = to_edge(program, generate_etrecord=True).to_executorch()
    manager.get_etrecord().save(path)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for make in (many_kinds, mutated, lowered, branches):
        make(str(Path(sys.argv[1]) / f"{make.__name__}.etrecord"))
