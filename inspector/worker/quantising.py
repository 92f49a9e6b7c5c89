"""Quantises the programs of a job before they are lowered."""

from __future__ import annotations

import contextlib
import importlib
import sys
import warnings
from typing import Any

from compiler.calibration import inputs_from_file
from compiler.errors import CompileError
from compiler.quantise import OVERRIDES, Quantisation, quantise
from inspector.jobs.description import Quantising
from inspector.worker.exporter import AnswerError, Exported, Say, told


def quantised(wanted: Quantising, source: Exported, say: Say) -> Exported:
    """Return programs as a job wants them quantised, told of stage by stage.

    Raises: AnswerError in a sentence of what is missing or wrong
    """
    if not wanted.mode:
        return source
    how = how_to(wanted)
    programs: dict[str, Any] = {}
    for method, program in source.programs.items():
        with told(say, "quantize", method):
            try:
                calls = None
                if wanted.calibration:
                    calls = inputs_from_file(wanted.calibration, method)
                programs[method] = quantise(program, how, calls, lambda n, of: _count(say, n, of))
            except (CompileError, ModuleNotFoundError) as error:
                raise AnswerError(f"{method} cannot be quantised: {error}") from error
    return Exported(programs, source.constants)


def how_to(wanted: Quantising) -> Quantisation:
    """Return what the words of a job mean.

    Raises: AnswerError for an override that is no ``NAME=MODE``
    """
    modules, operators = (
        dict(map(_override, words)) for words in (wanted.modules, wanted.operators)
    )
    return Quantisation(wanted.mode, wanted.per_tensor, modules, operators)


def _override(text: str) -> tuple[str, str]:
    name, _, mode = text.rpartition("=")
    if not name or mode not in OVERRIDES:
        there = ", ".join(OVERRIDES)
        raise AnswerError(f"{text!r} is no NAME=MODE; a mode is one of {there}")
    return name, mode


def _count(say: Say, done: int, total: int) -> None:
    say("counted", done=done, total=total)


_OPERATORS = ("torchao.quantization.pt2e.quantize_pt2e", "torchao.quantization.quant_primitives")


def load_operators() -> bool:
    """Load the libraries of quantised operators; return whether something was loaded by that."""
    before = len(sys.modules)
    for name in _OPERATORS:
        with contextlib.suppress(ImportError), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the library itself
            importlib.import_module(name)
    return len(sys.modules) > before
