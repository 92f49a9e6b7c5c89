"""Compares the logged values of a run with the recorded program on the same inputs.

The recorded graph is run twice in lockstep: once on the reference's own values, once on the
values of the run. The two distances separate an instruction's own error from its inherited error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from inspector.files.run_report import is_sequence
from inspector.files.session import Session
from inspector.join.methods import is_execution, match_methods
from inspector.join.operands import plan_operands
from inspector.join.record_method import method_of
from inspector.numerics.aten_map import aten_values
from inspector.numerics.inside import held_dtypes, inside_outputs
from inspector.numerics.join import join_method
from inspector.numerics.metrics import Tolerance
from inspector.numerics.replay.comparing import GapComparison, OnProgress, RunLog
from inspector.numerics.replay.equal_choices import with_equal_choices
from inspector.numerics.replay.folded_factors import explained, recorded_values
from inspector.numerics.replay.inputs import (
    Inputs,
    call_inputs,
    logged_tensor,
    run_inputs,
    traced_inputs,
)
from inspector.numerics.replay.measuring import Kept
from inspector.numerics.replay.moved_values import without_moved
from inspector.numerics.replay.other_inputs import with_other_inputs
from inspector.numerics.replay.other_results import with_other_results
from inspector.numerics.replay.payload_causes import with_causes
from inspector.numerics.replay.references import MappedReference, reference_graph
from inspector.numerics.replay.states import MethodStates
from inspector.numerics.report import EDGE, EXPORTED, FLOAT, GapReport, Row, RunGap
from inspector.numerics.tensors import buffer_of_block, logged_blocks
from inspector.numerics.traced import instruction_outputs, logged_run
from inspector.rebuild.serde_rewrite import RebuildError
from inspector.trace.blocks import Block, trace_blocks
from runtime.emulation.graph import GraphRun
from runtime.emulation.recorded import UNKNOWN, Sides
from schema.errors import FormatError
from schema.program import ProgramFile

NO_FLOAT = "no float reference"
ALONE = "its reference has state of its own"
ONLY_OUTPUTS = (
    "the run recorded nothing between its inputs and its outputs;"
    " etscope run --debug-level intermediate does"
)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a comparison.

    Attributes:
        method: restricts the comparison to one method; empty for all
        assumed: method of runs whose method the trace does not identify; empty if unknown
        reference: ``edge``, ``exported``, ``float`` or a recorded graph; empty for the best
            available
        float_program: returns the float program of a method, or the reason why there is none
        tolerance: when an element counts as different
        inputs: flat inputs given by the user, used instead of those in the files
        call_inputs: returns the flat inputs of a call of a sequence, None where they are unknown
        runs: indices of runs to compare in each block; empty for all
        folder: folder for tensors; None to store none
        keep: maximum bytes of stored tensors
    """

    method: str = ""
    assumed: str = ""
    reference: str = ""
    float_program: Callable[[str], MappedReference | str] = lambda _method: NO_FLOAT
    tolerance: Tolerance = field(default_factory=Tolerance)
    inputs: Any = None
    call_inputs: Callable[[int], Any] = lambda _call: None
    runs: tuple[int, ...] = ()
    folder: Path | None = None
    keep: int = 0


def analyse_gap(
    session: Session,
    options: Options = Options(),
    report_progress: OnProgress = lambda done, total: None,
) -> GapReport:
    """Compare the runs of a session with its recorded programs; loads torch.

    Args:
        session: with a program and a trace; useful with a record and a debug buffer
        options: selection and tolerance
        report_progress: called with the numbers of finished nodes and of all nodes, over all runs

    Raises: RebuildError if torch cannot read the requested graph
    """
    return _Analysis(session, options, report_progress).report()


class _Progress:
    """Counts the nodes of all runs as one; what is compared again does not count twice."""

    def __init__(self, report: OnProgress, runs: int) -> None:
        self._report = report
        self._left = runs
        self._before = self._done = self._total = 0

    def show(self, done: int, total: int) -> None:
        """Report the nodes of the current run; later ones are taken to have as many."""
        self._done, self._total = max(self._done, done), max(self._total, total)
        self._report(self._before + self._done, self._before + self._total * self._left)

    def end_run(self) -> None:
        """Go on to the next run."""
        self._before += self._total
        self._done = self._total = 0
        self._left -= 1


