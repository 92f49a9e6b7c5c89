"""Accumulates distances of tensors, pass by pass and a piece at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from inspector.numerics.kept import Array, ArraySources, Kept
from inspector.numerics.metrics import PIECE, Distance, Metrics, Tolerance, coarser
from inspector.rebuild.torch_bridge import load_torch
from runtime.emulation.recorded import UNKNOWN

Key = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class MeasuredOutput:
    """Distances of one output.

    Attributes:
        dtype: dtype of the logged tensor
        sizes: shape of one pass
        passes: number of passes
        by_reference: whether the reference's own value was known
        total: distance from the reference, or from the node on the run's inputs
        own: distance from the node on the run's inputs; None if these are unknown
        inherited: distance between that node and the reference; None if either is unknown
        kept: name of the file with the tensors, empty if not stored
    """

    dtype: str
    sizes: tuple[int, ...]
    passes: int
    by_reference: bool
    total: Metrics
    own: Metrics | None
    inherited: Metrics | None
    kept: str


@dataclass(frozen=True, slots=True, eq=False)
class OutputValues:
    """The values of one output.

    Attributes:
        reference: of the reference, or unknown
        own: of the node on the run's inputs, or unknown
        found: logged value
        quantized: whether the values are rounded to a scale
        quantum: that scale, 0 if unknown
        held: dtype with fewer bits that it was computed in, empty for its own
    """

    reference: Any
    own: Any
    found: Any
    quantized: bool = False
    quantum: float = 0.0
    held: str = ""


class Measuring:
    """Distances by key.

    Attributes:
        prefix: prefix of the names of stored files
    """

    def __init__(self, tolerance: Tolerance, kept: Kept) -> None:
        self.prefix = ""
        self._tolerance = tolerance
        self._kept = kept
        self._outputs: dict[Key, _OutputDistances] = {}

    def take(self, key: Key, values: OutputValues) -> None:
        """Measure one pass of an output."""
        output = self._outputs.get(key)
        if output is None:
            output = self._outputs[key] = _OutputDistances(values, self._tolerance)
        name = f"{self.prefix}-{key[0]}-{key[1]}-{key[2]}"
        output.kept = self._kept.add(name, output.passes, _sources(values))
        output.add(values)

    def result(self, key: Key) -> MeasuredOutput | None:
        """Return the distances, or None before the first pass."""
        output = self._outputs.get(key)
        return None if output is None else output.measured()


def agrees(values: OutputValues, allowed: Tolerance) -> bool:
    """Return whether a logged value agrees with the node run on the inputs of the run, if known.

    Otherwise, return whether it equals the reference's own value.
    """
    side = values.reference if values.own is UNKNOWN else values.own
    if side is UNKNOWN or tuple(side.shape) != tuple(values.found.shape):
        return False
    dtype = _dtype(side)
    distance = Distance(dtype, allowed, _tolerated(values, dtype))
    distance.add(pieces_of(side, values.found), values.quantum)
    return distance.metrics().out_of_tolerance == 0


def _tolerated(values: OutputValues, dtype: str) -> str:
    """Return the kind of the tolerance of a value, whose reference has a dtype.

    A backend may compute with fewer bits than the recorded program.
    """
    computed = coarser(dtype, values.held or _dtype(values.found))
    return "quantized" if values.quantized else computed


class _OutputDistances:
    """Running distances of one output."""

    def __init__(self, values: OutputValues, allowed: Tolerance) -> None:
        dtype = _dtype(values.own if values.reference is UNKNOWN else values.reference)
        kind = _tolerated(values, dtype)
        self._total, self._own, self._inherited = (Distance(dtype, allowed, kind) for _ in range(3))
        self._dtype, self._sizes = _dtype(values.found), tuple(values.found.shape)
        self._by_reference = self._by_run = True
        self.passes = 0
        self.kept = ""

    def add(self, values: OutputValues) -> None:
        """Add one pass."""
        reference, own, found, quantum = values.reference, values.own, values.found, values.quantum
        self.passes += 1
        self._by_reference = self._by_reference and reference is not UNKNOWN
        self._by_run = self._by_run and own is not UNKNOWN
        self._total.add(pieces_of(own if reference is UNKNOWN else reference, found), quantum)
        if own is not UNKNOWN:
            self._own.add(pieces_of(own, found), quantum)
        if own is not UNKNOWN and reference is not UNKNOWN:
            self._inherited.add(pieces_of(reference, own), quantum)

    def measured(self) -> MeasuredOutput:
        """Return the distances so far."""
        both = self._by_reference and self._by_run
        return MeasuredOutput(
            dtype=self._dtype,
            sizes=self._sizes,
            passes=self.passes,
            by_reference=self._by_reference,
            total=self._total.metrics(),
            own=self._own.metrics() if self._by_run else None,
            inherited=self._inherited.metrics() if both else None,
            kept=self.kept,
        )


def _sources(values: OutputValues) -> ArraySources:
    known = {"reference": values.reference, "own": values.own}
    if values.reference is UNKNOWN:
        known = {"reference": values.own}
    tensors = {**known, "run": values.found}
    return {
        name: (tensor.numel() * max(tensor.element_size(), 2), _source(tensor))
        for name, tensor in tensors.items()
        if tensor is not UNKNOWN
    }


def _source(tensor: Any) -> Callable[[], Array]:  # noqa: ANN401
    return lambda: as_array(tensor)


def pieces_of(
    reference: Any,  # noqa: ANN401
    found: Any,  # noqa: ANN401
) -> Callable[[], Iterator[tuple[Array, Array]]]:
    """Return a function that yields pieces of two tensors, whatever their strides."""
    shape = tuple(int(size) for size in reference.shape)

    def pieces() -> Iterator[tuple[Array, Array]]:
        for place in places(shape, PIECE):
            yield as_array(reference[place]).ravel(), as_array(found[place]).ravel()

    return pieces


def places(shape: tuple[int, ...], most: int) -> Iterator[tuple[int | slice, ...]]:
    """Yield indices that cut a tensor into pieces with a bounded number of elements."""
    if not shape:
        yield ()
        return
    inner = 1
    for size in shape[1:]:
        inner *= size
    if inner <= most:
        step = most // max(inner, 1)
        for start in range(0, shape[0], step):
            yield (slice(start, start + step),)
        return
    for row in range(shape[0]):
        for rest in places(shape[1:], most):
            yield (row, *rest)


def _dtype(tensor: Any) -> str:  # noqa: ANN401
    return str(tensor.dtype).removeprefix("torch.")


def as_array(tensor: Any) -> Array:  # noqa: ANN401
    """Return a tensor as a numpy array: narrow floats as float32, complex ones as pairs."""
    torch = load_torch()
    tensor = tensor.detach()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    wide = (torch.float64, torch.float32, torch.float16)
    if tensor.is_floating_point() and tensor.dtype not in wide:
        tensor = tensor.to(torch.float32)
    return tensor.contiguous().numpy()
