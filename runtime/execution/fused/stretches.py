"""Stretches of a fused run as one graph each, recorded from a run of their calls.

Calls of fixed sizes are written as the operators that they called; those of other sizes from their
instructions, so that the graph computes the sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import gt
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from runtime.execution.binding import BoundInstruction, Call
from runtime.execution.fused import calls
from runtime.execution.fused.agreement import gives_same_bits
from runtime.execution.fused.dataflow import Dataflow, TensorUse
from runtime.execution.fused.one_position import OnePosition
from runtime.execution.fused.operators import FRESH, VIEWS
from runtime.execution.fused.scripts import (
    ChangingScalar,
    OperatorStep,
    ScriptWriter,
    UnscriptableError,
    new_bytes,
)
from runtime.execution.fused.symbolic import Scope, SymbolicCall, is_symbolic
from runtime.kernels import built_in
from runtime.kernels.rule import Style

Tensor = torch.Tensor
_Mode: Any = TorchDispatchMode
_MOST_HELD = 64 << 20  # bytes of results that recording keeps alive
_FEWEST = 2  # operators: a single one is called as fast from Python
_MOST_FAILURES = 3  # of a graph whose calls succeed: it does not fit the sizes that are used
_RELEASES = (calls.release_one, calls.release_all)
_REFUSALS = (UnscriptableError, RuntimeError, TypeError, KeyError)


class Stretch:
    """Consecutive calls that run as one graph; one by one if the graph raises.

    Attributes:
        function: the graph
        inputs: that it gets
        plain: the calls
        places: instruction of each of them
        place: instruction that runs, after an error
        failures: how often the graph failed where the calls did not
    """

    __slots__ = ("failures", "function", "inputs", "place", "places", "plain")

    def __init__(
        self,
        function: Callable[..., Any],
        inputs: Sequence[Tensor],
        plain: Sequence[Call],
        places: Sequence[int],
    ) -> None:
        self.function = function
        self.inputs = tuple(inputs)
        self.plain = plain
        self.places = places
        self.place = places[0]
        self.failures = 0

    def __call__(self) -> None:
        """Run the calls."""
        try:
            self.function(*self.inputs)
        except Exception:  # noqa: BLE001 - the calls raise it again, with their instruction
            self.run_calls()
            self.failures += 1

    def run_graph(self) -> bool:
        """Run the graph; return whether the plan allows the sizes that it computed.

        Raises: RuntimeError
        """
        self.function(*self.inputs)
        return True

    def run_calls(self) -> None:
        """Run the calls one by one."""
        for place, call in zip(self.places, self.plain, strict=True):
            self.place = place
            call()


class SymbolicStretch(Stretch):
    """A stretch whose graph computes with scalars of the program.

    Attributes:
        items: the values of the method
        given: scalars that the graph gets
        computed: scalars that it returns first
        limits: largest value of each integer that it returns
        position: what must hold for the graph to stand for the calls
    """

    __slots__ = ("computed", "given", "items", "limits", "position")

    def __init__(self, plain: Stretch, items: list[Any], given: Sequence[int]) -> None:
        super().__init__(plain.function, plain.inputs, plain.plain, plain.places)
        self.items = items
        self.given = tuple(given)
        self.computed: tuple[int, ...] = ()
        self.limits: tuple[int, ...] = ()
        self.position = OnePosition()

    def __call__(self) -> None:
        """Run the calls."""
        if not self.position.holds(self.items):
            self.run_calls()
            return
        if self.failures < _MOST_FAILURES:
            try:
                if self.run_graph():
                    return
            except Exception:  # noqa: BLE001 - the calls raise it again, with their instruction
                pass
        self.run_calls()
        self.failures += 1

    def run_graph(self) -> bool:
        """Run the graph; return whether the plan allows the sizes that it computed.

        Raises: RuntimeError
        """
        items = self.items
        found = self.function(*[items[index] for index in self.given], *self.inputs)
        if found is None:
            return True
        if any(map(gt, found, self.limits)):
            return False
        for index, value in zip(self.computed, found, strict=False):
            items[index] = value
        return True


def is_repeatable(instruction: BoundInstruction, flow: Dataflow) -> bool:
    """Return whether each run of an instruction calls the same operators of torch."""
    bound = instruction.bound
    if bound is None or bound.arguments is None or not bound.arguments.fixed:
        return False
    if flow.is_moved(bound.args):
        return False
    kernel = bound.kernel
    known = kernel is built_in(kernel.name) and kernel.rule.style is Style.RESULT
    if not known or not (isinstance(kernel.rule.run, OpOverload) or kernel.name in FRESH | VIEWS):
        return False
    return all(flow.static(index) for index in flow.tensors_of(bound.args))


class _Recorder(_Mode):
    """Collects the operators that are called."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: torch would import its compiler to skip the mode, 1.2 s and 60 MiB."""
        return False

    def __init__(self) -> None:
        _Mode.__init__(self)
        self.steps: list[OperatorStep] = []

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: Any,  # noqa: ANN401
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        del types
        result = func(*args, **(kwargs or {}))
        self.steps.append(OperatorStep(func, args, kwargs or {}, result))
        return result


