"""Inputs of a method: generated from the program, or read from a file of tensors."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import numpy as np
import torch

from inspector.graph.methods import computing_methods
from inspector.graph.plan_graph import scalar_of
from inspector.jobs.executing import PRINTED
from inspector.worker.exporter import AnswerError
from inspector.worker.index_inputs import index_limits
from runtime.memory.slots import dtype_of
from schema.program import ProgramFile
from schema.program import model as m

_SMALL = (torch.uint8, torch.int8)
_EDGE = _A_LINE = 10  # elements
_DEEPEST = 50  # lists in lists


class ValuesError(Exception):
    """A file that holds no list of tensors."""


def chosen_method(file: ProgramFile, requested: str) -> str:
    """Return the selected method.

    Args:
        file: the program
        requested: its name; empty for ``forward``, or for the only one that takes inputs

    Raises: AnswerError listing the available methods
    """
    names = [plan.name for plan in file.plans]
    there = ", ".join(names) or "none"
    if requested and requested not in names:
        raise AnswerError(f"unknown method {requested!r}; available: {there}")
    if requested or "forward" in names:
        return requested or "forward"
    found = computing_methods(file.plans)
    if len(found) != 1:
        raise AnswerError(f"no method selected; available: {', '.join(found) or 'none'}")
    return found[0]


def generated_inputs(plan: m.ExecutionPlan, kind: str, seed: int) -> list[Any]:
    """Return generated inputs with the sizes and types of a method; scalars are those exported.

    Random floating-point values are normally distributed, bytes take all values, booleans
    both, and wider integers are valid where the program uses them as indices, else 0 and 1.

    Args:
        plan: the method
        kind: random, ones or zeros
        seed: of random inputs

    Raises: ExecutionError for dtypes unknown to torch; RuntimeError if memory is insufficient
    """
    generator = torch.Generator().manual_seed(seed)
    limits = index_limits(plan)
    built: list[Any] = []
    for place in plan.inputs:
        value = plan.values[place].val
        if isinstance(value, m.Tensor):
            make = _generator(kind, generator, limits.get(place, 2))
            built.append(make(value.sizes, dtype_of(value.scalar_type)))
        else:
            built.append(scalar_of(value))
    return built


def _generator(
    kind: str, generator: torch.Generator, below: int
) -> Callable[[tuple[int, ...], torch.dtype], torch.Tensor]:
    if kind != "random":
        fill = torch.ones if kind == "ones" else torch.zeros
        return lambda sizes, dtype: fill(sizes, dtype=dtype)

    def random(sizes: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        if dtype.is_floating_point or dtype.is_complex:
            return torch.randn(sizes, generator=generator).to(dtype)
        least, most = 0, 2 if dtype is torch.bool else below
        if dtype in _SMALL:
            limits = torch.iinfo(dtype)
            least, most = limits.min, limits.max + 1
        return torch.randint(least, most, sizes, generator=generator).to(dtype)

    return random


def read_values(path: str) -> list[Any]:
    """Return the flattened tensors and scalars in a file of ``torch.save``.

    Reading executes no code: a file with anything but tensors, scalars and containers of
    them is rejected.

    Raises: OSError; ValuesError
    """
    return list(flat_values(load_values(path), path))


def read_cases(path: str, count: int) -> list[list[Any]]:
    """Return the values of each case in a file of ``torch.save``.

    A file contains one case, or a list of cases, distinguished by the number of values.

    Args:
        path: of the file
        count: number of values of a case

    Raises: OSError; ValuesError
    """
    found = load_values(path)
    whole = list(flat_values(found, path))
    if len(whole) == count or not isinstance(found, list | tuple):
        return [whole]
    cases = [list(flat_values(one, path)) for one in cast("list[Any]", found)]
    several = all(isinstance(one, list | tuple | Mapping) for one in cast("list[Any]", found))
    return cases if several and cases else [whole]


def load_values(path: str) -> Any:  # noqa: ANN401 - what the file holds
    """Return what ``torch.save`` wrote into a file, without executing code of it.

    Raises: OSError; ValuesError
    """
    with open(path, "rb") as stream:
        data = stream.read()
    try:
        return cast("Any", torch).load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as error:
        raise ValuesError(
            f"{path}: expected only tensors and scalars, written by torch.save; found a file that "
            f"torch does not read without running code of it ({type(error).__name__})"
        ) from error


def flat_values(value: Any, where: str, depth: int = 0) -> Iterator[Any]:  # noqa: ANN401
    """Yield the tensors and scalars in lists, tuples and dictionaries, in order.

    Raises: ValuesError for anything else
    """
    if isinstance(value, np.generic):
        value = cast("Any", value).item()
    if isinstance(value, torch.Tensor | int | float):
        yield value
        return
    if isinstance(value, np.ndarray):
        yield _of_array(cast("np.ndarray[Any, Any]", value), where)
        return
    if isinstance(value, Mapping):
        value = list(cast("Mapping[Any, Any]", value).values())
    if not isinstance(value, list | tuple) or depth > _DEEPEST:
        name = type(cast("object", value)).__name__
        raise ValuesError(f"{where}: expected tensors and scalars, found {name}")
    for item in cast("list[Any]", value):
        yield from flat_values(item, where, depth + 1)


def _of_array(value: np.ndarray[Any, Any], where: str) -> torch.Tensor:
    """Return an array as a tensor; torch knows neither foreign byte orders nor negative strides.

    Raises: ValuesError for elements that no tensor has
    """
    native = value.astype(value.dtype.newbyteorder("="), order="C", copy=False)
    try:
        return torch.as_tensor(native)
    except TypeError:
        words = f"expected numbers or truth values, found an array of {value.dtype}"
        raise ValuesError(f"{where}: {words}") from None


def printed(value: Any, mode: str) -> dict[str, Any]:  # noqa: ANN401 - tensor, number, list or None
    """Return the description of an output, with its elements as text.

    Args:
        value: the output
        mode: off for no elements, summary for the first and last ten, all
    """
    shown = mode != PRINTED[0] and isinstance(value, torch.Tensor)
    return {**described(value), **({"text": _elements(value, mode)} if shown else {})}


def _elements(tensor: torch.Tensor, mode: str) -> str:
    """Return a tensor in the form of the stock runner, ten elements a line."""
    flat: Any = tensor.detach().reshape(-1)
    cut = mode == PRINTED[1] and tensor.numel() > 2 * _EDGE
    values: list[Any] = [*flat[:_EDGE].tolist(), *flat[-_EDGE:].tolist()] if cut else flat.tolist()
    starts = range(0, len(values), _A_LINE)
    lines = [f"  {', '.join(map(_element, values[at : at + _A_LINE]))}, " for at in starts]
    if cut:
        lines.insert(1, "  ..., ")
    return "\n".join([f"tensor(sizes={list(tensor.shape)}, [", *lines, "])"])


def _element(value: Any) -> str:  # noqa: ANN401 - a number
    return f"{value:g}" if isinstance(value, float) else str(value)


def described(value: Any) -> dict[str, Any]:  # noqa: ANN401 - tensor, number, list or None
    """Return the description of a value, with contents only for scalars."""
    if isinstance(value, torch.Tensor):
        name = str(value.dtype).removeprefix("torch.")
        return {"kind": "tensor", "dtype": name, "shape": list(value.shape)}
    if isinstance(value, list):
        return {"kind": "list", "items": [described(item) for item in cast("list[Any]", value)]}
    kind = "none" if value is None else type(value).__name__
    return {"kind": kind, "value": value}
