"""A self-test: a dozen small nodes whose results must agree with torch's kernels."""

from __future__ import annotations

import numpy as np
import torch

from runtime.backends.xnnpack.model import (
    Datatype,
    PartitionPlan,
    PayloadNode,
    Value,
    ValueQuantization,
)
from runtime.backends.xnnpack.native.engine import NativeEngine
from runtime.backends.xnnpack.native.process import Kernels
from runtime.backends.xnnpack.torch_engine import TorchEngine
from runtime.delegates.interface import DelegateTracer
from runtime.tracing.tracer import EventTracer
from schema.payloads.xnnpack import nodes as n
from schema.payloads.xnnpack.model import NO_VALUE

_TOLERANCE = 1e-5  # of the largest value; float32 kernels differ by rounding only
_SHAPE = (1, 5, 4, 6)


def probe(process: Kernels) -> str:
    """Return the first difference from torch, empty if the results agree."""
    plan = probe_plan()
    given = [torch.linspace(-3.0, 3.0, 120).reshape(_SHAPE), torch.linspace(0.5, 2.0, 6)]
    tracer = EventTracer()
    tracer.create_event_block("Execute")
    engine = NativeEngine(plan, process)
    found = engine.run(given, DelegateTracer(tracer, (0, 0)))
    requested = TorchEngine(plan).run(given, DelegateTracer(None, (0, 0)))
    for node, result, expected in zip(_last(plan), found, requested, strict=True):
        if result.shape != expected.shape:
            return f"{node.kind} has the shape {list(result.shape)}"
        gap = float((result - expected).abs().max() / expected.abs().max())
        if not gap <= _TOLERANCE:
            return f"{node.kind} differs by {gap:.2g}"
    if not tracer.rows:
        return "no operator is timed"
    engine.close()
    return ""


def _last(plan: PartitionPlan) -> list[PayloadNode]:
    makers = {ident: node for node in plan.nodes for ident in node.outputs}
    return [makers[value.ident] for value in plan.outputs]


def probe_plan() -> PartitionPlan:
    """Return a plan with one result for each kernel under test."""
    builder = _PlanBuilder()
    image = builder.given(_SHAPE)
    row = builder.given((6,))
    for kind in ("Cos", "Sigmoid", "Sin", "Gelu", "Hardswish"):
        builder.node(kind, n.Unary(kind, image, 0), (image,), _SHAPE)
    builder.node("Clamp", n.Unary("Clamp", image, 0), (image,), _SHAPE, (-1.0, 0.5))
    for kind in ("Add", "Subtract", "Multiply", "Div", "Maximum", "Minimum"):
        builder.node(kind, n.Binary(kind, image, row), (image, row), _SHAPE)
    _convolution(builder, image)
    _linear(builder, image)
    return builder.plan()


def _convolution(builder: _PlanBuilder, image: int) -> None:
    weights = np.linspace(-1, 1, 2 * 3 * 3 * 6, dtype=np.float32)
    filters = builder.constant(Datatype.FLOAT32, (2, 3, 3, 6), weights.tobytes())
    form = n.Convolution("Conv2d", 1, 0, 0, 2, 3, 3, 1, 1, 1, 1, 6, 2, 1, 0, 0)
    builder.node("Conv2d", form, (image, filters, NO_VALUE), (1, 4, 4, 2))


def _linear(builder: _PlanBuilder, image: int) -> None:
    quantization = ValueQuantization(np.array([0.1, 0.02, 0.5], np.float32))
    numbers = (np.arange(18) * 7 % 100 - 50).astype(np.int8)
    filters = builder.constant(Datatype.QCINT8, (3, 6), numbers.tobytes(), quantization)
    rows = builder.add(
        Datatype.QDINT8, _SHAPE, quantization=ValueQuantization(np.ones(1, np.float32), row_dims=1)
    )
    builder.node("Convert", n.Unary("Convert"), (image,), _SHAPE, result=rows)
    form = n.FullyConnected("FullyConnected")
    builder.node("FullyConnected", form, (rows, filters, NO_VALUE), (*_SHAPE[:3], 3))


class _PlanBuilder:
    def __init__(self) -> None:
        self._values: dict[int, Value] = {}
        self._nodes: list[PayloadNode] = []
        self._ends = 0

    def add(
        self,
        datatype: Datatype,
        dims: tuple[int, ...],
        data: bytes | None = None,
        quantization: ValueQuantization | None = None,
        side: str = "",
    ) -> int:
        ident = len(self._values)
        argument = self._ends if side else None
        self._ends += bool(side)
        self._values[ident] = Value(
            ident,
            datatype,
            dims,
            None if data is None else memoryview(data),
            quantization,
            argument,
            side == "in",
            side == "out",
        )
        return ident

    def given(self, dims: tuple[int, ...]) -> int:
        return self.add(Datatype.FLOAT32, dims, side="in")

    def constant(
        self,
        datatype: Datatype,
        dims: tuple[int, ...],
        data: bytes,
        quantization: ValueQuantization | None = None,
    ) -> int:
        return self.add(datatype, dims, data, quantization)

    def node(
        self,
        kind: str,
        form: n.NodeForm,
        inputs: tuple[int, ...],
        dims: tuple[int, ...],
        bounds: tuple[float, float] | None = None,
        result: int | None = None,
    ) -> None:
        built = self.add(Datatype.FLOAT32, dims, side="out") if result is None else result
        self._nodes.append(PayloadNode(len(self._nodes), kind, form, inputs, (built,), bounds))

    def plan(self) -> PartitionPlan:
        values = self._values
        return PartitionPlan(
            0,
            values,
            tuple(self._nodes),
            self._ends,
            tuple(value for value in values.values() if value.is_input),
            tuple(value for value in values.values() if value.is_output),
        )
