"""One pass over a sequence: a program with state gets other inputs each call."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from inspector.files.run_calls import SequenceCall
from inspector.worker.call_state import CallState, CallValues
from inspector.worker.data_set import open_data
from inspector.worker.exporter import AnswerError
from inspector.worker.inputs import described
from inspector.worker.recording import Recording
from inspector.worker.tasks import Task
from runtime import EventTracer, Method, Program

_TOKEN_TYPES = (torch.int64, torch.int32)
_MOST_LOGGED = 1 << 30  # bytes of logged values behind which no further call logs


class SequencePass:
    """Runs a method on each item of a data source in order; its state is kept between calls.

    The number of a call is the index of its block in the trace.

    Args:
        text: the data source
        loaded: program and method
        task: receives progress, and may end it
        keeps_inputs: whether the calls can be made again
    """

    def __init__(
        self, text: str, loaded: tuple[Program, Method], task: Task, *, keeps_inputs: bool
    ) -> None:
        program, self._method = loaded
        self._text, self._task = text, task
        self._plan = program.file.plan(self._method.name)
        self._kept: list[list[Any]] | None = [] if keeps_inputs else None
        self.state = CallState(program.file, self._method, needed=keeps_inputs)

    def run(self, tracer: EventTracer | None) -> list[Mapping[str, Any]]:
        """Return number, time in ms, inputs and changes of the state of each call.

        There are fewer if an end was requested.

        Raises: errors of ``open_data``; AnswerError for a source without items; ExecutionError
        """
        data = open_data(self._text, None, self._task.notify, self._method.name)
        found: list[Mapping[str, Any]] = []
        for sample in data.samples(len(self._plan.inputs)):
            if self._kept is not None:
                self._kept.append([_copy(value) for value in sample.inputs])
            inputs = [described(value) for value in sample.inputs]
            tokens = _tokens(sample.inputs)
            spent = self._call(sample.index, sample.inputs, tracer)
            call = SequenceCall(sample.index, spent, tokens, self.state.changes())
            found.append({**asdict(call), "inputs": inputs})
            if data.count is not None:
                self._task.notify("counted", done=len(found), total=data.count)
            if self._task.stop.is_asked():
                break
        if not found:
            raise AnswerError(f"{self._text} has no inputs")
        return found

    def log(self, recording: Recording, folder: Path) -> list[str]:
        """Make the same calls again from the first state, and log their values.

        Returns: notes about calls whose values are not kept

        Raises: ExecutionError, OSError
        """
        calls = self._kept or []
        self.state.reset()
        values, logged = CallValues(folder), 0
        for number, inputs in enumerate(calls):
            if recording.logged_bytes > _MOST_LOGGED:
                break
            before = self.state.values()
            self._call(number, [_copy(value) for value in inputs], recording.values)
            outputs = self._method.get_outputs()
            values.write(number, inputs, outputs, (before, self.state.values()))
            logged += 1
            self._task.notify("counted", done=logged, total=len(calls))
        notes: list[str] = []
        if logged < len(calls):
            notes.append(f"values of the first {logged:,} of {len(calls):,} calls are logged")
        if values.written < logged:
            notes.append(f"state and outputs of the first {values.written:,} calls are kept")
        return notes

    def _call(self, number: int, inputs: Sequence[Any], tracer: EventTracer | None) -> float:
        """Run once; return the time in ms."""
        self._method.tracer = tracer
        if tracer is not None:
            tracer.bundled_input_index = number
        self._method.set_inputs(inputs)
        start = time.perf_counter()
        self._method.run()
        return (time.perf_counter() - start) * 1e3


def _copy(value: Any) -> Any:  # noqa: ANN401 - a tensor or a number
    return value.clone() if isinstance(value, torch.Tensor) else value


def _tokens(inputs: Sequence[Any]) -> int | None:
    """Return how many tokens a call is given: the row of integers that its inputs begin with."""
    first = inputs[0] if inputs else None
    if not isinstance(first, torch.Tensor) or first.dtype not in _TOKEN_TYPES:
        return None
    return first.shape[1] if first.dim() == 2 and first.shape[0] == 1 else None
