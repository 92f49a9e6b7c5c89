"""State of payloads: what a run writes stays, whatever happens to the memory it came from."""

from __future__ import annotations

import itertools
import struct
from typing import Any

import pytest
import torch

from inspector.worker.run_job import _Runner
from runtime import ExecutionError, Runtime
from runtime.backends.graph import Operation, OperatorTable
from runtime.backends.graph.engine import GraphEngine
from runtime.backends.graph.stepping import GraphSteps
from runtime.delegates.interface import DelegateTracer
from schema.graph import Argument, Graph, GraphNode, GraphValue, NodeKind, TensorMeta
from schema.payloads import Payload
from schema.payloads.model import INLINE, Constant
from tests.conftest import DATA

_META = TensorMeta(6, (2,))


def _same(x: Any) -> Any:
    return x


def _writer(*first: float) -> GraphEngine:
    """Return a payload that returns its state, and keeps its input as the next one."""

    def node(name: str, read: str, written: str) -> GraphNode:
        return GraphNode(name, NodeKind.CALL, "same", (Argument(values=(read,)),), (written,))

    values = {one: GraphValue(one, _META) for one in ("x", "before")}
    values["s"] = GraphValue("s", _META, constant="s", constant_bytes=8)
    nodes = (node("read", "s", "before"), node("write", "x", "s"))
    graph = Graph("main", nodes, values, ("x",), ("before",))
    content = struct.pack("<2f", *(first or (0.0, 0.0)))
    payload = Payload(
        "Any", "any", 0, graph, constants=(Constant("s", 8, INLINE, memoryview(content)),)
    )
    table = OperatorTable(lambda one, _: Operation(_same, one.inputs))
    return GraphEngine(payload, table, 0)


def test_state_is_not_the_memory_of_an_input() -> None:
    engine, untraced = _writer(), DelegateTracer(None, (0, 0))
    x = torch.tensor([1.0, 2.0])
    assert engine.run([x], untraced)[0].tolist() == [0.0, 0.0]
    x.fill_(9.0)
    assert engine.run([x], untraced)[0].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("first", [(0.0, 0.0), (3.0, -1.0)])
def test_state_is_put_back_to_that_of_the_load(first: tuple[float, float]) -> None:
    engine, untraced = _writer(*first), DelegateTracer(None, (0, 0))
    for value in (1.0, 2.0):
        before = engine.run([torch.full((2,), value)], untraced)[0]
        assert before.tolist() == [*first]
        before.fill_(7.0)  # who has it may write to it
        engine.run([torch.full((2,), 5.0)], untraced)
        engine.reset_state()


@pytest.mark.parametrize(
    "name", ["coreml_cache_iOS18", "native_cache", "vulkan_counting_cache_alias"]
)
def test_each_measured_run_begins_with_the_state_of_the_load(name: str) -> None:
    path = DATA / f"backends/{name}.pte"
    inputs, expected = torch.load(path.with_suffix(".pt"))
    program = Runtime.get().load_program(str(path))
    method = program.load_method("forward")
    runner = _Runner(program, method, inputs)
    found: list[list[Any]] = []
    for _ in range(3):
        runner.once()
        found.append([torch.as_tensor(one).clone() for one in method.get_outputs()])
    for outputs in found:
        for one, other in zip(outputs, found[0], strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=0)
    torch.testing.assert_close(found[0][-1], torch.as_tensor(expected[-1]), rtol=1e-5, atol=1e-5)


