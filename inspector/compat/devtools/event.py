"""One event of a block, with the documented attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from inspector.compat.devtools.perf_data import PerfData
from inspector.compat.devtools.symbols import ModuleStack
from inspector.export.pandas_bridge import DataFrame, load_pandas

MetadataParser = Callable[[list[Any]], "list[str] | dict[str, Any]"]
_SHOWN_OPERATORS = 4  # longer lists are shortened in tables


@dataclass
class Event:
    """One occurrence of an operator, delegate call or framework scope, over all runs of a block.

    Units: perf_data in the target time scale; start_time in ticks of the trace

    Attributes:
        name: the delegate's own id for events inside delegates, else the logged name
        perf_data: durations, None when only values were logged
        op_types: operators of the recorded graph the event stands for
        delegate_debug_identifier: id a backend gave the event, None outside of delegates
        debug_handles: one handle for a kernel, a list for a delegate, None when unknown
        num_outputs: outputs of a delegate call as recorded, 1 elsewhere
        stack_traces: node name -> Python traceback, None where it was not recorded
        module_hierarchy: node name -> module stack, outermost first
        is_delegated_op: whether it happened inside a delegate
        delegate_backend_name: backend id of delegate calls and of events inside them
        debug_data: values logged in the first run that logged any; tensors are torch tensors made
            on access, or MissingTensor when their bytes are not there
        debug_data_runs: the same for every run
        link: how it was matched to program and record (see inspector.join.links.Grade)
    """

    name: str
    perf_data: PerfData | None = None
    op_types: list[str] = field(default_factory=list[str])
    delegate_debug_identifier: int | str | None = None
    debug_handles: int | Sequence[int] | None = None
    num_outputs: int = 1
    stack_traces: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    module_hierarchy: dict[str, ModuleStack] = field(default_factory=dict[str, ModuleStack])
    is_delegated_op: bool | None = None
    delegate_backend_name: str | None = None
    # Names with an underscore, and their order, are those of the stock constructor.
    _delegate_debug_metadatas: list[Any] = field(default_factory=list[Any])
    debug_data: Sequence[Any] = field(default_factory=list[Any], repr=False)
    _instruction_id: int | None = None
    _delegate_metadata_parser: MetadataParser | None = field(default=None, repr=False)
    _delegate_time_scale_converter: Callable[[Any, Any], Any] | None = field(
        default=None, repr=False
    )
    _start_time: list[int] | None = None
    debug_data_runs: Sequence[Sequence[Any]] = field(default=(), repr=False, compare=False)
    link: str = field(default="NONE", compare=False)

    # Names of the stock class that programs use although they are not documented.
    @staticmethod
    def _gen_from_inference_events(
        signature: object,
        events: Sequence[Any],
        *factor_and_more: Any,  # noqa: ANN401
        **named: Any,  # noqa: ANN401
    ) -> Event:
        """Return the event of a signature from objects of the stock package, one per run."""
        from inspector.compat.devtools.traces import event_of

        return event_of(signature, events, *factor_and_more, **named)

    @staticmethod
    def _populate_profiling_related_fields(
        ret_event: Event,
        profile_event_signature: object,
        events: Sequence[Any],
        scale_factor: float,
    ) -> None:
        """Fill in the durations of one event from objects of the stock package."""
        from inspector.compat.devtools.traces import fill_times

        fill_times(ret_event, profile_event_signature, events, scale_factor)

    @staticmethod
    def _populate_debugging_related_fields(
        ret_event: Event,
        debug_event_signature: object,
        events: Sequence[Any],
        output_buffer: bytes | None = None,
    ) -> None:
        """Fill in the logged values of one event from objects of the stock package."""
        from inspector.compat.devtools.traces import fill_values

        fill_values(ret_event, debug_event_signature, events, output_buffer)

    def _associate_with_op_graph_nodes(
        self, debug_handle_to_op_node_map: Mapping[int, Sequence[Any]]
    ) -> None:
        """Add operators, source lines and modules of the nodes that have its debug handles."""
        from inspector.compat.devtools.traces import associate

        associate(self, debug_handle_to_op_node_map)

    @cached_property
    def delegate_debug_metadatas(self) -> list[Any] | dict[str, Any]:
        """Return the parsed metadata, or the metadata itself without a parser."""
        if not self.is_delegated_op or self._delegate_metadata_parser is None:
            return self._delegate_debug_metadatas
        return self._delegate_metadata_parser(self._delegate_debug_metadatas)

    @property
    def raw_delegate_debug_metadatas(self) -> list[Any]:
        """Return the metadata of a backend, one entry per run; empty without it."""
        return self._delegate_debug_metadatas

    @property
    def start_time(self) -> list[int] | None:
        """Return the starts, one per run; None without a duration."""
        return self._start_time

    @property
    def instruction_id(self) -> int | None:
        """Return the instruction as it was logged, None when unset."""
        return self._instruction_id

    def to_dataframe(self, _units: str = "") -> DataFrame:
        """Return one row; ``_units`` is put behind the names of the time columns."""
        return load_pandas().DataFrame(self.asdict(_units))

    def asdict(self, _units: str = "") -> dict[str, Any]:
        """Return the cells of the row, containers wrapped in a list of one."""
        perf = self.perf_data
        times = {
            f"{name}{_units}": None if perf is None else getattr(perf, name)
            for name in ("p10", "p50", "p90", "avg", "min", "max")
        }
        return {
            "event_name": self.name,
            "raw": [None if perf is None else perf.raw],
            **times,
            "op_types": [shown_operators(self.op_types)],
            "delegate_debug_identifier": self.delegate_debug_identifier,
            "stack_traces": [self.stack_traces],
            "module_hierarchy": [self.module_hierarchy],
            "is_delegated_op": self.is_delegated_op,
            "delegate_backend_name": self.delegate_backend_name,
            "debug_data": [self.debug_data],
            "start_time": [self.start_time],
        }


def shown_operators(operators: list[str]) -> list[str] | str:
    """Return a list of operators for tables; five and more are abbreviated."""
    if len(operators) <= _SHOWN_OPERATORS:
        return operators
    first, second, last = operators[0], operators[1], operators[-1]
    return f"['{first}', '{second}' ... '{last}'] ({len(operators)} total)"
