"""Samples of a data source in the worker: evaluation, calibration and single runs read them here.

An item is the inputs of a call, or a pair of inputs and targets, or a mapping with ``inputs`` and
``targets``, and the ``method`` that it is for. Which of them a tuple is follows from the number of
inputs of the method.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from compiler.quantize.calibration import inputs_from_file
from inspector.recipes.data_source import (
    EXAMPLE,
    EXPECTED,
    GENERATED,
    SAMPLE_SUFFIXES,
    DataSource,
    data_source,
)
from inspector.worker.exporter import AnswerError, Say, answer_of
from inspector.worker.inputs import (
    ValuesError,
    flat_values,
    generated_inputs,
    load_values,
    read_values,
)
from schema.program import model as m

_DIGEST_BYTES = 16
_KEYS = ("inputs", "targets", "method")  # of an item that is a mapping with inputs
_EXAMPLES = 4  # random samples instead of example inputs
MOST_CALLS = 1000  # of a calibration: observers are steady long before, a source may have no end


@dataclass(frozen=True, slots=True, eq=False)
class DataSample:
    """One sample.

    Attributes:
        index: in its data source, from 0, among those for its method
        inputs: flattened tensors and scalars
        targets: anything, as the data source has it
        has_targets: whether there are any
        method: that the item is for, empty if it names none
    """

    index: int
    inputs: list[Any]
    targets: Any = None
    has_targets: bool = False
    method: str = ""

    @property
    def digest(self) -> str:
        """Return a hash of the inputs, and of the targets where they are tensors or scalars."""
        found = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        for value in (*self.inputs, *_known(self.targets)):
            if isinstance(value, torch.Tensor):
                found.update(f"{value.dtype} {tuple(value.shape)}".encode())
                flat = value.detach().contiguous().reshape(-1)
                found.update(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"")
            else:
                found.update(repr(value).encode())
        return found.hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class DataSet:
    """The items of a data source, read one after the other.

    Attributes:
        source: their origin
        count: number of items, None if unknown
        items: of the source; read once
    """

    source: DataSource
    count: int | None
    items: Iterable[Any]

    def samples(
        self, inputs: int, method: str, known: Collection[str] = ()
    ) -> Iterator[DataSample]:
        """Yield the samples of a method in order: items that name it, and those that name none.

        They are numbered without the items of other methods.

        Args:
            inputs: number of flattened inputs of a call
            method: that is called
            known: methods that items may name; any if there are none

        Raises: ValuesError for an item that has other ones; AnswerError if all items are for other
            methods, or one is for an unknown one; errors of the user's code
        """
        others: dict[str, None] = {}
        count = 0
        for index, item in enumerate(self.items):
            place = f"{self.source.text}, sample {index}"
            named = _method_named(item, place)
            if named and known and named not in known:
                there = ", ".join(sorted(known))
                raise AnswerError(f"{place}: unknown method {named!r}; available: {there}")
            if named not in ("", method):
                others[named] = None
                continue
            found = sample_of(item, inputs, index, self.source.text)
            yield replace(found, index=count, method=named)
            count += 1
        if others and not count:
            names = ", ".join(others)
            raise AnswerError(f"{self.source.text}: no sample is for {method}, found {names}")

    def samples_of_methods(self, inputs: Callable[[str], int]) -> Iterator[DataSample]:
        """Yield samples in order, each for the method that it names.

        Args:
            inputs: returns the number of flattened inputs of a method; given an empty name, that of
                the method for items that name none

        Raises: ValuesError for an item that has other ones, and for one whose method has no name;
            AnswerError for a method that ``inputs`` refuses; errors of the user's code
        """
        for index, item in enumerate(self.items):
            place = f"{self.source.text}, sample {index}"
            method = _method_named(item, place)
            try:
                count = inputs(method)
            except AnswerError as error:
                raise AnswerError(f"{place}: {error}" if method else str(error)) from error
            found = sample_of(item, count, index, self.source.text)
            yield replace(found, method=method)


def open_data(
    text: str, plan: m.ExecutionPlan | None, notify: Say, method: str = "forward"
) -> DataSet:
    """Return the items of a data source.

    Args:
        text: see ``data_source``
        plan: of the method, for generated inputs; None if these are not possible
        notify: called with messages
        method: of a ``.pt`` file with items by method

    Raises: AnswerError, ValuesError, CalibrationError, OSError; errors of the user's code
    """
    source = data_source(text)
    if source.generated:
        if plan is None:
            raise AnswerError(f"{text}: {EXPECTED.replace(', or one of', ', not one of')}")
        built = (generated_inputs(plan, text, seed) for seed in itertools.count())
        return DataSet(source, None, built)
    if source.name:
        return _of_code(source, notify)
    if Path(source.path).is_dir():
        files = source.files()
        if not files:
            kinds = " and ".join(SAMPLE_SUFFIXES)
            raise ValuesError(f"{source.path}: expected {kinds} files, found none")
        return DataSet(source, len(files), map(file_item, files))
    calls = inputs_from_file(source.path, method)
    return DataSet(source, len(calls), calls)


def example_data(program: torch.export.ExportedProgram | None, plan: m.ExecutionPlan) -> DataSet:
    """Return the example inputs of a program; random inputs where it has none.

    Args:
        program: the reference of an evaluation, or None
        plan: of the method, for random inputs
    """
    given = program.example_inputs if program is not None else None
    leaves = _known(given)
    if len(leaves) == len(plan.inputs) and leaves:
        return DataSet(data_source(EXAMPLE), 1, [leaves])
    built = [generated_inputs(plan, GENERATED[0], seed) for seed in range(_EXAMPLES)]
    return DataSet(data_source(GENERATED[0]), len(built), built)


def _of_code(source: DataSource, notify: Say) -> DataSet:
    found, _ = answer_of(source.path, source.name, notify)
    try:
        count = len(found)
    except TypeError:
        count = None
    try:
        items = iter(found)
    except TypeError:
        kind = type(found).__name__
        words = f"{source.text} is of type {kind}: expected an iterable of inputs, or a callable"
        raise AnswerError(f"{words} that returns one") from None
    # a Dataset of torch without __iter__ ends by its length only
    return DataSet(source, count, items if count is None else itertools.islice(items, count))


def file_item(path: Path) -> Any:  # noqa: ANN401 - what the file holds
    """Return what ``torch.save`` or ``numpy.save`` wrote into a file; nothing is unpickled.

    Raises: ValuesError, OSError
    """
    if path.suffix != ".npy":
        return load_values(str(path))
    try:
        return np.load(path, allow_pickle=False)
    except ValueError as error:
        raise ValuesError(f"{path}: expected an array, written by numpy.save; {error}") from error


def sample_of(item: Any, inputs: int, index: int, where: str) -> DataSample:  # noqa: ANN401
    """Return an item as a sample.

    Args:
        item: of a data source
        inputs: number of flattened inputs of a call
        index: of the item
        where: the data source, for the error

    Raises: ValuesError if it does not have as many inputs
    """
    place = f"{where}, sample {index}"
    if isinstance(item, Mapping) and "inputs" in item:
        given = cast("Mapping[str, Any]", item)
        values = list(flat_values(given["inputs"], place))
        _check_count(len(values), inputs, place)
        return DataSample(index, values, given.get("targets"), "targets" in given)
    pair = isinstance(item, (tuple, list)) and len(cast("list[Any]", item)) == 2
    nested = pair and isinstance(item[0], (tuple, list, Mapping))
    alone = list(_known(item))
    if len(alone) == inputs and not (nested and len(_known(item[0])) == inputs):
        return DataSample(index, alone)
    if pair and len(_known(item[0])) == inputs:
        return DataSample(index, _known(item[0]), item[1], has_targets=True)
    flat = list(flat_values(item, place))
    _check_count(len(flat), inputs, place)
    return DataSample(index, flat)


def _method_named(item: Any, place: str) -> str:  # noqa: ANN401
    """Return the method that an item is for, empty if it names none.

    Raises: ValuesError
    """
    if not isinstance(item, Mapping):
        return ""
    given = cast("Mapping[str, Any]", item)
    unknown = [key for key in given if key not in _KEYS] if "inputs" in given else []
    if unknown:
        raise ValuesError(f"{place}: expected {', '.join(_KEYS)}; found {unknown[0]!r}")
    if "method" not in given:
        return ""
    if not isinstance(given["method"], str) or not given["method"]:
        raise ValuesError(f"{place}: method: expected a name, found {given['method']!r}")
    if "inputs" not in given:
        raise ValuesError(f"{place}: an item with a method needs inputs as well")
    return given["method"]


def _check_count(found: int, inputs: int, place: str) -> None:
    if found != inputs:
        raise ValuesError(
            f"{place}: expected {inputs} inputs, or a pair of them and targets; found {found}"
            " values"
        )


def _known(value: Any) -> list[Any]:  # noqa: ANN401
    """Return the flattened values, empty where there is anything else among them."""
    try:
        return list(flat_values(value, ""))
    except ValuesError:
        return []


def calibration_calls(
    text: str, method: str, program: torch.export.ExportedProgram, notify: Say | None = None
) -> list[tuple[Any, ...]]:
    """Return the arguments of each call that a quantizer is calibrated with.

    Raises: errors of ``open_data``; AnswerError for a data source without an end
    """
    if not data_source(text).name and Path(text).is_file():
        return inputs_from_file(text, method)
    spec: Any = program.call_spec.in_spec
    unflatten: Callable[..., Any] = cast("Any", torch).utils._pytree.tree_unflatten
    found = open_data(text, None, notify or _unheard, method)
    requested = list(itertools.islice(found.samples(spec.num_leaves, method), MOST_CALLS + 1))
    if len(requested) > MOST_CALLS:
        words = f"the first {MOST_CALLS:,} samples of {text} calibrate; there are more"
        (notify or _unheard)("warning", text=words, file=found.source.path, line=0)
    return [tuple(unflatten(one.inputs, spec)[0]) for one in requested[:MOST_CALLS]]


def _unheard(*_kind: object, **_content: object) -> None:
    """Ignore a message."""


def inputs_named(text: str, seed: int, plan: m.ExecutionPlan) -> list[Any]:
    """Return the flattened inputs of a run.

    Args:
        text: random, ones or zeros, a file of tensors, or a sample as ``data.py:batches#3``;
            the first one of a data source without a number
        seed: of random inputs
        plan: of the method

    Raises: errors of ``open_data``; AnswerError if there are fewer samples; ExecutionError
    """
    if text in GENERATED:
        return generated_inputs(plan, text, seed)
    source = data_source(text)
    if source.index is None and Path(text).is_file():
        return read_values(text)
    return _sample_inputs(source, plan)


def _sample_inputs(source: DataSource, plan: m.ExecutionPlan) -> list[Any]:
    found = open_data(source.text, plan, _unheard, plan.name)
    index = source.index or 0
    samples = found.samples(len(plan.inputs), plan.name)
    requested = next(itertools.islice(samples, index, None), None)
    if requested is None:
        raise AnswerError(f"{source.text} has no sample {index} for {plan.name}")
    return requested.inputs
