"""The runtime: its registries, and the door through which programs are loaded."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import cast

from runtime.backends import BACKENDS
from runtime.delegates.interface import BackendRegistry
from runtime.execution.program import Program
from runtime.kernels.registry import MOST_KERNELS, KernelRegistry
from runtime.program.loaders import LoadMode
from runtime.program.loading import Data, decode_program, load_data_files, read
from runtime.tracing.tracer import DebugLevel, EventTracer


class Verification(Enum):
    """How much of a program is checked when it is loaded.

    Every index and size is checked before it is used at either level; the names are kept.
    """

    Minimal = "minimal"
    InternalConsistency = "internal consistency"


class Runtime:
    """Loads programs.

    Attributes:
        backend_registry: the backends there are
        operator_registry: the kernels there are

    Args:
        operators: names of the built-in kernels to offer, as in a selective build; None for all
        max_kernels: number of kernels there can be, built-in ones included
    """

    def __init__(
        self, *, operators: Collection[str] | None = None, max_kernels: int = MOST_KERNELS
    ) -> None:
        self.backend_registry = BackendRegistry(BACKENDS)
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
            verification: kept for its name; everything is checked
            enable_etdump: record loads and runs
            debug_buffer_size: anything but 0 records intermediate values too; the buffer grows as
                needed, the size itself is no limit
            data_path: one or several ``.ptd`` files, or the bytes of one
            tracer: records in place of one made here, with levels and filters of its own
            load_mode: how paths are loaded; None reads files below 64 MiB and maps larger ones

        Raises: ExecutionError for a file that is no program; TypeError for data of another type
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
