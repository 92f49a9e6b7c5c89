"""FLOPs and bytes of operators, beside torch's own counter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import flop_registry

from compiler.backends.xnnpack import XnnpackPartitioner
from inspector.files.machine import this_machine
from inspector.join.node_index import base_operator
from inspector.roofline.calibration import COPY, Calibration, Ceiling
from inspector.roofline.method_work import MethodWork, method_work, operator_rule
from inspector.roofline.rows import Limit, Limits, RooflineRow, measured, roofline
from inspector.roofline.work import Work, node_work
from schema.graph import (
    Argument,
    GraphNode,
    GraphValue,
    NodeKind,
    QuantizationParameters,
    TensorMeta,
)
from tests.inspector.roofline_models import MODELS, counted, made, session_of
from tests.inspector.sessions import DATA, folders, label, session

# The compiler may join a product and a sum, or part them; both do the same multiplications.
FAMILIES = {"mm": "mm", "addmm": "mm", "bmm": "bmm", "baddbmm": "bmm", "convolution": "convolution"}
MATMULS = ("FullyConnected", "Conv2d", "DepthwiseConv2d", "ConvTranspose2d", "BatchMatrixMultiply")


def _families(flops: Mapping[str, int]) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, count in flops.items():
        if name in FAMILIES:
            found[FAMILIES[name]] += count
    return found


def _by_operator(work: MethodWork) -> Counter[str]:
    found: Counter[str] = Counter()
    for one in work.operators:
        found[base_operator(one.label).removeprefix("aten::")] += one.work.flops or 0
    return found


@pytest.mark.parametrize("name", MODELS)
def test_flops_of_operators_are_those_of_torchs_counter(name: str, tmp_path: Path) -> None:
    model = made(name)
    work = method_work(session_of(model, tmp_path), "forward")
    assert work.unknown == ()
    assert _families(_by_operator(work)) == _families(counted(*model))


@pytest.mark.parametrize("name", ["depthwise", "transposed", "mlp", "vision"])
def test_flops_of_payload_nodes_are_those_of_torchs_counter(name: str, tmp_path: Path) -> None:
    model = made(name)
    work = method_work(session_of(model, tmp_path, XnnpackPartitioner()), "forward")
    assert work.unknown == ()
    inside = [one for one in work.operators if one.label.rpartition("_")[0] in MATMULS]
    assert inside
    outside = _families(_by_operator(work)).total()
    assert sum(one.work.flops or 0 for one in inside) + outside == sum(counted(*model).values())


def _work(target: str, shapes: list[Any], out: tuple[int, ...], dtype: int = 6) -> Work:
    """Return the work of a call; a tuple is a tensor's shape, a list a literal."""
    values = {"out": GraphValue("out", TensorMeta(dtype, out))}
    args: list[Argument] = []
    for place, shape in enumerate(shapes):
        if isinstance(shape, tuple):
            values[f"v{place}"] = GraphValue(f"v{place}", TensorMeta(dtype, shape))
            args.append(Argument("", (f"v{place}",)))
        else:
            args.append(Argument("", (), shape))
    node = GraphNode("n", NodeKind.CALL, target, tuple(args), ("out",))
    return node_work(node, values, operator_rule(target))


@pytest.mark.parametrize(
    ("name", "shapes", "out"),
    [
        ("mm", [(3, 4), (4, 5)], (3, 5)),
        ("addmm", [(5,), (3, 4), (4, 5)], (3, 5)),
        ("bmm", [(2, 3, 4), (2, 4, 5)], (2, 3, 5)),
        ("baddbmm", [(2, 3, 5), (2, 3, 4), (2, 4, 5)], (2, 3, 5)),
        ("mm", [(0, 4), (4, 5)], (0, 5)),
        (
            "_scaled_dot_product_flash_attention",
            [(2, 4, 5, 8), (2, 2, 7, 8), (2, 2, 7, 6)],
            (2, 4, 5, 6),
        ),
        (
            "convolution_backward",
            [
                *[(1, 4, 5, 5), (1, 3, 7, 7), (4, 3, 3, 3), [4]],
                *[[1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, False]],
            ],
            (1, 3, 7, 7),
        ),
    ],
)
def test_each_operator_that_torch_counts_has_its_flops(
    name: str, shapes: list[Any], out: tuple[int, ...]
) -> None:
    formula = flop_registry[getattr(torch.ops.aten, name)]
    arguments = [torch.empty(one) if isinstance(one, tuple) else one for one in shapes]
    results = (torch.empty(out), torch.empty((4, 3, 3, 3)))
    result = results if name == "convolution_backward" else results[0]
    assert _work(f"aten::{name}.out", shapes, out).flops == formula(*arguments, out_val=result)


def test_every_core_operator_has_a_rule() -> None:
    """All that torch has, not only those that this process has used."""
    every = (name.partition("::") for name in torch._C._dispatch_get_all_op_names())
    core = {
        name
        for name in {rest.partition(".")[0] for space, _, rest in every if space == "aten"}
        for packet in [getattr(torch.ops.aten, name)]
        if any(torch.Tag.core in getattr(packet, one).tags for one in packet.overloads())
    }
    assert len(core) > 150
    assert sorted(name for name in core if operator_rule(f"aten.{name}.default") is None) == []


