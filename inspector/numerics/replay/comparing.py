"""Compares the values of a running graph with the tensors that a run has logged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from inspector.graph.source import user_frame
from inspector.numerics.arbitrary import ARBITRARY, is_arbitrary
from inspector.numerics.flat_graph import FlatNode, Scope
from inspector.numerics.grades import ORDER
from inspector.numerics.inside import AT_BOUNDARY, NO_TENSORS, InsideOutput
from inspector.numerics.join_facts import Join, JoinTarget
from inspector.numerics.metrics import Tolerance
from inspector.numerics.replay.inputs import logged_tensor
from inspector.numerics.replay.layouts import in_layouts
from inspector.numerics.replay.measuring import Kept, Measuring, OutputValues, agrees
from inspector.numerics.replay.quanta import Quanta, in_sign, not_rounded
from inspector.numerics.replay.references import MappedReference
from inspector.numerics.report import BY_REFERENCE, BY_RUN, INSIDE, INSTRUCTION, Row
from inspector.numerics.traced import DELEGATE, InstructionOutput, LoggedRun
from inspector.rebuild.torch_bridge import load_torch
from runtime.emulation.recorded import UNKNOWN, Sides
from schema.backends import backend_of
from schema.etdump.debug_buffer import DebugBuffer
from schema.payloads.identity import has_program_order

NOT_LOGGED = "the trace has no tensor of it"
MISMATCHED = "what the trace has of it does not fit its outputs"
AMBIGUOUS = (
    "layout not distinguishable: its shape is the same with channels last, the trace does not show"
    " which it is, and it agrees with neither"
)
UNCERTAIN = "join uncertain"
AFTER_UNCERTAIN = "behind an uncertain join: what it received is not known"
NOT_ROUNDED = "its backend computes wider integers under this name, which it rounds behind it"
NO_INPUTS = "it depends on inputs of this run that no file has"

OnProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, eq=False)
class RunLog:
    """Logged tensors of one run of a method, and their joins with the recorded graph.

    Attributes:
        method: name
        buffer: the debug buffer, None without one
        join: recorded value of each output
        logged: logged tensors
        outputs: of the executed instructions
        inside: nodes inside delegates
        held: delegate call -> dtype of half precision that it computes in
    """

    method: str
    buffer: DebugBuffer | None
    join: Join
    logged: LoggedRun
    outputs: Sequence[InstructionOutput]
    inside: Sequence[InsideOutput]
    held: Mapping[int, str]


@dataclass(frozen=True, slots=True, eq=False)
class _Wanted:
    """An output to compare when its node has run."""

    key: tuple[str, int, int]
    target: JoinTarget
    index: int
    passes: Sequence[Any]
    quantized: bool
    whole: bool  # whether its nodes are all of a delegate
    open_layout: bool  # whether the trace may have it with channels last
    scale: tuple[float, int] | None  # and zero point of integers that are compared as real values
    rounded: bool  # whether it is a rounding of what the node returns
    held: str  # dtype that its delegate computes in, empty where that is the one of the value
    arbitrary: bool  # whether the node may return any value


class GapComparison:
    """Compares the results of nodes with the logged tensors while the graph runs."""

    def __init__(self, log: RunLog, tolerance: Tolerance, kept: Kept) -> None:
        """Store the logged tensors.

        Args:
            log: tensors and their joins
            tolerance: when an element counts as different
            kept: storage for tensors
        """
        self._buffer = log.buffer
        self._method = log.method
        self._join = log.join
        self._logged = log.logged
        self._outputs = log.outputs
        self._inside = log.inside
        self._held = log.held
        self._measuring = Measuring(tolerance, kept)
        self._requested: dict[tuple[Scope, str], list[_Wanted]] = {}
        self._why: dict[tuple[str, int, int], str] = {}
        self.errors: dict[tuple[Scope, str], str] = {}
        self.report_progress: OnProgress = lambda done, total: None
        self.other_shapes = False
        self._tolerance = tolerance
        self._quanta: Quanta | None = None
        self._done = 0

    @property
    def count(self) -> int:
        """Return the number of nodes with a logged output."""
        return len(self._requested)

    def attach(self, reference: MappedReference, prefix: str) -> None:
        """Map each logged output to the node that computes it.

        Args:
            reference: the program that is run
            prefix: prefix of the names of stored tensors
        """
        self._measuring.prefix = prefix
        graph = self._join.graph
        self._quanta = None
        if graph is not None and not reference.is_float:  # which rounds to no scale
            self._quanta = Quanta(graph, reference.values)
        backends = {one.instruction: one.operator for one in self._outputs if one.kind == DELEGATE}
        for output in self._outputs:
            key = (INSTRUCTION, output.instruction, output.slot)
            target = self._join.targets.get((output.instruction, output.slot))
            passes = [
                each[output.slot]
                for each in self._logged.outputs.get(output.instruction, ())
                if output.slot in each
            ]
            if target is not None and passes:
                whole = output.kind == DELEGATE and len(target.covers) > 1
                self._attach(key, target, passes, reference, whole=whole)
        for number, inner in enumerate(self._inside):
            if inner.target is not None and inner.passes:
                self._attach(
                    (INSIDE, number, 0),
                    inner.target,
                    inner.passes,
                    reference,
                    open_layout=backend_of(backends.get(inner.instruction) or "").logs_kernel_layout
                    and not has_program_order(inner.name),
                )

    def _attach(
        self,
        key: tuple[str, int, int],
        target: JoinTarget,
        passes: Sequence[Any],
        reference: MappedReference,
        *,
        whole: bool = False,
        open_layout: bool = False,
    ) -> None:
        values, scale = reference.values, reference.scales.get(target.value)
        rounded = target.value in reference.rounded
        place = self._place(target.value) if values is None else values.get(target.value)
        if place is None:
            self._why[key] = "the reference graph has no value that is this one"
            return
        scope, name, index = place
        quantized = reference.is_float or any(
            "quantize" in node or "qparams" in node for node in (target.node, *target.covers)
        )
        held = self._held.get(self._inside[key[1]].instruction if key[0] == INSIDE else key[1], "")
        node = self._node_of(target)
        arbitrary = node is not None and is_arbitrary(node.operator)
        requested = _Wanted(
            *(key, target, index, passes, quantized, whole, open_layout, scale, rounded, held),
            arbitrary,
        )
        self._requested.setdefault((scope, name), []).append(requested)

    def _place(self, value: tuple[Scope, str]) -> tuple[Scope, str, int]:
        assert self._join.graph is not None
        maker = self._join.graph.producers.get(value)
        if maker is None:
            return value[0], value[1], 0
        return value[0], maker[0].node.name, maker[1]

    # ---- while the graph runs
    def observe(self, scope: Scope, name: str, pair: Sides, times: int) -> None:
        """Compare the result of a node with the logged values."""
        if self._quanta is not None:
            self._quanta.note(scope, name, pair)
        requested = self._requested.get((scope, name))
        if not requested:
            return
        self._done += not times
        self.report_progress(self._done, len(self._requested))
        same = [each for each in requested if each.target.same]
        direct = [each for each in same if not each.rounded] or same
        self._continue(direct, scope, pair, times)
        for each in requested:
            if not any(each is one for one in direct):  # a copy, or a rounding for some readers
                self._at_time(each, scope, pair, times)

    def _continue(
        self, requested: Sequence[_Wanted], scope: Scope, pair: Sides, times: int
    ) -> None:
        """Compare the result of a node, and continue the run with the logged value."""
        known: list[tuple[int, Any]] = []
        doubtful: list[int] = []
        for each in requested:
            found, certain = self._at_time(each, scope, pair, times)
            if found is not UNKNOWN:
                known += [(each.index, found)] if certain else []
                doubtful += [] if certain else [each.index]
        replaced = {index for index, _ in known}
        for index in doubtful:  # another value or a wrong one: its readers cannot be judged
            if index not in replaced:
                pair[1] = _without(pair, index)
        arbitrary = any(each.arbitrary for each in requested)
        for index, found in known:
            if arbitrary:
                pair[0] = _replaced([pair[1], pair[0]], index, found.clone())
            pair[1] = _replaced(pair, index, found)

    def _at_time(
        self, each: _Wanted, scope: Scope, pair: Sequence[Any], times: int
    ) -> tuple[Any, bool]:
        """Compare one pass of an output; unknown if it was not logged."""
        # A value from outside of a loop that is logged in it is what the last pass carries on.
        time = times if scope else len(each.passes) - 1
        return self._found(each, time, pair) if time < len(each.passes) else (UNKNOWN, True)

    def _found(self, each: _Wanted, time: int, pair: Sequence[Any]) -> tuple[Any, bool]:
        """Measure an output; return it in the shape of the graph, and whether it is certain.

        A missing output is unknown. A value that is joined by order is certain if it
        agrees with the node.
        """
        found = logged_tensor(self._buffer, each.passes[time])
        if isinstance(found, str):
            self._why[each.key] = found
            return UNKNOWN, True
        if order := each.target.order:
            found = found.permute([order.index(dim) for dim in range(len(order))])
        if each.scale is not None and not found.is_floating_point():
            found = (found.float() - each.scale[1]) * each.scale[0]
        sides = [_element(side, each.index) for side in pair]
        if sides[0] is UNKNOWN and sides[1] is UNKNOWN:
            self._why[each.key] = NO_INPUTS
            return found, each.target.grade != ORDER
        if each.key[0] == INSIDE and each.quantized and not_rounded(found, sides):
            self._why[each.key] = NOT_ROUNDED
            return UNKNOWN, True
        if each.arbitrary:
            self._why[each.key] = ARBITRARY
            return _in_dtype(found, next(side for side in sides if side is not UNKNOWN)), True
        return self._compare(each, sides, in_sign(found, sides) if each.quantized else found)

    def _compare(self, each: _Wanted, pair: Sides, found: Any) -> tuple[Any, bool]:  # noqa: ANN401
        known = [side for side in pair if side is not UNKNOWN]
        shapes = [tuple(int(size) for size in side.shape) for side in known]
        fits = [self._in_shape(each, found, pair, shape) for shape in dict.fromkeys(shapes)]
        shaped = next((one for one in fits if one is not None), None)
        if len(fits) > 1 or shaped is None:
            self.other_shapes = self.other_shapes or each.key[0] == INSTRUCTION
        if shaped is None:
            reason = f"different shape: {list(found.shape)}, the reference has {list(shapes[0])}"
            open_layout = each.key[0] == INSIDE and each.open_layout
            several = open_layout and in_layouts(found, shapes[0], moved=True)
            self._why[each.key] = AMBIGUOUS if several else reason
            return UNKNOWN, True
        values = self._values(each, pair, shaped)
        self._measuring.take(each.key, values)
        certain = each.target.grade != ORDER or agrees(values, self._tolerance)
        return _in_dtype(shaped, known[0]), certain

    def _values(self, each: _Wanted, pair: Sides, shaped: Any) -> OutputValues:  # noqa: ANN401
        reference, own = (_of_shape(side, shaped) for side in pair)
        quanta = self._quanta
        quantum = quanta.of(each.target, whole=each.whole) if quanta and each.quantized else 0.0
        return OutputValues(reference, own, shaped, each.quantized, quantum, each.held)

    def _in_shape(self, each: _Wanted, found: Any, pair: Sides, shape: tuple[int, ...]) -> Any:  # noqa: ANN401
        """Return a logged tensor in the shape of the graph, None if it does not fit."""
        same = tuple(found.shape) == shape
        if each.key[0] == INSTRUCTION:
            numel = load_torch().Size(shape).numel()
            return found if same else found.reshape(shape) if found.numel() == numel else None
        fitting = in_layouts(found, shape, moved=each.open_layout)
        if len(fitting) < 2:
            return fitting[0] if fitting else None
        agreeing = (o for o in fitting if agrees(self._values(each, pair, o), self._tolerance))
        return next(agreeing, None)

    # ---- afterwards
    def rows(self, refusal: str) -> tuple[Row, ...]:
        """Return a row for every output, in the order of execution.

        Args:
            refusal: why no comparison was possible, else empty
        """
        by_call: dict[int, list[Row]] = {}
        for number, inner in enumerate(self._inside):
            row = self._inner_row(number, inner, refusal)
            by_call.setdefault(inner.instruction, []).append(row)
        found: list[Row] = []
        for output in self._outputs:
            found += by_call.pop(output.instruction, ())
            found.append(self._row(output, refusal))
        compared = {row.instruction for row in found if row.place == INSTRUCTION and row.compared}
        return tuple(
            replace(row, order=place, reason=NO_TENSORS)
            if row.reason == AT_BOUNDARY and row.instruction not in compared
            else replace(row, order=place)
            for place, row in enumerate(found)
        )

    def _row(self, output: InstructionOutput, refusal: str) -> Row:
        key = (INSTRUCTION, output.instruction, output.slot)
        target = self._join.targets.get((output.instruction, output.slot))
        row = Row(
            INSTRUCTION,
            self._method,
            output.instruction,
            output.slot,
            output.operator,
            sizes=tuple(output.sizes),
        )
        passes = self._logged.outputs.get(output.instruction, ())
        reason = refusal
        if not reason and target is None:
            reason = self._join.reasons[output.instruction, output.slot]
        if not reason and output.instruction in self._logged.mismatched:
            reason = MISMATCHED
        if not reason and not any(output.slot in each for each in passes):
            reason = NOT_LOGGED
        return self._finished(key, self._described(row, target), reason)

    def _inner_row(self, number: int, inner: InsideOutput, refusal: str) -> Row:
        row = Row(
            INSIDE, self._method, inner.instruction, inner.slot, inner.operator, delegate=inner.name
        )
        row = self._described(row, inner.target)
        row = replace(row, node=row.node or inner.node, graph_node=inner.graph_node)
        return self._finished((INSIDE, number, 0), row, refusal or inner.reason)

    def _described(self, row: Row, target: JoinTarget | None) -> Row:
        if target is None or self._join.graph is None:
            return row
        node = self._node_of(target)
        frame = user_frame(node.node.stack_trace) if node is not None else None
        return replace(
            row,
            node=target.node,
            value=target.value[1],
            graph_node=self._join.graph.prefixes.get(target.value[0], "") + target.node,
            covers=target.covers,
            handles=target.handles,
            grade=target.grade,
            inferred=target.inferred,
            module=self._module(target),
            source=frame.label if frame is not None else "",
        )

    def _module(self, target: JoinTarget) -> str:
        """Return the module of a node, else of the last one it is computed with that has any."""
        assert self._join.graph is not None
        scope, producers = target.value[0], self._join.graph.producers
        makers = [self._node_of(target)]
        for name in reversed(target.covers):
            maker = producers.get((scope, name))
            makers.append(None if maker is None else maker[0])
        paths = (one.node.module_path for one in makers if one is not None)
        return next(filter(None, paths), "")

    def _node_of(self, target: JoinTarget) -> FlatNode | None:
        assert self._join.graph is not None
        maker = self._join.graph.producers.get(target.value)
        return maker[0] if maker is not None else None

    def _finished(self, key: tuple[str, int, int], row: Row, reason: str) -> Row:
        if reason:
            return replace(row, reason=reason)
        measured = self._measuring.result(key)
        if measured is None:
            reason = self._why.get(key, "") or self._error(row)
            return replace(row, reason=reason or "the reference did not reach it")
        own = measured.own
        # the recorded value itself is right: of equal elements, any may be the largest
        differs = all(one.out_of_tolerance > 0 for one in (measured.total, own) if one is not None)
        certain = row.grade != ORDER
        doubt = self._inside[key[1]].doubt if key[0] == INSIDE else ""
        behind = AFTER_UNCERTAIN if differs and own is None else ""
        note = behind if certain else doubt or UNCERTAIN
        return replace(
            row,
            dtype=measured.dtype,
            sizes=measured.sizes,
            passes=measured.passes,
            basis=BY_REFERENCE if measured.by_reference else BY_RUN,
            total=measured.total,
            own=own,
            inherited=measured.inherited,
            diverges=differs and certain and own is not None,
            differs=differs,
            note=note,
            kept=measured.kept,
        )

    def _error(self, row: Row) -> str:
        reason = next((why for (_, name), why in self.errors.items() if name == row.node), "")
        return f"the reference failed: {reason}" if reason else ""


def _in_dtype(value: Any, like: Any) -> Any:  # noqa: ANN401
    """Return real values in the dtype of the graph: what reads them there has no halves."""
    both = value.is_floating_point() and like.is_floating_point()
    return value.to(like.dtype) if both else value


def _element(value: Any, index: int) -> Any:  # noqa: ANN401 - a tensor, a number or unknown
    torch = load_torch()
    if isinstance(value, (tuple, list)):
        items = cast("Sequence[Any]", value)
        value = items[index] if index < len(items) else UNKNOWN
    if value is UNKNOWN or value is None:
        return UNKNOWN
    return value if isinstance(value, torch.Tensor) else torch.as_tensor(value)


def _of_shape(side: Any, like: Any) -> Any:  # noqa: ANN401
    return side if side is not UNKNOWN and tuple(side.shape) == tuple(like.shape) else UNKNOWN


def _without(pair: Sequence[Any], index: int) -> Any:  # noqa: ANN401
    """Return the value to continue with if an output is unknown."""
    own = pair[1]
    if not isinstance(own, (tuple, list)):
        return UNKNOWN
    items = list(cast("Sequence[Any]", own))
    return tuple(UNKNOWN if place == index else item for place, item in enumerate(items))


def _replaced(pair: list[Any], index: int, found: Any) -> Any:  # noqa: ANN401
    """Return the value to continue with: the logged one, in the shape of the graph."""
    like, own = _element(pair[0], index), pair[1]
    if like is UNKNOWN:
        like = _element(own, index)
    if like is not UNKNOWN and tuple(like.shape) != tuple(found.shape):
        if like.numel() != found.numel():
            return own
        found = found.reshape(like.shape)
    if own is UNKNOWN and isinstance(pair[0], (tuple, list)):
        own = [UNKNOWN] * len(cast("Sequence[Any]", pair[0]))
    if isinstance(own, (tuple, list)):
        items = list(cast("Sequence[Any]", own))
        if index >= len(items):
            return tuple(items)  # of a map over an unknown number of rows
        items[index] = found.contiguous()
        return tuple(items)
    if index and own is UNKNOWN:
        return own
    del own, like
    pair[1] = UNKNOWN  # only one of both is held
    return found.contiguous()
