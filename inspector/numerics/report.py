"""The result of comparing a run with its recorded program, as plain data that travels as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from inspector.numerics.grades import ORDER
from inspector.numerics.metrics import Metrics
from schema.objects.codec import from_json, to_json

EDGE, EXPORTED, FLOAT = "edge", "exported", "float"  # graphs that a run is compared with
INSTRUCTION, INSIDE = "instruction", "inside"
BY_REFERENCE, BY_RUN = "reference", "values of the run"


@dataclass(frozen=True, slots=True)
class Row:
    """One tensor output of an instruction, or one node inside a delegate.

    Attributes:
        place: ``instruction`` or ``inside`` (a delegate)
        method: name
        instruction: index over all chains of the method
        slot: which of its tensor outputs
        operator: operator, backend id or ``move``
        delegate: identifier the backend gave a node inside, empty outside
        node: recorded node compared with, the last one covered; may be empty
        value: recorded value, an output of that node
        graph_node: the node as a model graph calls it: behind the nested graphs around it
        covers: recorded nodes that the instruction stands for
        handles: their debug handles
        grade: INSTRUCTION, DEBUG_HANDLE, DELEGATE_ID, FLOW or ORDER; empty without a node
        inferred: whether it was inferred from order or data flow
        dtype: dtype of the logged tensor
        sizes: its shape
        passes: how often a loop went through, 1 outside of loops
        basis: ``reference`` when compared with the reference's own values; ``values of the run``
            when those are unknown and the node was run on what the run had
        total: distance from the reference; None when not compared
        own: distance from the node run on the run's own inputs: the error it adds itself
        inherited: distance of that node from the reference: the error it received
        diverges: whether the node itself exceeds the tolerance for certain: never of a join by
            order, nor where what the node received is not known
        differs: whether the logged tensor exceeds the tolerance, for any reason
        reason: why it is not compared, empty when it is
        note: more to know about the comparison
        module: dotted module path of the node
        source: ``file:line`` of the user's code
        order: place in the order of execution
        kept: file of the worker's folder with the tensors, empty when they were not kept
    """

    place: str
    method: str
    instruction: int
    slot: int
    operator: str
    delegate: str = ""
    node: str = ""
    value: str = ""
    graph_node: str = ""
    covers: tuple[str, ...] = ()
    handles: tuple[int, ...] = ()
    grade: str = ""
    inferred: bool = False
    dtype: str = ""
    sizes: tuple[int, ...] = ()
    passes: int = 1
    basis: str = ""
    total: Metrics | None = None
    own: Metrics | None = None
    inherited: Metrics | None = None
    diverges: bool = False
    differs: bool = False
    reason: str = ""
    note: str = ""
    module: str = ""
    source: str = ""
    order: int = 0
    kept: str = ""

    @property
    def compared(self) -> bool:
        """Return whether it was compared."""
        return self.total is not None

    @property
    def uncertain(self) -> bool:
        """Return whether it is matched by order only."""
        return self.grade == ORDER

    @property
    def doubtful(self) -> bool:
        """Return whether it differs and may be another node's value: not evidence then."""
        return self.uncertain and self.differs


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage of the comparison.

    Attributes:
        instruction_outputs: tensor outputs of the instructions of one run
        compared: those that were compared
        stated_reasons: the others, each of which has a reason
    """

    instruction_outputs: int = 0
    compared: int = 0
    stated_reasons: int = 0

    def __add__(self, other: Coverage) -> Coverage:
        """Return the sum of two parts."""
        return Coverage(
            self.instruction_outputs + other.instruction_outputs,
            self.compared + other.compared,
            self.stated_reasons + other.stated_reasons,
        )


def coverage_of(rows: Sequence[Row]) -> Coverage:
    """Return the number of compared rows."""
    compared = sum(row.compared for row in rows)
    return Coverage(len(rows), compared, len(rows) - compared)


@dataclass(frozen=True, slots=True)
class RunGap:
    """Gap of one run.

    Attributes:
        method: name
        block: number of the block in the session
        run: number in the block
        case: test case, -1 for none
        inputs: where its inputs come from, empty when they are not known
        reference: recorded graph it was compared with, empty without one
        rows: in the order of execution
        notes: further remarks
        is_float: whether the reference is the float program of a quantized one, so that errors are
            those of quantization too
        call: number of the call of a sequence, -1 for other runs
    """

    method: str
    block: int
    run: int
    case: int
    inputs: str
    reference: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    is_float: bool = False
    call: int = -1

    def outside(self) -> tuple[Row, ...]:
        """Return the rows of instructions."""
        return tuple(row for row in self.rows if row.place == INSTRUCTION)

    def inside(self) -> tuple[Row, ...]:
        """Return the rows of nodes inside delegates."""
        return tuple(row for row in self.rows if row.place == INSIDE)

    def first_divergence(self) -> Row | None:
        """Return the first row that exceeds the tolerance by its own error, None when none does."""
        return next((row for row in self.rows if row.diverges), None)

    def largest_loss(self) -> Row | None:
        """Return the row whose own error is largest beside its signal, None without any."""
        known = [(row.own.noise, row) for row in self.rows if row.own and not row.doubtful]
        return max(known, key=lambda one: one[0], default=(0.0, None))[1]

    def starting_row(self) -> Row | None:
        """Return the row to look at first, None without any.

        That is the first divergence, else the largest own error, else the first compared output.
        """
        compared = (row for row in self.rows if row.compared)
        found = self.first_divergence() or self.largest_loss() or next(compared, None)
        return found or next(iter(self.rows), None)

    def doubtful(self) -> tuple[Row, ...]:
        """Return the rows that differ and are joined by order only."""
        return tuple(row for row in self.rows if row.doubtful)


@dataclass(frozen=True, slots=True)
class GapReport:
    """Gaps of all selected runs.

    Attributes:
        runs: in the order in which they ran
        notes: about all of them
    """

    runs: tuple[RunGap, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def first_of_each(self) -> tuple[RunGap, ...]:
        """Return the first run of each block, together one execution of the program."""
        found: dict[int, RunGap] = {}
        for run in self.runs:
            found.setdefault(run.block, run)
        return tuple(found.values())

    def coverage(self, runs: Sequence[RunGap]) -> dict[str, Any]:
        """Return the coverage of some runs as a JSON object."""
        outside, inside = Coverage(), Coverage()
        for run in runs:
            outside += coverage_of(run.outside())
            inside += coverage_of(run.inside())
        inner = asdict(inside)
        return {**asdict(outside), "inside": {"nodes": inner.pop("instruction_outputs"), **inner}}

    def content(self) -> Any:  # noqa: ANN401 - JSON
        """Return the report as JSON; floats that are not finite are strings."""
        return _finite(to_json(self))


def report_from(content: object) -> GapReport:
    """Return the report in JSON that ``GapReport.content`` returned.

    Raises: ContentError
    """
    return from_json(content, GapReport, "report", strict=False)


def _finite(content: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(content, dict):
        members = cast("dict[str, Any]", content)
        return {name: _finite(value) for name, value in members.items()}
    if isinstance(content, list):
        return [_finite(value) for value in cast("list[Any]", content)]
    plain = not isinstance(content, float) or math.isfinite(content)
    return content if plain else str(content)