def test_value_that_nothing_computes_before_it_is_read_is_named_when_the_payload_is_loaded() -> (
    None
):
    """As where a compiler numbers the constants of one partition by those of another one."""
    values = {one: GraphValue(one, _META) for one in ("x", "y", "z")}

    def graph(*reads: str) -> Graph:
        nodes = tuple(
            GraphNode(f"{place}", NodeKind.CALL, "same", (Argument(values=(read,)),), (written,))
            for place, (read, written) in enumerate(zip(reads, ("y", "z"), strict=True))
        )
        return Graph("main", nodes, values, ("x",), ("z",))

    table = OperatorTable(lambda one, _: Operation(_same, one.inputs))
    for reads, words in (
        (("z", "y"), "node 0 (same) reads z"),
        (("x", "z"), "node 1 (same) reads z"),
    ):
        with pytest.raises(ExecutionError) as refused:
            GraphEngine(Payload("Any", "any", 0, graph(*reads)), table, 0)
        assert f"{words}, which is not computed before it" in str(refused.value)
    values["w"] = GraphValue("w", kind="other")
    with pytest.raises(ExecutionError, match="reads w, which is not computed"):  # undeclared
        GraphEngine(Payload("Any", "any", 0, graph("x", "w")), table, 0)
    engine = GraphEngine(Payload("Any", "any", 0, graph("x", "y")), table, 0)
    given = torch.tensor([1.0, 2.0])
    assert engine.run([given], DelegateTracer(None, (0, 0)))[0] is given


def test_buffers_that_a_vulkan_payload_aliases_have_what_the_call_before_left() -> None:
    """They are packed once, when the payload is loaded; later nodes write to the packed ones."""
    path = DATA / "backends/vulkan_counting_cache_alias.pte"
    (x,), (expected,) = torch.load(path.with_suffix(".pt"))
    for _ in range(2):  # each program that is loaded begins with its own buffers
        method = Runtime().load_program(path).load_method("forward")
        results = [method.execute([x])[0].clone() for _ in range(4)]
        torch.testing.assert_close(results[0], expected, rtol=1e-6, atol=1e-6)
        kept = [result / (count + 1) for count, result in enumerate(results)]
        # atanh of each is the linear layer of the input, which stays, and the one before it
        linear = torch.atanh(kept[0])
        for before, after in itertools.pairwise(kept):
            torch.testing.assert_close(after, torch.tanh(linear + before), rtol=1e-4, atol=1e-5)


def test_buffers_of_a_native_program_have_what_the_call_before_left() -> None:
    """One buffer has bytes, the other one none: it is zero at first."""
    path = DATA / "backends/native_cache.pte"
    inputs, (expected,) = torch.load(path.with_suffix(".pt"))
    for _ in range(2):  # each program that is loaded begins with its own buffers
        method = Runtime().load_program(path).load_method("forward")
        first, second, third = (method.execute(inputs)[0].clone() for _ in range(3))
        torch.testing.assert_close(first, expected, rtol=1e-6, atol=1e-6)
        assert (second - first).abs().max() > 1e-3  # the sum has grown
        torch.testing.assert_close(third - second, second - first, rtol=1e-5, atol=1e-6)


def test_values_that_are_forgotten_after_the_load_are_no_tensors_of_a_run() -> None:
    """Of weights compressed twice, what is between the two steps; a walk cannot read it."""

    def node(name: str, read: str, written: str) -> GraphNode:
        return GraphNode(name, NodeKind.CALL, name, (Argument(values=(read,)),), (written,))

    values = {one: GraphValue(one, _META) for one in ("x", "between", "weight", "y")}
    values["s"] = GraphValue("s", _META, constant="s", constant_bytes=8)
    nodes = (node("once1", "s", "between"), node("once2", "between", "weight"))
    last = GraphNode("add", NodeKind.CALL, "add", (Argument(values=("x", "weight")),), ("y",))
    graph = Graph("main", (*nodes, last), values, ("x",), ("y",))
    stored = Constant("s", 8, INLINE, memoryview(struct.pack("<2f", 1.0, 2.0)))
    table = OperatorTable(
        lambda one, _: Operation(torch.add if one.target == "add" else _same, one.inputs),
        once=lambda one: one.target.startswith("once"),
    )
    engine = GraphEngine(Payload("Any", "any", 0, graph, constants=(stored,)), table, 0)
    steps = GraphSteps(engine, [torch.ones(2)], lambda _results: None)
    assert [len(one.outputs) for one in steps.nodes] == [0, 1, 1]
    steps.finish()
    assert steps.value(engine.places["y"]).tolist() == [2.0, 3.0]
