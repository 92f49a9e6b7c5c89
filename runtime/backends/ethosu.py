"""Command streams, which only the hardware runs: the graph that they were compiled from runs here.

It is the TOSA graph that the compiler has kept in the record, bit exact to the hardware's
arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping

from typing_extensions import override

from runtime.backends.graph import GraphBackend
from runtime.backends.graph.engine import GraphEngine
from runtime.backends.tosa import TosaBackend
from runtime.backends.tosa.control import tosa_engine
from runtime.delegates.errors import DelegateError
from runtime.delegates.interface import BackendInitContext
from runtime.errors import ErrorCode
from schema.payloads.ethosu.executed import executed_graph

_WHY = (
    "a command stream runs on its hardware only, and no record has the TOSA graph of it "
    "(ETScope's compiler keeps it)"
)
_REMEDY = (
    "Open the program together with the record of its compile, or compile it by ETScope: "
    "`etscope compile SOURCE --partitioner ethos-u`."
)


class EthosUBackend(GraphBackend):
    """Runs the TOSA graphs that command streams were compiled from."""

    id = "EthosUBackend"
    table = TosaBackend.table

    @override
    def init(
        self,
        context: BackendInitContext,
        processed: memoryview,
        compile_specs: Mapping[str, bytes],
    ) -> GraphEngine:
        """Return the TOSA graph of a payload, ready to run.

        Raises: DelegateError where the record has none, or naming unknown operators
        """
        del processed
        payload = executed_graph(context.kept, tuple(compile_specs.items()))
        if payload is None:
            code, partition = ErrorCode.NotSupported, context.partition
            raise DelegateError(code, _WHY, partition=partition, remedy=_REMEDY)
        return tosa_engine(payload, self.table, context.partition)
