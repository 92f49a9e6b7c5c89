"""Programs of Core ML beyond what the recipe compiles: compressed weights, states, branches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from runtime import ExecutionError, Runtime
from runtime.backends.coreml import CoreMLBackend
from runtime.backends.coreml.backend import MilEngine
from runtime.backends.graph.engine import GraphEngine
from runtime.delegates.interface import DelegateTracer
from schema import payloads
from schema.graph import NodeKind
from schema.payloads import Payload
from tests.conftest import DATA
from tests.schema.test_payload_coreml import (
    MODEL,
    argument,
    body,
    entry,
    folder,
    model,
    named,
    operation,
    tensor_type,
)

_UNTRACED = DelegateTracer(None, (0, 0))
FLOAT, HALF, INT, STATE = 11, 10, 23, 5


def _engine(data: bytes) -> GraphEngine:
    return CoreMLBackend().engine(payloads.decode("CoreMLBackend", data), 0)


def _stored(name: str) -> GraphEngine:
    return _engine((DATA / f"coreml/{name}.bin").read_bytes())


def _run(engine: GraphEngine, *inputs: torch.Tensor) -> list[Any]:
    return engine.run(inputs, _UNTRACED)


def _sizes(engine: GraphEngine, name: str) -> list[int]:
    tensor = engine.graph.values[name].tensor
    assert tensor is not None
    return [int(size) for size in tensor.sizes]


def _value(field: int, datatype: int, items: bytes, *dims: int) -> bytes:
    """Return a value inside the program: ``field`` is the kind of its list."""
    return body(2, tensor_type(datatype, *dims)) + body(3, body(1, body(field, body(1, items))))


def _inline(field: int, datatype: int, items: bytes, *dims: int) -> bytes:
    return body(1, body(2, _value(field, datatype, items, *dims)))


def _program(block: bytes, *inputs: bytes) -> bytes:
    return folder({MODEL: model(block, *inputs)})


@pytest.mark.parametrize(("name", "bound"), [("int8", 0.03), ("int4", 0.3), ("palette", 0.3)])
def test_compressed_weights_are_expanded_once_and_close_to_those_they_were_made_of(
    name: str, bound: float
) -> None:
    plain, packed = _stored("linear"), _stored(name)
    x = torch.linspace(-1, 1, 16)[None]
    (expected,), (found,) = _run(plain, x), _run(packed, x)
    assert 0 < (expected - found).abs().max() < bound
    compressed = [one for one in packed.graph.nodes if one.target.startswith("constexpr_")]
    assert compressed
    assert all(one.kind is NodeKind.CALL for one in compressed)
    assert all(packed._calls[packed.graph.nodes.index(one)] is None for one in compressed)
    assert torch.equal(_run(packed, x)[0], found)


def test_sparse_weights_keep_the_largest_of_the_dense_ones() -> None:
    x = torch.eye(16)[:1]
    (dense,), (sparse,) = _run(_stored("linear"), x), _run(_stored("sparse"), x)
    kept = sparse != 0
    assert 0 < kept.sum() < 16
    torch.testing.assert_close(sparse[kept], dense[kept], rtol=1e-3, atol=1e-3)


def test_state_is_zero_at_first_and_stays_between_runs() -> None:
    engine = _stored("state")
    x = torch.ones(_sizes(engine, "x"))
    first, second = _run(engine, x)[0], _run(engine, x)[0]
    assert not torch.equal(first, second)
    torch.testing.assert_close(_run(_stored("state"), x)[0], first)


def test_cache_of_a_compiled_program_is_written_by_each_run() -> None:
    path = DATA / "backends/coreml_cache_iOS18.pte"
    inputs, (expected,) = torch.load(path.with_suffix(".pt"))
    method = Runtime().load_program(path).load_method("forward")
    (first,) = (one.clone() for one in method.execute(inputs))
    torch.testing.assert_close(first, expected, rtol=1e-6, atol=1e-6)
    (second,) = method.execute(inputs)
    assert (second - first).abs().max() > 1e-3  # the sum has grown


def test_branch_is_taken_by_its_condition() -> None:
    payload = payloads.decode("CoreMLBackend", (DATA / "coreml/branches.bin").read_bytes())
    payload = replace(payload, external_ids={})  # the folder names one of two inputs
    engine = CoreMLBackend().engine(payload, 0)
    assert list(engine.graph.inputs) == ["choice", "x"]
    x = torch.full(_sizes(engine, "x"), 2.0)
    made = [_run(engine, torch.full(_sizes(engine, "choice"), one), x)[0] for one in (True, False)]
    assert not torch.equal(*made)


def test_each_function_of_a_container_runs() -> None:
    data = (DATA / "coreml/functions.bin").read_bytes()
    made: list[torch.Tensor] = []
    for function in str(payloads.decode("CoreMLBackend", data).summary["functions"]).split(", "):
        reference = f'CMJR{{"key": "k", "functionName": "{function}"}}'.encode()
        payload = payloads.decode("CoreMLBackend", reference, {"k": memoryview(data)})
        engine = CoreMLBackend().engine(payload, 0)
        made += _run(engine, torch.ones(1, 16))
    assert len(made) == 2
    assert not torch.equal(*made)


def test_literals_inside_the_program_keep_their_shape_and_all_their_elements() -> None:
    floats = torch.arange(200, dtype=torch.float32)
    block = body(3, operation("add", "y", {
        "x": argument("x"),
        "y": _inline(1, FLOAT, floats.numpy().tobytes(), 2, 100),
    })) + body(2, "y")  # fmt: skip
    engine = _engine(_program(block, named("x", tensor_type(FLOAT, 2, 100))))
    (made,) = _run(engine, torch.zeros(2, 100))
    assert torch.equal(made, floats.reshape(2, 100))
    small = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    block = body(3, operation("matmul", "y", {
        "x": argument("x"),
        "y": _inline(1, FLOAT, small.numpy().tobytes(), 2, 3),
    })) + body(2, "y")  # fmt: skip
    engine = _engine(_program(block, named("x", tensor_type(FLOAT, 2, 2))))
    assert torch.equal(_run(engine, torch.eye(2))[0], small)


def _payload(block: bytes) -> Payload:
    return payloads.decode(
        "CoreMLBackend", _program(block + body(2, "y"), named("x", tensor_type(FLOAT, 2, 3)))
    )


def test_operator_that_is_not_known_is_refused_by_name() -> None:
    block = body(3, operation("unknown_kind", "y", {"x": argument("x")}))
    with pytest.raises(ExecutionError, match="not known: unknown_kind"):
        CoreMLBackend().engine(_payload(block), 0)


def test_argument_that_an_operator_does_not_have_is_refused() -> None:
    block = body(3, operation("relu", "y", {"x": argument("x"), "slope": argument("x")}))
    with pytest.raises(ExecutionError, match="not known: relu"):
        CoreMLBackend().engine(_payload(block), 0)


def test_literal_whose_elements_do_not_fit_its_shape_is_refused_with_its_place() -> None:
    block = body(3, operation("add", "y", {
        "x": argument("x"), "y": _inline(1, FLOAT, bytes(8), 1 << 40, 3),
    }))  # fmt: skip
    (issue,) = _payload(block).issues
    assert "3298534883328 elements of shape [1099511627776, 3]" in issue.message
    with pytest.raises(ExecutionError, match="elements of shape"):
        CoreMLBackend().engine(_payload(block), 0)


def test_state_of_a_huge_shape_is_refused_before_it_is_allocated() -> None:
    wrapped = body(STATE, body(1, tensor_type(FLOAT, 1 << 40, 1 << 20)))
    block = body(3, operation("read_state", "y", {"input": argument("s")})) + body(2, "y")
    with pytest.raises(ExecutionError, match="states of 4611686018427387904 bytes"):
        _engine(_program(block, named("s", wrapped)))


def test_weights_that_do_not_fill_their_shape_are_refused_by_name() -> None:
    items = bytes(range(100))
    block = body(3, operation("add", "y", {
        "x": argument("x"), "y": _inline(7, 21, items, 100),
    })) + body(2, "y")  # fmt: skip
    data = _program(block, named("x", tensor_type(FLOAT, 100)))
    payload = payloads.decode("CoreMLBackend", data)
    (constant,) = payload.constants
    assert bytes(constant.data or b"") == items
    assert constant.data is not None
    cut = replace(payload, constants=(replace(constant, nbytes=4, data=constant.data[:4]),))
    with pytest.raises(ExecutionError, match=r"constant y\.y of 4 bytes does not fit its shape"):
        CoreMLBackend().engine(cut, 0)


class _Events(DelegateTracer):
    """Keeps the names of events."""

    def __init__(self) -> None:
        super().__init__(None, (0, 0))
        self.events: list[Any] = []

    records = property(lambda _: True)

    def log(self, identity: Any, start: int, end: int, metadata: bytes | None = None) -> None:
        self.events.append(identity)


def test_loop_runs_until_its_condition_fails() -> None:
    five = torch.tensor([5.0]).numpy().tobytes()

    def scalar(kind: str, name: str, other: bytes, dtype: int) -> bytes:
        made = body(1, kind) + entry(2, "x", argument("i"))
        made += entry(2, "y", _inline(1, FLOAT, other))
        return body(3, made + body(3, named(name, tensor_type(dtype))))

    condition = body(1, named("i", tensor_type(FLOAT))) + body(2, "go")
    condition += scalar("less", "go", five, 1)
    inside = body(1, named("i", tensor_type(FLOAT))) + body(2, "next")
    inside += body(3, body(1, "add") + entry(2, "x", argument("i")) + entry(2, "y", argument("x"))
                   + body(3, named("next", tensor_type(FLOAT))))  # fmt: skip
    loop = body(1, "while_loop") + entry(2, "loop_vars", argument("x"))
    loop += body(3, named("y", tensor_type(FLOAT))) + body(4, condition) + body(4, inside)
    engine = _engine(_program(body(3, loop) + body(2, "y"), named("x", tensor_type(FLOAT))))
    assert isinstance(engine, MilEngine)
    assert _run(engine, torch.tensor(1.5))[0].item() == 6.0
    assert _run(engine, torch.tensor(7.0))[0].item() == 7.0
    tracer = _Events()
    engine.run([torch.tensor(1.5)], tracer)
    assert len(tracer.events) == 7  # four conditions, three iterations
    assert len(set(tracer.events)) == 2


def test_pair_of_scales_that_the_compiler_merged_is_seen_in_the_numbers() -> None:
    # quantize(0.0055), flatten, dequantize(0.011): the recorded graph is 0.02 off, the payload 0.62
    path = DATA / "backends/coreml_m1_int8.pte"
    inputs, (expected,) = torch.load(path.with_suffix(".pt"))
    (made,) = Runtime().load_program(path).load_method("forward").execute(inputs)
    assert 0.61 < (made - expected).abs().max() < 0.63
