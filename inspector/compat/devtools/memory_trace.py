"""Memory plans as Chrome traces, of files and of live program managers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from inspector.compat.devtools.fx_nodes import Fx, innermost_module, is_memory, tensor_specs
from inspector.compat.devtools.opening import open_program
from inspector.export.memory_trace import Allocation, memory_trace, planned_steps
from inspector.files.session import Session
from schema.bundled import BundledFile
from schema.program import ProgramFile

_NO_PLAN = "Executorch program does not have memory planning."


def generate_memory_trace(
    executorch_program_manager: object,
    chrome_trace_filename: str | os.PathLike[str],
    enable_memory_offsets: bool = False,
    method_name: str = "forward",
    ommit_metadata: bool = False,
) -> None:
    """Write the memory plan of a method as a trace that chrome://tracing and Perfetto show.

    pid is the arena, tid the step, the bar's start the offset (or the bytes before it) and its
    length the bytes of the tensor. Steps are graph nodes for a live program manager, instructions
    for a program file.

    Args:
        executorch_program_manager: the object to_executorch returns, the path of a ``.pte`` or
            ``.bpte``, a decoded program, or a session, whose record then gives names and lines
        chrome_trace_filename: file to write
        enable_memory_offsets: place bars at their offset; else one behind the other
        method_name: method
        ommit_metadata: leave out operator, module, source and bytes

    Raises:
        ValueError: an object of another kind, or a program without a memory plan
        KeyError: no such method
        OSError: the file cannot be written
    """
    steps = _steps(executorch_program_manager, method_name)
    trace = memory_trace(steps, offsets=enable_memory_offsets, metadata=not ommit_metadata)
    text = json.dumps(trace, indent=2)
    Path(chrome_trace_filename).write_bytes(text.encode("ascii"))


def _steps(source: object, method: str) -> Sequence[Sequence[Allocation]]:
    if isinstance(source, (str, os.PathLike, ProgramFile, Session)):
        given = cast("str | ProgramFile | Session", source)
        steps = planned_steps(given if isinstance(given, Session) else _session(given), method)
        if not any(steps):
            raise ValueError(_NO_PLAN)
        return steps
    exported_program = getattr(source, "exported_program", None)
    if not callable(exported_program):
        raise ValueError(  # noqa: TRY004 - the documented type
            "generate_memory_trace expects ExecutorchProgramManager instance"
            f" but got {type(source)}"
        )
    graph: Fx = cast("Any", exported_program(method)).graph
    if not any(is_memory(node, "alloc") for node in graph.nodes):
        raise ValueError(_NO_PLAN)
    return _graph_steps(graph)


def _session(source: str | os.PathLike[str] | ProgramFile) -> Session:
    file = open_program(source)
    assert file is not None
    assert isinstance(file.artifact, (ProgramFile, BundledFile))
    return Session(file.path, (file,))


def _graph_steps(graph: Fx) -> list[list[Allocation]]:
    """Return the live tensors at each node with a plan."""
    found: dict[int, list[Allocation]] = {}
    for node, spec in _planned(graph):
        allocation = Allocation(
            name=node.name,
            operator=f"{node.target}",
            memory_id=spec.mem_id,
            offset=int(spec.mem_offset),
            nbytes=_nbytes(spec),
            module=innermost_module(node),
            source=f"{node.meta.get('stack_trace')}",
        )
        first, last = spec.lifetime
        for step in range(first, last + 1):
            found.setdefault(step, []).append(allocation)
    return [found[step] for step in sorted(found)]


def _planned(graph: Fx) -> Iterator[tuple[Fx, Fx]]:
    """Yield each planned spec once, with the first node that has it."""
    seen: set[int] = set()
    for node in graph.nodes:
        if node.op == "output" or is_memory(node, "alloc") or is_memory(node, "view"):
            continue
        for spec in tensor_specs(node):
            if spec.mem_id is None or spec.const or id(spec) in seen or None in spec.lifetime:
                continue
            seen.add(id(spec))
            yield node, spec


def _nbytes(spec: Fx) -> int:
    count = 1
    for size in spec.shape:
        count *= size
    return int(count * spec.dtype.itemsize)
