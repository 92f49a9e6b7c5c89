"""The backend interface, and the registry of backends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from runtime.delegates.errors import LoadFailure
from runtime.delegates.stepping import DelegateSteps
from runtime.errors import OF_BACKEND, ErrorCode, ExecutionError, invalid_argument
from runtime.kernels.registry import KernelRegistry
from runtime.memory.slots import TensorSlot
from runtime.program.named_data import NamedDataMap
from runtime.program.values import ValueTable
from runtime.tracing.tracer import DelegateRow, EventTracer, clock
from schema.origins import ValueOrigin


@dataclass(frozen=True, slots=True)
class BackendInitContext:
    """The context in which a backend initializes a partition.

    Attributes:
        method_name: method the partition belongs to
        named_data: blobs of the program and its external data, by key
        kernels: the kernels of the runtime
        backends: the backends of the runtime
        depth: nesting depth of the partition's program in other programs
        partition: its index among the delegates of the method
        engine: name of the backend's engine that is to run it; ``auto`` lets the backend choose
        isolate: run native kernels in a child process, which may end with them
        kept: files that the vendor's tools left beside the payload, from its record
    """

    method_name: str
    named_data: NamedDataMap
    kernels: KernelRegistry
    backends: BackendRegistry
    depth: int
    partition: int = 0
    engine: str = "auto"
    isolate: bool = False
    kept: Mapping[str, bytes] = field(default_factory=dict[str, bytes])


@dataclass(frozen=True, slots=True)
class BoundCall:
    """A call of a partition on tensors that never change.

    Both return whether they have run; if not, the backend's `execute` has to.

    Attributes:
        traced: runs it with a tracer
        untraced: runs it without one
    """

    traced: Callable[[DelegateTracer], bool]
    untraced: Callable[[], bool]


HOST_EMULATION = "host emulation"
"""Source of times of torch's kernels that stand in for a backend's own."""


class DelegateTracer:
    """Logs events and values inside one delegate call; does nothing without a tracer.

    An id is the backend's own, an integer or a string; the backend's debug handle map relates it to
    the graph. Times are nanoseconds of `runtime.tracing.tracer.clock`.
    """

    def __init__(self, tracer: EventTracer | None, place: tuple[int, int]) -> None:
        self._tracer = tracer
        self._place = place

    @property
    def records(self) -> bool:
        """Return whether there is a tracer."""
        return self._tracer is not None

    @property
    def logs_values(self) -> bool:
        """Return whether values inside of delegates are logged."""
        tracer = self._tracer
        return tracer is not None and tracer.debug_level > 1

    def start(self) -> int:
        """Return the time, for `end`."""
        return clock()

    def end(self, identity: int | str, started: int, metadata: bytes | None = None) -> None:
        """Log a scope that ends now."""
        self.log(identity, started, clock(), metadata)

    def log(self, identity: int | str, start: int, end: int, metadata: bytes | None = None) -> None:
        """Log a scope with known times."""
        if self._tracer is not None:
            self._tracer.profile_delegate(identity, start, end, metadata, self._place)

    def log_row(
        self, names: Sequence[str], start: int, micros: Sequence[int], metadata: bytes | None = None
    ) -> None:
        """Log consecutive scopes, each with its duration in microseconds."""
        if self._tracer is not None and names:
            row = DelegateRow(names, start, micros, metadata, self._place)
            self._tracer.profile_delegates(row)

    def log_value(self, identity: int | str, value: Any) -> None:  # noqa: ANN401 - tensor or number
        """Log an intermediate value."""
        tracer = self._tracer
        chain, instruction = self._place
        if tracer is None or not self.logs_values:
            return
        if tracer.only.takes_inner(instruction, identity):
            tracer.log_value(value, chain, instruction, identity=identity)


@dataclass(frozen=True, slots=True)
class BackendExecutionContext:
    """The context in which a backend runs a partition.

    Attributes:
        tracer: logs events and values inside of the call
        method_name: method that runs
    """

    tracer: DelegateTracer
    method_name: str
    _table: ValueTable
    _args: Sequence[int] = ()

    def store_number(self, place: int, number: int | float | bool) -> None:
        """Write a number that a delegate computes, as a size.

        Args:
            place: of the argument among those of the call
            number: its value
        """
        self._table.items[self._args[place]] = number

    def dim_order(self, argument: torch.Tensor) -> tuple[int, ...]:
        """Return the dimensions of an argument of the call, outermost in memory first."""
        slot = self._table.slots.get(id(argument))
        return tuple(range(argument.dim())) if slot is None else slot.dim_order

    def store(self, argument: torch.Tensor, result: torch.Tensor) -> None:
        """Write a result into an argument of the call, resized to it within its plan.

        Raises: ExecutionError where shape or dtype do not fit, or it is a constant
        """
        slot = self._table.slots.get(id(argument))
        if slot is None or slot.read_only:
            raise invalid_argument("a delegate writes to a value that is not a result of its call")
        slot.store(result)


@dataclass(frozen=True, slots=True)
class PartitionEngine:
    """The engine of a partition, and the source of its times.

    Attributes:
        backend: id of the backend
        engine: name of the backend's engine, empty if it has only one
        source: of the times; times of different sources are never added up
        note: why the preferred engine does not run it, empty if it does
        origin: of times and values
    """

    backend: str
    engine: str = ""
    source: str = HOST_EMULATION
    note: str = ""
    origin: ValueOrigin = ValueOrigin.INTERPRETED


class BackendInterface(ABC):
    """A backend: initializes, runs and destroys partitions.

    Attributes:
        payload_is_all: whether payloads describe the whole computation; if not, a
            rejected payload is emulated from the ETRecord if one is given
    """

    payload_is_all = True

    def is_available(self) -> bool:
        """Return whether the backend can run on this machine."""
        return True

    @abstractmethod
    def init(
        self,
        context: BackendInitContext,
        processed: memoryview,
        compile_specs: Mapping[str, bytes],
    ) -> Any:  # noqa: ANN401 - the backend's own
        """Return a handle of a partition.

        Raises: ExecutionError DelegateInvalidCompatibility for a payload that it cannot run
        """

    @abstractmethod
    def execute(
        self,
        context: BackendExecutionContext,
        handle: Any,  # noqa: ANN401 - what init returned
        args: Sequence[Any],
    ) -> None:
        """Run a partition on its arguments: inputs first, then the results to be stored."""

    def bound(
        self,
        handle: Any,  # noqa: ANN401 - what init returned
        args: Sequence[TensorSlot | None],
    ) -> BoundCall | None:
        """Return a call that needs no look at its arguments, None if not supported.

        Args:
            handle: the partition
            args: tensors of the call, None for arguments that are none or may be exchanged
        """
        del handle, args
        return None

    def written(self, handle: Any) -> Collection[int] | None:  # noqa: ANN401
        """Return the indices of the arguments that a call writes and does not read.

        The others are only read then. None where any argument may be both.

        Args:
            handle: the partition
        """
        del handle
        return None

    def measurement(self, name: str, handle: Any) -> PartitionEngine:  # noqa: ANN401
        """Return the engine of a partition: torch's kernels unless overridden.

        Args:
            name: id of the backend
            handle: the partition
        """
        del handle
        return PartitionEngine(name)

    def steps(
        self,
        context: BackendExecutionContext,
        handle: Any,  # noqa: ANN401 - what init returned
        args: Sequence[Any],
    ) -> DelegateSteps | None:
        """Return a call of a partition that runs node by node, None if not supported."""
        del context, handle, args
        return None

    def reset_state(self, handle: Any) -> None:  # noqa: ANN401, B027 - most payloads have none
        """Put what a partition keeps from call to call back to what it was after its load."""

    def destroy(self, handle: Any) -> None:  # noqa: ANN401, B027 - optional
        """Free a partition."""

    def trial_engine(self) -> str:
        """Return a name for the native engine of `try_load`, empty if torch's kernels are used."""
        return ""

    def try_load(
        self, processed: memoryview, named_data: NamedDataMap, partition: int
    ) -> LoadFailure | None:
        """Load a partition alone and free it; return its failure, None if it loads.

        Args:
            processed: the payload
            named_data: blobs of the program and its external data, by key
            partition: its index among the delegates of the method

        Raises: NotImplementedError for a backend that does not support trial loading
        """
        raise NotImplementedError

    def set_options(self, options: Mapping[str, str]) -> None:  # noqa: B027 - optional
        """Set the options of the payloads that are loaded from now on, replacing earlier ones.

        The process that calls it may end by what the payloads do.
        """


