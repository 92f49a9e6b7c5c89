"""TOSA payloads: the operators of TOSA 1.0, checked beside Arm's reference model.

Refused: CUSTOM, and the operators that 1.1 adds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from runtime.backends.graph import GraphBackend, Operation, OperatorTable
from runtime.backends.graph.engine import GraphEngine
from runtime.backends.tosa import images, integers
from runtime.backends.tosa.bound import bound, dtype_of
from runtime.backends.tosa.control import tosa_engine
from runtime.backends.tosa.integers import Facts, plain, wide
from runtime.untyped import from_buffer
from schema.dtypes.scalar_type import numel
from schema.graph import Graph, GraphNode, GraphValue
from schema.payloads import Payload

Run = Callable[..., Any]


def _clamp(facts: Facts, x: Tensor) -> Tensor:
    low, high = (_bound(facts[name], x.dtype) for name in ("min_val", "max_val"))
    if facts.get("nan_mode") == "ignore":
        x = torch.where(torch.isnan(x), low, x)
    return x.clamp(low, high)


def _bound(value: Any, dtype: torch.dtype) -> float:  # noqa: ANN401 - a number or its bytes
    """Return a bound; of dtypes that Python lacks it is given in hexadecimal digits."""
    if not isinstance(value, str):
        return value
    stored = torch.bfloat16 if dtype is torch.float32 else dtype  # halves are widened
    return float(from_buffer(bytes.fromhex(value), stored, 1))


def _extreme(run: Callable[..., Tensor], facts: Facts, a: Tensor, b: Tensor) -> Tensor:
    if facts.get("nan_mode") == "ignore" and a.is_floating_point():
        a, b = torch.where(torch.isnan(a), b, a), torch.where(torch.isnan(b), a, b)
    return run(a, b)


def _reduced(run: Callable[..., Tensor], fill: float, facts: Facts, x: Tensor) -> Tensor:
    if facts.get("nan_mode") == "ignore" and x.is_floating_point():
        x = torch.where(torch.isnan(x), fill, x)
    return run(x, facts["axis"], keepdim=True)


def _argmax(facts: Facts, x: Tensor) -> Tensor:
    if facts.get("nan_mode") == "ignore" and x.is_floating_point():
        x = torch.where(torch.isnan(x), -torch.inf, x)
    return x.argmax(facts["axis"])


def _pad(_: Facts, x: Tensor, padding: Sequence[int], value: Tensor) -> Tensor:
    sizes = [size + padding[2 * dim] + padding[2 * dim + 1] for dim, size in enumerate(x.shape)]
    made = value.reshape(()).to(x.dtype).expand(sizes).clone()
    place = tuple(
        slice(padding[2 * dim], padding[2 * dim] + size) for dim, size in enumerate(x.shape)
    )
    made[place] = x
    return made


def _slice(_: Facts, x: Tensor, start: Sequence[int], size: Sequence[int]) -> Tensor:
    return x[tuple(slice(a, a + b) for a, b in zip(start, size, strict=True))]


def _gather(_: Facts, values: Tensor, indices: Tensor) -> Tensor:
    rows = indices.long().unsqueeze(-1).expand(-1, -1, values.shape[-1])
    return values.gather(1, rows)


def _scatter(_: Facts, values: Tensor, indices: Tensor, given: Tensor) -> Tensor:
    rows = indices.long().unsqueeze(-1).expand(-1, -1, values.shape[-1])
    return values.scatter(1, rows, given)


def _simple(run: Run) -> Run:
    def called(_: Facts, *given: Any) -> Any:  # noqa: ANN401
        return run(*given)

    return called


_TORCH: dict[str, Run] = {
    "ABS": torch.abs,
    "ADD": torch.add,
    "BITWISE_AND": torch.bitwise_and,
    "BITWISE_NOT": torch.bitwise_not,
    "BITWISE_OR": torch.bitwise_or,
    "BITWISE_XOR": torch.bitwise_xor,
    "EQUAL": torch.eq,
    "GREATER": torch.gt,
    "GREATER_EQUAL": torch.ge,
    "LOGICAL_LEFT_SHIFT": torch.bitwise_left_shift,
    "SUB": torch.sub,
}
_NAMED = (
    *("CEIL", "COS", "ERF", "EXP", "FLOOR", "LOG", "LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR"),
    *("LOGICAL_XOR", "POW", "RECIPROCAL", "RSQRT", "SIGMOID", "SIN", "TANH"),
)
_REAL: dict[str, Run] = {
    **{name: getattr(torch, name.lower()) for name in _NAMED},
    "CLZ": integers.leading_zeros,
    "INTDIV": integers.divide,
    "LOGICAL_RIGHT_SHIFT": integers.shift_right_logical,
    "MATMUL": images.matmul,
    "MUL": integers.mul,
    "RFFT2D": images.rfft,
    "SELECT": torch.where,
    "TABLE": integers.table,
}
_ONE: dict[str, Callable[[Facts, Any], Any]] = {
    "IDENTITY": lambda _, x: x,
    "REDUCE_ALL": lambda facts, x: x.all(facts["axis"], keepdim=True),
    "REDUCE_ANY": lambda facts, x: x.any(facts["axis"], keepdim=True),
    "REDUCE_PRODUCT": lambda facts, x: wide(x).prod(facts["axis"], keepdim=True),
    "REDUCE_SUM": lambda facts, x: wide(x).sum(facts["axis"], keepdim=True),
    "REVERSE": lambda facts, x: x.flip(facts["axis"]),
    "TRANSPOSE": lambda facts, x: x.permute(tuple(facts["perms"])),
}
_TWO: dict[str, Callable[[Facts, Any, Any], Any]] = {
    "RESHAPE": lambda _, x, sizes: x.reshape(tuple(sizes)),
    "TILE": lambda _, x, counts: x.tile(tuple(counts)),
}
OPERATORS: dict[str, Run] = {
    **{name: _simple(plain(run)) for name, run in _TORCH.items()},
    **{name: _simple(run) for name, run in _REAL.items()},
    **_ONE,
    **_TWO,
    "ARGMAX": _argmax,
    "ARITHMETIC_RIGHT_SHIFT": integers.shift_right,
    "CLAMP": _clamp,
    "CONV2D": images.conv,
    "CONV3D": images.conv,
    "DEPTHWISE_CONV2D": images.depthwise,
    "FFT2D": images.fft,
    "GATHER": _gather,
    "MAXIMUM": partial(_extreme, torch.maximum),
    "MAX_POOL2D": images.max_pool,
    "MINIMUM": partial(_extreme, torch.minimum),
    "PAD": _pad,
    "REDUCE_MAX": partial(_reduced, torch.amax, -torch.inf),
    "REDUCE_MIN": partial(_reduced, torch.amin, torch.inf),
    "RESIZE": images.resize,
    "SCATTER": _scatter,
    "SLICE": _slice,
    "TRANSPOSE_CONV2D": images.transposed,
}
TYPED: dict[str, Callable[[Facts, tuple[str, str]], Run]] = {
    "AVG_POOL2D": lambda facts, dtypes: partial(images.avg_pool, facts, dtypes[1]),
    "CAST": lambda _, dtypes: partial(integers.cast, dtypes),
    "NEGATE": lambda _, dtypes: partial(integers.negate, dtypes[1]),
    "RESCALE": lambda facts, dtypes: partial(integers.rescale, facts, dtypes),
}
"""Operators whose result depends on the names of the dtypes of input and output."""


def bind(node: GraphNode, graph: Graph) -> Operation | None:
    """Return the call of a node, None for an unknown operator."""
    names = tuple(name for argument in node.args for name in argument.values)
    if node.target == "CONCAT":
        axis = int(str(node.attributes["axis"]))
        return Operation(partial(_concatenated, axis), (names,))
    fast = bound(node, graph)
    if fast is not None:
        return fast
    if node.target in TYPED:
        dtypes = dtype_of(graph, names[0]), dtype_of(graph, node.outputs[0])
        return Operation(TYPED[node.target](node.attributes, dtypes), names)
    run = OPERATORS.get(node.target)
    return None if run is None else Operation(partial(run, node.attributes), names)


def _concatenated(axis: int, parts: Sequence[Tensor]) -> Tensor:
    return torch.cat(list(parts), axis)


def _count(value: GraphValue) -> tuple[int, ...]:
    assert value.tensor is not None
    return tuple(int(size) for size in value.tensor.sizes)


def _int4(value: GraphValue, data: memoryview) -> Tensor:
    """Return packed pairs of signed 4-bit integers, the first in the low bits."""
    sizes = _count(value)
    held = from_buffer(data, torch.uint8, len(data)).to(torch.int8)
    pairs = torch.stack(((held << 4) >> 4, held >> 4), -1)
    return pairs.flatten()[: numel(sizes)].reshape(sizes)


def _int48(value: GraphValue, data: memoryview) -> Tensor:
    sizes = _count(value)
    held = from_buffer(data, torch.uint8, 6 * numel(sizes)).reshape(-1, 6).long()
    whole = (held << torch.arange(0, 48, 8)).sum(-1)
    return torch.where(whole >> 47 != 0, whole - (1 << 48), whole).reshape(sizes)


class TosaBackend(GraphBackend):
    """Runs TOSA flatbuffers."""

    id = "TOSABackend"
    in_memory_order = True
    table = OperatorTable(
        bind,
        {"int4": torch.int8, "int48": torch.int64},
        {"int4": _int4, "int48": _int48},
    )

    @override
    def engine(self, payload: Payload, partition: int) -> GraphEngine:
        """Return the engine of a payload.

        Raises: DelegateError naming the operators that are not known
        """
        return tosa_engine(payload, self.table, partition)
