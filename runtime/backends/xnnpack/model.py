"""A checked payload: values with their data, and nodes in the order they run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from schema.payloads.xnnpack.model import NO_VALUE
from schema.payloads.xnnpack.nodes import NodeForm

Floats = np.ndarray[Any, np.dtype[np.float32]]


class Datatype(IntEnum):
    """Datatypes, with the codes of the file."""

    FLOAT32 = 1
    FLOAT16 = 2
    QINT8 = 3
    QUINT8 = 4
    QINT32 = 5
    QCINT8 = 6
    QCINT32 = 7
    QCINT4 = 8
    QDINT8 = 9
    QBINT4 = 10
    INT32 = 12
    BFLOAT16 = 14


BITS: dict[Datatype, int] = {
    Datatype.FLOAT32: 32,
    Datatype.FLOAT16: 16,
    Datatype.QINT8: 8,
    Datatype.QUINT8: 8,
    Datatype.QINT32: 32,
    Datatype.QCINT8: 8,
    Datatype.QCINT32: 32,
    Datatype.QCINT4: 4,
    Datatype.QDINT8: 8,
    Datatype.QBINT4: 4,
    Datatype.INT32: 32,
    Datatype.BFLOAT16: 16,
}
REAL = frozenset({Datatype.FLOAT32, Datatype.FLOAT16, Datatype.BFLOAT16})
PER_TENSOR = frozenset({Datatype.QINT8, Datatype.QUINT8})
"""Datatypes of values quantized with one scale and zero point."""
WEIGHT_ONLY = frozenset(
    {Datatype.QINT32, Datatype.QCINT8, Datatype.QCINT32, Datatype.QCINT4, Datatype.QBINT4}
)
INT4_ZERO = 8  # 4-bit weights are stored unsigned, with 8 for zero
"""Zero point of 4-bit weights."""


@dataclass(frozen=True, slots=True)
class ValueQuantization:
    """Quantization parameters of a value.

    Attributes:
        scales: one a tensor, a channel, or a group of each channel
        zero_point: integer of the real value 0
        axis: dimension of the channels
        group_size: elements that share a scale, 0 without groups
        row_dims: dimensions of a row that is quantized dynamically, 0 otherwise
    """

    scales: Floats
    zero_point: int = 0
    axis: int = 0
    group_size: int = 0
    row_dims: int = 0

    @property
    def scale(self) -> float:
        """Return the scale of a value that has a single one."""
        return float(self.scales[0])


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a payload.

    Attributes:
        ident: id by which nodes refer to it
        datatype: of its elements
        dims: sizes in memory order
        data: bytes of a constant, None for other values
        quantization: None if the value is not quantized
        argument: index among the arguments of the delegate call, None for inner values
        is_input: whether it is an input
        is_output: whether it is a result
        dynamic: whether a float input is quantized dynamically by row (oldest payloads)
    """

    ident: int
    datatype: Datatype
    dims: tuple[int, ...]
    data: memoryview | None = None
    quantization: ValueQuantization | None = None
    argument: int | None = None
    is_input: bool = False
    is_output: bool = False
    dynamic: bool = False


@dataclass(frozen=True, slots=True)
class PayloadNode:
    """A node of a payload.

    Attributes:
        index: in the payload, by which traces name it
        kind: name of its operation
        form: its fields
        inputs: ids of the values it reads, NO_VALUE for optional ones
        outputs: ids of the values it writes
        bounds: of its result, None if absent
        handle: debug handle of the operator it was lowered from, None if the compiler inserted it
    """

    index: int
    kind: str
    form: NodeForm
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    bounds: tuple[float, float] | None = None
    handle: int | None = None

    @property
    def name(self) -> str:
        """Return its name in the graph of the payload, as in ``Conv2d_1``."""
        return f"{self.kind}_{self.index}"

    @property
    def read(self) -> tuple[int, ...]:
        """Return the ids of the values it reads, without missing optional ones."""
        return tuple(ident for ident in self.inputs if ident != NO_VALUE)


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """A validated payload: every id refers to a value that is computed before it is read.

    Attributes:
        partition: index among the delegates of the method
        values: by id
        nodes: in the order they run
        num_externs: how many ids are reserved for arguments
        inputs: input values by argument
        outputs: output values by argument
    """

    partition: int
    values: dict[int, Value]
    nodes: tuple[PayloadNode, ...]
    num_externs: int
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
