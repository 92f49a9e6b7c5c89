"""The manager of edge programs, and the two functions that create one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from torch._ops import OpOverload
from torch.export import ExportedProgram

from compiler.delegate.rounds import partitioners_by_method
from compiler.edge.cache import EdgeCache
from compiler.edge.config import EdgeCompileConfig
from compiler.edge.program import give_signature_names
from compiler.edge.written_buffers import written_by_others
from compiler.emit.config import ExecutorchBackendConfig
from compiler.emit.program import emit_program
from compiler.errors import CompileError
from compiler.interface.named_data import NamedDataStore, named_data_store
from compiler.partition.verdicts import verdicts_of
from compiler.passes.pipeline import completed, transform_methods
from compiler.pipeline.lowering import (
    calls_of,
    delegate,
    edge_of,
    lower_for,
    passes_before_planning,
    transforming,
)
from compiler.pipeline.program_manager import (
    FORWARD,
    ExecutorchProgramManager,
    ProgramManager,
    requested_record,
)
from compiler.record.record import ETRecord
from compiler.stages import Observer, StageEvent, Stages
from schema.etrecord.parts.verdicts import Verdict

AFTER_PASSES = "edge_after_transform"  # the documented name of its graph in a record
Programs = ExportedProgram | Mapping[str, ExportedProgram]
Operators = Sequence[OpOverload] | None


class EdgeProgramManager(ProgramManager):
    """Edge programs and constant methods by name; immutable."""

    def __init__(  # noqa: PLR0913 - as documented
        self,
        edge_programs: Programs,
        constant_methods: Mapping[str, Any] | None = None,
        compile_config: EdgeCompileConfig | None = None,
        core_aten_ops_exception_list: Operators = None,
        preserve_ops: Operators = None,
        *,
        record: ETRecord | None = None,
        events: tuple[StageEvent, ...] = (),
    ) -> None:
        """Store edge programs.

        Args:
            edge_programs: one program, named ``forward``, or programs by method
            constant_methods: values by the name of the method that returns them
            compile_config: how the programs were lowered
            core_aten_ops_exception_list: operators that the verifier accepts, besides those
                of the configuration
            preserve_ops: operators that were not decomposed, accepted as well
            record: of the programs, None if not requested
            events: completed stages, with their times
        """
        super().__init__(named_programs(edge_programs), constant_methods or {}, events)
        more = (*(core_aten_ops_exception_list or ()), *(preserve_ops or ()))
        self._config = (compile_config or EdgeCompileConfig()).with_exceptions(more)
        self._etrecord = record
        both = sorted(self.methods & self.config_methods)
        if both:
            raise CompileError(f"methods and constant methods share the names {', '.join(both)}")

    def __deepcopy__(self, memo: dict[int, Any]) -> EdgeProgramManager:
        """Return a manager of copied programs, as the documentation recommends for a record."""
        new = object.__new__(type(self))
        memo[id(self)] = new
        vars(new).update({name: copy.deepcopy(held, memo) for name, held in vars(self).items()})
        new._programs = named_programs(new._programs)
        return new

    def exported_program(self, method_name: str = FORWARD) -> ExportedProgram:
        """Return the edge program of a method.

        Raises: KeyError listing the available methods
        """
        return self._program(method_name)

    @property
    def _edge_programs(self) -> dict[str, ExportedProgram]:
        """The edge programs, under the attribute that programs for ExecuTorch read."""
        return self._programs

    @property
    def _config_methods(self) -> dict[str, Any]:
        """The values of constant methods, likewise; entries added to it are emitted."""
        return self._constants

    @_config_methods.setter
    def _config_methods(self, methods: Mapping[str, Any]) -> None:
        self._constants = dict(methods)

    @property
    def _named_data_store(self) -> NamedDataStore:
        """The blobs that the payloads of all delegates look up by key, of all methods."""
        return named_data_store(self._programs.values())

    @property
    def lowered_programs(self) -> dict[str, ExportedProgram]:
        """Return the edge programs before passes and delegation; empty without a record."""
        return {} if self._etrecord is None else self._etrecord.edge_programs

    @property
    def compile_config(self) -> EdgeCompileConfig:
        """Return the configuration of the lowering."""
        return self._config

    def transform(
        self,
        passes: Any,  # noqa: ANN401 - a list, a pass manager, or either by method
        compile_config: EdgeCompileConfig | None = None,
        *,
        observer: Observer | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> EdgeProgramManager:
        """Return a manager of the transformed programs; this one is not changed.

        Args:
            passes: a list or a pass manager, for all methods, or a dictionary by method
            compile_config: of the verifier; this manager's if None
            observer: called with the events of each pass, as the stage ``pass NAME``
            cancelled: called before each pass; True cancels the compile

        Raises:
            PassError: a pass raised, or returned an invalid result
            SpecViolationError: the verifier rejects the output of a pass
            KeyError: passes are given for an unknown method
        """
        stages, config = Stages(observer, cancelled), compile_config or self._config
        programs = transform_methods(self._programs, passes, config, stages)
        return EdgeProgramManager(
            programs,
            self._constants,
            config,
            record=self._etrecord,
            events=(*self.events, *stages.events),
        )

    def get_etrecord(self) -> ETRecord:
        """Return the record of the programs, without an emitted program.

        Raises: RuntimeError if none was requested
        """
        return requested_record(self._etrecord)

    @property
    def verdicts(self) -> dict[str, tuple[Verdict, ...]]:
        """Return by method why each node was delegated or not; empty before a partitioner."""
        return {name: verdicts_of(program) for name, program in self._programs.items()}

    def to_backend(
        self,
        partitioner: Any,  # noqa: ANN401 - one, several, or either by method
        *,
        observer: Observer | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> EdgeProgramManager:
        """Return a manager of programs with the partitions of partitioners delegated.

        Args:
            partitioner: one for all methods, several in order, or a dictionary by method
            observer: called with the events of each stage
            cancelled: called before each stage; True cancels the compile

        Raises:
            PartitionError: a partitioner or its tags break a rule
            BackendError: a backend raised, or returned an invalid result
            NotImplementedError: unknown backend
        """
        stages = Stages(observer, cancelled)
        requested = partitioners_by_method(partitioner, self._programs)
        return EdgeProgramManager(
            delegate(_completed(self._programs), requested, stages),
            self._constants,
            self._config,
            record=self._etrecord,
            events=(*self.events, *stages.events),
        )

    def _with_passes(
        self, config: ExecutorchBackendConfig, stages: Stages
    ) -> Mapping[str, ExportedProgram]:
        """Return the programs after the passes of a configuration, without verification."""
        unchecked = replace(self._config, _check_ir_validity=False)
        programs = _completed(self._programs)
        for passes in passes_before_planning(config):
            programs = transform_methods(programs, passes, unchecked, stages)
        return programs

    def to_executorch(
        self,
        config: ExecutorchBackendConfig | None = None,
        *,
        observer: Observer | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> ExecutorchProgramManager:
        """Plan memory and emit a program file; this manager can be used again.

        Args:
            config: planning, alignment, stack traces
            observer: called with the events of each stage
            cancelled: called before each stage; True cancels the compile

        Raises: CompileError naming what cannot be emitted and the user's line
        """
        stages = Stages(observer, cancelled)
        config = config or ExecutorchBackendConfig()
        programs = self._with_passes(config, stages)
        emitted = emit_program(programs, self._constants, config, stages)
        return ExecutorchProgramManager(
            emitted,
            programs,
            self._constants,
            record=self._etrecord,
            events=(*self.events, *stages.events),
        )


def named_programs(programs: Programs) -> dict[str, ExportedProgram]:
    """Return programs by method; a lone one is named ``forward``.

    Raises:
        TypeError: an object is not an exported program
        CompileError: a method has no name
    """
    given: Any = {FORWARD: programs} if isinstance(programs, ExportedProgram) else programs
    if not isinstance(given, Mapping):
        raise TypeError(f"expected an ExportedProgram, or such by method, found {_kind(programs)}")
    named = dict(cast("Mapping[str, ExportedProgram]", given))
    for name, program in named.items():
        if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance] - of users
            raise CompileError(f"the name of a method must be a non-empty string, found {name!r}")
        if not isinstance(program, ExportedProgram):  # pyright: ignore[reportUnnecessaryIsInstance] - of users
            raise TypeError(
                f"expected an ExportedProgram as method {name}, found {_kind(program)}; "
                "compiler.export creates one from a module"
            )
        give_signature_names(program)
    return named


def _record(
    exported: Mapping[str, ExportedProgram], lowered: Mapping[str, ExportedProgram]
) -> ETRecord:
    record = ETRecord()
    record.add_exported_program(exported)
    record.add_edge_dialect_program(lowered)
    return record


def _completed(programs: Mapping[str, ExportedProgram]) -> dict[str, ExportedProgram]:
    return {name: completed(program) for name, program in programs.items()}


def _kind(value: Any) -> str:  # noqa: ANN401
    return type(value).__name__


def to_edge(
    programs: Programs,
    constant_methods: Mapping[str, Any] | None = None,
    compile_config: EdgeCompileConfig | None = None,
    generate_etrecord: bool = False,
    *,
    observer: Observer | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> EdgeProgramManager:
    """Lower exported programs to the edge dialect; they are not changed.

    Args:
        programs: one program, named ``forward``, or programs by method
        constant_methods: values by the name of the method that returns them
        compile_config: dim order, verifier, operators to preserve
        generate_etrecord: keep the data for an ETRecord
        observer: called with the events of each stage
        cancelled: called before each stage; True cancels the compile

    Raises:
        CompileError: a node cannot be lowered; the message has the user's line
        SpecViolationError: the verifier rejects the result
    """
    named, config, stages = (
        named_programs(programs),
        compile_config or EdgeCompileConfig(),
        Stages(observer, cancelled),
    )
    lowered: dict[str, ExportedProgram] = {}
    state = written_by_others(named)
    for name, program in named.items():
        with stages.stage("edge", name) as result:
            lowered[name] = edge_of(program, config, state=state[name])
            result.nodes = calls_of(lowered[name])
            result.modules = {name: lowered[name].graph_module}
    record = _record(named, lowered) if generate_etrecord else None
    return EdgeProgramManager(
        lowered, constant_methods, config, record=record, events=tuple(stages.events)
    )


def to_edge_transform_and_lower(  # noqa: PLR0913 - as documented
    programs: Programs,
    transform_passes: Any = None,  # noqa: ANN401 - one, several, or either by method
    partitioner: Any = None,  # noqa: ANN401 - likewise
    constant_methods: Mapping[str, Any] | None = None,
    compile_config: EdgeCompileConfig | None = None,
    generate_etrecord: bool = False,
    *,
    observer: Observer | None = None,
    cancelled: Callable[[], bool] | None = None,
    kept: EdgeCache | None = None,
) -> EdgeProgramManager:
    """Lower exported programs, run passes over them, and delegate partitions to backends.

    Operators that a partitioner requests to preserve are preserved if it takes them.

    Args:
        programs: one program, named ``forward``, or programs by method
        transform_passes: run over the edge programs before partitioners look at them
        partitioner: one for all methods, several in order, or a dictionary by method
        constant_methods: values by the name of the method that returns them
        compile_config: dim order, verifier, operators to preserve
        generate_etrecord: keep the data for an ETRecord
        observer: called with the events of each stage
        cancelled: called before each stage; True cancels the compile
        kept: edge programs of earlier calls with these programs and this configuration

    Raises: CompileError and SpecViolationError as ``to_edge`` and ``to_backend`` do
    """
    named, stages = named_programs(programs), Stages(observer, cancelled)
    requested = partitioners_by_method(partitioner, named)
    config = compile_config or EdgeCompileConfig()
    lowered = lower_for(
        named, requested, config, transforming(transform_passes, named, stages), stages, kept
    )
    record = _record(named, lowered.recorded) if generate_etrecord else None
    if record is not None and transform_passes:
        record.add_extra_export_modules({AFTER_PASSES: lowered.programs})
    return EdgeProgramManager(
        delegate(lowered.programs, requested, stages, lowered.rounds),
        constant_methods,
        lowered.config,
        record=record,
        events=tuple(stages.events),
    )
