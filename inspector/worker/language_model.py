"""Exports language models by their configuration, for the worker."""

from __future__ import annotations

from collections.abc import Mapping

from torch.export import ExportedProgram

from compiler.errors import CompileError
from compiler.llm import export
from compiler.llm.config import LlmConfig, read_config, split_settings
from compiler.llm.export import exported_llm
from inspector.worker.exporter import AnswerError, Exported, Say, timed_stage


def exported_config(path: str, settings: str, methods: tuple[str, ...], notify: Say) -> Exported:
    """Return the exported methods of a configuration.

    Args:
        path: of the ``.yaml`` file
        settings: changes, separated by commas
        methods: only these; empty for all
        notify: called with messages

    Raises: AnswerError, ExportError, OSError
    """
    with timed_stage(notify, "load"):
        config = _config(path, settings)
    with timed_stage(notify, "export"):
        try:
            found = exported_llm(config, methods)
        except (CompileError, FileNotFoundError) as error:
            raise AnswerError(f"{path}: {error}") from error
    return Exported(found.programs, found.constants, (path, 0))


def mark_files(
    path: str, settings: str, programs: Mapping[str, ExportedProgram], *, files: bool = True
) -> None:
    """Mark the weights of a configuration's programs, in place, for the files that it names.

    Args:
        path: of the ``.yaml`` file
        settings: changes, separated by commas
        programs: exported, by method
        files: whether weights are moved at all

    Raises: AnswerError, OSError
    """
    export.mark_files(_config(path, settings), programs, files=files)


def _config(path: str, settings: str) -> LlmConfig:
    try:
        return read_config(path, split_settings(settings))
    except CompileError as error:
        raise AnswerError(str(error)) from error
