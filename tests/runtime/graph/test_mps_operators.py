"""Each kind of MPS nodes beside torch, as payloads of one node in the vendor's format."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from runtime.backends.mps import KINDS, MpsBackend
from runtime.delegates.interface import DelegateTracer
from runtime.memory.slots import CODE_OF
from schema import payloads
from schema.flatbuf.writer import write_root
from schema.payloads.mps import tables as t
from tests.runtime.graph.mps_calls import KINDS as CALLS
from tests.runtime.graph.mps_calls import MORE, Call
from tests.runtime.operators.inputs import Maker

pytestmark = pytest.mark.slow

_HEADER = struct.Struct("<I4sQQ")
_DATATYPES = {code: number for number, (_, code) in t.DATATYPES.items() if code >= 0}
# Sums of halves, which are exact in float32, and of floats in another order.
_BOUND = {torch.float16: 1e-3, torch.float32: 1e-5}
FAMILIES = [*((kind, *family) for kind, family in CALLS.items()), *MORE]


def datatype(dtype: torch.dtype) -> int:
    return _DATATYPES[CODE_OF[dtype]]


def payload(kind: str, call: Call, outputs: list[torch.Tensor | None]) -> bytes:
    """Return the bytes of a payload of one node."""
    tensors = [*call.given, *outputs]
    places = [-1 if one is None else at for at, one in enumerate(tensors)]
    given, made = places[: len(call.given)], places[len(call.given) :]
    values = tuple(
        t.Tensor(datatype(one.dtype), one.dim(), tuple(one.shape))
        if one is not None
        else t.Tensor(datatype(torch.float32), 0, ())
        for one in tensors
    )
    left, results, fields = list(given), list(made), dict[str, Any]()
    for name in t.FIELD_ORDER[kind]:
        if name == "output_ids":
            fields[name], results = tuple(results), []
        elif name == "indices_id":
            fields[name] = tuple(-1 if at < 0 else left.pop(0) for at in call.indices)
        elif name == "input_ids":
            fields[name], left = tuple(left), []
        elif name.startswith("output") and name.endswith("_id"):
            fields[name] = results.pop(0) if results else -1
        elif name.endswith("_id"):
            fields[name] = left.pop(0) if left else -1
        else:
            value = call.facts[name]
            fields[name] = datatype(value) if isinstance(value, torch.dtype) else value
    bounds = t.MinMax(*call.bounds) if call.bounds is not None else None
    operation: Any = SimpleNamespace(kind=kind, **fields)
    graph = t.MPSGraph(
        mps_nodes=(t.Node(operation, bounds),),
        mps_values=values,
        input_ids=tuple(at for at in given if at >= 0),
        output_ids=tuple(at for at in made if at >= 0),
    )
    flat = write_root(t.GRAPH, graph, b"MP00")
    return _HEADER.pack(0, b"MP00", _HEADER.size + len(flat), 0) + flat


@pytest.mark.parametrize(
    ("kind", "calls", "dtype"),
    [(kind, calls, dtype) for kind, calls, dtypes in FAMILIES for dtype in dtypes],
)
def test_node_computes_what_torch_does(kind: str, calls: Any, dtype: torch.dtype) -> None:
    count = 0
    for call in calls(Maker(dtype)):
        expected = [
            one.half()
            if one is not None
            and dtype is torch.float16
            and one.is_floating_point()
            and kind != "Cast"
            else one
            for one in call.expected
        ]
        decoded = payloads.decode("MPSBackend", payload(kind, call, expected))
        assert not decoded.issues
        engine = MpsBackend().engine(decoded, 0)
        inputs = [one for one in call.given if one is not None]
        found = cast("list[torch.Tensor]", engine.run(inputs, DelegateTracer(None, (0, 0))))
        for mine, other in zip(found, [one for one in expected if one is not None], strict=True):
            assert mine.dtype == other.dtype
            bound = _BOUND.get(dtype, 0.0) if other.is_floating_point() else 0.0
            torch.testing.assert_close(mine, other, rtol=bound, atol=bound, equal_nan=True)
        count += 1
    assert count


def test_every_kind_is_tried() -> None:
    assert KINDS.keys() == CALLS.keys()