Pointed = list[tuple[Tensor, Tensor]]


class _RecordedCall:
    """A call of fixed sizes that has run: its operators, and the tensors that it pointed elsewhere.

    Attributes: as those of `SymbolicCall`
    """

    kernel = ""
    defines: ChangingScalar | None = None
    viewed: Sequence[TensorUse] = ()

    def __init__(self, call: Call) -> None:
        self._contents: Pointed = []
        self.released: list[Tensor] = []
        recorder = _Recorder()
        with recorder:
            self._run(call)
        self._steps = recorder.steps
        self.operators = len(self._steps)
        self.nbytes = sum(map(new_bytes, self._steps))
        self.pointed = [tensor for tensor, _ in self._contents]
        for tensor, result in self._contents:
            tensor.data = result

    def _run(self, call: Any) -> None:  # noqa: ANN401 - a partial or any other call
        function = getattr(call, "func", None)
        if function is calls.keep_one:
            run, tensor, _, slot = call.args
            self._contents.append((tensor, calls.fitted(slot, run())))
        elif function is calls.keep_several:
            run, requested = call.args
            self._contents += calls.results_of(run, requested)
        elif function is calls.point_alias:
            owner, other, shape = call.args
            self._contents.append((other, owner.reshape(shape)))
        elif function in _RELEASES:
            pairs = call.args[0] if function is calls.release_all else [call.args]
            self.released = [tensor for tensor, _ in pairs]
        else:
            call()

    def write(self, writer: ScriptWriter) -> None:
        """Write it to a graph.

        Raises: UnscriptableError
        """
        for step in self._steps:
            writer.step(step)
        for tensor, contents in self._contents:
            writer.point(tensor, contents)


_Taken = _RecordedCall | SymbolicCall


class _OpenStretch:
    """Calls that have run, and the graph that is to stand for them."""

    def __init__(self) -> None:
        self.indices: list[int] = []
        self.taken: list[_Taken] = []
        self.writer = ScriptWriter()
        self.nbytes = 0

    def take(self, index: int, done: _Taken) -> bool:
        """Write a call to the graph; return whether the graph can repeat it."""
        try:
            done.write(self.writer)
        except _REFUSALS:  # what was written of it is in the graph
            self.writer = ScriptWriter()
            for one in self.taken:
                one.write(self.writer)
            return False
        self.indices.append(index)
        self.taken.append(done)
        self.nbytes += done.nbytes
        return True


