"""What the stock tool makes once a process, when it lowers for the first time: seconds of graphs.

Imported by the process that others are forked from, which then have the patterns of the XNNPACK
partitioner and the tables of operators. Two functions of torch that repeat themselves for each
graph are spared the repetition: a third of the time of a small program.
"""

from __future__ import annotations

import typing
import warnings
from typing import Any

import torch
import torch._export.utils
import torch._ops
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower

_INPUTS = (torch.ones(1, 1, 4, 4),)
_operators: Any = torch._ops
_utilities: Any = torch._export.utils
_every = _utilities._materialize_cpp_cia_ops
_seen: list[str] = []


def _materialize_new() -> None:
    """Look up composite operators, unless those registered are the ones looked up before."""
    found = torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd")
    if found != _seen:
        _every()
        _seen[:] = found


_utilities._materialize_cpp_cia_ops = _materialize_new
_operators.Callable = typing.Callable  # of annotations inside of functions: this one is cached

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    _exported = torch.export.export(torch.nn.Conv2d(1, 1, 2).eval(), _INPUTS)
    to_edge_transform_and_lower(_exported, partitioner=[XnnpackPartitioner()]).to_executorch()
