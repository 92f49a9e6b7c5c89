"""A backend in one file: a chain of sines as ``TOY0`` and their number.

Its traits are one entry; everything else is found by the dotted names in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import torch
from torch.export import ExportedProgram
from torch.fx.passes.operator_support import OperatorSupportBase

from compiler.dialect.ops import edge_op
from compiler.interface.backend import BackendDetails, CompileSpec, PreprocessResult
from compiler.interface.partitioner import TAG, DelegationSpec, Partitioner, PartitionResult
from compiler.partition.patterns import generate_pattern_op_partitions
from runtime.delegates.interface import (
    BackendExecutionContext,
    BackendInitContext,
    BackendInterface,
)
from schema.backends import Backend, PartitionerTraits
from schema.graph import Argument, Graph, GraphNode, GraphValue, NodeKind
from schema.payloads import Part, Payload
from schema.payloads.model import PayloadSource

MARK = b"TOY0"
_HERE = __name__
TRAITS = Backend(
    "ToyBackend",
    "TOY",
    colour=3,
    decoder=f"{_HERE}:decode",
    marks=((0, MARK),),
    partitioners=(PartitionerTraits("toy", f"{_HERE}:ToyPartitioner", "sines, for a test"),),
    executor=f"{_HERE}:ToyExecutor",
    bytes_read_past_end=16,
    start_times_synthesized=True,
)


def decode(source: PayloadSource) -> Payload:
    """Return the chain as a graph."""
    count = source.data[4]
    values = {f"v{i}": GraphValue(f"v{i}") for i in range(count + 1)}
    nodes = tuple(
        GraphNode(
            f"sin{i}", NodeKind.CALL, "Sine", (Argument("x", (f"v{i}",)),), outputs=(f"v{i + 1}",)
        )
        for i in range(count)
    )
    return Payload(
        source.backend_id,
        "TOY0",
        len(source.data),
        Graph("chain", nodes, values, ("v0",), (f"v{count}",)),
        parts=(Part("chain", "code", 0, len(source.data)),),
    )


class _Sines(OperatorSupportBase):
    def is_node_supported(self, submodules: Any, node: torch.fx.Node) -> bool:
        return node.target == edge_op(torch.ops.aten.sin.default)


@final
class ToyBackend(BackendDetails):
    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        calls = [node for node in edge_program.graph.nodes if node.op == "call_function"]
        handles = {i: (node.meta["debug_handle"],) for i, node in enumerate(calls)}
        return PreprocessResult(MARK + bytes([len(calls)]), handles)


@final
class ToyPartitioner(Partitioner):
    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        specs: dict[str, DelegationSpec] = {}
        found = generate_pattern_op_partitions(exported_program.graph_module, op_support=_Sines())
        for partition in found:
            specs[f"toy{len(specs)}"] = DelegationSpec(TRAITS.id, [])
            for node in partition.nodes:
                node.meta[TAG] = f"toy{len(specs) - 1}"
        return PartitionResult(exported_program, specs)


class ToyExecutor(BackendInterface):
    def init(
        self, context: BackendInitContext, processed: memoryview, compile_specs: Mapping[str, bytes]
    ) -> int:
        return processed[4]

    def execute(self, context: BackendExecutionContext, handle: int, args: Sequence[Any]) -> None:
        value = args[0]
        for identity in range(handle):
            started = context.tracer.start()
            value = torch.sin(value)
            context.tracer.end(identity, started)
        context.store(args[1], value)
