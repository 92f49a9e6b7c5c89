"""One pass over a sequence: a program with state gets other inputs each call."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from inspector.worker.data_set import open_data
from inspector.worker.exporter import AnswerError
from inspector.worker.inputs import described
from inspector.worker.tasks import Task
from runtime import EventTracer, Method
from schema.program import model as m


def run_calls(
    text: str, method: Method, plan: m.ExecutionPlan, tracer: EventTracer | None, task: Task
) -> list[Mapping[str, Any]]:
    """Run a method on each item of a data source in order; its state is kept between calls.

    The number of a call is the index of its block in the trace.

    Returns: number, time in ms and inputs of each call, fewer if an end was requested

    Raises: errors of ``open_data``; AnswerError for a source without items; ExecutionError
    """
    data = open_data(text, None, task.notify, method.name)
    method.tracer = tracer
    found: list[Mapping[str, Any]] = []
    for sample in data.samples(len(plan.inputs)):
        if tracer is not None:
            tracer.bundled_input_index = sample.index
        method.set_inputs(sample.inputs)
        start = time.perf_counter()
        method.run()
        spent = (time.perf_counter() - start) * 1e3
        inputs = [described(value) for value in sample.inputs]
        found.append({"call": sample.index, "ms": spent, "inputs": inputs})
        if data.count is not None:
            task.notify("counted", done=len(found), total=data.count)
        if task.stop.is_asked():
            break
    if not found:
        raise AnswerError(f"{text} has no inputs")
    return found
