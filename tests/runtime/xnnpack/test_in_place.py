"""Delegate calls in place: same bits, sizes that change, and arguments that cannot be used."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from compiler import ExecutorchBackendConfig, MemoryPlanningPass, to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner, writer
from runtime import EventTracer, ExecutionError, Runtime
from runtime.backends.xnnpack.native.engine import NativeEngine
from runtime.backends.xnnpack.native.in_place import InPlaceCall, Prepared
from runtime.delegates.interface import DelegateTracer
from runtime.memory.slots import fill
from schema.payloads.xnnpack import XNNGraph
from schema.payloads.xnnpack import encode as encode_payload
from schema.payloads.xnnpack.nodes import Convolution
from schema.program import decode, encode
from tests.runtime.stock import Stock
from tests.runtime.xnnpack.payloads import Case, Payload

pytestmark = [pytest.mark.slow, pytest.mark.interop]


class Layers(torch.nn.Module):
    """Partitions with a sort, which is not delegated, between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(6, 5), torch.nn.Linear(5, 4)

    def forward(self, x):
        y = torch.relu(self.first(x))
        return torch.softmax(self.second(y.flip(0)), -1), y


def lowered(module: torch.nn.Module, given: torch.Tensor, dynamic: Any = None) -> bytes:
    program = torch.export.export(module.eval(), (given,), dynamic_shapes=dynamic)
    manager = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    return bytes(manager.to_executorch().buffer)


def both(buffer: bytes) -> list[Any]:
    """Return the method in this process, and in another one."""
    return [
        Runtime().load_program(buffer).load_method("forward", engine="native", isolate=isolate)
        for isolate in (False, True)
    ]


def same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_results_are_written_where_they_are_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = both(lowered(Layers(), torch.randn(3, 6)))
    given = [torch.randn(3, 6) for _ in range(4)]
    wanted = [there.execute([one]) for one in given]

    def never(_engine: NativeEngine, _inputs: Any, _tracer: DelegateTracer) -> list[torch.Tensor]:
        raise AssertionError("a call that converts its arguments")

    monkeypatch.setattr(NativeEngine, "run", never)
    assert all(same(here.execute([one]), two) for one, two in zip(given, wanted, strict=True))


def test_changed_sizes_are_reshaped_and_give_the_same_bits() -> None:
    rows = torch.export.Dim("rows", max=32)
    here, there = both(lowered(Layers(), torch.randn(3, 6), ({0: rows},)))
    for count in (3, 4, 5, 6, 32, 1, 4, 4, 31):
        given = torch.randn(count, 6)
        assert same(here.execute([given]), there.execute([given])), count


def test_sizes_seen_before_are_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from runtime.backends.xnnpack.native import in_place

    asked: list[int] = []
    of_library = InPlaceCall._result
    monkeypatch.setattr(
        InPlaceCall,
        "_result",
        lambda call, end, give: (asked.append(end.number), of_library(call, end, give))[1],
    )
    monkeypatch.setattr(in_place, "_MOST_SHAPES", 3)
    rows = torch.export.Dim("rows", max=32)
    here, there = both(lowered(Layers(), torch.randn(3, 6), ({0: rows},)))

    def new_sizes(*counts: int) -> int:
        before = len(asked)
        for count in counts:
            given = torch.randn(count, 6)
            assert same(here.execute([given]), there.execute([given])), count
        return len(asked) - before

    results = new_sizes(3)
    assert results > 0
    assert new_sizes(4, 5) == 2 * results
    assert new_sizes(3, 5, 4, 3, 3, 5) == 0
    assert new_sizes(6) == results  # the oldest of three is forgotten
    assert new_sizes(4, 5, 6) == 0
    assert new_sizes(3) == results


def test_what_the_library_is_asked_for_depends_on_what_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts: Counter[str] = Counter()
    bind = InPlaceCall._bind_library

    def counted(name: str, function: Prepared) -> Prepared:
        prepared: Any = function

        def call(*given: Any) -> int:
            counts.update([name])
            return prepared.func(*given)

        return partial(call, *prepared.args)

    def counting(call: InPlaceCall) -> None:
        bind(call)
        for name in ("invoke", "reshape", "setup"):
            setattr(call, f"_{name}", counted(name, getattr(call, f"_{name}")))
        for name in ("takers", "resized", "givers"):
            found = getattr(call, f"_{name}")
            found[:] = [(*one[:-1], counted(name, one[-1])) for one in found]

    monkeypatch.setattr(InPlaceCall, "_bind_library", counting)
    rows = torch.export.Dim("rows", max=32)
    here, there = both(lowered(Layers(), torch.randn(3, 6), ({0: rows},)))
    calls = len(here._partitions)

    def asked(count: int) -> dict[str, int]:
        given = torch.randn(count, 6)
        counts.clear()
        assert same(here.execute([given]), there.execute([given])), count
        return {name: number / calls for name, number in counts.items()}

    asked(3)
    asked(5)
    assert asked(5) == {"invoke": 1}
    known = {"resized": 1, "reshape": 1, "setup": 1, "invoke": 1}
    assert [asked(count) for count in (3, 5, 3, 5, 3, 5)] == [known] * 6
    assert asked(31) == {**known, "givers": 1}
    assert asked(1) == {**known, "givers": 1}


