"""Comparators of the values of two runs: the three documented distances, or custom ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, cast

from inspector.compat.devtools.double_blocks import Change, Doubles
from inspector.export.pandas_bridge import DataFrame, load_pandas
from inspector.rebuild.torch_bridge import Torch, load_torch

DebugHandle = tuple[int, ...]
Reduce = Callable[[Torch], Torch]
_PAIRS = "it maps (debug handles, value) of the recorded program to those of the run"
OpNames = dict[DebugHandle, list[str]]
IntermediateOutputMapping = dict[tuple[DebugHandle, Any], tuple[DebugHandle, Any]]


class NumericalComparatorBase(ABC):
    """A distance of one's own; subclass it and give an object to ``calculate_numeric_gap``.

    Attributes:
        inspector: the Inspector that compares, set when it begins
    """

    def __init__(self, inspector: Any = None) -> None:  # noqa: ANN401 - an Inspector
        self._inspector = inspector

    @property
    def inspector(self) -> Any:  # noqa: ANN401 - an Inspector
        """Return the Inspector that compares, None before it does."""
        return self._inspector

    @inspector.setter
    def inspector(self, value: Any) -> None:  # noqa: ANN401 - an Inspector
        self._inspector = value

    def preprocessing(self, mapping: IntermediateOutputMapping) -> IntermediateOutputMapping:
        """Return the pairs to compare, changed as the comparison needs them; unchanged here.

        Args:
            mapping: (debug handles, value) of the recorded program -> those of the run
        """
        return mapping

    @abstractmethod
    def element_compare(self, a: Any, b: Any) -> float:  # noqa: ANN401 - tensors or scalars
        """Return the distance of a value of the run, b, from the recorded program's, a."""

    def compare(
        self,
        mapping: IntermediateOutputMapping,
        aot_debug_handle_to_op_names: OpNames,
        runtime_debug_handle_to_op_names: OpNames,
    ) -> DataFrame:
        """Return a row for each pair of values; ``calculate_numeric_gap`` calls an override.

        Args:
            mapping: (debug handles, value) of the recorded program -> those of the run; goes
                through ``preprocessing`` first. Pairs without a value and results of several
                tensors are left out
            aot_debug_handle_to_op_names: operators of the recorded program by debug handles
            runtime_debug_handle_to_op_names: operators of the run by debug handles

        Returns:
            columns ``aot_debug_handle``, ``aot_ops``, ``aot_intermediate_output``,
            ``runtime_ops``, ``runtime_debug_handle``, ``runtime_intermediate_output`` and ``gap``,
            the list of distances

        Raises: TypeError or ValueError for an invalid mapping or values that cannot be compared
        """
        rows = [
            {
                "aot_debug_handle": handles,
                "aot_ops": _op_names(handles, aot_debug_handle_to_op_names),
                "aot_intermediate_output": value,
                "runtime_ops": _op_names(found[0], runtime_debug_handle_to_op_names),
                "runtime_debug_handle": found[0],
                "runtime_intermediate_output": found[1],
                "gap": compared(self, value, found[1]),
            }
            for (handles, value), found in preprocessed(self, mapping).items()
            if value is not None and found[1] is not None and not is_several(value)
        ]
        return load_pandas().DataFrame(rows)


class _Documented(NumericalComparatorBase):
    """One of the documented distances, in double precision."""

    _doubles: Doubles | None = None

    def _reduced(self, a: Any, b: Any, change: Change, reduce: Reduce) -> Torch | None:  # noqa: ANN401
        """Return a sum or mean over a, changed beside b; None where it is not finite or known."""
        if self._doubles is None:
            self._doubles = Doubles()
        changed = self._doubles.changed(a, b, change)
        found = None if changed is None else reduce(changed)
        return found if found is not None and bool(load_torch().isfinite(found)) else None


class MSEComparator(_Documented):
    """Mean squared difference."""

    def element_compare(self, a: Any, b: Any) -> float:  # noqa: ANN401 - tensors or scalars
        """Return the distance of two values.

        Raises: ValueError for tensors of different shapes
        """
        torch = load_torch()
        found = self._reduced(a, b, _noise, torch.mean)
        if found is None:
            found = torch.mean(torch.square(_difference(a, b)))
        return float(found)


class L1Comparator(_Documented):
    """Sum of absolute differences."""

    def element_compare(self, a: Any, b: Any) -> float:  # noqa: ANN401 - tensors or scalars
        """Return the distance of two values.

        Raises: ValueError for tensors of different shapes
        """
        torch = load_torch()
        found = self._reduced(a, b, _distance, torch.sum)
        if found is None:
            found = torch.abs(_difference(a, b)).sum()
        return float(found)


