"""Configurations and passes for XNNPACK under the names of `executorch.backends.xnnpack`."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.compat.graphs import transform
from compiler.dialect.ops import edge_op
from compiler.edge.config import EdgeCompileConfig
from compiler.emit.config import ExecutorchBackendConfig
from compiler.passes.base import PassBase, PassResult, PassType
from compiler.untyped import aten

_EXPAND = edge_op(aten.expand_copy.default)


class RemoveNoopExpandCopyPass(PassBase):
    """Removes `expand_copy` to the shape that its input has already."""

    def call(self, graph_module: torch.fx.GraphModule) -> Any:  # noqa: ANN401
        """Change a graph module in place."""
        found = [node for node in graph_module.graph.nodes if _is_noop_expand(node)]
        for node in found:
            node.replace_all_uses_with(node.args[0])
            graph_module.graph.erase_node(node)
        if found:
            graph_module.recompile()
        return PassResult(graph_module, bool(found))


def _is_noop_expand(node: torch.fx.Node) -> bool:
    given: Any = node.args[0] if node.args else None
    if node.target is not _EXPAND or not isinstance(given, torch.fx.Node):
        return False
    before, after = given.meta.get("val"), node.meta.get("val")
    if not isinstance(before, torch.Tensor) or not isinstance(after, torch.Tensor):
        return False
    return tuple(before.shape) == tuple(after.shape)


def get_xnnpack_edge_compile_config(skip_dim_order: bool = False) -> EdgeCompileConfig:
    """Return the configuration of programs that are lowered for XNNPACK: no check of operators."""
    return EdgeCompileConfig(_check_ir_validity=False, _skip_dim_order=skip_dim_order)


def get_xnnpack_executorch_backend_config(
    additional_passes: Sequence[PassType] | None = None,
) -> ExecutorchBackendConfig:
    """Return the configuration of emission; payloads are in segments.

    Args:
        additional_passes: run before memory is planned
    """
    return ExecutorchBackendConfig(passes=[*(additional_passes or ())])


def get_transform_passes(additional_passes: Sequence[PassType] | None = None) -> list[PassType]:
    """Return the passes before partitioning, for `transform_passes`.

    Args:
        additional_passes: run after them
    """
    return [RemoveNoopExpandCopyPass(), *(additional_passes or ())]


class XNNPACKPassManager:
    """Runs passes given as classes over a program.

    The payload writer accepts a partition as lowered: it folds, fuses and reorders while writing.
    So
    it needs no passes, and the default list is only
    `RemoveNoopExpandCopyPass`.

    Args:
        exported_program: an edge program
        passes: classes; a constructor with a required argument gets the program
    """

    def __init__(
        self, exported_program: ExportedProgram, passes: Sequence[type[Any]] | None = None
    ) -> None:
        self.exported_program = exported_program
        self.passes = [*(passes or (RemoveNoopExpandCopyPass,))]

    def transform(self) -> ExportedProgram:
        """Return the program after all passes; the given one is not changed.

        Raises: PassError for a pass that fails
        """
        program = self.exported_program
        for kind in self.passes:
            requested = inspect.signature(kind).parameters.values()
            needs = any(
                one.default is one.empty and one.kind < one.VAR_POSITIONAL for one in requested
            )
            program = transform(program, kind(program) if needs else kind())
        return program