def test_two_methods_of_one_program_keep_their_sizes_apart() -> None:
    rows = torch.export.Dim("rows", max=32)
    buffer = lowered(Layers(), torch.randn(3, 6), ({0: rows},))
    (first, other), (second, _) = both(buffer), both(buffer)
    for count in (3, 7, 3):
        given, more = torch.randn(count, 6), torch.randn(2 * count, 6)
        assert same(first.execute([given]), other.execute([given]))
        assert same(second.execute([more]), other.execute([more]))


def test_traced_runs_are_in_place_too_and_record_the_kernels() -> None:
    buffer = lowered(Layers(), torch.randn(3, 6))
    tracer = EventTracer()
    method = Runtime().load_program(buffer, tracer=tracer).load_method("forward", engine="native")
    _, there = both(buffer)
    given = [torch.randn(3, 6)]
    assert same(method.execute(given), there.execute(given))
    assert same(method.execute(given), there.execute(given))
    assert any("Fully Connected" in str(row) for row in tracer.rows)


def doubled() -> Case:
    """A sum of two inputs, 1,000 numbers each."""
    made = Payload()
    a, b = made.real(4, 250), made.real(4, 250)
    made.node("Add", input1_id=a, input2_id=b, output_id=made.result((4, 250)))
    return made.case("doubled")


@pytest.mark.parametrize("offset", [0, 16, 400, 4000])
def test_a_result_planned_over_an_input_is_as_if_it_was_not(offset: int) -> None:
    case = doubled()
    file = decode(case.program)
    plan = file.plans[0]
    first, _, last = (value.val for value in plan.values)
    place = replace(last.allocation_info, memory_offset_low=offset)
    assert first.allocation_info.memory_offset_low == 0
    values = (*plan.values[:2], replace(plan.values[2], val=replace(last, allocation_info=place)))
    table = replace(file.table, execution_plan=(replace(plan, values=values),))
    method = Runtime().load_program(encode(replace(file, table=table)))
    found = method.load_method("forward", engine="native").execute(case.inputs)
    assert torch.equal(found[0], case.inputs[0] + case.inputs[1])


def test_arguments_at_the_end_of_readable_memory_are_copied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from runtime.backends.xnnpack.native import call_ends

    monkeypatch.setattr(call_ends, "can_be_read", lambda *_: False)
    here, there = both(lowered(Layers(), torch.randn(3, 6)))
    for _ in range(3):
        given = [torch.randn(3, 6)]
        assert same(here.execute(given), there.execute(given))


def test_a_value_changed_between_runs_is_read_again() -> None:
    here, there = both(lowered(Layers(), torch.randn(3, 6)))
    given = torch.randn(3, 6)
    here.execute([given])
    fill(given, torch.randn(3, 6))
    assert same(here.execute([given]), there.execute([given]))


def test_a_refusal_of_the_library_is_an_error_of_the_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(InPlaceCall, "inputs", lambda _self: [torch.randn(3, 7)])
    from runtime import ExecutionError

    bind = InPlaceCall._bind_library

    def refusing(call: InPlaceCall) -> None:
        bind(call)
        call._reshape = lambda: 2

    monkeypatch.setattr(InPlaceCall, "_bind_library", refusing)
    here, _ = both(lowered(Layers(), torch.randn(3, 6)))
    with pytest.raises(ExecutionError, match="invalid parameter"):
        here.execute([torch.randn(3, 6)])


class Pixels(torch.nn.Module):
    """Convolutions of images of any size, with something between them that is not delegated."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 4, 3, padding=1)
        self.second = torch.nn.Conv2d(4, 5, 3, stride=2, padding=1)

    def forward(self, x):
        y = torch.relu(self.first(x))
        return self.second(y.flip(0)), y


class Wide(torch.nn.Module):
    """Rows that become wide inside."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(1, 40000), torch.nn.Linear(40000, 1))

    def forward(self, x):
        return self.layers(x)


def test_largest_sizes_that_no_memory_is_enough_for_need_not_come() -> None:
    module, rows = Wide(), torch.export.Dim("rows", max=10**8)  # 16 TB inside
    program = Runtime().load_program(lowered(module, torch.randn(3, 1), ({0: rows},)))
    method = program.load_method("forward", engine="native")
    for count in (3, 1, 5):
        given = torch.randn(count, 1)
        (found,) = method.execute([given])
        torch.testing.assert_close(found, module(given), atol=1e-5, rtol=1e-5)