@pytest.mark.parametrize(
    ("target", "shapes", "out", "read", "written"),
    [
        ("aten::add.out", [(4, 1), (1, 8)], (4, 8), 48, 128),  # broadcast operands once
        ("aten.view.default", [(4, 8)], (32,), 0, 0),
        ("aten::view_copy.out", [(4, 8)], (32,), 128, 128),
        ("aten::slice_copy.Tensor_out", [(100, 8)], (2, 8), 64, 64),
        ("aten::embedding.out", [(1000, 8), (3,)], (3, 8), 12 + 96, 96),
        ("aten::full.out", [[2, 2], 1.0], (2, 2), 0, 16),
        ("aten::add.out", [(0, 8), (1, 8)], (0, 8), 32, 0),
    ],
)
def test_bytes_are_those_really_touched(
    target: str, shapes: list[Any], out: tuple[int, ...], read: int, written: int
) -> None:
    found = _work(target, shapes, out)
    assert (found.read, found.written) == (read, written)


def test_one_operand_given_twice_is_read_once() -> None:
    values = {name: GraphValue(name, TensorMeta(6, (8,))) for name in ("x", "y")}
    arguments = (Argument("", ("x",)), Argument("", ("x",)))
    node = GraphNode("n", NodeKind.CALL, "aten::mul.out", arguments, ("y",))
    assert node_work(node, values, operator_rule(node.target)).read == 32


def test_what_is_unknown_is_missing_and_never_zero() -> None:
    strange = _work("mine::strange.out", [(4,)], (4,))
    assert (strange.flops, strange.nbytes) == (None, None)
    assert strange.reason == "no rule for mine::strange.out"
    meta = TensorMeta(6, (4,), dynamism=2)
    values = {"x": GraphValue("x", meta), "y": GraphValue("y", meta)}
    node = GraphNode("n", NodeKind.CALL, "aten::abs.out", (Argument("", ("x",)),), ("y",))
    assert node_work(node, values, operator_rule(node.target)).flops is None
    symbols = {name: GraphValue(name, TensorMeta(6, ("s0", 4))) for name in ("x", "y")}
    found = node_work(node, symbols, operator_rule(node.target))
    assert found.reason == "unknown size s0 of x: dynamic without a bound"


def test_upper_bounds_of_dynamic_sizes_are_said() -> None:
    meta = TensorMeta(6, (4,), dynamism=1)
    values = {"x": GraphValue("x", meta), "y": GraphValue("y", meta)}
    node = GraphNode("n", NodeKind.CALL, "aten::abs.out", (Argument("", ("x",)),), ("y",))
    found = node_work(node, values, operator_rule(node.target))
    assert (found.flops, found.bounded) == (4, True)


def test_packed_weights_count_their_bytes_and_scales() -> None:
    from inspector.roofline.payload_nodes import RULES

    groups = QuantizationParameters("per_group", axis=0, group_size=32)
    values = {
        "x": GraphValue("x", TensorMeta(1, (1, 64), type_name="qdint8")),
        "w": GraphValue(
            "w",
            TensorMeta(-1, (16, 64), type_name="qbint4", quantization=groups),
            constant="w",
            constant_bytes=512,
        ),
        "y": GraphValue("y", TensorMeta(6, (1, 16))),
    }
    arguments = (Argument("input", ("x",)), Argument("filter", ("w",)), Argument("bias"))
    node = GraphNode("n", NodeKind.CALL, "FullyConnected", arguments, ("y",))
    found = node_work(node, values, RULES["FullyConnected"])
    assert (found.flops, found.dtype) == (2 * 16 * 64, "int8")
    assert found.read == 64 + 512 + 2 * 16 * 2


@pytest.mark.parametrize("folder", folders(), ids=label)
def test_recorded_and_stock_programs_have_no_unknown_operator(folder: Path) -> None:
    one = session(folder)
    for method in one.methods:
        found = roofline(one, method, Limits())
        assert found.unknown == ()
        steps = [row.instruction for row in found.rows if row.passes == 1]
        if set(steps) == set(method_work(one, method).by_step) and len(steps) == len(found.rows):
            assert found.method.work.flops == method_work(one, method).total.flops


def test_a_node_with_two_events_is_counted_once() -> None:
    one = session(DATA / "corpus/v1.5.1/convnet_xnnpack")
    rows = {row.label: row for row in roofline(one, "forward", Limits()).rows}
    assert rows["Clamp (NC) #1"].work.flops == 0
    assert rows["Clamp (NC) #1"].work.reason == "counted with Add (ND) #1"


def _row(flops: int, moved: int, time_ns: float) -> RooflineRow:
    work = Work(flops, moved, 0, dtype="float32")
    return RooflineRow("op", "", "", "", 0, 0, "", None, 1, work, time_ns, None)


def _limits() -> Limits:
    ceilings = [Ceiling("float32", 1, 1e10, 9e9, 11e9, 9), Ceiling(COPY, 1, 1e9, 9e8, 11e8, 9)]
    calibration = Calibration(
        this_machine(), "2", "2026-01-01T00:00:00+00:00", (ceilings[0],), (ceilings[1],)
    )
    return Limits(calibration, 1)


@pytest.mark.parametrize(
    ("row", "share", "words"),
    [
        (_row(8_000_000, 1000, 1e6), 0.8, "compute-bound"),
        (_row(1000, 900_000, 1e6), 0.9, "memory-bound"),
        (_row(100, 100, 800.0), 0.125, "overhead-bound: 0.8 µs a call"),
        (_row(1_000_000, 1000, 1e6), 0.1, "near no limit"),
        (_row(1_000_000, 5_000_000, 1e6), 0.1, "near no limit"),  # faster than memory: a cache
    ],
)
def test_the_limit_follows_from_both_shares(row: RooflineRow, share: float, words: str) -> None:
    found = measured(row, _limits())
    assert found.share == pytest.approx(share)
    assert found.words == words


def test_without_a_calibration_there_is_no_share() -> None:
    found = measured(_row(1000, 1000, 1e6), Limits())
    assert (found.share, found.bound) == (None, Limit.UNKNOWN)
    assert found.flops_per_s == pytest.approx(1e6)
