"""The demonstration backend of the ExecuTorch documents, whose payload is a list of operators.

The payload is ``COUNTversion:0#`` followed for each operator by
``op:demo::NAME, numel:N, dtype:D<debug_handle>H#``.
"""

from __future__ import annotations

from typing import Any, final

import torch
from torch.export import ExportedProgram
from torch.fx.passes.operator_support import OperatorSupportBase

from compiler.dialect.ops import edge_op
from compiler.interface.backend import BackendDetails, CompileSpec, PreprocessResult
from compiler.interface.partitioner import (
    TAG,
    DelegationSpec,
    Partitioner,
    PartitionResult,
)
from compiler.partition.patterns import generate_pattern_op_partitions
from compiler.partition.support import OperatorSupport
from compiler.partition.tags import tag_constant_data
from compiler.untyped import aten

_SUPPORTED = frozenset(
    edge_op(op)
    for op in (
        aten.sin.default,
        aten.mm.default,
        aten.add.Tensor,
        aten.mul.Tensor,
        aten.linear.default,
        aten.scaled_dot_product_attention.default,
        aten.upsample_nearest2d.vec,
    )
)


@final
class BackendWithCompilerDemo(BackendDetails):
    """Accepts ``sin``, ``mm``, ``add`` and a few more operators; its payload is their names."""

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        """Return the operators as a string, with an identity debug handle map.

        Raises: RuntimeError naming an unsupported operator
        """
        del compile_specs
        calls = [node for node in edge_program.graph.nodes if node.op == "call_function"]
        for node in calls:
            if node.target not in _SUPPORTED:
                name = getattr(node.target, "__name__", node.target)
                raise RuntimeError(
                    f"call_function {name} is not supported in backend BackendWithCompilerDemo"
                )
        text = f"{len(calls)}version:0#" + "".join(map(_line, calls))
        handles = {node.meta["debug_handle"]: (node.meta["debug_handle"],) for node in calls}
        return PreprocessResult(text.encode(), handles)


def _line(node: torch.fx.Node) -> str:
    target: Any = node.target
    value: torch.Tensor = node.meta["val"]
    handle = node.meta.get("debug_handle", -1)
    what = f"op:demo::{target.__name__}, numel:{value.numel()}, dtype:{value.dtype}"
    return f"{what}<debug_handle>{handle}#"


@final
class ExecutorBackend(BackendDetails):
    """The demonstration of entire graphs: its payload is a program file of the partition."""

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        """Return the program compiled for the portable kernels."""
        from compiler.pipeline.edge_manager import (
            EdgeProgramManager,  # which lowers to backends itself
        )

        if any(spec.key == "external_constants" for spec in compile_specs):
            raise RuntimeError("ExecutorBackend keeps its constants in its payload")
        return PreprocessResult(EdgeProgramManager(edge_program).to_executorch().buffer)


class DemoPartitioner(Partitioner):
    """Delegates the nodes that a support object accepts to a backend."""

    def __init__(
        self,
        support: OperatorSupportBase,
        spec: DelegationSpec,
        *,
        constants: bool = False,
    ) -> None:
        """Create the partitioner of a backend.

        Args:
            support: decides which nodes
            spec: backend and settings
            constants: whether weights are delegated as well
        """
        super().__init__()
        self.op_support = support
        self.delegation_spec = spec
        self._constants = constants

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag the largest partitions of supported nodes."""
        tags: dict[str, DelegationSpec] = {}
        self._tag(exported_program.graph_module, tags)
        if self._constants:
            tag_constant_data(exported_program)
        return PartitionResult(exported_program, tags)

    def _tag(self, module: torch.fx.GraphModule, tags: dict[str, DelegationSpec]) -> None:
        for partition in generate_pattern_op_partitions(module, op_support=self.op_support):
            tag = f"tag{len(tags)}"
            tags[tag] = self.delegation_spec
            for node in partition.nodes:
                node.meta[TAG] = tag
        for _, child in module.named_children():
            if isinstance(child, torch.fx.GraphModule):
                self._tag(child, tags)


@final
class AddMulPartitionerDemo(DemoPartitioner):
    """Delegates ``add`` and ``mm``, which the documentation calls ``mul``."""

    def __init__(self) -> None:
        operators = {edge_op(op): None for op in (aten.add.Tensor, aten.mm.default)}
        spec = DelegationSpec(BackendWithCompilerDemo.__name__, [CompileSpec("max_value", b"\x04")])
        super().__init__(OperatorSupport(operators), spec)


@final
class AllNodesPartitionerDemo(DemoPartitioner):
    """Delegates every call with its weights, to demonstrate delegation of entire graphs."""

    def __init__(self) -> None:
        spec = DelegationSpec(ExecutorBackend.__name__, [])
        super().__init__(_Everything(), spec, constants=True)


class _Everything(OperatorSupportBase):
    def is_node_supported(self, submodules: Any, node: torch.fx.Node) -> bool:  # noqa: ANN401
        del submodules
        return node.op == "call_function"
