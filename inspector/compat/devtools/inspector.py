"""The Inspector: the events of a trace, named by a record, as objects, tables and strings."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from typing import IO, Any

from inspector.compat.devtools import opening
from inspector.compat.devtools.etrecord import EDGE_GRAPH, ETRecord, reference_graph
from inspector.compat.devtools.event import Event, MetadataParser
from inspector.compat.devtools.event_block import EventBlock
from inspector.compat.devtools.event_options import EventOptions, event_blocks
from inspector.compat.devtools.tables import printable, show
from inspector.compat.devtools.tensorboard import write_tensorboard
from inspector.compat.devtools.tensors import WritableBuffer
from inspector.compat.devtools.time_scale import TimeScale, as_time_scale, divisor
from inspector.compat.devtools.trace_events import Clock, TimeConverter
from inspector.export.pandas_bridge import DataFrame, joined
from inspector.files.session import Session
from inspector.trace.blocks import trace_blocks
from inspector.trace.event_kinds import OPERATOR_CALL

_LOG = logging.getLogger(__name__)


class Inspector:
    """The events of an ETDump, joined with an ETRecord.

    Attributes:
        event_blocks: one a pattern of execution
        session: the opened artifacts, for every other analysis of this package
        etrecord: the record, None without one
    """

    def __init__(  # noqa: PLR0913 - the documented signature
        self,
        etdump_path: str | os.PathLike[str] | None = None,
        etdump_data: bytes | None = None,
        etrecord: ETRecord | str | None = None,
        source_time_scale: TimeScale = TimeScale.NS,
        target_time_scale: TimeScale = TimeScale.MS,
        debug_buffer_path: str | os.PathLike[str] | None = None,
        delegate_metadata_parser: MetadataParser | None = None,
        delegate_time_scale_converter: TimeConverter | None = None,
        enable_module_hierarchy: bool = False,
        reference_graph_name: str = EDGE_GRAPH,
        *,
        program: object = None,
        **aliases: object,
    ) -> None:
        """Open a trace with its record and buffer.

        Args:
            etdump_path: the trace
            etdump_data: the trace as bytes, in place of a path
            etrecord: path of an ETRecord, or an ETRecord object
            source_time_scale: unit of the ticks of the trace
            target_time_scale: unit of the durations that are reported
            debug_buffer_path: bytes of the logged tensors
            delegate_metadata_parser: converts the metadata of backends to strings or columns
            delegate_time_scale_converter: converts (event name, ticks) inside delegates
            enable_module_hierarchy: list operators by recorded source function
            reference_graph_name: recorded graph that names the operators
            program: path of the ``.pte``; joins events that the record has no handles for
            **aliases: buffer_path and etrecord_path, as parts of the documentation write

        Raises:
            ValueError: not exactly one of etdump_path and etdump_data
            RuntimeError: cycles on one side, a time on the other
            TypeError: an etrecord of an unknown type, an unknown argument
            KeyError: the record has no such reference graph
            FormatError: a file of another format, or a damaged one
            OSError: a file that cannot be read
        """
        named = {"etrecord": etrecord, "debug_buffer_path": debug_buffer_path}
        given: dict[str, Any] = opening.with_aliases(named, aliases)
        self._source = as_time_scale(source_time_scale)
        self._target = as_time_scale(target_time_scale)
        clock = Clock(divisor(self._source, self._target), delegate_time_scale_converter)
        self.etrecord: ETRecord | None = opening.open_record(given["etrecord"])
        trace = opening.open_trace(etdump_path, etdump_data)
        buffer = _open_buffer(given["debug_buffer_path"])
        opened = opening.open_program(program)
        self.session: Session = opening.session_of(trace, self.etrecord, opened, self._source)
        graph = reference_graph(self.session.record, reference_graph_name)
        for issue in (*self.session.all_issues(), *trace_blocks(self.session.dumps).issues):
            _LOG.warning("%s: %s", issue.where, issue.message)
        options = EventOptions(clock, buffer, delegate_metadata_parser, enable_module_hierarchy)
        scales = self._source, self._target
        self.event_blocks: list[EventBlock] = event_blocks(self.session, options, graph, scales)

    # ---- tables
    def to_dataframe(
        self, include_units: bool = True, include_delegate_debug_data: bool = False
    ) -> DataFrame:
        """Return one row per event, block after block.

        Args:
            include_units: name the unit in the headers of the time columns
            include_delegate_debug_data: add the metadata of backends, as separate columns
        """
        blocks = self.event_blocks or [EventBlock("", target_time_scale=self._target)]
        frames = [
            block.to_dataframe(include_units, include_delegate_debug_data) for block in blocks
        ]
        return joined(frames)

    def print_data_tabular(
        self,
        file: IO[str] | None = None,
        include_units: bool = True,
        include_delegate_debug_data: bool = False,
    ) -> None:
        """Print the events as a table, in a notebook as an HTML one.

        Raw samples, ids, traces and logged values are left out, and so are OPERATOR_CALL rows.

        Args:
            file: where to print, standard output if None
            include_units: name the unit in the headers
            include_delegate_debug_data: add the metadata of backends
        """
        frame = self.to_dataframe(include_units, include_delegate_debug_data)
        show(printable(frame), sys.stdout if file is None else file)

    def save_data_to_tsv(
        self,
        file: IO[str] | str | os.PathLike[str],
        include_units: bool = True,
        include_delegate_debug_data: bool = False,
    ) -> None:
        """Write the table of print_data_tabular as tab-separated values.

        Raises: OSError
        """
        frame = self.to_dataframe(include_units, include_delegate_debug_data)
        printable(frame).to_csv(file, sep="\t")

    # ---- questions
    def find_total_for_module(self, module_name: str) -> float:
        """Return the summed mean time of all events of a module, in the target time scale.

        An event counts when a key of its module stack contains the name. OPERATOR_CALL is left
        out: it contains its kernel's own event.
        """
        events = (event for block in self.event_blocks for event in block.events)
        return float(sum(_mean(event) for event in events if _is_of_module(event, module_name)))

    def get_op_list(
        self, event_block: str, show_delegated_ops: bool | None = True
    ) -> dict[str, list[Event]]:
        """Return the events of each operator, those of recorded graphs, in the order of the run.

        An event that stands for several operators is in the list of each. Events whose operators
        no file names are not in it, and neither is OPERATOR_CALL, which holds its kernel's event.

        Args:
            event_block: name of a block, such as ``Execute``; all blocks of this name count
            show_delegated_ops: with calls of delegates and events inside them

        Raises: ValueError naming the blocks there are
        """
        blocks = [block for block in self.event_blocks if block.name == event_block]
        if not blocks:
            names = ", ".join(dict.fromkeys(block.name for block in self.event_blocks)) or "none"
            raise ValueError(f"block {event_block!r} not found; available: {names}")
        found: dict[str, list[Event]] = {}
        for event in (event for block in blocks for event in block.events):
            delegated = event.is_delegated_op or event.delegate_backend_name is not None
            if event.name != OPERATOR_CALL and (show_delegated_ops or not delegated):
                for name in dict.fromkeys(event.op_types):
                    found.setdefault(name, []).append(event)
        return found

    def get_vgf_neural_statistics(self) -> list[dict[str, Any]]:
        """Return the neural statistics that Arm's VGF backend attached to events, in their order.

        Raises: ValueError for statistics that are damaged
        """
        from inspector.compat.vgf_statistics import parse_vgf_neural_statistics_delegate_metadata

        events = (event for block in self.event_blocks for event in block.events)
        attached = (each for event in events for each in event.raw_delegate_debug_metadatas)
        return parse_vgf_neural_statistics_delegate_metadata(attached)

    def write_tensorboard_artifact(self, path: str | os.PathLike[str]) -> None:
        """Write a file that TensorBoard opens; ``etscope trace`` writes one for Perfetto.

        It has the mean duration of each event and of each operator as scalars, and a table.

        Args:
            path: of the folder of runs, the ``--logdir`` of TensorBoard; created if missing

        Raises: OSError
        """
        write_tensorboard(path, self.event_blocks)

    def get_exported_program(self, graph: str | None = None) -> Any:  # noqa: ANN401 - see below
        """Return a recorded program as a torch.export.ExportedProgram; this loads torch.

        Args:
            graph: name of a further recorded program; the edge program if None

        Returns: None without a record (with a warning) or without such a program; with several
            methods, a mapping from method to program

        Raises: RebuildError if torch cannot make a program of it
        """
        if self.etrecord is None:
            _LOG.warning("Exported programs are only available when an etrecord was given")
            return None
        if graph is None:
            return self.etrecord.edge_dialect_program
        return (self.etrecord.graph_map or {}).get(graph)

    def calculate_numeric_gap(
        self,
        distance: object,
        disable_debug_handle_valdiation: bool = False,  # the documented spelling
        reference_graph: str | None = None,
        **aliases: bool,
    ) -> DataFrame:
        """Compare the logged values of the run with the recorded program; loads torch.

        ``etscope gap`` compares every output, also of methods, runs and
        operators that share a debug handle; this is the documented table, one row for each group
        of handles, and one more for each operator with several results.

        Args:
            distance: MSE, L1 or SNR, or an object with ``element_compare`` and ``preprocessing``
            disable_debug_handle_valdiation: take the exported program also when not all debug
                handles lead back to it; ``disable_debug_handle_validation`` is the same
            reference_graph: ``exported_program``, ``edge_dialect_exported_program`` or another
                recorded graph; None for the exported one where possible, else the edge one
            **aliases: the other spelling

        Raises: ValueError for an unknown distance or graph, or without representative inputs;
            RebuildError if torch cannot make a program of the graph
        """
        from inspector.compat.numeric_gap.gap_table import numeric_gap

        unknown = set(aliases) - {"disable_debug_handle_validation"}
        if unknown:
            raise TypeError(f"unexpected argument {sorted(unknown)[0]!r}")
        best_effort = disable_debug_handle_valdiation or any(aliases.values())
        return numeric_gap(self, distance, reference_graph, best_effort=best_effort)


def _open_buffer(path: str | os.PathLike[str] | None) -> WritableBuffer | None:
    if path is not None:
        return WritableBuffer.open(path)
    text = "Output Buffer not found. Tensor Debug Data will not be available."
    warnings.warn(text, stacklevel=3)
    return None


def _is_of_module(event: Event, module_name: str) -> bool:
    if event.name == OPERATOR_CALL:
        return False
    return any(module_name in key for stack in event.module_hierarchy.values() for key in stack)


def _mean(event: Event) -> float:
    return event.perf_data.avg if event.perf_data is not None else 0.0
