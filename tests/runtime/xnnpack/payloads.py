"""Payloads of one or a few nodes in every element type, and programs around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import torch

from schema.payloads.xnnpack import codec
from schema.payloads.xnnpack import model as x
from schema.payloads.xnnpack.nodes import FORM_OF_KIND
from tests.schema.payload_xnnpack_samples import program

FP32, FP16, Q8, QU8, Q32, QC8, QC32, QC4, QD8, QB4 = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
INT32, BF16 = 12, 14
SCALAR = {FP32: 6, FP16: 5, Q8: 1, QU8: 0, INT32: 3, BF16: 15}
TORCH = {
    FP32: torch.float32,
    FP16: torch.float16,
    Q8: torch.int8,
    QU8: torch.uint8,
    BF16: torch.bfloat16,
}


@dataclass
class Case:
    """A payload to be run.

    Attributes:
        name: says what it is
        graph: the payload
        inputs: what it is run on
        outputs: shape and datatype of each result
        step: what one quantum of the results stands for, 0 for real numbers
        named: blobs beside the payload
        tolerance: of the torch engine, in units of the largest element
    """

    name: str
    graph: x.XNNGraph
    inputs: list[torch.Tensor]
    outputs: list[tuple[tuple[int, ...], int]]
    step: float = 0.0
    named: dict[str, bytes] = field(default_factory=dict)
    tolerance: float = 1e-5

    @property
    def program(self) -> bytes:
        """Return the program whose only instruction calls the payload."""
        kinds = [SCALAR[datatype] for _, datatype in self.outputs]
        types = {i: CODE[tensor.dtype] for i, tensor in enumerate(self.inputs)}
        types.update(enumerate(kinds, start=len(self.inputs)))
        shapes = [tuple(tensor.shape) for tensor in self.inputs]
        made = [shape for shape, _ in self.outputs]
        return program(self.graph, shapes, made, out_types=types, named=self.named)


CODE = {
    torch.float32: 6,
    torch.float16: 5,
    torch.int8: 1,
    torch.uint8: 0,
    torch.int32: 3,
    torch.bfloat16: 15,
}


class Payload:
    """Collects values and nodes."""

    def __init__(self, seed: int = 0) -> None:
        self.values: list[x.XValue] = []
        self.nodes: list[x.XNode] = []
        self.inputs: list[torch.Tensor] = []
        self.outputs: list[tuple[tuple[int, ...], int]] = []
        self._area = bytearray()
        self._table = [x.ConstantDataOffset(named_key="")]
        self._results: list[int] = []
        self.random = torch.Generator().manual_seed(seed)
        self.step = 0.0

    def value(
        self,
        dims: Sequence[int],
        datatype: int = FP32,
        params: Any = None,
        *,
        data: np.ndarray | None = None,
        external: int = x.NO_VALUE,
        flags: int = 0,
    ) -> int:
        """Add a value and return its id."""
        index = 0 if data is None else self.blob(data)
        ident = len(self.values)
        tensor = x.TensorValue(datatype, len(dims), tuple(dims), index, external, flags, ident)
        whole = tensor if params is None else x.QuantizedTensorValue(tensor, params)
        self.values.append(x.XValue(whole))
        return ident

    def blob(self, data: np.ndarray) -> int:
        """Add a constant and return its place."""
        self._area += bytes(-len(self._area) % 16)
        self._table.append(x.ConstantDataOffset(len(self._area), data.nbytes))
        self._area += data.tobytes()
        return len(self._table) - 1

    def given(
        self, tensor: torch.Tensor, datatype: int = FP32, params: Any = None, dynamic: int = 0
    ) -> int:
        """Add an input; `dynamic` is the type that the oldest payloads quantize it to."""
        self.inputs.append(tensor)
        place = len(self.inputs) - 1
        ident = self.value(tensor.shape, datatype, params, external=place, flags=1)
        if dynamic:
            old = self.values[ident].xvalue_union
            assert isinstance(old, x.TensorValue)
            self.values[ident] = x.XValue(replace(old, dq_datatype=dynamic))
        return ident

    def real(self, *dims: int, low: float = -2.0, high: float = 2.0) -> int:
        """Add an input of random numbers."""
        return self.given(self.numbers(dims, low, high))

    def numbers(self, dims: Sequence[int], low: float = -2.0, high: float = 2.0) -> torch.Tensor:
        """Return random numbers."""
        return torch.rand(tuple(dims), generator=self.random) * (high - low) + low

    def weights(self, *dims: int, scale: float = 0.5) -> int:
        """Add a constant of random numbers."""
        return self.value(dims, data=(self.numbers(dims) * scale).numpy())

    def result(self, dims: Sequence[int], datatype: int = FP32, params: Any = None) -> int:
        """Add a result."""
        self.outputs.append((tuple(dims), datatype))
        self._results.append(len(self.values))
        return self.value(dims, datatype, params, flags=2)

    def node(
        self, kind: str, *, bounds: tuple[float, float] | None = None, handle: int = 7, **named: Any
    ) -> None:
        """Add a node; ids that are not named are left out."""
        form = FORM_OF_KIND[kind]
        unused = {
            f.name: x.NO_VALUE
            for f in fields(form)
            if f.name.endswith("_id") and f.name not in named
        }
        limits = None if bounds is None else x.OutputMinMax(*bounds)
        self.nodes.append(x.XNode(form(kind, **{**unused, **named}), handle, limits))

    def graph(self) -> x.XNNGraph:
        """Return the payload; results are numbered behind the inputs."""
        values = list(self.values)
        for number, ident in enumerate(self._results, start=len(self.inputs)):
            old = values[ident]
            tensor = old.tensor
            assert tensor is not None
            new = x.TensorValue(
                tensor.datatype, tensor.num_dims, tensor.dims, 0, number, 2, tensor.id_out
            )
            inner = old.xvalue_union
            if isinstance(inner, x.QuantizedTensorValue):
                values[ident] = x.XValue(x.QuantizedTensorValue(new, inner.quant_params))
            else:
                values[ident] = x.XValue(new)
        ends = len(self.inputs) + len(self._results)
        table = x.XnnGraphTable(
            "0",
            tuple(self.nodes),
            tuple(values),
            ends,
            constant_data=tuple(self._table),
        )
        return x.XNNGraph(table, memoryview(bytes(self._area)).toreadonly())

    def case(self, name: str, step: float = 0.0, tolerance: float = 1e-5) -> Case:
        """Return what was collected as a case."""
        return Case(name, self.graph(), self.inputs, self.outputs, step, tolerance=tolerance)


Make = Callable[[Payload], None]


def encoded(case: Case) -> bytes:
    """Return the bytes of the payload of a case."""
    return codec.encode(case.graph)
