"""A loaded program, whose methods share its constants and state."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from runtime.delegates.interface import BackendInitContext, BackendRegistry
from runtime.errors import ErrorCode, ExecutionError, UnknownMethodError, invalid_argument
from runtime.execution.memory_use import log_memory
from runtime.execution.method import Method
from runtime.execution.partitions import load_partitions
from runtime.kernels.registry import KernelRegistry
from runtime.memory.planned import PlannedBuffers, SharedBuffers
from runtime.platform import LogLevel, log
from runtime.program.meta import MethodMeta
from runtime.program.named_data import NamedDataMap
from runtime.program.values import TableBuilder
from runtime.tracing.tracer import EventTracer, clock
from schema import flat_tensor
from schema.etrecord import RecordFile
from schema.objects.cyclic_gc import gc_suspended
from schema.program import ProgramFile
from schema.program import model as m


class Program:
    """A loaded program.

    It may be shared by threads; each method is loaded once and kept.

    Attributes:
        file: the tables of the program
        tracer: records loads and runs, None if nothing is recorded

    Args:
        depth: nesting depth in other programs, for backends that run programs
    """

    def __init__(
        self,
        file: ProgramFile,
        kernels: KernelRegistry,
        backends: BackendRegistry,
        *,
        data_files: Sequence[flat_tensor.FlatTensor] = (),
        tracer: EventTracer | None = None,
        depth: int = 0,
    ) -> None:
        self.file = file
        self.tracer = tracer
        self._kernels = kernels
        self._backends = backends
        self._data = NamedDataMap(data_files, file)
        self._shared = SharedBuffers(file.plans)
        self._depth = depth
        self._methods: dict[str, Method] = {}
        self._engines: dict[str, str] = {}
        self._isolated: set[str] = set()

    @property
    def method_names(self) -> set[str]:
        """Return the names of all methods."""
        return {plan.name for plan in self.file.plans}

    def num_methods(self) -> int:
        """Return the number of methods."""
        return len(self.file.plans)

    def get_method_name(self, index: int) -> str:
        """Return the name of a method by its index.

        Raises: ExecutionError InvalidArgument
        """
        if not 0 <= index < len(self.file.plans):
            raise invalid_argument(
                f"method {index} not found; the program has {len(self.file.plans)}"
            )
        return self.file.plans[index].name

    def load_method(
        self,
        name: str,
        *,
        engine: str = "",
        emulate: RecordFile | None = None,
        isolate: bool = False,
    ) -> Method:
        """Return a method, loading it on the first call.

        Args:
            name: of the method
            engine: runs its partitions if a backend has several engines: ``auto``,
                ``native`` or ``torch``; empty selects the engine it is already loaded with, else
                ``auto``
            emulate: record of this program, whose graphs run the partitions of backends that are
                not registered; `Method.measurements` reports these as emulated
            isolate: run native kernels in a child process, so that a crash of theirs is an
                ExecutionError; slower, since a call is two messages

        Raises: UnknownMethodError, which is a KeyError too; ExecutionError if it cannot be
            loaded, or is loaded with another engine, or not isolated
        """
        if name not in self._methods:
            self._methods[name] = self.fresh_method(
                name, engine=engine or "auto", emulate=emulate, isolate=isolate
            )
            self._engines[name] = engine or "auto"
            (self._isolated.add if isolate else self._isolated.discard)(name)
        other = ""
        if engine and self._engines[name] != engine:
            other = f"engine {self._engines[name]!r}"
        elif isolate and name not in self._isolated:
            other = "its kernels in this process"
        if other:
            reason = f"method {name!r} is loaded with {other}"
            raise ExecutionError(ErrorCode.InvalidState, reason, remedy="Unload it first.")
        return self._methods[name]

    @gc_suspended()
    def fresh_method(
        self,
        name: str,
        *,
        engine: str = "auto",
        emulate: RecordFile | None = None,
        isolate: bool = False,
    ) -> Method:
        """Return a new instance of a method, with separate memory and state.

        Args:
            name: of the method
            engine: runs its partitions
            emulate: record of this program, whose graphs run partitions of missing backends
            isolate: run native kernels in a child process

        Raises: UnknownMethodError, which is a KeyError too; ExecutionError if it cannot be loaded
        """
        plan = self._plan(name)
        start = clock()
        try:
            table = TableBuilder(
                plan, self.file, PlannedBuffers(plan, self._shared), self._data
            ).build()
            context = BackendInitContext(
                name,
                self._data,
                self._kernels,
                self._backends,
                self._depth,
                engine=engine,
                isolate=isolate,
            )
            partitions = load_partitions(plan, self.file, context, emulate)
            method = Method(plan, table, self._kernels, partitions, self.tracer)
        except ExecutionError as error:
            error.located(method=name)
            raise
        log(LogLevel.INFO, f"method {name!r} is loaded")
        if self.tracer is not None:
            self.tracer.need_block("Default")
            if self.tracer.allocations:
                log_memory(method.memory, self.tracer)
            self.tracer.profile("Method::init", start, clock())
            self.tracer.profile("Program::load_method", start, clock())
        return method

    def unload_method(self, name: str) -> bool:
        """Unload a method; return whether it was loaded."""
        method = self._methods.pop(name, None)
        if method is not None:
            method.close()
        return method is not None

    def is_method_loaded(self, name: str) -> bool:
        """Return whether a method is loaded."""
        return name in self._methods

    def metadata(self, method_name: str) -> MethodMeta:
        """Return the metadata of a method, loaded or not.

        Raises: UnknownMethodError
        """
        return MethodMeta(self._plan(method_name))

    method_meta = metadata

    def _plan(self, name: str) -> m.ExecutionPlan:
        for plan in self.file.plans:
            if plan.name == name:
                return plan
        raise UnknownMethodError(name, self.method_names)

    def has_etdump(self) -> bool:
        """Return whether loads and runs are recorded."""
        return self.tracer is not None

    def write_etdump_result_to_file(
        self, etdump_path: str | Path, debug_buffer_path: str | Path | None = None
    ) -> None:
        """Write the trace, and the debug buffer where a path for it is given.

        Raises: ExecutionError InvalidState if the program was loaded without recording
        """
        if self.tracer is None:
            raise ExecutionError(
                ErrorCode.InvalidState,
                "nothing was recorded",
                remedy="Load the program with enable_etdump=True.",
            )
        self.tracer.write(etdump_path, debug_buffer_path)
