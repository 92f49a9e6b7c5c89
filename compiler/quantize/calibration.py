"""Calibration of prepared graphs: inputs, files of inputs, and observers without data."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from compiler.errors import CompileError, at

Progress = Callable[[int, int], None]
_SHOWN = 5  # items that an error lists


class CalibrationError(CompileError, ValueError):
    """Calibration is not possible, or was not complete."""


def calibrate(
    prepared: torch.nn.Module,
    inputs: Sequence[tuple[Any, ...]],
    progress: Progress | None = None,
    *,
    example: tuple[Any, ...] | None = None,
) -> None:
    """Run a prepared graph over inputs.

    Args:
        prepared: result of ``prepare_pt2e``
        inputs: arguments of each call
        progress: called with the number of completed calls and of all calls
        example: valid arguments, to describe errors in others

    Raises: CalibrationError naming the call whose inputs the graph rejects
    """
    with torch.no_grad():
        for place, given in enumerate(inputs):
            if progress is not None:
                progress(place, len(inputs))
            try:
                prepared(*given)
            except Exception as error:
                why = _unlike(given, example) or error
                raise CalibrationError(
                    f"calibration input {place + 1} of {len(inputs)}: {why}"
                ) from error
    if progress is not None:
        progress(len(inputs), len(inputs))


def _unlike(given: tuple[Any, ...], example: tuple[Any, ...] | None) -> str:
    """Return how refused arguments differ from the example, empty if they do not."""
    if example is not None and len(given) != len(example):
        return f"expected {len(example)} arguments, found {len(given)}"
    for place, one in enumerate(given):
        like = one if example is None else example[place]
        if not isinstance(one, torch.Tensor) or not isinstance(like, torch.Tensor):
            continue
        if one.dtype is not like.dtype:
            return f"argument {place + 1} is {one.dtype}, expected {like.dtype}"
        if one.is_floating_point() and not bool(one.isfinite().all()):
            return f"argument {place + 1} has values that are NaN or infinite"
        if one.shape != like.shape:
            sizes = f"{list(one.shape)}, where the example has {list(like.shape)}"
            return f"argument {place + 1} has the sizes {sizes}"
    return ""


def unobserved(prepared: torch.fx.GraphModule) -> list[str]:
    """Return the observers of a prepared graph without data, each with the value it observes."""
    untyped: Any = prepared
    modules: dict[str, Any] = dict(untyped.named_modules())
    found: list[str] = []
    for node in prepared.graph.nodes:
        watching = modules.get(str(node.target)) if node.op == "call_module" else None
        observer = getattr(watching, "activation_post_process", watching)
        if observer is not None and _is_blank(observer):
            watched: Any = node.args[0]
            found.append(f"{node.target} of {watched}, {at(watched)}")
    return found


def _is_blank(observer: Any) -> bool:  # noqa: ANN401 - an observer of torchao
    low, high = getattr(observer, "min_val", None), getattr(observer, "max_val", None)
    if not isinstance(low, torch.Tensor) or not isinstance(high, torch.Tensor):
        return False  # it needs no statistics, as a dynamic one
    return low.numel() == 0 or bool((low == float("inf")).all() and (high == -float("inf")).all())


def require_observed(prepared: torch.fx.GraphModule) -> None:
    """Check that every observer of a prepared graph saw data.

    Raises: CalibrationError naming those that did not
    """
    blank = unobserved(prepared)
    if not blank:
        return
    more = f" and {len(blank) - _SHOWN} more" if len(blank) > _SHOWN else ""
    raise CalibrationError(
        f"{len(blank)} observers never saw data, run the prepared graph over example inputs first:"
        f" {'; '.join(blank[:_SHOWN])}{more}"
    )


def inputs_from_file(path: str | Path, method: str = "forward") -> list[tuple[Any, ...]]:
    """Return the calls in a file: a list, saved by ``torch.save``, of the arguments of each call.

    A tensor in it is the only argument of a call; a dictionary contains such a list by method. Only
    tensors and scalars are read, never code.

    Raises: CalibrationError for any other file
    """
    try:
        found: Any = torch.load(path, weights_only=True)
    except OSError as error:
        raise CalibrationError(f"{path}: no calibration inputs: {error.strerror}") from error
    except Exception as error:
        saved = zipfile.is_zipfile(path)
        reason = (
            "it holds more than tensors and scalars" if saved else "torch.save has not written it"
        )
        raise CalibrationError(f"{path}: no calibration inputs: {reason}") from error
    if _kind(found) == "dict":
        if method not in found:
            there = ", ".join(map(str, found)) or "none"
            raise CalibrationError(
                f"{path}: no calibration inputs for {method}; available: {there}"
            )
        found = found[method]
    alone = isinstance(found, (tuple, torch.Tensor))
    calls: Any = [found] if alone else found
    if _kind(calls) != "list" or not calls:
        what = "an empty list" if _kind(calls) == "list" else _kind(found)
        raise CalibrationError(
            f"{path}: expected a list of the arguments of each call, found {what}"
        )
    return [_arguments(path, place, one) for place, one in enumerate(_each(calls))]


def _each(calls: Any) -> Iterable[Any]:  # noqa: ANN401
    return calls


def _arguments(path: str | Path, place: int, one: Any) -> tuple[Any, ...]:  # noqa: ANN401
    if isinstance(one, torch.Tensor):
        return (one,)
    if isinstance(one, (tuple, list)):
        return tuple(one)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    raise CalibrationError(
        f"{path}: call {place + 1} is a {type(one).__name__}, expected its arguments"
    )


def _kind(value: Any) -> str:  # noqa: ANN401
    return type(value).__name__
