"""The delegation summary of a program as a string."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from tabulate import tabulate
from torch.export import ExportedProgram

from compiler.dialect.delegate_call import is_lowered_module
from compiler.dialect.ops import EdgeOp


def delegation_table(method: str, program: ExportedProgram) -> str:
    """Return a table of delegated and other calls of each operator of a method."""
    inside, outside = Counter[str](), Counter[str]()
    delegates = 0
    for module in program.graph_module.modules():
        lowered: Any = module
        if is_lowered_module(module):
            delegates += 1
            inside.update(_operators(lowered.original_module.graph))
        elif isinstance(module, torch.fx.GraphModule):
            outside.update(_operators(module.graph))
    rows = [[name, inside[name], outside[name]] for name in sorted({*inside, *outside})]
    rows.append(["Total", inside.total(), outside.total()])
    head = (
        f"Method {method}\n"
        f"Total delegated subgraphs: {delegates}\n"
        f"Number of delegated nodes: {inside.total()}\n"
        f"Number of non-delegated nodes: {outside.total()}\n"
    )
    columns = ["Operator", "Delegated", "Not delegated"]
    return head + tabulate(rows, headers=columns, tablefmt="simple")


def _operators(graph: torch.fx.Graph) -> list[str]:
    return [node.target.__name__ for node in graph.nodes if isinstance(node.target, EdgeOp)]
