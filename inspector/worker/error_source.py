"""The user's line for an error of a delegate, if the record of the program has it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from inspector.graph.source import user_frame
from inspector.join import record_maps
from inspector.numerics.flat_graph import flat_graph
from runtime import ExecutionError
from runtime.delegates.errors import DelegateError
from runtime.program.loading import read
from schema import etrecord
from schema.errors import FormatError


@contextmanager
def located_errors(record: str) -> Generator[None, None, None]:
    """Add operator and source line of the node to errors of delegates.

    Args:
        record: path of the ETRecord of the program, may be empty
    """
    try:
        yield
    except ExecutionError as error:
        if record:
            _locate(error, record)
        raise


def _locate(error: ExecutionError, path: str) -> None:
    handle = error.debug_handle if isinstance(error, DelegateError) else None
    if not handle:
        return
    try:
        record = etrecord.decode(read(path)[0], file=path)
    except (FormatError, OSError):
        return  # the error that is there already says more
    graph = record_maps.edge_graph(record, error.method or "forward")
    for node in flat_graph(graph).nodes if graph is not None else ():
        frame = user_frame(node.node.stack_trace)
        if node.node.debug_handle == handle and frame is not None:
            error.located(operator=node.node.target, source=f"{frame.file}:{frame.line}")
            return
