"""The runtime: its registries, and `load_program`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import cast

from runtime.backends import built_in_backends
from runtime.delegates.interface import BackendRegistry
from runtime.execution.program import Program
from runtime.kernels.registry import MOST_KERNELS, KernelRegistry
from runtime.program.loaders import LoadMode
from runtime.program.loading import Data, decode_program, load_data_files, read
from runtime.tracing.tracer import DebugLevel, EventTracer


class Verification(Enum):
    """How much of a program is checked when it is loaded.

    Every index and size is checked before it is used, at both levels; the names are documented.
    """

    Minimal = "minimal"
    InternalConsistency = "internal consistency"


class Runtime:
    """Loads programs.

    Attributes:
        backend_registry: the registered backends
        operator_registry: the registered kernels

    Args:
        operators: names of the built-in kernels to offer, as in a selective build; None for all
        max_kernels: largest number of kernels, built-in ones included
    """

    def __init__(
        self, *, operators: Collection[str] | None = None, max_kernels: int = MOST_KERNELS
    ) -> None:
        self.backend_registry = BackendRegistry(built_in_backends())
        self.operator_registry = KernelRegistry(operators, max_kernels=max_kernels)

    @staticmethod
    @lru_cache(maxsize=1)
    def get() -> Runtime:
        """Return the one runtime of this process."""
        return Runtime()

    def load_program(  # noqa: PLR0913 - those of the stock runtime and ours
        self,
        data: Data,
        *,
        verification: Verification = Verification.InternalConsistency,
        enable_etdump: bool = False,
        debug_buffer_size: int = 0,
        data_path: Data | Sequence[Path | str] | None = None,
        tracer: EventTracer | None = None,
        load_mode: LoadMode | None = None,
    ) -> Program:
        """Load a program.

        Args:
            data: path, bytes, file object or `DataLoader` of a ``.pte`` or ``.bpte``
            verification: documented, without effect: everything is checked
            enable_etdump: record loads and runs
            debug_buffer_size: other than 0 records intermediate values too; the buffer grows as
                needed, the size is not a limit
            data_path: one or several ``.ptd`` files, or the bytes of one
            tracer: records instead of a new one, with levels and filters of its own
            load_mode: how paths are loaded; None reads files below 64 MiB and maps larger ones

        Raises: ExecutionError for a file that is not a program; TypeError for data of another type
        """
        del verification
        buffer, file = read(data, load_mode)
        if tracer is None and enable_etdump:
            tracer = _tracer(debug_buffer_size)
        return Program(
            decode_program(buffer, file),
            self.operator_registry,
            self.backend_registry,
            data_files=load_data_files(_each(data_path), load_mode),
            tracer=tracer,
        )


def _tracer(debug_buffer_size: int) -> EventTracer:
    return EventTracer(DebugLevel.INTERMEDIATE if debug_buffer_size else DebugLevel.NONE)


def _each(data: Data | Sequence[Path | str] | None) -> list[Data]:
    if isinstance(data, list | tuple):
        return list(cast("Sequence[Path | str]", data))
    return [] if data is None else [cast("Data", data)]