class _Recording:
    """Runs calls, and replaces stretches of them by graphs from the next run on.

    Args:
        run_calls: in order
        places: instruction of each
        scope: the shared state of the instructions
    """

    def __init__(self, run_calls: Sequence[Call], places: Sequence[int], scope: Scope) -> None:
        self._calls = run_calls
        self._places = places
        self._scope = scope
        self._agreed: set[Hashable] = set()  # forms of stretches whose graphs gave the same bits
        self.postponed: list[OnePosition] = []

    def run(self, notice: Callable[[int], None]) -> Iterator[tuple[Call, int]]:
        """Run the calls, and return those of the next runs with their instructions.

        Args:
            notice: called with the instruction that runs next

        Raises: whatever a call raises
        """
        stretch = _OpenStretch()
        for index, call in enumerate(self._calls):
            place = self._places[index]
            run = self._recorder(call, place, opened=bool(stretch.taken))
            if run is None:  # it may overwrite what the stretch has read, so that is tried before
                yield from self._closed(stretch)
                stretch = _OpenStretch()
            notice(place)
            done = call() if run is None else run()
            is_taken = isinstance(done, _Taken) and stretch.take(index, done)
            if is_taken and stretch.nbytes <= _MOST_HELD:
                continue
            yield from self._closed(stretch)
            stretch = _OpenStretch()
            if not is_taken:
                yield call, place
        yield from self._closed(stretch)

    def _recorder(
        self, call: Call, place: int, *, opened: bool
    ) -> Callable[[], _Taken | None] | None:
        """Return a function that runs and records a call, None if no graph can repeat it."""
        flow = self._scope.flow
        if getattr(call, "func", None) in _RELEASES:
            return partial(_RecordedCall, call) if opened else None
        if is_repeatable(flow.instructions[place], flow):
            return partial(_RecordedCall, call)
        if not is_symbolic(place, self._scope):
            return None
        try:
            made = SymbolicCall(call, place, self._scope)
        except UnscriptableError:
            return None
        return partial(_symbolic, made)

    def _closed(self, stretch: _OpenStretch) -> Iterator[tuple[Call, int]]:
        """Return the calls of a stretch, or the graph that stands for them."""
        yield from self._calls_of(stretch)
        # its graph, which was tried, may read what its calls free
        for tensor in [tensor for done in stretch.taken for tensor in done.released]:
            tensor.data = torch.empty(0, dtype=tensor.dtype)

    def _calls_of(self, stretch: _OpenStretch) -> Iterator[tuple[Call, int]]:
        plain = [self._calls[index] for index in stretch.indices]
        where = [self._places[index] for index in stretch.indices]
        if sum(done.operators for done in stretch.taken) < _FEWEST:
            yield from zip(plain, where, strict=True)
            return
        try:
            made = self._graph(stretch, plain, where)
        except _REFUSALS:
            made = None
        if made is None:
            yield from zip(plain, where, strict=True)
            return
        one, further = made
        yield one, where[0]
        if further:
            yield calls.release(further), where[-1]

    def _graph(
        self, stretch: _OpenStretch, plain: Sequence[Call], where: Sequence[int]
    ) -> tuple[Stretch, list[Tensor]] | None:
        """Return a stretch and the tensors to be released after it, None if its bits differ.

        Raises: UnscriptableError
        """
        taken, writer = stretch.taken, stretch.writer
        computed = self._computed(taken, where)
        left: dict[int, Tensor] = {}
        further: list[Tensor] = []
        for done in taken:
            left.update((id(tensor), tensor) for tensor in done.pointed)
            further += [one for one in done.released if left.pop(id(one), None) is None]
        for use in [use for done in taken for use in done.viewed]:
            if not self._scope.outlives(use, where[-1]):
                left.pop(id(use.slot.tensor), None)
        for tensor in left.values():
            writer.share(tensor)
        writer.give_first([writer.scalar(index) for index in computed])
        one = Stretch(writer.function(), writer.inputs, plain, where)
        if writer.given or writer.limits:
            indices = [symbol.index for symbol in writer.given]
            one = SymbolicStretch(one, self._scope.flow.table.items, indices)
            one.computed, one.limits = tuple(computed), tuple(writer.limits)
            one.position = writer.position
            if not one.position.holds(one.items):
                self.postponed.append(one.position)
                return None
        form = (one.function, *[done.kernel for done in taken], *[t.dtype for t in writer.inputs])
        if form not in self._agreed:
            if not gives_same_bits(one.run_graph, writer):
                return None
            self._agreed.add(form)
        return one, further

    def _computed(self, taken: Sequence[_Taken], where: Sequence[int]) -> list[int]:
        """Return the scalars that a graph has to return.

        Raises: UnscriptableError for one other than an integer
        """
        defined = {done.defines.index: done.defines for done in taken if done.defines is not None}
        needed = [one for one in defined.values() if self._scope.is_needed(one.index, where)]
        if any(one.kind is not int for one in needed):
            raise UnscriptableError("a scalar other than an integer is returned")
        return [one.index for one in needed]


def _symbolic(done: SymbolicCall) -> SymbolicCall | None:
    return done if done.run() else None


@dataclass(frozen=True, slots=True)
class ScriptedCalls:
    """The calls of a fused run, with graphs.

    Attributes:
        calls: in order
        places: instruction of each
        postponed: what has to hold for further graphs, which a later run can make
    """

    calls: list[Call]
    places: list[int]
    postponed: Sequence[OnePosition]


def scripted_calls(
    run_calls: Sequence[Call],
    places: Sequence[int],
    scope: Scope,
    notice: Callable[[int], None],
) -> ScriptedCalls:
    """Run the calls of a fused run or of a block, and return those of the next runs.

    Args:
        run_calls: in order
        places: instruction of each
        scope: the shared state of the instructions
        notice: called with the instruction that runs next
    """
    recording = _Recording(run_calls, places, scope)
    made = list(recording.run(notice))
    found = [call for call, _ in made], [place for _, place in made]
    return ScriptedCalls(*found, recording.postponed)
