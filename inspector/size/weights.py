"""The weights of a node: their bytes, wherever stored, and the distribution of their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.files.session import Session
from inspector.graph.delegate_inside import inside_of
from inspector.graph.model_graph import ModelNode
from inspector.join.operands import plan_operands
from inspector.numerics.tensor_statistics import Facts, data_statistics, statistics
from inspector.size.constant_names import named_tensors
from schema.dtypes.scalar_type import numel, scalar_type, to_float64, widened
from schema.graph import QuantizationParameters, TensorMeta
from schema.objects.identity_cache import identity_cache
from schema.payloads.model import Constant

BINS = 24
_PIECE = 1 << 20  # elements
_NIBBLES = ("qcint4", "qbint4")


@dataclass(frozen=True, slots=True, eq=False)
class WeightBytes:
    """A constant that a node reads.

    Attributes:
        name: key or qualified name
        role: its role for the node, empty if unknown
        dtype: name of the dtype
        sizes: shape
        nbytes: in bytes, None if unknown
        quantization: None if not quantized
        data: the bytes, None if missing
        code: scalar type code, -1 for a dtype of the format only
        missing: why the bytes are missing
    """

    name: str
    role: str
    dtype: str
    sizes: tuple[int | str, ...]
    nbytes: int | None
    quantization: QuantizationParameters | None
    data: memoryview | None
    code: int
    missing: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Distribution of the stored values of a weight.

    Attributes:
        facts: count, min, mean, max, std, nan, inf, zero
        counts: elements per bin from ``min`` to ``max``

    Shapes: counts int64[BINS]
    """

    facts: Facts
    counts: NDArray[np.int64]


def node_weights(session: Session, method: str, node: ModelNode) -> tuple[WeightBytes, ...]:
    """Return the constants a node reads: in its delegate, or of its instruction."""
    found: dict[str, WeightBytes] = {}
    for inside in inside_of(session, method, node):
        for one in inside.values:
            if one.constant is not None and one.value.tensor is not None:
                weight = _of_payload(one.role, one.value.tensor, one.constant)
                found.setdefault(weight.name, weight)
    if found or node.delegate is not None:
        return tuple(found.values())
    return _of_instruction(session, method, node.instruction)


def _of_payload(role: str, tensor: TensorMeta, constant: Constant) -> WeightBytes:
    missing = "" if constant.data is not None else "its bytes are not among these files"
    return WeightBytes(
        constant.name,
        role,
        tensor.dtype,
        tensor.sizes,
        constant.nbytes,
        tensor.quantization,
        constant.data,
        tensor.scalar_type,
        missing,
    )


def _of_instruction(session: Session, method: str, step: int | None) -> tuple[WeightBytes, ...]:
    program = session.program
    if program is None or step is None or method not in session.methods:
        return ()
    operands = plan_operands(program.plan(method))
    reads = set(operands[step].reads) if 0 <= step < len(operands) else set[int]()
    return tuple(
        WeightBytes(
            tensor.name,
            tensor.role,
            tensor.dtype,
            tensor.sizes,
            tensor.nbytes,
            None,
            tensor.data,
            tensor.code,
            tensor.missing,
        )
        for tensor in named_tensors(session, method)
        if tensor.value in reads
    )


@identity_cache
def spread(weight: WeightBytes) -> Spread | None:
    """Return the distribution of a weight's stored values, None if they cannot be read."""
    if weight.data is None:
        return None
    if weight.dtype in _NIBBLES:
        return _spread_of(_nibbles(weight))
    facts = data_statistics(weight.data, weight.code) if weight.code >= 0 else None
    if facts is None or facts["min"] is None:
        return None
    low, high = float(facts["min"]), float(facts["max"] or 0)
    counts = np.zeros(BINS, np.int64)
    step = scalar_type(weight.code).item_bytes * _PIECE
    for at in range(0, len(weight.data), step):
        raw = np.frombuffer(weight.data[at : at + step], dtype=np.uint8)
        numbers = to_float64(raw, weight.code)
        if numbers is not None:
            counts += _counts(numbers, low, high)
    return Spread(facts, counts)


def _spread_of(numbers: NDArray[Any]) -> Spread | None:
    facts = statistics(numbers)
    if facts is None or facts["min"] is None:
        return None
    return Spread(facts, _counts(numbers, float(facts["min"]), float(facts["max"] or 0)))


def _counts(numbers: NDArray[Any], low: float, high: float) -> NDArray[np.int64]:
    wide = widened(numbers)
    wide = wide[np.isfinite(wide)]
    found, _ = np.histogram(wide, bins=BINS, range=(low, high))
    return found.astype(np.int64)


def _nibbles(weight: WeightBytes) -> NDArray[np.uint8]:
    """Return stored 4-bit integers, 0 to 15; the lower half of a byte first."""
    assert weight.data is not None
    raw = np.frombuffer(weight.data, dtype=np.uint8)
    pairs = np.stack([raw & 0xF, raw >> 4], axis=1).ravel().astype(np.uint8)
    sizes = [size for size in weight.sizes if isinstance(size, int)]
    return pairs[: numel(tuple(sizes))]
