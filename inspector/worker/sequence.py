"""One pass over a sequence: a program with state gets other inputs each call.

An item may name its method, so that methods which share state run in turns.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from inspector.files.run_calls import SequenceCall
from inspector.worker.call_state import CallState, CallValues
from inspector.worker.data_set import DataSample, DataSet, open_data
from inspector.worker.exporter import AnswerError
from inspector.worker.inputs import chosen_method, described
from inspector.worker.recording import Recording
from inspector.worker.tasks import Task
from runtime import EventTracer, ExecutionError, Method
from schema.program import ProgramFile

_TOKEN_TYPES = (torch.int64, torch.int32)
_MOST_LOGGED = 1 << 30  # bytes of logged values behind which no further call logs


class SequencePass:
    """Runs methods on the items of a data source in order; state is kept between calls.

    The number of a call is the index of its block in the trace.

    Attributes:
        method: of the last call, at first of the first one
        state: what the calls do to it
    """

    def __init__(
        self,
        source: tuple[str, str],
        loading: tuple[ProgramFile, Callable[[str], Method]],
        task: Task,
        *,
        keeps_inputs: bool,
    ) -> None:
        """Open the data source and read its first item.

        Args:
            source: the text of it, and the method of items that name none; empty for ``forward``
                or the only one that takes inputs
            loading: the program, and the function that loads a method of it
            task: receives progress, and may end it
            keeps_inputs: whether the calls can be made again

        Raises: errors of ``open_data``; AnswerError for a source without items, and for an unknown
            method
        """
        text, self._default = source
        self._file, self._load = loading
        self._task = task
        self._kept: list[tuple[str, list[Any]]] | None = [] if keeps_inputs else None
        self._methods: dict[str, Method] = {}
        self.state = CallState(self._file, needed=keeps_inputs)
        # A file may have items by method, which are then of one.
        data = open_data(text, None, task.notify, self._default or "forward")
        self._data: DataSet = data
        self._samples: Iterator[DataSample] = data.samples_of_methods(self._inputs)
        first = next(self._samples, None)
        if first is None:
            raise AnswerError(f"{text} has no inputs")
        self._first = first
        self.method = chosen_method(self._file, first.method or self._default)

    def _inputs(self, named: str) -> int:
        return len(self._file.plan(chosen_method(self._file, named or self._default)).inputs)

    def load_first(self) -> None:
        """Load the method of the first call.

        Raises: ExecutionError
        """
        self._loaded(self.method)

    def _loaded(self, name: str) -> Method:
        """Return a method; loading it leaves the state of the others as their calls left it."""
        if name not in self._methods:
            held = self.state.snapshot()
            self._methods[name] = self._load(name)
            self.state.restore(held)
            self.state.add(self._methods[name])
        return self._methods[name]

    def run(self, tracer: EventTracer | None) -> list[Mapping[str, Any]]:
        """Return number, time in ms, method, inputs and changes of the state of each call.

        There are fewer if an end was requested.

        Raises: errors of ``open_data``; ExecutionError
        """
        found: list[SequenceCall] = []
        inputs: list[list[dict[str, Any]]] = []
        for sample in itertools.chain([self._first], self._samples):
            self.method = chosen_method(self._file, sample.method or self._default)
            if self._kept is not None:
                self._kept.append((self.method, [_copy(value) for value in sample.inputs]))
            inputs.append([described(value) for value in sample.inputs])
            tokens = _tokens(sample.inputs)
            spent = self._call(sample.index, (self.method, sample.inputs), tracer)
            changes = self.state.changes()
            found.append(SequenceCall(sample.index, spent, tokens, changes, self.method))
            if self._data.count is not None:
                self._task.notify("counted", done=len(found), total=self._data.count)
            if self._task.stop.is_asked():
                break
        calls = (replace(one, state=self.state.of_all(one.state)) for one in found)
        return [{**asdict(one), "inputs": given} for one, given in zip(calls, inputs, strict=True)]

    def outputs(self) -> list[Any]:
        """Return the outputs of the last call; later ones do not change them."""
        return [_copy(one) for one in self._methods[self.method].get_outputs()]

    def log(self, recording: Recording, folder: Path) -> list[str]:
        """Make the same calls again from the first state, and log their values.

        Returns: notes about calls whose values are not kept

        Raises: ExecutionError, OSError
        """
        calls = self._kept or []
        self.state.reset()
        values, logged = CallValues(folder), 0
        for number, (name, inputs) in enumerate(calls):
            if recording.logged_bytes > _MOST_LOGGED:
                break
            before = self.state.values()
            self._call(number, (name, [_copy(value) for value in inputs]), recording.values)
            outputs = self._methods[name].get_outputs()
            values.write(number, inputs, outputs, (before, self.state.values()))
            logged += 1
            self._task.notify("counted", done=logged, total=len(calls))
        notes: list[str] = []
        if logged < len(calls):
            notes.append(f"values of the first {logged:,} of {len(calls):,} calls are logged")
        if values.written < logged:
            notes.append(f"state and outputs of the first {values.written:,} calls are kept")
        return notes

    def _call(
        self, number: int, given: tuple[str, Sequence[Any]], tracer: EventTracer | None
    ) -> float:
        """Run a method on inputs once; return the time in ms.

        Raises: ExecutionError, which names the call
        """
        name, inputs = given
        method = self._loaded(name)
        method.tracer = tracer
        if tracer is not None:
            tracer.bundled_input_index = number
        try:
            method.set_inputs(inputs)
            start = time.perf_counter()
            method.run()
        except ExecutionError as error:
            raise error.located(call=number) from None
        spent = (time.perf_counter() - start) * 1e3
        if tracer is not None:
            tracer.bundled_input_index = -1  # a method that is loaded next is of no call
        return spent


def _copy(value: Any) -> Any:  # noqa: ANN401 - a tensor or a number
    return value.clone() if isinstance(value, torch.Tensor) else value


def _tokens(inputs: Sequence[Any]) -> int | None:
    """Return how many tokens a call is given: the row of integers that its inputs begin with."""
    first = inputs[0] if inputs else None
    if not isinstance(first, torch.Tensor) or first.dtype not in _TOKEN_TYPES:
        return None
    return first.shape[1] if first.dim() == 2 and first.shape[0] == 1 else None