class Cache(torch.nn.Module):
    """Rows that are changed and written to a state, from the first or from the last row on."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(16, 6))
        self.change = torch.nn.Linear(6, 6)

    def forward(self, x):
        self.rows.index_copy_(0, torch.arange(x.shape[0]), self.change(x))
        return torch.tanh(self.rows.sum(0)), self.rows * 1.0


def cached_program(module: Cache) -> bytes:
    """Two methods over one state: one of rows of any number, one of a single row."""
    rows = torch.export.Dim("rows", max=16)
    methods = {
        "many": torch.export.export(module, (torch.randn(5, 6),), dynamic_shapes=({0: rows},)),
        "one": torch.export.export(module, (torch.randn(1, 6),)),
    }
    edge = to_edge_transform_and_lower(methods, partitioner=[XnnpackPartitioner()])
    planning = MemoryPlanningPass(share_mutable_buffers=True)
    config = ExecutorchBackendConfig(memory_planning_pass=planning)
    return bytes(edge.to_executorch(config).buffer)


def sizes_of(name: str) -> tuple[bytes, list[tuple[str, tuple[int, ...]]]]:
    """Return a program, and methods with the sizes that they are called with."""
    if name == "rows":
        rows = torch.export.Dim("rows", min=0, max=32)
        counts = (3, 0, 5, 32, 1, 0, 0, 5, 3, 32, 5, 3, 5, 3)
        buffer = lowered(Layers(), torch.randn(3, 6), ({0: rows},))
        return buffer, [("forward", (count, 6)) for count in counts]
    batch = torch.export.Dim("batch", max=4)
    height, width = (torch.export.Dim(side, min=3, max=20) for side in ("height", "width"))
    buffer = lowered(Pixels(), torch.randn(2, 3, 8, 9), ({0: batch, 2: height, 3: width},))
    sizes = [(2, 3, 8, 9), (1, 3, 20, 20), (4, 3, 20, 20), (1, 3, 3, 3), (2, 3, 9, 8)]
    return buffer, [("forward", size) for size in (*sizes, *sizes[::-1], *sizes)]


@pytest.mark.parametrize("name", ["pixels", "rows"])
def test_sizes_in_any_order_give_the_values_of_the_stock_runtime(
    name: str, stock: Stock, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    buffer, called = sizes_of(name)
    path = tmp_path / "model.pte"
    path.write_bytes(buffer)
    calls = [(method, [torch.randn(size)]) for method, size in called]
    method = Runtime().load_program(buffer).load_method("forward", engine="native")
    for (_, given), wanted in zip(calls, stock.calls(path, calls), strict=True):
        torch.testing.assert_close(method.execute(given), wanted, atol=1e-6, rtol=1e-6)


def test_methods_of_changing_sizes_share_their_state() -> None:
    module = Cache().eval()  # the stock package's loader gives each method a state of its own
    program = Runtime().load_program(cached_program(module))
    methods = [program.load_method(name, engine="native") for name in ("many", "one")]
    for rows in (3, 1, 16, 1, 1, 2, 3, 1, 16, 5, 3):
        given = torch.randn(rows, 6)
        with torch.no_grad():
            wanted = list(module(given))
        found = methods[rows == 1].execute([given])
        torch.testing.assert_close(found, wanted, atol=1e-6, rtol=1e-6)


class Pooled(torch.nn.Module):
    """An image made smaller, larger and smaller again."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1, stride=2)
        self.up = torch.nn.ConvTranspose2d(8, 4, 2, stride=2)

    def forward(self, x):
        return torch.nn.functional.max_pool2d(self.up(torch.relu(self.first(x))), 2)


def refuse_often(count: int) -> None:
    """Load and run a program of which a padding leaves nothing of an image, again and again."""

    def padded(graph: XNNGraph) -> bytes:
        nodes = [
            replace(node, xnode_union=replace(form, padding_right=256))
            if isinstance(form := node.xnode_union, Convolution) and form.kind == "ConvTranspose2d"
            else node
            for node in graph.table.xnodes
        ]
        return encode_payload(XNNGraph(replace(graph.table, xnodes=tuple(nodes))))

    batch = torch.export.Dim("batch", max=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "encode", padded)
        buffer = lowered(Pooled(), torch.randn(2, 3, 16, 16), ({0: batch},))
    for _ in range(count):
        method = Runtime().load_program(buffer).load_method("forward", engine="native")
        with pytest.raises(ExecutionError, match="xnn_reshape_runtime: invalid parameter"):
            method.execute([torch.randn(2, 3, 16, 16)])
        del method


def test_shapes_that_the_library_refuses_end_no_process() -> None:
    code = f"from {__name__} import refuse_often; refuse_often(60)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-2000:]
