"""Values of lifted scalars as the package shows them to its backends."""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses import FakeTensor
from torch.export import ExportedProgram


def show_scalars(program: ExportedProgram, graph: torch.fx.Graph) -> None:
    """Give the placeholders of lifted scalars their values: backends read that of an epsilon.

    Args:
        program: with the constants; not changed unless the graph is its own
        graph: of the program, or a copy; its fake tensors are replaced, not changed
    """
    constants = program.graph_signature.inputs_to_lifted_tensor_constants
    for node in graph.nodes:
        fake = node.meta.get("val")
        real = program.constants.get(constants.get(node.name, ""))
        if isinstance(fake, FakeTensor) and isinstance(real, torch.Tensor) and real.numel() == 1:
            shown: Any = fake.fake_mode.from_tensor(real, static_shapes=True)
            shown.constant = real
            node.meta["val"] = shown
