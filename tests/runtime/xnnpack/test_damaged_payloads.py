"""Payloads that contradict themselves: one error with partition, node and operator; no crash."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
import torch

from runtime import ErrorCode, ExecutionError, Runtime
from runtime.delegates.errors import DelegateError
from schema.flatbuf.spec import UnknownMember
from schema.payloads.xnnpack import model as x
from tests.runtime.xnnpack.float_cases import window
from tests.runtime.xnnpack.payloads import QB4, QC8, QD8, Case, Payload
from tests.runtime.xnnpack.quantized_cases import IN, OUT, Q8, four_bits

pytestmark = pytest.mark.slow


def convolution() -> Case:
    """x -> Convert -> Conv2d -> Convert, per channel."""
    made = Payload()
    given = made.real(1, 6, 6, 4)
    inside = made.value((1, 6, 6, 4), Q8, IN)
    made.node("Convert", input_id=given, output_id=inside, handle=3)
    scales = x.PerChannelQuant((0.01,) * 8, 0)
    numbers = torch.randint(-99, 99, (8, 3, 3, 4), generator=made.random).to(torch.int8).numpy()
    filters = made.value((8, 3, 3, 4), QC8, scales, data=numbers)
    outside = made.value((1, 6, 6, 8), Q8, OUT)
    made.node(
        "Conv2d",
        input1_id=inside,
        filter_id=filters,
        output_id=outside,
        handle=5,
        group_input_channels=4,
        group_output_channels=8,
        groups=1,
        **window(3, 1, 1, (1, 1, 1, 1)),
    )
    made.node("Convert", input_id=outside, output_id=made.result((1, 6, 6, 8)), handle=9)
    return made.case("convolution")


def rows() -> Case:
    """x -> Convert to rows -> FullyConnected with groups of four bits."""
    made = Payload()
    given = made.real(3, 64)
    inside = made.value((3, 64), QD8, x.PerTokenDynamicQuant(1))
    made.node("Convert", input_id=given, output_id=inside, handle=65535)
    filters = four_bits(made, 6, 64, 32)
    out = made.result((3, 6))
    made.node("FullyConnected", input1_id=inside, filter_id=filters, output_id=out)
    return made.case("rows")


Change = Callable[[x.XnnGraphTable], x.XnnGraphTable]


def node(index: int, **changes: Any) -> Change:
    def change(table: x.XnnGraphTable) -> x.XnnGraphTable:
        nodes = list(table.xnodes)
        own = {name: changes[name] for name in changes if name in _OF_NODE}
        form: Any = nodes[index].xnode_union
        rest = {name: changes[name] for name in changes if name not in _OF_NODE}
        nodes[index] = replace(nodes[index], **{"xnode_union": replace(form, **rest), **own})
        return replace(table, xnodes=tuple(nodes))

    return change


_OF_NODE = {"xnode_union", "output_min_max"}


def value(index: int, **changes: Any) -> Change:
    def change(table: x.XnnGraphTable) -> x.XnnGraphTable:
        values = list(table.xvalues)
        old = values[index].xvalue_union
        if isinstance(old, x.QuantizedTensorValue):
            assert old.tensor_value is not None
            params = changes.pop("params", old.quant_params)
            new: Any = x.QuantizedTensorValue(replace(old.tensor_value, **changes), params)
        else:
            assert isinstance(old, x.TensorValue)
            new = replace(old, **changes)
        values[index] = x.XValue(new)
        return replace(table, xvalues=tuple(values))

    return change


def table(**changes: Any) -> Change:
    return lambda old: replace(old, **changes)


NAMED = "0" * 64
# name -> payload, what is damaged, node that is blamed, words of the reason
FAULTS: dict[str, tuple[Callable[[], Case], Change, int | None, str]] = {
    "unknown kind": (
        convolution,
        lambda t: replace(
            t,
            xnodes=(
                t.xnodes[0],
                replace(t.xnodes[1], xnode_union=UnknownMember(99)),
                t.xnodes[2],
            ),
        ),
        1,
        "unknown",
    ),
    "operand that is not there": (convolution, node(1, input1_id=77), 1, "not among the values"),
    "operand that comes later": (convolution, node(1, input1_id=3), 1, "not computed yet"),
    "result that is a constant": (convolution, node(1, output_id=2), 1, "a constant"),
    "result that is made twice": (convolution, node(2, output_id=3), 2, "another node computes"),
    "stride of zero": (convolution, node(1, subsampling_height=0), 1, "subsampling_height is 0"),
    "kernel that the filter is not": (convolution, node(1, kernel_width=5), 1, "its filter is"),
    "groups of nothing": (convolution, node(1, groups=0), 1, "groups is 0"),
    "padding beyond all bounds": (convolution, node(1, padding_top=1 << 31), 1, "padding_top"),
    "bounds the wrong way round": (
        convolution,
        node(1, output_min_max=x.OutputMinMax(2.0, 1.0)),
        1,
        "bounds are 2 and 1",
    ),
    "bounds that are no numbers": (
        convolution,
        node(1, output_min_max=x.OutputMinMax(float("nan"), 1.0)),
        1,
        "bounds are nan",
    ),
    "scale of zero": (convolution, value(1, params=x.PerTensorQuant(0.0, 0)), 0, "the scale 0"),
    "scale that is no number": (
        convolution,
        value(1, params=x.PerTensorQuant(float("nan"), 0)),
        0,
        "the scale nan",
    ),
    "zero point out of range": (
        convolution,
        value(1, params=x.PerTensorQuant(0.1, 300)),
        0,
        "zero point 300",
    ),
    "parameters of another kind": (
        convolution,
        value(1, params=x.PerTokenDynamicQuant(1)),
        0,
        "PerTokenDynamicQuant",
    ),
    "too few scales": (
        convolution,
        value(2, params=x.PerChannelQuant((0.1,) * 7, 0)),
        1,
        "7 scales for 8 channels",
    ),
    "channels in no dimension": (
        convolution,
        value(2, params=x.PerChannelQuant((0.1,) * 8, 9)),
        1,
        "dimension 9",
    ),
    "element type that is not known": (convolution, value(0, datatype=99), 0, "datatype 99"),
    "element type that is packed": (convolution, value(0, datatype=13), 0, "datatype 13"),
    "seven dimensions": (
        convolution,
        value(1, dims=(1,) * 7, num_dims=7),
        0,
        "7 dimensions, at most 6",
    ),
    "more images than it is given": (
        convolution,
        value(3, dims=(1 << 24, 6, 6, 8)),
        1,
        "16777216 images, its operand 1",
    ),
    "more elements than it is given": (
        convolution,
        value(1, dims=(1, 6, 600, 400)),
        0,
        "[1, 6, 600, 400], its operand [1, 6, 6, 4]",
    ),
    "dimensions that do not count": (convolution, value(1, num_dims=3), 0, "4 sizes for 3"),
    "constant that is too short": (
        convolution,
        value(2, dims=(8, 3, 3, 400)),
        1,
        "its constant has 288",
    ),
    "constant that is not there": (
        convolution,
        value(2, constant_buffer_idx=44),
        1,
        "a constant index below",
    ),
    "named data that are missing": (
        convolution,
        table(
            constant_data=(
                x.ConstantDataOffset(named_key=""),
                x.ConstantDataOffset(x.NAMED_OFFSET, 288, NAMED),
            )
        ),
        1,
        "which was not found",
    ),
    "argument beyond the call": (convolution, value(0, external_id=9), 0, "argument 9 of 2"),
    "argument that is given twice": (
        convolution,
        value(4, external_id=0),
        None,
        "both claim argument 0",
    ),
    "value that is there twice": (convolution, value(3, id_out=1), 0, "is defined twice"),
    "more arguments than there can be": (convolution, table(num_externs=5000), None, "at most"),
    "groups of 31": (
        rows,
        value(2, params=x.PerChannelGroupQuant((), 0, 31, (), 2, 12)),
        1,
        "groups of 31",
    ),
    "scales that are too few": (
        rows,
        value(2, params=x.PerChannelGroupQuant((), 0, 32, (), 2, 11)),
        1,
        "11 scales for 12 groups",
    ),
    "rows of no dimensions": (rows, value(1, params=x.PerTokenDynamicQuant(0)), 0, "rows of 0"),
    "rows that no operand has": (rows, value(3, dims=(1 << 31, 6)), 1, "its operands do not"),
    "rows that a node does not take": (rows, value(2, datatype=QB4, constant_buffer_idx=0), 1, ""),
}


def damaged(make: Callable[[], Case], change: Change) -> Case:
    case = make()
    graph = case.graph
    return replace(case, graph=replace(graph, table=change(graph.table)))


def refusal(case: Case, engine: str) -> ExecutionError:
    with pytest.raises(ExecutionError) as raised:
        Runtime.get().load_program(case.program).load_method("forward", engine=engine)
    return raised.value


@pytest.mark.parametrize("name", FAULTS)
def test_damaged_payload_is_refused_with_its_place(name: str) -> None:
    make, change, place, words = FAULTS[name]
    error = refusal(damaged(make, change), "torch")
    assert isinstance(error, DelegateError)
    assert error.code == ErrorCode.DelegateInvalidCompatibility
    assert (error.partition, error.node) == (0, place)
    assert words in error.reason
    assert str(error).count("\n") == 0
    assert (".ptd" in error.remedy) == (name == "named data that are missing")
    if place is not None:
        kind: Any = make().graph.table.xnodes[place].xnode_union
        assert f"partition 0, node {place} (" in str(error)
        assert name == "unknown kind" or kind.kind in str(error)


def test_named_data_with_another_hash_are_refused() -> None:
    data = bytes(288)
    key = hashlib.sha256(data).hexdigest()
    entries = (x.ConstantDataOffset(named_key=""), x.ConstantDataOffset(x.NAMED_OFFSET, 288, key))
    case = damaged(convolution, table(constant_data=entries))
    case.named = {key: data}
    Runtime.get().load_program(case.program).load_method("forward", engine="torch")
    case.named = {key: bytes(287) + b"\1"}
    error = refusal(case, "torch")
    assert isinstance(error, DelegateError)
    assert (error.node, "hash" in error.reason) == (1, True)


def test_payload_that_is_none_is_refused() -> None:
    case = convolution()
    damaged_bytes = case.program.replace(b"XN01", b"XX01")
    with pytest.raises(DelegateError) as raised:
        Runtime.get().load_program(damaged_bytes).load_method("forward", engine="torch")
    assert "XN01" in raised.value.reason


def test_engine_that_is_not_there_is_refused() -> None:
    with pytest.raises(ExecutionError, match="auto, native, torch"):
        Runtime.get().load_program(convolution().program).load_method("forward", engine="gpu")


def test_shape_that_kernels_refuse_names_the_node() -> None:
    case = damaged(convolution, value(0, dims=(1, 6, 6, 4)))
    case.inputs = [torch.zeros(1, 6, 6, 3)]
    method = Runtime.get().load_program(case.program).load_method("forward", engine="torch")
    with pytest.raises(DelegateError) as raised:
        method.execute(case.inputs)
    assert (raised.value.node, raised.value.kind, raised.value.debug_handle) == (1, "Conv2d", 5)
    assert "3 channels" in raised.value.reason


def _numbers(table: x.XnnGraphTable, generator: random.Random) -> x.XnnGraphTable:
    """Return a table with one number of one node or value replaced."""
    bad = generator.choice([0, 1, 2, 3, 5, 7, 255, 65536, (1 << 31) - 1, (1 << 32) - 1])
    if generator.random() < 0.6:
        index = generator.randrange(len(table.xnodes))
        form: Any = table.xnodes[index].xnode_union
        names = [f.name for f in fields(form) if isinstance(getattr(form, f.name), int)]
        return node(index, **{generator.choice(names): bad})(table)
    index = generator.randrange(len(table.xvalues))
    names = ["external_id", "flags", "id_out", "constant_buffer_idx", "num_dims"]
    name = generator.choice([*names, "dims", "datatype"])
    if name == "dims":
        tensor = table.xvalues[index].tensor
        assert tensor is not None
        sizes = list(tensor.dims)
        sizes[generator.randrange(len(sizes))] = bad
        return value(index, dims=tuple(sizes))(table)
    return value(index, **{name: bad % 16 if name == "datatype" else bad})(table)


def sweep(engine: str, count: int) -> dict[str, int]:
    """Run damaged payloads; return how many ran and how many the backend refused."""
    generator = random.Random(5)
    runtime = Runtime()
    found = {"ran": 0, "refused": 0}
    for number in range(count):
        case = damaged((convolution, rows)[number % 2], lambda t: _numbers(t, generator))
        program = runtime.load_program(case.program)
        try:
            program.load_method("forward", engine=engine, isolate=True).execute(case.inputs)
            found["ran"] += 1
        except ExecutionError as error:
            found["refused"] += error.operator == "XnnpackBackend"
        program.unload_method("forward")
    return found


def test_sweep_of_damaged_numbers_ends_in_results_or_errors() -> None:
    found = sweep("torch", 150)
    assert sum(found.values()) == 150
    assert min(found.values()) > 10


@pytest.mark.interop
def test_sweep_of_damaged_numbers_takes_down_no_process_but_the_kernels() -> None:
    found = sweep("native", 100)
    assert sum(found.values()) == 100
    case = convolution()
    again = Runtime.get().load_program(case.program).load_method("forward", engine="native")
    assert len(again.execute(case.inputs)) == 1


@pytest.mark.interop
@pytest.mark.parametrize("isolate", [False, True])
def test_sizes_that_no_memory_is_enough_for_are_refused_each_time(isolate: bool) -> None:
    tall = (1, (1 << 32) - 1, 6000, 4)  # 400 TB
    case = damaged(convolution, lambda old: value(0, dims=tall)(value(1, dims=tall)(old)))
    program = Runtime.get().load_program(case.program)
    method = program.load_method("forward", engine="native", isolate=isolate)
    for _ in range(3):
        with pytest.raises(DelegateError, match="out of memory") as raised:
            method.execute(case.inputs)
        assert raised.value.code == ErrorCode.DelegateMemoryAllocationFailed
        assert "smaller inputs" in raised.value.remedy


def test_a_function_from_one_dtype_to_another_is_refused() -> None:
    error = refusal(damaged(convolution, node(2, kind="Sigmoid")), "torch")
    assert "node 2 (Sigmoid)" in str(error)
    assert "its result is float32, its operand qint8" in error.reason
