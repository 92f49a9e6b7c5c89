"""Branches, loops and variables of TOSA: graphs of tests/data/tosa, written by Arm's serializer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from runtime import ExecutionError
from runtime.backends.graph.engine import GraphEngine
from runtime.backends.tosa import TosaBackend
from runtime.delegates.interface import DelegateTracer
from schema import payloads
from schema.graph import Argument, Graph, GraphNode, GraphValue, NodeKind, TensorMeta
from schema.payloads import Payload
from schema.payloads.nested import nested_calls
from tests.conftest import DATA

GRAPHS = sorted(path.stem for path in (DATA / "tosa").glob("*.tosa"))
CASES: dict[str, list[list[torch.Tensor]]] = {
    "cond": [
        [torch.tensor(choice), torch.randn(2, 3), torch.randn(2, 3)] for choice in (True, False)
    ],
    "nested": [[torch.tensor(n, dtype=torch.int32), torch.randn(2, 3)] for n in (0, 1, 5)],
    "variable": [[torch.tensor([0.5, -1.0, 2.0])]],
    "while": [[torch.tensor(n, dtype=torch.int32), torch.randn(2, 3)] for n in (0, 1, 4)],
}


class _Names(DelegateTracer):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__(None, (0, 0))
        self.events: list[str] = []
        self.values: dict[str, list[Any]] = {}

    records = property(lambda _: True)
    logs_values = property(lambda _: True)

    def log(self, identity: Any, start: int, end: int, metadata: bytes | None = None) -> None:
        assert start <= end
        assert metadata == b"interpreted"
        self.events.append(identity)

    def log_value(self, identity: Any, value: Any) -> None:
        self.values.setdefault(identity, []).append(value)


def _engine(name: str) -> GraphEngine:
    data = (DATA / f"tosa/{name}.tosa").read_bytes()
    return TosaBackend().engine(payloads.decode("TOSABackend", memoryview(data)), 0)


def _run(engine: GraphEngine, *inputs: torch.Tensor) -> list[torch.Tensor]:
    return engine.run(list(inputs), DelegateTracer(None, (0, 0)))


@pytest.mark.parametrize("count", [0, 1, 4])
def test_loop_runs_as_often_as_its_condition_holds(count: int) -> None:
    x = torch.randn(2, 3)
    expected = x
    for _ in range(count):
        expected = torch.tanh(expected + 0.5)
    left, made = _run(_engine("while"), torch.tensor(count, dtype=torch.int32), x)
    assert left.item() == 0
    torch.testing.assert_close(made, expected)


def test_branch_is_chosen_by_its_condition() -> None:
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    engine = _engine("cond")
    assert torch.equal(_run(engine, torch.tensor(True), x, y)[0], x + y)
    torch.testing.assert_close(_run(engine, torch.tensor(False), x, y)[0], torch.exp(x - y))


def test_branch_inside_a_loop() -> None:
    x = torch.randn(2, 3)
    _, made = _run(_engine("nested"), torch.tensor(4, dtype=torch.int32), x)
    torch.testing.assert_close(made, torch.tanh(torch.tanh(x)) * 4)


def test_variables_keep_their_values_between_runs_and_belong_to_one_program() -> None:
    x = torch.tensor([0.5, -1.0, 2.0])
    first = torch.tensor([1.0, 2.0, 3.0])
    engine = _engine("variable")
    for number in (1, 2, 3):
        total, calls = _run(engine, x)
        torch.testing.assert_close(total, first + number * x)
        assert calls.tolist() == [number]
    assert _run(_engine("variable"), x)[1].tolist() == [1]


def test_each_iteration_of_a_loop_is_logged_by_the_names_of_its_block() -> None:
    engine, tracer = _engine("nested"), _Names()
    engine.run([torch.tensor(3, dtype=torch.int32), torch.randn(2, 3)], tracer)
    names = [name.rpartition("/") for name in tracer.events]
    assert [last for _, _, last in names].count("GREATER_1") == 4  # the condition, once more
    assert [last for _, _, last in names].count("SUB_1") == 3
    assert [last for _, _, last in names].count("TANH_0") == 1
    assert [last for _, _, last in names].count("ADD_0") == 2
    assert all(block for block, _, _ in names)
    known = dict(nested_calls(engine.graph))
    assert set(tracer.events) <= known.keys()
    (values,) = (found for name, found in tracer.values.items() if name.endswith("SUB_1"))
    assert [value.item() for value in values] == [2, 1, 0]
    before = len(tracer.events)
    _run(engine, torch.tensor(3, dtype=torch.int32), torch.randn(2, 3))
    assert len(tracer.events) == before


def test_block_that_contains_itself_is_refused() -> None:
    data = (DATA / "tosa/while.tosa").read_bytes()
    payload = payloads.decode("TOSABackend", memoryview(data))
    assert payload.graph is not None
    inner = dict(payload.graph.subgraphs)
    body = next(name for name in inner if "body" in name)
    object.__setattr__(inner[body], "nodes", (*inner[body].nodes, payload.graph.nodes[-1]))
    with pytest.raises(ExecutionError, match="not known: WHILE_LOOP"):
        TosaBackend().engine(payload, 0)


@pytest.mark.vendor
@pytest.mark.parametrize("name", GRAPHS)
def test_blocks_compute_what_the_reference_model_does(name: str) -> None:
    model: Any = pytest.importorskip("tosa_reference_model", reason="tosa-tools is not installed")
    data = (DATA / f"tosa/{name}.tosa").read_bytes()
    for inputs in CASES[name]:
        made = _run(_engine(name), *inputs)
        results, status = model.run(data, [one.numpy() for one in inputs])
        assert str(status).endswith("TOSA_VALID")
        for own, right in zip(made, results, strict=True):
            expected = torch.from_numpy(right).reshape(own.shape)
            torch.testing.assert_close(own, expected, rtol=1e-5, atol=1e-5)


_FLOAT, _BOOL = TensorMeta(6, (3,)), TensorMeta(11, ())


def _payload(outermost: Graph) -> Payload:
    data = (DATA / "tosa/cond.tosa").read_bytes()
    return replace(payloads.decode("TOSABackend", memoryview(data)), graph=outermost)


def _branching(name: str, target: str) -> Graph:
    """Return a block that calls another one for either outcome of its condition, twice."""

    def call(number: int, given: str) -> GraphNode:
        args = (Argument(values=("choice", "choice", given)),)
        made = (f"y{number}",)
        kind = NodeKind.CONTROL
        return GraphNode(f"n{number}", kind, "COND_IF", args, made, subgraphs=(target, target))

    values = {one: GraphValue(one, _FLOAT) for one in ("x", "y0", "y1")}
    values["choice"] = GraphValue("choice", _BOOL)
    return Graph(name, (call(0, "x"), call(1, "y0")), values, ("choice", "x"), ("y1",))


def _chain(count: int) -> Payload:
    """Return blocks each of which has the next one four times; the last computes."""
    names = [f"b{number}" for number in range(count)]
    blocks = {
        name: _branching(name, after)
        for name, after in zip(names, [*names[1:], "last"], strict=True)
    }
    values = {one: GraphValue(one, _FLOAT) for one in ("x", "y")}
    values["choice"] = GraphValue("choice", _BOOL)
    node = GraphNode("ceil", NodeKind.CALL, "CEIL", (Argument(values=("x",)),), ("y",))
    blocks["last"] = Graph("last", (node,), values, ("choice", "x"), ("y",))
    return _payload(replace(_branching("main", names[0]), subgraphs=blocks))


def test_blocks_that_are_called_from_many_places_are_bound_once() -> None:
    TosaBackend().engine(_chain(20), 0)  # 4 ** 20 paths lead to the last one
    (few,) = _run(TosaBackend().engine(_chain(3), 0), torch.tensor(True), torch.full((3,), 0.5))
    assert few.tolist() == [1.0] * 3


def test_blocks_nested_without_end_are_refused() -> None:
    with pytest.raises(ExecutionError, match="nested deeper than 32"):
        TosaBackend().engine(_chain(2_000), 0)


def test_a_block_in_two_places_of_a_loop_is_traced_in_both() -> None:
    values = {one: GraphValue(one, _FLOAT) for one in ("x", "y")}
    values |= {one: GraphValue(one, _BOOL) for one in ("flag", "left")}
    given = (Argument(values=("flag", "x")),)
    flag = (Argument(values=("flag",)),)
    body = Graph(
        "body",
        (
            GraphNode("not", NodeKind.CALL, "LOGICAL_NOT", flag, ("left",)),
            GraphNode("ceil", NodeKind.CALL, "CEIL", (Argument(values=("x",)),), ("y",)),
        ),
        values,
        ("flag", "x"),
        ("left", "y"),
    )
    both = (Argument(values=("flag", "flag", "x")),)
    inner = GraphNode(
        "if", NodeKind.CONTROL, "COND_IF", both, ("left", "y"), subgraphs=("body", "body")
    )
    cond = Graph("cond", (inner,), values, ("flag", "x"), ("flag",))
    loop = GraphNode(
        "while", NodeKind.CONTROL, "WHILE_LOOP", given, ("left", "y"), subgraphs=("cond", "body")
    )
    blocks = {"cond": cond, "body": body}
    main = Graph("main", (loop,), values, ("flag", "x"), ("left", "y"), subgraphs=blocks)
    engine, tracer = TosaBackend().engine(_payload(main), 0), _Names()
    engine.run([torch.tensor(True), torch.zeros(3)], tracer)
    assert tracer.events.count("body/ceil") == 3  # twice for the condition


def _variable(meta: TensorMeta) -> Payload:
    """Return a graph that reads a variable, then writes its input to it."""
    values = {one: GraphValue(one, _FLOAT) for one in ("x", "before")}
    values["v"] = GraphValue("v", meta)
    given = (Argument(values=("v",)),)
    read = GraphNode("read", NodeKind.CALL, "VARIABLE_READ", given, ("before",))
    write = GraphNode("write", NodeKind.CALL, "VARIABLE_WRITE", (Argument(values=("x",)),), ("v",))
    names: Any = {"variables": {"v": "state"}}
    return _payload(Graph("main", (read, write), values, ("x",), ("before",), attributes=names))


def test_a_variable_keeps_an_input_that_its_owner_overwrites() -> None:
    engine = TosaBackend().engine(_variable(_FLOAT), 0)
    x = torch.tensor([1.0, 2.0, 3.0])
    assert _run(engine, x)[0].tolist() == [0.0] * 3
    x.fill_(9.0)
    assert _run(engine, x)[0].tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("sizes", [(-1,), ("n",)])
def test_a_variable_of_unknown_sizes_is_refused(sizes: tuple[int | str, ...]) -> None:
    with pytest.raises(ExecutionError, match="variable v has the sizes"):
        TosaBackend().engine(_variable(TensorMeta(6, sizes)), 0)
