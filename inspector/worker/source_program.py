"""Programs of torch that compute references: from a user's function, a .pt2 file or a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.utils import _pytree as _untyped_pytree

from inspector.recipes.source import Source, SourceKind
from inspector.worker.exporter import AnswerError, Say, exported

_pytree: Any = _untyped_pytree


def source_program(source: Source, method: str, notify: Say) -> ExportedProgram:
    """Return the program of one method of a source.

    Raises: AnswerError, FormatError, RebuildError, OSError; errors of the user's code
    """
    from inspector.worker.compile_job import export_of_file
    from inspector.worker.quantize import load_operators
    from inspector.worker.recorded import further_program, recorded_programs

    if source.kind is SourceKind.PYTHON:
        return exported(source.path, source.function, (method,), notify).programs[method]
    if source.kind is SourceKind.LLM:
        from inspector.worker.language_model import exported_config

        found = exported_config(source.path, source.function, (method,), notify)
        return found.programs[method]
    if source.kind is SourceKind.EXPORTED:
        return export_of_file(source.path, (method,)).programs[method]
    load_operators()

    def warn(text: str) -> None:
        notify("warning", text=text, file=source.path, line=0)

    try:
        if source.function:  # further programs of a record have a name before the method
            return further_program(source.path, f"{source.function}/{method}")
        return recorded_programs(source.path, (method,), warn)[method]
    except KeyError as error:
        raise AnswerError(f"{source.path}: {error.args[0]}") from error


class ProgramRunner:
    """Runs a program of torch; its state is reset for each call."""

    def __init__(self, program: ExportedProgram) -> None:
        self._program = program
        self._module: Any = None

    def outputs(self, values: Sequence[Any]) -> list[Any]:
        """Return the flattened outputs for flattened inputs.

        Raises: AnswerError for another number of inputs; errors of torch
        """
        program = self._program
        spec: Any = program.call_spec.in_spec
        if len(values) != spec.num_leaves:
            raise AnswerError(f"{len(values)} inputs are given, the module has {spec.num_leaves}")
        args, kwargs = _pytree.tree_unflatten([own(value) for value in values], spec)
        if self._module is None or program.graph_signature.buffers_to_mutate:
            self._module = program.module()
        with torch.no_grad():
            found = self._module(*args, **kwargs)
        return [own(value) for value in _pytree.tree_flatten(found)[0]]


def own(value: Any) -> Any:  # noqa: ANN401 - tensor or number
    """Return a copy of a tensor, detached; anything else as it is."""
    return value.detach().clone() if isinstance(value, torch.Tensor) else value