class BackendRegistry:
    """Finds backends by id.

    Args:
        backends: initial backends, by id
    """

    def __init__(self, backends: Mapping[str, Callable[[], BackendInterface]]) -> None:
        self._factories = dict(backends)
        self._backends: dict[str, BackendInterface] = {}

    @property
    def registered_backend_names(self) -> list[str]:
        """Return the ids of all backends."""
        return list(self._factories)

    def is_available(self, backend_name: str) -> bool:
        """Return whether a backend is registered and can run here."""
        return backend_name in self._factories and self.backend(backend_name).is_available()

    def register_backend(self, name: str, make: Callable[[], BackendInterface]) -> None:
        """Add a backend.

        Raises: ExecutionError RegistrationAlreadyRegistered for a registered id
        """
        if name in self._factories:
            raise ExecutionError(
                ErrorCode.RegistrationAlreadyRegistered, f"backend {name!r} is already registered"
            )
        self._factories[name] = make

    def backend(self, name: str) -> BackendInterface:
        """Return a backend.

        Raises: ExecutionError NotFound with the available ones
        """
        if name not in self._factories:
            known = ", ".join(self._factories) or "none"
            raise ExecutionError(
                ErrorCode.NotFound,
                f"backend {name!r} is not registered; available: {known}",
                remedy=OF_BACKEND,
            )
        if name not in self._backends:
            self._backends[name] = self._factories[name]()
        return self._backends[name]