class _Analysis:
    """State of one comparison."""

    def __init__(self, session: Session, options: Options, report_progress: OnProgress) -> None:
        self._session = session
        self._options = options
        self._report_progress = report_progress
        self._progress = _Progress(report_progress, 1)
        self._references: dict[str, MappedReference | str] = {}
        self._states = MethodStates(session)
        self._state: dict[str, Sides] = {}  # of the method that is compared
        self._kept = Kept(options.folder, options.keep)

    def report(self) -> GapReport:
        """Return the report."""
        program = self._session.program
        if program is None:
            return GapReport((), ("no program: instructions are those of a .pte file",))
        runs: list[RunGap] = []
        requested = self._runs_in_order(program)
        self._progress = _Progress(self._report_progress, len(requested))
        for number, block, run, method in requested:
            found = self._run(program, number, block, run, method)
            if self._options.method in ("", method):  # others for the state that they leave
                runs.append(found)
            self._progress.end_run()
        return GapReport(tuple(runs), () if runs else self._reasons(program))

    def _reasons(self, program: ProgramFile) -> tuple[str, ...]:
        """Return the reasons why no comparison is possible."""
        requested = self._options.method
        blocks = [each for each in logged_blocks(self._session) if is_execution(each)]
        if not blocks:
            return ("the trace has no run of a method",)
        fitting = {name for each in blocks for name in _fitting(program, each)}
        if requested:
            return (f"the trace has no run of {requested}",)
        if len(fitting) < 2:
            return ("the trace is of no method of the program: etscope check lists what differs",)
        names = ", ".join(sorted(fitting))
        return (f"the method that ran is unknown, {names} fit: name one with --method",)

    def _method(self, program: ProgramFile, block: Block) -> str | None:
        """Return the method of a block; if several match, the one named by the user."""
        method = method_of(block, self._session.record, program)
        named = self._options.method or self._options.assumed
        if method is None and is_execution(block) and named:
            return named if named in _fitting(program, block) else None
        return method

    def _runs_in_order(self, program: ProgramFile) -> list[tuple[int, Block, int, str]]:
        """Return the runs of methods in the order in which they ran."""
        session, options = self._session, self._options
        found: list[tuple[int, int, int, Block, int, str]] = []
        logged = logged_blocks(session)
        needed = self._states.sharing(options.method) if options.method else frozenset[str]()
        for number, block in enumerate(trace_blocks(session.dumps).blocks):
            if block not in logged:
                continue
            method = self._method(program, block)
            if method is None or method not in session.methods:
                continue
            if options.method and method not in needed:
                continue
            for run, table in enumerate(block.runs):
                if not options.runs or run in options.runs:
                    found.append((block.dump, int(table.start), number, block, run, method))
        found.sort(key=lambda each: each[:3])
        return [(number, block, run, method) for _, _, number, block, run, method in found]

    # ---- references
    def _reference(self, method: str) -> MappedReference | str:
        """Return the program to compare with, or the reason why it is missing."""
        if method not in self._references:
            try:
                self._references[method] = self._find_reference(method)
            except (RebuildError, FormatError) as error:
                self._references[method] = str(error)
        return self._references[method]

    def _find_reference(self, method: str) -> MappedReference | str:
        record, requested = self._session.record, self._options.reference
        if record is None:
            return "no ETRecord"
        if requested == FLOAT:
            return self._options.float_program(method)
        roles = record.roles
        refusal = "the record has no program of this method"
        if requested in ("", EDGE) and method in roles.edge:
            try:
                return MappedReference(reference_graph(record, roles.edge[method]))
            except RebuildError as error:
                if requested:
                    raise
                refusal = str(error)
        if requested in ("", EXPORTED) and roles.exported and len(roles.edge) <= 1:
            join = join_method(self._session, method)
            if join.graph is not None:
                values = aten_values(record, join.graph)
                return MappedReference(reference_graph(record, roles.exported), values)
        if requested in roles.extra:
            return MappedReference(reference_graph(record, requested))
        return refusal

    @staticmethod
    def _long_way(reference: MappedReference) -> MappedReference:
        """Return the reference as read by torch; unchanged if torch cannot read it."""
        try:
            return replace(reference, graph=reference.graph.long_way())
        except RebuildError:
            return reference

    # ---- one run
    def _run(
        self, program: ProgramFile, number: int, block: Block, run: int, method: str
    ) -> RunGap:
        log = self._log(program, block, run, method)
        found = GapComparison(log, self._options.tolerance, self._kept)
        case = block.bundled_input_index
        call = case if is_sequence(self._session.dumps[block.dump]) else -1
        reference = self._reference(method)
        recorded = () if log.logged.inner else (ONLY_OUTPUTS,)
        if isinstance(reference, str):
            rows = found.rows(reference)
            notes = [*recorded, reference]
            return RunGap(method, number, run, case, "", "", rows, tuple(notes), call=call)
        inputs = self._inputs(program, method, (case, call), reference, log)
        before, state_notes = self._states.begin(method, reference.graph.graph)
        self._state = before.copy()
        prefix = f"{number}-{run}"
        self._compare(found, reference, inputs, prefix)
        if found.errors and reference.graph.program is None:  # torch's own reader decides
            reference = self._references[method] = self._long_way(reference)
            found = GapComparison(log, self._options.tolerance, self._kept)
            self._state = before.copy()
            self._compare(found, reference, inputs, prefix)
        notes = [*recorded, *reference.notes, *inputs.notes, *state_notes]
        if found.other_shapes and not inputs.certain:
            notes.append(f"the run had other inputs than the {inputs.source}: other shapes")
            inputs = inputs.only_traced()
            found = GapComparison(log, self._options.tolerance, self._kept)
            self._state = before.copy()
            self._compare(found, reference, inputs, prefix)
        rows = found.rows("")
        explain = partial(explained, log, reference, inputs.values, before)
        inside = (
            without_moved(log.inside, rows, log.join.graph, explain) if log.join.graph else None
        )
        if inside is not None:
            found = GapComparison(replace(log, inside=inside), self._options.tolerance, self._kept)
            self._state = before.copy()
            self._compare(found, reference, inputs, prefix)
            rows = found.rows("")
        rows = self._with_causes(log, rows, reference, inputs, before)
        if not inputs.certain and not reference.is_float:  # whose errors are no other inputs
            rows, more = with_other_inputs(rows, log.join, inputs)
            notes += more
        notes += self._kept_state(reference, method)
        member = reference.graph.member
        return RunGap(
            method,
            number,
            run,
            case,
            inputs.source,
            member,
            rows,
            tuple(notes),
            reference.is_float,
            call,
        )

    def _with_causes(
        self,
        log: RunLog,
        rows: tuple[Row, ...],
        reference: MappedReference,
        inputs: Inputs,
        state: Mapping[str, Sides],
    ) -> tuple[Row, ...]:
        """Return rows with what payload and record show of those that differ."""
        graph = log.join.graph
        if graph is None or reference.is_float:
            return rows
        recorded = partial(recorded_values, graph, reference, inputs.values, state)
        rows = with_equal_choices(log, rows, graph, recorded)
        rows = with_causes(self._session, log.method, rows, log.inside, (graph, recorded))
        return with_other_results(rows)

    def _kept_state(self, reference: MappedReference, method: str) -> list[str]:
        """Keep the state that a run has left; return a note where it may be shared."""
        self._states.keep(method, self._state)
        if not reference.graph.graph.buffers or not self._states.unknown(method):
            return []
        return [f"state that {method} shares with other methods has no known name: {ALONE}"]

    def _log(self, program: ProgramFile, block: Block, run: int, method: str) -> RunLog:
        session = self._session
        logged = logged_run(program, method, block, run)
        join = join_method(session, method)
        outputs = [
            each
            for each in instruction_outputs(program, method)
            if logged.executed is None or each.instruction in logged.executed
        ]
        inside = inside_outputs(session, block, run, join, method)
        buffer, held = buffer_of_block(session, block), held_dtypes(block, run)
        return RunLog(method, buffer, join, logged, outputs, inside, held)

    def _compare(
        self, found: GapComparison, reference: MappedReference, inputs: Inputs, prefix: str
    ) -> None:
        found.attach(reference, prefix)
        found.report_progress = self._progress.show
        self._progress.show(0, found.count)
        graph = reference.graph.graph
        for name, value in zip(graph.inputs, inputs.values, strict=False):
            if hasattr(value, "shape"):
                found.observe((), name, [value, value], 0)  # a loop may begin with it
        both = _own if graph.writes else _shared
        if graph.writes:  # to its buffers, which a second comparison begins with as well
            self._state = {
                name: [_own(side)[0] for side in held] for name, held in self._state.items()
            }
        run = GraphRun(graph, found.observe, sides=2, state=self._state)
        run.run([both(value) for value in inputs.values])
        found.errors = run.errors

    def _inputs(
        self,
        program: ProgramFile,
        method: str,
        numbers: tuple[int, int],
        reference: MappedReference,
        log: RunLog,
    ) -> Inputs:
        """Return the inputs of a run; inputs in the trace take precedence over assumed ones.

        Args:
            program: of the run
            method: its method
            numbers: of its test case and of its call in a sequence, -1 for none
            reference: that is run on them
            log: values of the run
        """
        case, call = numbers
        if call >= 0 and self._options.inputs is None:
            given = self._options.call_inputs(call)
            found = call_inputs(given, len(reference.graph.graph.inputs))
        else:
            found = run_inputs(
                self._session,
                method,
                case,
                self._session.record,
                reference.graph,
                self._options.inputs,
            )
        plan = program.plan(method)
        written: dict[int, int] = {}
        for step, touched in enumerate(plan_operands(plan)):
            for value in touched.writes:
                written.setdefault(value, step)
        traced: dict[int, Any] = {}
        for place, tensor in traced_inputs(plan.inputs, log.logged.arguments, written).items():
            value = logged_tensor(log.buffer, tensor)
            if place < len(found.values) and not isinstance(value, str):
                traced[place] = value
        return found.with_traced(traced)


def _shared(value: Any) -> Sides:  # noqa: ANN401 - a tensor, a scalar or None
    return [UNKNOWN if value is None else value] * 2


def _own(value: Any) -> Sides:  # noqa: ANN401 - a tensor, a scalar or None
    if hasattr(value, "clone"):
        return [value.detach().clone(), value.detach().clone()]
    return _shared(value)


def _fitting(program: ProgramFile, block: Block) -> list[str]:
    return [match.method for match in match_methods(program, block) if not match.mismatch]
