"""An evaluation in the worker: each sample runs on the reference and on all variants."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch

from inspector.jobs.eval_samples import (
    EvalSample,
    OutputSums,
    VariantSample,
)
from inspector.jobs.evaluate import EvalJob
from inspector.jobs.executing import RunJob
from inspector.memory.plan import state_values
from inspector.numerics.metrics import Distance, ErrorSums, Tolerance
from inspector.numerics.replay.measuring import pieces_of
from inspector.recipes.data_source import EXAMPLE
from inspector.recipes.emission import file_of
from inspector.recipes.source import Source
from inspector.worker.activation_ranges import RangeObserver, quantizes
from inspector.worker.backend_options import set_backend_options
from inspector.worker.data_set import DataSample, DataSet, example_data, open_data
from inspector.worker.executing import failure as failure
from inspector.worker.exporter import FORWARD, AnswerError, Say, member_of, timed_stage
from inspector.worker.inputs import chosen_method
from inspector.worker.kernels import with_libraries
from inspector.worker.missing_data import missing_data_named
from inspector.worker.run_job import record_of
from inspector.worker.source_program import ProgramRunner, own, source_program
from inspector.worker.tasks import Task
from runtime import ErrorCode, ExecutionError, Method, Program, Runtime
from schema.objects.codec import to_json

Values = Sequence[Any]
Metrics = Mapping[str, float | None]
_Metric = Callable[[Values, DataSample], Metrics]
_Result = list[Any] | Exception
_LOST = "its worker crashed: {}"


def work(job: EvalJob, task: Task) -> dict[str, Any]:
    """Evaluate all samples that are not known yet; report each when it is done.

    Raises: AnswerError, ValuesError, FormatError, ExecutionError, OSError; errors of the user's
        code
    """
    with_libraries(tuple(dict.fromkeys(path for one in job.variants for path in one.libraries)))
    torch.set_num_threads(max((one.threads for one in job.variants), default=1) or 1)
    lost: Mapping[str, str] = task.options.get("lost", {})
    with timed_stage(task.notify, "load"):
        variants = [
            _Variant(one, lost.get(str(number), "")) for number, one in enumerate(job.variants)
        ]
        plan = variants[0].plan
        data = None if job.data == EXAMPLE else open_data(job.data, plan, task.notify, plan.name)
        metric = _metric(job.metric, task.notify) if job.metric else None
    program = None
    if job.reference.source is not None:
        program = source_program(job.reference.source, plan.name, task.notify)
    runner = ProgramRunner(program) if program is not None else None
    data = data or example_data(program, plan)
    observers = [_observer(one, task.notify) for one in job.variants] if job.ranges else []
    evaluation = _Evaluation(job, variants, runner, metric, task.notify, observers)
    with timed_stage(task.notify, "evaluate"):
        return evaluation.run(data, task.options.get("known", {}))


class _LostError(ExecutionError):
    """A variant that is left out, since it crashed its worker."""


class _Variant:
    """One of the programs, loaded once; its state is reset for each sample."""

    def __init__(self, job: RunJob, lost: str) -> None:
        self._program: Program = Runtime.get().load_program(
            job.program, data_path=list(job.data_files), tracer=None
        )
        self.name = chosen_method(self._program.file, job.method)
        self.methods = self._program.method_names
        self.plan = self._program.file.plan(self.name)
        self.lost = lost
        self._method: Method | None = None
        self._state: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._has_run = False
        if not lost:
            self._load(job)

    def _load(self, job: RunJob) -> None:
        set_backend_options(job.backend_options)
        with missing_data_named(job.program, job.data_files):
            method = self._program.load_method(self.name, engine=job.engine, emulate=record_of(job))
        held = [method.value(index) for index in state_values(self._program.file, self.name)]
        self._state = [(one, one.clone()) for one in held if isinstance(one, torch.Tensor)]
        self._method = method

    def outputs(self, values: Values) -> list[Any]:
        """Return the outputs for flattened inputs.

        Raises: ExecutionError
        """
        if self._method is None:
            raise _LostError(ErrorCode.InvalidState, _LOST.format(self.lost))
        if (
            not self._has_run
        ):  # weights lie otherwise from the second run on: it may round otherwise
            self._run(self._method, values)
            self._has_run = True
        self._run(self._method, values)
        return [own(value) for value in self._method.get_outputs()]

    def _run(self, method: Method, values: Values) -> None:
        for tensor, saved in self._state:
            tensor.copy_(saved)
        method.reset_delegates()
        method.set_inputs([own(value) for value in values])
        method.run()


@dataclass
class _Evaluation:
    """Evaluates samples one after the other.

    Attributes:
        job: the request
        variants: loaded programs
        runner: computes the reference; None if it is a variant
        metric: of the user, or None
        notify: called with messages
        observers: of the quantized values of each variant; may be empty
        refused: number of samples without any figures
        first: error of the first of them
    """

    job: EvalJob
    variants: Sequence[_Variant]
    runner: ProgramRunner | None
    metric: _Metric | None
    notify: Say
    observers: Sequence[RangeObserver | None] = ()
    refused: int = 0
    first: Exception | None = field(default=None)

    def run(self, data: DataSet, known: Mapping[str, str]) -> dict[str, Any]:
        """Evaluate the samples of a data set; return how many there are, None if unknown."""
        most, again, done = self.job.samples, 0, 0
        total = _least(data.count, most)
        first = self.variants[0]
        for sample in data.samples(len(first.plan.inputs), first.name, first.methods):
            if most is not None and sample.index >= most:
                return {"total": None, "changed": again}
            digest = sample.digest
            before = known.get(str(sample.index))
            if before != digest:
                again += before is not None
                found = self._evaluated(sample, digest)
                self.notify("evaluated", sample=to_json(found))
            done += 1
            self.notify("counted", done=done, total=total or 0)
        if not done:
            raise AnswerError(f"{self.job.data} has no samples")
        if self.first is not None and self.refused == done:
            raise self.first
        return {"total": done, "changed": again}

    def _evaluated(self, sample: DataSample, digest: str) -> EvalSample:
        own_variant = self.job.reference.variant
        outputs: list[_Result] = []
        for number, variant in enumerate(self.variants):
            self.notify("evaluating", sample=sample.index, variant=number)
            outputs.append(_tried(variant.outputs, sample.inputs))
        # the reference, the metric and the comparison: a crash in these is of no variant
        self.notify("evaluating", sample=sample.index, variant=-1)
        if self.runner is not None:
            reference = _tried(self.runner.outputs, sample.inputs)
        else:
            reference = outputs[own_variant]
        compared = tuple(
            self._compared(one, None if number == own_variant else reference, sample)
            for number, one in enumerate(outputs)
        )
        observers = self.observers or [None] * len(compared)
        compared = tuple(
            one
            if observer is None or one.error
            else replace(one, ranges=observer.ranges(sample.inputs))
            for one, observer in zip(compared, observers, strict=True)
        )
        errors = [one for one in outputs if isinstance(one, Exception)]
        if len(errors) == len(outputs) or isinstance(reference, Exception):
            self.refused += 1
            self.first = self.first or next(iter(errors), None)
            if isinstance(reference, Exception):
                self.first = self.first or reference
                return EvalSample(sample.index, digest, compared, error=_words(reference))
        return EvalSample(sample.index, digest, compared, self._measured(reference, sample))

    def _compared(
        self,
        found: _Result,
        reference: _Result | None,
        sample: DataSample,
    ) -> VariantSample:
        if isinstance(found, Exception):
            return VariantSample(error=_words(found), lost=isinstance(found, _LostError))
        metrics = self._measured(found, sample)
        if reference is None or isinstance(reference, Exception):
            return VariantSample((), metrics)
        if len(found) != len(reference):
            words = f"{len(found)} outputs, the reference has {len(reference)}"
            return VariantSample((), metrics, words)
        pairs = zip(reference, found, strict=True)
        return VariantSample(tuple(_output(one, two) for one, two in pairs), metrics)

    def _measured(self, outputs: Values, sample: DataSample) -> Metrics:
        return {} if self.metric is None else self.metric(outputs, sample)


def _observer(job: RunJob, notify: Say) -> RangeObserver | None:
    """Return the observer of a variant, None without a recorded program that is quantized."""
    if not job.record:
        return None
    program = source_program(Source(job.record), job.method or FORWARD, notify)
    return RangeObserver(program) if quantizes(program) else None


def _least(one: int | None, two: int | None) -> int | None:
    known = [each for each in (one, two) if each is not None]
    return min(known) if known else None


def _tried(run: Callable[[Values], list[Any]], values: Values) -> _Result:
    """Return the outputs, or the error of a sample that the program refuses."""
    try:
        return run(values)
    except Exception as error:  # noqa: BLE001 - whatever kernels raise; other samples go on
        return error


def _words(error: Exception) -> str:
    return str(failure(error)["sentence"])


def _output(reference: Any, found: Any) -> OutputSums:  # noqa: ANN401 - tensors or scalars
    """Return one output beside its reference."""
    one, two = (torch.as_tensor(0.0 if each is None else each) for each in (reference, found))
    dtype, shape = str(one.dtype).removeprefix("torch."), tuple(one.shape)
    if two.shape != one.shape:
        words = f"its shape is {list(two.shape)}, that of the reference {list(one.shape)}"
        return OutputSums(ErrorSums(), dtype, shape, note=words)
    distance = Distance(dtype, Tolerance())
    distance.add(pieces_of(one, two))
    rows, agreeing = _agreement(one, two)
    return OutputSums(distance.sums(), dtype, shape, rows, agreeing)


def _agreement(one: torch.Tensor, two: torch.Tensor) -> tuple[int, int]:
    """Return the rows of a class-like output, scores by class, and how many agree in the largest.

    An output is class-like if it has floats with one row, or a batch of rows, of two or more.
    """
    floats = one.is_floating_point() and two.is_floating_point()
    if not floats or one.ndim not in (1, 2) or one.shape[-1] < 2:
        return 0, 0
    same = one.argmax(-1) == two.argmax(-1)
    return same.numel(), int(same.sum())


def _metric(text: str, notify: Say) -> _Metric:
    """Return the user's metric as a function that gives values by name.

    It is called with the outputs (the only one alone, several as a list), and with the targets if
    it takes two arguments. It returns a number, or a mapping of several by name.

    Raises: AnswerError for anything else; errors of the user's code
    """
    path = file_of(text)
    name = text[len(path) + 1 :]
    called = member_of(path, name, notify)
    if not callable(called):
        raise AnswerError(f"{text}: expected a function, found {type(called).__name__}")
    wants_targets = _takes_two(called)

    def measured(outputs: Values, sample: DataSample) -> Metrics:
        if wants_targets and not sample.has_targets:
            raise AnswerError(
                f"{text} takes targets, sample {sample.index} has none: give pairs of inputs and"
                " targets, or a metric of the outputs alone"
            )
        given: Any = outputs[0] if len(outputs) == 1 else list(outputs)
        found: Any = called(given, sample.targets) if wants_targets else called(given)
        named = cast("Mapping[Any, Any]", found) if isinstance(found, Mapping) else {name: found}
        return {str(key): _number(value, text) for key, value in named.items()}

    return measured


def _takes_two(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return True
    places = [
        one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    return len(places) > 1 or any(one.kind is one.VAR_POSITIONAL for one in parameters)


def _number(value: Any, text: str) -> float | None:  # noqa: ANN401
    try:
        found = float(value)
    except (TypeError, ValueError, RuntimeError) as error:
        kind = type(value).__name__
        raise AnswerError(
            f"{text} returned {kind}, expected a number or several by name"
        ) from error
    return found if math.isfinite(found) else None
