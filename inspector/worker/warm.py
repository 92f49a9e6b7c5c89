"""Caches of a worker between compiles of one source, so that only changed stages run again."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

import numpy
import torch

from compiler.edge.cache import EdgeCache
from compiler.pipeline.edge_manager import EdgeProgramManager
from compiler.stages import Observer
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.data_source import data_source
from inspector.recipes.emission import file_of, in_file
from inspector.recipes.source import SourceKind
from inspector.worker.exporter import Exported, Say, is_users
from inspector.worker.interrupting import InterruptedTaskError
from inspector.worker.lowering import lowered
from inspector.worker.quantize import quantize_source

_MOST = 3  # quantized forms of a program, and sets of types
Stamp = tuple[int, int]


class StaleError(InterruptedTaskError):
    """A file that was read has changed; only a new process can read it again."""


class WarningCollector(Protocol):
    """Receives messages and stores the warnings."""

    @property
    def warnings(self) -> list[dict[str, Any]]:
        """Return the received warnings."""
        ...

    def __call__(self, kind: str, **content: Any) -> None:  # noqa: ANN401 - JSON
        """Handle a message."""
        ...


class Warm:
    """Exported, quantized and edge programs of one source."""

    def __init__(self) -> None:
        self._source: tuple[Any, Exported] | None = None
        self._messages: list[dict[str, Any]] = []
        self._files: dict[str, Stamp | None] = {}
        self._numbers: tuple[Any, Any, Any] | None = None
        self._quantized: list[tuple[Any, Exported]] = []
        self._stores: list[tuple[Any, EdgeCache]] = []  # by quantization
        self._delegated: tuple[Any, Exported, EdgeProgramManager] | None = None

    def knows(self, job: CompileJob) -> bool:
        """Return whether the source of a job has been exported here."""
        return self._source is not None and self._source[0] == _key(job)

    def source(
        self, job: CompileJob, export: Callable[[], Exported], warned: WarningCollector
    ) -> Exported:
        """Return the exported programs of a job.

        Args:
            job: of this source
            export: exports them, the first time
            warned: called again with the warnings of that export

        Raises: StaleError if the source has changed, or a different source was exported here
        """
        if self._source is None:
            modules = set(sys.modules)
            reported = len(warned.warnings)
            built = export()
            self._messages = warned.warnings[reported:]
            self._files = {path: _stamp(path) for path in _read_files(job, modules)}
            self._numbers = random.getstate(), numpy.random.get_state(), torch.get_rng_state()
            self._source = _key(job), built
            return built
        if self._source[0] != _key(job) or self._has_changed():
            raise StaleError
        for warning in self._messages:
            warned("warning", **warning)
        return self._source[1]

    def _has_changed(self) -> bool:
        return any(_stamp(path) != stamp for path, stamp in self._files.items())

    def quantize_source(self, job: CompileJob, source: Exported, notify: Say) -> Exported:
        """Return the programs quantized according to a job.

        Raises: AnswerError for an invalid quantization
        """
        requested = job.quantising
        if not requested.requested:
            return source
        calibration = data_source(requested.calibration).path if requested.calibration else ""
        files = (calibration, file_of(requested.quantizer) if requested.quantizer else "")
        key = requested, job.backend_python, tuple(_stamp(path) for path in files if path)
        for known, built in self._quantized:
            if known == key:
                return built
        self._restore_numbers()
        built = quantize_source(requested, source, notify, job.backend_python, job.libraries)
        self._quantized = [*self._quantized[1 - _MOST :], (key, built)]
        return built

    def _restore_numbers(self) -> None:
        """Restore the state of random generators after the export, regardless of later use."""
        if self._numbers is not None:
            random.setstate(self._numbers[0])
            numpy.random.set_state(self._numbers[1])
            torch.set_rng_state(self._numbers[2])

    def store_for(self, job: CompileJob) -> EdgeCache:
        """Return the cache of edge programs for the quantization of a job."""
        key = job.precision, job.passes, job.edge_config, _stamps(job.passes)
        for known, store in self._stores:
            if known == key:
                return store
        self._stores = [*self._stores[1 - _MOST :], (key, EdgeCache())]
        return self._stores[-1][1]

    def lowered(self, job: CompileJob, source: Exported, observe: Observer) -> EdgeProgramManager:
        """Return edge programs, delegated by a job.

        Raises: as ``lowered`` of this package
        """
        files = _stamps((*job.partitioners, *job.passes))
        key = job.partitioners, job.rules, job.precision, job.passes, job.edge_config, files
        if self._delegated is not None:
            known, programs, manager = self._delegated
            if known == key and programs is source:
                return manager
        self._restore_numbers()
        kept = self.store_for(job)
        built = lowered(job, source.programs, source.constants, observe, kept)
        self._delegated = key, source, built
        return built


def _key(job: CompileJob) -> Any:  # noqa: ANN401 - compared only
    return job.source, job.python, job.methods, job.libraries


def _stamps(words: Iterable[str]) -> tuple[Stamp | None, ...]:
    """Return the state of the user's files that define named objects."""
    return tuple(_stamp(file_of(text)) for text in words if in_file(text))


def _stamp(path: str) -> Stamp | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _read_files(job: CompileJob, before: set[str]) -> list[str]:
    """Return the source, its libraries, and the modules of the user that they have loaded."""
    found = [job.source.path, *job.libraries]
    if job.source.kind is SourceKind.PYTHON or job.libraries:
        named = [
            getattr(m, "__file__", None) for n, m in list(sys.modules.items()) if n not in before
        ]
        found += [path for path in named if isinstance(path, str) and is_users(path)]
    return found
