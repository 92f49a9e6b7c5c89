"""Stretches of a fused run as one graph each, recorded from a run of their calls."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from runtime.execution.binding import BoundInstruction, Call
from runtime.execution.fused import calls
from runtime.execution.fused.dataflow import Dataflow
from runtime.execution.fused.operators import FRESH, VIEWS
from runtime.execution.fused.scripts import OperatorStep, ScriptWriter, UnscriptableError, new_bytes
from runtime.kernels import built_in
from runtime.kernels.rule import Style

Tensor = torch.Tensor
_torch: Any = torch
_c: Any = _torch._C
_Mode: Any = TorchDispatchMode
_MOST_HELD = 64 << 20  # bytes of results that recording keeps alive
_FEWEST = 2  # operators: a single one is called as fast from Python
_RELEASES = (calls.release_one, calls.release_all)


class Stretch:
    """Consecutive calls that run as one graph; one by one if the graph raises.

    Attributes:
        function: the graph
        inputs: that it gets
        plain: the calls
        places: instruction of each of them
        place: instruction that runs, after an error
    """

    __slots__ = ("function", "inputs", "place", "places", "plain")

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

    def __call__(self) -> None:
        """Run the calls."""
        try:
            self.function(*self.inputs)
        except Exception:  # noqa: BLE001 - the calls raise it again, with their instruction
            for place, call in zip(self.places, self.plain, strict=True):
                self.place = place
                call()


@contextmanager
def unoptimized() -> Generator[None]:
    """Run graphs as they are written; the setting is that of this thread."""
    before = _c._get_graph_executor_optimize()
    _c._set_graph_executor_optimize(False)
    try:
        yield
    finally:
        _c._set_graph_executor_optimize(before)


def is_repeatable(instruction: BoundInstruction, flow: Dataflow) -> bool:
    """Return whether each run of an instruction calls the same operators of torch."""
    bound = instruction.bound
    if bound is None or bound.arguments is None or not bound.arguments.fixed:
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
    """A call that has run: its operators, and the tensors that it pointed elsewhere."""

    def __init__(self, call: Call) -> None:
        self.pointed: Pointed = []
        self.released: list[Tensor] = []
        recorder = _Recorder()
        with recorder:
            self._run(call)
        self.steps = recorder.steps
        for tensor, result in self.pointed:
            tensor.data = result
        for tensor in self.released:
            tensor.data = torch.empty(0, dtype=tensor.dtype)

    def _run(self, call: Any) -> None:  # noqa: ANN401 - a partial or any other call
        function = getattr(call, "func", None)
        if function is calls.keep_one:
            run, tensor, _, slot = call.args
            self.pointed.append((tensor, calls.fitted(slot, run())))
        elif function is calls.keep_several:
            run, requested = call.args
            self.pointed += calls.results_of(run, requested)
        elif function is calls.point_alias:
            owner, other, shape = call.args
            self.pointed.append((other, owner.reshape(shape)))
        elif function in _RELEASES:
            pairs = call.args[0] if function is calls.release_all else [call.args]
            self.released = [tensor for tensor, _ in pairs]
        else:
            call()

    def write(self, writer: ScriptWriter) -> None:
        """Write it to a graph.

        Raises: UnscriptableError
        """
        for step in self.steps:
            writer.step(step)
        for tensor, contents in self.pointed:
            writer.point(tensor, contents)


def recorded(
    run_calls: Sequence[Call],
    places: Sequence[int],
    is_scriptable: Sequence[bool],
    notice: Callable[[int], None],
) -> Iterator[tuple[Call, int]]:
    """Run calls, and return those of the next runs with their instructions: graphs where possible.

    Args:
        run_calls: in order
        places: instruction of each
        is_scriptable: whether each run of a call does the same
        notice: called with the instruction that runs next

    Raises: whatever a call raises
    """
    open_stretch: list[tuple[int, _RecordedCall]] = []
    held = 0
    for index, call in enumerate(run_calls):
        releases = getattr(call, "func", None) in _RELEASES
        taken = None
        notice(places[index])
        if is_scriptable[index] or (releases and open_stretch):
            taken = _taken(call)
        else:
            call()
        if taken is not None:
            open_stretch.append((index, taken))
            held += sum(map(new_bytes, taken.steps))
            if held <= _MOST_HELD:
                continue
        yield from _closed(open_stretch, run_calls, places)
        open_stretch, held = [], 0
        if taken is None:
            yield call, places[index]
    yield from _closed(open_stretch, run_calls, places)


def _taken(call: Call) -> _RecordedCall | None:
    """Run a call; return what it did, None if a graph cannot repeat it."""
    done = _RecordedCall(call)
    try:
        done.write(ScriptWriter())
    except (UnscriptableError, RuntimeError, TypeError, KeyError):
        return None
    return done


def _closed(
    stretch: Sequence[tuple[int, _RecordedCall]], run_calls: Sequence[Call], places: Sequence[int]
) -> Iterator[tuple[Call, int]]:
    plain = [run_calls[index] for index, _ in stretch]
    where = [places[index] for index, _ in stretch]
    if sum(len(done.steps) for _, done in stretch) < _FEWEST:
        yield from zip(plain, where, strict=True)
        return
    writer = ScriptWriter()
    left: dict[int, Tensor] = {}
    further: list[Tensor] = []
    for _, done in stretch:
        done.write(writer)
        left.update((id(tensor), tensor) for tensor, _ in done.pointed)
        further += [one for one in done.released if left.pop(id(one), None) is None]
    for tensor in left.values():
        writer.share(tensor)
    one = Stretch(writer.function(), writer.inputs, plain, where)
    if not _agrees(one, writer):
        yield from zip(plain, where, strict=True)
        return
    yield one, where[0]
    if further:
        yield calls.release(further), where[-1]


def _agrees(stretch: Stretch, writer: ScriptWriter) -> bool:
    """Return whether a graph gives the bits that its calls gave, which have just run."""
    written = writer.written
    if any(_overlap(one, other) for one in written.values() for other in writer.read.values()):
        return True  # it overwrites what it reads, so it cannot be run twice
    written = {key: _stored_once(tensor) for key, tensor in written.items()}
    before = {key: tensor.clone() for key, tensor in written.items()}
    try:
        with unoptimized():
            stretch.function(*stretch.inputs)
    except RuntimeError:
        same = False
    else:
        same = all(_same_bits(before[key], tensor) for key, tensor in written.items())
    if not same:
        for key, tensor in written.items():
            tensor.copy_(before[key])
    return same


def _stored_once(tensor: Tensor) -> Tensor:
    """Return the elements of a tensor that have memory of their own: those that repeat, once."""
    strides = tensor.stride() if tensor.layout is torch.strided else ()
    for dim, stride in enumerate(strides):
        if stride == 0 and tensor.shape[dim] > 1:
            tensor = tensor.narrow(dim, 0, 1)
    return tensor


def _overlap(one: Tensor, other: Tensor) -> bool:
    if one.layout is not torch.strided or other.layout is not torch.strided:
        return False  # packed weights are no planned memory
    first, second = one.untyped_storage(), other.untyped_storage()
    start, begin = first.data_ptr(), second.data_ptr()
    return start < begin + second.nbytes() and begin < start + first.nbytes()


def _same_bits(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.dtype is not other.dtype:
        return False
    left, right = (each.contiguous().reshape(-1).view(torch.uint8) for each in (one, other))
    return torch.equal(left, right)


def scripted_calls(
    run_calls: Sequence[Call],
    places: Sequence[int],
    flow: Dataflow,
    notice: Callable[[int], None],
) -> tuple[list[Call], list[int]]:
    """Run the calls of a fused run, and return those of the next runs.

    Args:
        run_calls: in order
        places: instruction of each
        flow: reads and writes of each tensor
        notice: called with the instruction that runs next
    """
    repeatable = [is_repeatable(one, flow) for one in flow.instructions]
    made = list(recorded(run_calls, places, [repeatable[place] for place in places], notice))
    return [call for call, _ in made], [place for _, place in made]
