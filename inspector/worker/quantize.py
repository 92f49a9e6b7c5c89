"""Quantizes the programs of a job before they are lowered."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from compiler.errors import CompileError
from compiler.named import UnknownNameError, parse_named
from compiler.quantize.program import (
    MODES,
    NONE,
    QuantizationModes,
    SupportsAnnotate,
    modes_by_method,
    named_quantizer,
    quantize_program,
)
from compiler.quantize.quiet_imports import import_quietly
from compiler.quantize.weights import (
    FloatLayersWarning,
    WeightModes,
    quantize_weights,
    weight_modes_by_method,
)
from inspector.recipes.compile_job import MODULE_WORDS, OVERRIDES, Quantization
from inspector.toolchain.backend_python import NoEnvironmentError, interpreter_of
from inspector.toolchain.child import ToolchainError
from inspector.worker.backend_python import QuantizerElsewhere
from inspector.worker.data_set import calibration_calls
from inspector.worker.exporter import AnswerError, Exported, Say, timed_stage
from inspector.worker.unquantized import warn_of_unquantized
from schema.recipe.assignments import AssignmentError, parse_assignment
from schema.vendors.names import quantizer_vendor


def quantize_source(
    requested: Quantization,
    source: Exported,
    notify: Say,
    backend_python: str = "",
    libraries: tuple[str, ...] = (),
) -> Exported:
    """Return the programs quantized according to a job, reporting stages.

    Args:
        requested: the quantization
        source: the programs
        notify: called with messages
        backend_python: interpreter of vendors' quantizers, as in a job
        libraries: of operators, which it loads

    Raises: AnswerError naming the missing or invalid part
    """
    if not requested.requested:
        return source
    if requested.by_weights:
        return _quantize_weights(requested, source, notify)
    chosen = _chosen(requested, source, backend_python, libraries)
    programs: dict[str, Any] = {}
    for method, program in source.programs.items():
        how = chosen[method]
        with timed_stage(notify, "quantize", method):
            try:
                calls = None
                if requested.calibration:
                    calls = calibration_calls(requested.calibration, method, program, notify)
                if isinstance(how, QuantizerElsewhere):
                    load_operators()  # of the program that comes back
                    programs[method] = how.quantized(program, calls)
                    continue
                programs[method] = quantize_program(
                    program, how, calls, lambda n, of: _count(notify, n, of)
                )
            except (CompileError, ModuleNotFoundError, ToolchainError) as error:
                raise AnswerError(f"{method} cannot be quantized: {error}") from error
    warn_of_unquantized(source.programs, programs, notify)
    return replace(source, programs=programs)


def _quantize_weights(requested: Quantization, source: Exported, notify: Say) -> Exported:
    """Return programs whose layers have quantized weights.

    Raises: AnswerError
    """
    plain = replace(requested, mode="", embedding="", modules=())
    if plain != Quantization() or requested.mode in MODES:
        words = "quantized weights of layers go with --quantize-embedding and --quantize-module"
        raise AnswerError(f"{words} only, and not with {', '.join(MODES)}")
    modules = how_to(requested).modules
    how = WeightModes(requested.mode or NONE, requested.embedding, modules)
    by_method = weight_modes_by_method(source.programs, how)
    programs: dict[str, Any] = {}
    for method, program in source.programs.items():
        with timed_stage(notify, "quantize", method):
            try:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always", FloatLayersWarning)
                    programs[method] = quantize_weights(program, by_method[method])
            except (CompileError, ModuleNotFoundError) as error:
                raise AnswerError(f"{method} cannot be quantized: {error}") from error
        for one in caught:
            if issubclass(one.category, FloatLayersWarning):
                notify("warning", text=f"{method}: {one.message}", file="", line=0)
    return replace(source, programs=programs)


def _chosen(
    requested: Quantization, source: Exported, backend_python: str, libraries: tuple[str, ...]
) -> Mapping[str, QuantizationModes | SupportsAnnotate | QuantizerElsewhere]:
    """Return the quantization by method, each with a separate quantizer."""
    if not requested.quantizer:
        return modes_by_method(source.programs, how_to(requested))
    if replace(requested, calibration="", quantizer="") != Quantization():
        raise AnswerError("a quantizer replaces the mode and its overrides: use only one of them")
    try:
        elsewhere = _elsewhere(requested.quantizer, backend_python, libraries)
        return {
            method: elsewhere or named_quantizer(requested.quantizer) for method in source.programs
        }
    except (UnknownNameError, NoEnvironmentError) as error:
        raise AnswerError(str(error)) from error


def _elsewhere(
    text: str, backend_python: str, libraries: tuple[str, ...]
) -> QuantizerElsewhere | None:
    """Return the quantizer of a vendor in the interpreter of a job, None for this one."""
    python = interpreter_of(backend_python, text) if quantizer_vendor(text) is not None else ""
    return QuantizerElsewhere(python, parse_named(text, "mode"), libraries) if python else None


def how_to(requested: Quantization) -> QuantizationModes:
    """Return the quantization settings of a job.

    Raises: AnswerError for an override that is not ``NAME=MODE``
    """
    try:
        modules, operators, nodes = (
            dict(parse_assignment(text, "MODE", known) for text in words)
            for words, known in (
                (requested.modules, MODULE_WORDS),
                (requested.operators, OVERRIDES),
                (requested.nodes, OVERRIDES),
            )
        )
    except AssignmentError as error:
        raise AnswerError(str(error)) from error
    return QuantizationModes(requested.mode, requested.per_tensor, modules, operators, nodes)


def _count(notify: Say, done: int, total: int) -> None:
    notify("counted", done=done, total=total)


_OPERATORS = ("torchao.quantization.pt2e.quantize_pt2e", "torchao.quantization.quant_primitives")


def load_operators() -> bool:
    """Load the libraries of quantized operators; return whether this loaded anything."""
    before = len(sys.modules)
    for name in _OPERATORS:
        with contextlib.suppress(ImportError):
            import_quietly(name)
    return len(sys.modules) > before