class SNRComparator(_Documented):
    """Signal to noise in decibels; higher is closer, infinite without any difference."""

    def element_compare(self, a: Any, b: Any) -> float:  # noqa: ANN401 - tensors or scalars
        """Return the distance of two values.

        Raises: ValueError for tensors of different shapes
        """
        torch = load_torch()
        power = self._reduced(a, b, _power, torch.mean)
        noise = None if power is None else self._reduced(a, b, _noise, torch.mean)
        if noise is None:
            power = torch.mean(torch.pow(as_doubles(a), 2))
            noise = torch.mean(torch.pow(_difference(a, b), 2))
        return float(10 * torch.log10(power / noise))


def _noise(signal: Torch, found: Torch) -> None:
    signal.sub_(found).square_()


def _power(signal: Torch, _found: Torch) -> None:
    signal.square_()


def _distance(signal: Torch, found: Torch) -> None:
    signal.sub_(found).abs_()


_BY_NAME = {"MSE": MSEComparator, "L1": L1Comparator, "SNR": SNRComparator}


def comparator(distance: object, inspector: object) -> Any:  # noqa: ANN401 - duck-typed
    """Return the comparator of a name, or the one that was given.

    Raises: ValueError for a name that is not a documented distance
    """
    if hasattr(distance, "element_compare"):
        given: Any = distance
        if getattr(given, "inspector", None) is None:
            given.inspector = inspector
        return given
    found = _BY_NAME.get(distance.strip().upper()) if isinstance(distance, str) else None
    if found is None:
        names = ", ".join(_BY_NAME)
        raise ValueError(
            f"Unsupported distance metric {distance!r}; available: {names}, and objects with"
            " element_compare"
        )
    return found(inspector)


def preprocessed(distance: Any, mapping: IntermediateOutputMapping) -> IntermediateOutputMapping:  # noqa: ANN401
    """Return the pairs in the form that a comparator expects.

    Raises: TypeError or ValueError if it returns anything but pairs of handles and values
    """
    found = distance.preprocessing(mapping)
    if not isinstance(found, dict):
        kind = type(found).__name__
        raise TypeError(f"preprocessing() must return a dict, found {kind}: {_PAIRS}")
    for key, value in cast("dict[Any, Any]", found).items():
        for message, side, pair in (("key", "AOT", key), ("value", "runtime", value)):
            if not isinstance(pair, tuple) or len(cast("tuple[Any, ...]", pair)) != 2:
                raise ValueError(f"Invalid {message} format, found {pair!r}: {_PAIRS}")
            handles = cast("tuple[Any, Any]", pair)[0]
            if not isinstance(handles, tuple) or not all(
                isinstance(handle, int) for handle in cast("tuple[Any, ...]", handles)
            ):
                raise ValueError(f"Invalid {side} debug handle, found {handles!r}: {_PAIRS}")
    return cast("IntermediateOutputMapping", found)


def compares_itself(distance: object) -> bool:
    """Return whether a comparator has a ``compare`` of its own."""
    own = getattr(type(distance), "compare", None)
    return own is not None and own is not NumericalComparatorBase.compare


def is_several(value: object) -> bool:
    """Return whether a value is a result of several tensors."""
    return isinstance(value, Sequence) and len(cast("Sequence[object]", value)) > 1


def _op_names(handles: DebugHandle, names: OpNames) -> list[str]:
    """Return the operators all of whose handles are among some."""
    return [name for key, found in names.items() if set(handles).issuperset(key) for name in found]


def compared(distance: NumericalComparatorBase, a: Any, b: Any) -> list[float]:  # noqa: ANN401
    """Return the distances of two values, one for each member of lists.

    Raises: ValueError for lists of different lengths, and a list beside a single value
    """
    listed = isinstance(a, Sequence), isinstance(b, Sequence)
    if not any(listed):
        return [distance.element_compare(a, b)]
    if not all(listed) or len(a) != len(b):
        raise ValueError(f"{_described(a)} cannot be compared with {_described(b)}")
    pairs = zip(cast("Sequence[Any]", a), cast("Sequence[Any]", b), strict=True)
    return [distance.element_compare(x, y) for x, y in pairs]


def _described(value: object) -> str:
    if not isinstance(value, Sequence):
        return "a single value"
    return f"a list of {len(cast('Sequence[object]', value))}"


def _difference(a: Any, b: Any) -> Torch:  # noqa: ANN401 - tensors or scalars
    one, two = as_doubles(a), as_doubles(b)
    try:
        return one - two
    except RuntimeError:
        shapes = f"{tuple(one.shape)} and {tuple(two.shape)}"
        raise ValueError(f"tensors of shapes {shapes} cannot be compared") from None


def as_doubles(value: Any) -> Torch:  # noqa: ANN401 - a tensor or a scalar
    """Return a value as double precision; beside NaN, which becomes 0, infinities become finite."""
    torch = load_torch()
    tensor = torch.as_tensor(value, dtype=torch.float64).detach().cpu()
    return torch.nan_to_num(tensor) if bool(torch.isnan(tensor).any()) else tensor
