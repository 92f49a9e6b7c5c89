"""Emulates a backend: runs the recorded graph that a partition was lowered from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch

from runtime.delegates.interface import (
    BackendExecutionContext,
    BackendInitContext,
    BackendInterface,
    Measurement,
)
from runtime.emulation.graph import Subgraph
from runtime.errors import ErrorCode, ExecutionError
from schema import etdump
from schema.graph import GraphNode

EMULATED = "emulated"


class EmulatedBackend(BackendInterface):
    """Runs recorded graphs; its handles come from `Emulation`, not from payloads.

    Args:
        why: predicate of a sentence whose subject is the backend's name: why it does not run the
            payload
    """

    def __init__(self, why: str = "is not available") -> None:
        self._why = why

    def init(
        self,
        context: BackendInitContext,
        processed: memoryview,
        compile_specs: Mapping[str, bytes],
    ) -> Any:  # noqa: ANN401 - never returns
        """Raise: a payload does not describe a graph.

        Raises: ExecutionError DelegateInvalidCompatibility
        """
        raise ExecutionError(
            ErrorCode.DelegateInvalidCompatibility, "a payload alone cannot be emulated"
        )

    def measurement(self, name: str, handle: Any) -> Measurement:  # noqa: ANN401
        """Return that the partition is emulated."""
        note = f"{name} {self._why}; its original subgraph is run with torch's kernels"
        return Measurement(name, EMULATED, note=note)

    def execute(
        self,
        context: BackendExecutionContext,
        handle: Any,  # noqa: ANN401 - a Subgraph
        args: Sequence[Any],
    ) -> None:
        """Run the graph; each operator is logged by the name of its node.

        Integer ids would be mistaken for those of the backend's own debug handle map.
        """
        graph: Subgraph = handle
        count = len(args) - len(graph.outputs)
        tracer = context.tracer
        last, metadata = tracer.start(), etdump.EMULATED

        def report(node: GraphNode, results: Any) -> None:  # noqa: ANN401 - one or several
            nonlocal last
            now = tracer.start()
            tracer.log(node.name, last, now, metadata)
            if tracer.logs_values and isinstance(results, torch.Tensor):
                tracer.log_value(node.name, results.contiguous())
            elif tracer.logs_values and isinstance(results, (list, tuple)):
                several = cast("Sequence[Any]", results)
                if all(isinstance(one, torch.Tensor) for one in several):
                    tracer.log_value(node.name, [one.contiguous() for one in several])
            last = tracer.start()

        results = graph.run(args[:count], report)
        for argument, result in zip(args[count:], results, strict=True):
            context.store(argument, result)
