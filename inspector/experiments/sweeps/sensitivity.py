"""Which modules cost quality: the points of a sweep that quantizes one module at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from inspector.experiments.sweeps.grid import Grid, GridError
from inspector.files.load import open_bytes
from inspector.join.node_index import base_operator
from inspector.recipes.compile_job import (
    NOT_QUANTIZED,
    WEIGHT_WORDS,
    CompileJob,
    Quantization,
)
from inspector.recipes.data_source import EXAMPLE, GENERATED
from inspector.recipes.source import SourceKind
from schema.etrecord import RecordFile, decode

MODE, MODULES, TABLES = (f"quantising.{name}" for name in ("mode", "modules", "embedding"))
_RANDOM = 16  # samples of random tokens, which have no end
# operators with weights, without namespace; their modules are what users quantize or leave
_WEIGHTED = (
    "linear",
    "conv",
    "mm",
    "addmm",
    "matmul",
    "bmm",
    "lstm",
    "gru",
    "rnn",
    "_native_multi",
)
_LINEAR = ("linear", "mm", "addmm")  # that modes of weights quantize
_TABLE = "embedding"
_CLEARED = ("embedding", "operators", "nodes")


def weighted_modules(record: RecordFile, how: Quantization) -> dict[str, str]:
    """Return the word by which each module with weights is quantized, by path in their order.

    Args:
        record: of the program
        how: its quantization; a mode of weights alone has linear layers only
    """
    operators = _LINEAR if how.mode in WEIGHT_WORDS else _WEIGHTED
    modes = how.mode not in ("", NOT_QUANTIZED)
    roles = record.roles
    members = [roles.exported] if roles.exported else list(roles.edge.values())
    found: dict[str, str] = {}
    for member in members:
        for node in record.graph(member).calls():
            name = base_operator(node.target).rpartition("::")[2]
            if node.module_path and modes and name.startswith(operators):
                found[node.module_path] = how.mode
            elif node.module_path and how.embedding and name.partition(".")[0] == _TABLE:
                found[node.module_path] = how.embedding
    return found


def recorded_modules(path: Path, how: Quantization, method: str = "") -> dict[str, str]:
    """Return the modules that an ETRecord computes with weights in; see ``weighted_modules``.

    Args:
        path: of the record
        how: its quantization
        method: that is to be evaluated; empty for any

    Raises: GridError for an unknown method; FormatError, OSError
    """
    record = decode(open_bytes(str(path)), file=str(path))
    if method and record.methods and method not in record.methods:
        raise GridError(f"unknown method {method!r}; available: {', '.join(record.methods)}")
    return weighted_modules(record, how)


def sensitivity_data(job: CompileJob) -> tuple[str, int | None]:
    """Return what a program is evaluated on where no data set is named, and how many samples of it.

    The example of a language model is a few zeros, which attention hardly matters for: it gets
    random tokens, at random positions where the program takes them as they are.
    """
    return (GENERATED[0], _RANDOM) if job.source.kind is SourceKind.LLM else (EXAMPLE, None)


def sensitivity_grid(job: CompileJob, modules: Mapping[str, str]) -> Grid:
    """Return the points: nothing quantized, each module alone, and the recipe as it is.

    Args:
        job: the recipe
        modules: the word that each gets, by path

    Raises: GridError for a recipe that quantizes nothing by a mode, or without modules
    """
    how = job.quantising
    if how.quantizer or (how.mode in ("", NOT_QUANTIZED) and not how.embedding):
        words = "expected a mode of quantization, which each module gets alone"
        raise GridError(f"{MODE}: {words}; found {how.quantizer or how.mode or 'none'}")
    if not modules:
        raise GridError("expected modules with weights; found none in the recorded program")
    names = (MODE, MODULES, *(f"quantising.{name}" for name in _CLEARED))
    empty = _cleared(Quantization())
    rows: list[tuple[Any, ...]] = [("", (), *empty)]
    rows += [(NOT_QUANTIZED, (f"{name}={word}",), *empty) for name, word in modules.items()]
    rows.append((how.mode, how.modules, *_cleared(how)))
    return Grid(names, tuple(rows))


def _cleared(how: Quantization) -> tuple[Any, ...]:
    known = {one.name for one in fields(how)}
    return tuple(getattr(how, name) for name in _CLEARED if name in known)
