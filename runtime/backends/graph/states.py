"""States of payloads that have no bytes: zero before the first run, then what a run left."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from runtime.backends.graph.registers import refused
from schema.dtypes.scalar_type import scalar_type
from schema.graph import Graph, GraphValue
from schema.payloads import Constant, Payload
from schema.payloads.model import INLINE

_LARGEST = 8 << 30  # bytes of all states: those of a language model are below


def with_zero_states(
    payload: Payload, graph: Graph, states: Sequence[str], partition: int
) -> Payload:
    """Return a payload of a graph, with values of it as constants that are zero.

    Raises: DelegateError for a state without fixed size, or of too many bytes
    """
    values = {**graph.values, **{name: _state(graph.values[name], partition) for name in states}}
    total = sum(values[name].constant_bytes or 0 for name in states)
    if total > _LARGEST:
        raise refused(f"states of {total} bytes; at most {_LARGEST} are held", partition)
    zeros = tuple(_zeros(values[name]) for name in states)
    constants = (*payload.constants, *zeros)
    return replace(payload, graph=replace(graph, values=values), constants=constants)


def _state(value: GraphValue, partition: int) -> GraphValue:
    sizes = value.tensor.sizes if value.tensor is not None else ("?",)
    if value.tensor is None or not all(isinstance(size, int) for size in sizes):
        raise refused(f"state {value.name} has no fixed size", partition)
    nbytes = (
        math.prod(int(size) for size in sizes) * scalar_type(value.tensor.scalar_type).item_bytes
    )
    return replace(value, constant=f"{value.name} (state)", constant_bytes=nbytes)


def _zeros(value: GraphValue) -> Constant:
    count = value.constant_bytes or 0
    return Constant(value.constant, count, INLINE, memoryview(bytes(count)))


def first_state(value: Any) -> Callable[[], Any]:  # noqa: ANN401 - a tensor or a scalar
    """Return a function that makes a state again: nodes may write into its memory.

    Zeros, as caches begin with, are not kept.
    """
    if not isinstance(value, torch.Tensor):
        return lambda: value
    if not bool(value.any()):
        return partial(value.new_zeros, value.shape)
    return value.clone().clone
