"""The names of `executorch.exir.emit`: emission of planned methods, and printed tables."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import IO, Any, cast

import torch
from torch.export import ExportedProgram

from compiler.emit.config import ExecutorchBackendConfig
from compiler.emit.output import EmitterOutput, emitter_output
from compiler.emit.program import emit_planned
from compiler.emit.training import training_methods
from compiler.errors import UnsupportedError
from compiler.memory.methods import PlannedMethod
from compiler.memory.out_program import planned_method
from compiler.stages import Stages

_PLAIN = (int, float, str, bool, type(None))


def emit_program(
    methods: ExportedProgram | Mapping[str, ExportedProgram],
    emit_stacktrace: bool = False,
    prim_getters: Mapping[str, Any] | None = None,
    emit_mutable_buffer_names: bool = False,
) -> EmitterOutput:
    """Return planned methods as one program; equal weights are stored once.

    Args:
        methods: what `ExecutorchProgramManager.exported_program` returns, by the name of the
            method; a single one is `forward`
        emit_stacktrace: write source lines into it
        prim_getters: values by the name of the method that returns them
        emit_mutable_buffer_names: write the names of mutable buffers into it

    Raises: UnsupportedError for a program that is not planned, or was changed since
    """
    programs = {"forward": methods} if isinstance(methods, ExportedProgram) else dict(methods)
    config = ExecutorchBackendConfig(
        extract_delegate_segments=False,
        emit_stacktrace=emit_stacktrace,
        emit_mutable_buffer_names=emit_mutable_buffer_names,
    )
    constants = {**training_methods(programs), **(prim_getters or {})}
    planned = {name: _planned(name, program) for name, program in programs.items()}
    return emitter_output(emit_planned(planned, constants, config, Stages()))


def _planned(name: str, program: ExportedProgram) -> PlannedMethod:
    found = planned_method(program)
    if found is None:
        raise UnsupportedError(
            f"emit_program: method {name} was not planned by to_executorch() or was changed; "
            "pass manager.to_executorch().exported_program() as it is returned"
        )
    return found


def pretty_print(obj: object, indent: int = 0, out: IO[str] | None = None) -> None:
    """Print the tables of a program, or a part of them, one field per line.

    Args:
        obj: a program or any object inside it
        indent: indentation steps of the lines below the first one
        out: stream; standard output if None

    Raises: TypeError for a graph
    """
    if isinstance(obj, torch.fx.GraphModule):
        raise TypeError("pretty_print expected the tables of a program, found a GraphModule")
    end = "" if indent else "\n"
    print(_shown(obj, indent), end=end, file=out or sys.stdout)


def _shown(obj: object, indent: int) -> str:
    if isinstance(obj, IntEnum):
        return str(int(obj))
    if isinstance(obj, _PLAIN):
        return str(obj)
    if isinstance(obj, (bytes, memoryview)):
        data = bytes(cast("bytes", obj))
        return f"{data[:16]!r}... ({len(data)} bytes)" if len(data) > 16 else repr(data)
    if isinstance(obj, (list, tuple)):
        return _list(cast("Sequence[object]", obj), indent)
    if not dataclasses.is_dataclass(obj):
        return repr(obj)
    pairs = [(field.name, getattr(obj, field.name)) for field in dataclasses.fields(obj)]
    rows = [f"{name}={_shown(value, indent + 1)}" for name, value in pairs]
    if all(isinstance(value, _PLAIN) for _, value in pairs):
        return f"{type(obj).__name__}({', '.join(rows)})"
    return _block(f"{type(obj).__name__}(", [f"{row}," for row in rows], ")", indent)


def _list(items: Sequence[object], indent: int) -> str:
    if len(items) < 10 and all(isinstance(item, int) for item in items):
        return str([*items])
    rows = [f"{_shown(item, indent + 1)}(index={place})," for place, item in enumerate(items)]
    return _block("[", rows, "]", indent)


def _block(begin: str, rows: Sequence[str], end: str, indent: int) -> str:
    margin = "  " * indent
    return "\n".join([begin, *(f"{margin}  {row}" for row in rows), f"{margin}{end}"])
