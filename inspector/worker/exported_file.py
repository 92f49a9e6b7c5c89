"""Reads the programs that torch.export.save has written."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram

from inspector.worker import exporter
from inspector.worker.libraries import lacking, unregistered
from inspector.worker.quantize import load_operators

_NO_PROGRAM = "error when deserializing the saved file"  # torch of any other archive


class UnreadableExportError(Exception):
    """A source that is not a file of its kind."""


def read_exported(path: str) -> ExportedProgram:
    """Return the program in a ``.pt2`` file.

    Raises: UnreadableError if torch cannot read it, with the operators that are not registered;
        OSError
    """
    try:
        return _with_operators(path)
    except OSError:
        raise
    except Exception as error:
        missing = unregistered(path)
        why = lacking(missing) if missing else exporter.sentence_of(error)
        if _NO_PROGRAM in why:
            why = "torch.export.save has not written it"
        raise UnreadableExportError(
            f"{path}: torch cannot read this exported program: {why}"
        ) from error


def _with_operators(path: str) -> ExportedProgram:
    """Read a program; one that uses operators of quantization needs their libraries loaded."""
    try:
        return torch.export.load(path)
    except (RuntimeError, ValueError):
        if not load_operators():
            raise
    return torch.export.load(path)
