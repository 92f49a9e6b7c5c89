"""FLOPs and bytes of operators, beside torch's own counter."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import flop_registry

from compiler import to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from inspector.compare.sessions import compare_sessions
from inspector.compare.weighing import SAME, weigh
from inspector.files.load import load_session
from inspector.files.machine import this_machine
from inspector.jobs.executing import RunJob
from inspector.join.node_index import base_operator
from inspector.profile.operator_rows import OperatorRow, operator_rows
from inspector.roofline import rows as rows_module
from inspector.roofline.calibration import COPY, Calibration, Ceiling
from inspector.roofline.method_work import MethodWork, method_work, operator_rule
from inspector.roofline.payload_sizes import RULES as SIZE_RULES
from inspector.roofline.payload_sizes import with_sizes
from inspector.roofline.rows import (
    COARSE,
    COUNTED,
    Limit,
    Limits,
    RooflineRow,
    known_limits,
    measured,
    only_work,
    roofline,
    rows_at_limits,
)
from inspector.roofline.work import NO_WORK, Work, node_work, unknown
from inspector.tables.grouping import total_text
from inspector.tables.methods import method_json
from inspector.tables.operators import operators
from inspector.tables.query import Query, QueryError, column_index, select
from inspector.tables.roofline import WORK_TITLES, work_columns
from inspector.tables.selection import AUTOMATIC
from inspector.tables.table import Table
from inspector.units import as_number
from inspector.worker.run_job import run_into
from inspector.worker.tasks import Task
from schema.graph import (
    Argument,
    Graph,
    GraphNode,
    GraphValue,
    NodeKind,
    QuantizationParameters,
    TensorMeta,
)
from schema.program.model import JumpFalseCall
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


@pytest.mark.slow
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


def test_more_than_the_measured_peak_is_no_share() -> None:
    found = measured(_row(20_000_000, 1000, 1e6), _limits())
    assert (found.share, found.words) == (None, "above the measured peak")


def test_without_a_calibration_there_is_no_share() -> None:
    found = measured(_row(1000, 1000, 1e6), Limits())
    assert (found.share, found.bound) == (None, Limit.UNKNOWN)
    assert found.flops_per_s == pytest.approx(1e6)


def _column(table: Table, name: str) -> list[object]:
    return [as_number(one) for one in table.columns[column_index(table, name)].values]


@pytest.mark.parametrize("name", ["runs/convnet_xnnpack", "corpus/v1.5.1/tinygpt_portable"])
def test_operators_have_the_numbers_of_the_roofline(name: str) -> None:
    one = session(DATA / name)
    short = operators(one, "forward", AUTOMATIC)
    assert not {column.title for column in short.columns} & {*WORK_TITLES}
    table = short.complete()
    found = roofline(one, "forward", known_limits(one)).rows
    works = iter(found)
    rows = [next(works) if row.kind in COUNTED else None for row in operator_rows(one, "forward")]
    assert next(works, None) is None
    assert _column(table, "flops") == [0 if row is None else row.work.flops for row in rows]
    assert _column(table, "bytes") == [0 if row is None else row.work.nbytes for row in rows]
    assert _column(table, "compute_rate") == [row and row.flops_per_s for row in rows]
    means = zip(rows, _column(table, "mean"), strict=True)  # over the steady runs
    assert all(row.time_ns == mean for row, mean in means if row is not None)
    (event,) = [row for row in found if row.event == rows[0].event]
    events = [row for row in operator_rows(one, "forward") if row.event == event.event]
    assert rows_at_limits(one, "forward", events, known_limits(one)) == [event]


def test_columns_of_work_are_made_where_a_query_names_them() -> None:
    one = session(DATA / "runs/convnet_xnnpack")
    table = operators(one, "forward", AUTOMATIC)
    titles = {column.title for column in select(table, Query(sort=("mean:desc",))).table.columns}
    assert "FLOPs" not in titles
    for query in (
        Query(sort=("flops:desc",)),
        Query(filter="FLOPs>100k"),
        Query(columns=("bytes",)),
    ):
        assert {"FLOPs", "bytes"} & {one.title for one in select(table, query).table.columns}
    with pytest.raises(QueryError, match="flops, bytes, flops_a_byte"):
        select(table, Query(columns=("nothing",)))


def test_unknown_work_is_missing_with_its_reason_also_in_sums() -> None:
    rows = [only_work(Work(6, 2, 2)), only_work(unknown("no rule for x")), only_work(NO_WORK)]
    flops, *_, limit = work_columns(rows, Limits(), AUTOMATIC)
    assert [flops.cell(row) for row in range(3)] == ["6", "missing", "0"]
    assert limit.cell(1) == "no rule for x"
    assert total_text(flops, np.array([0, 2])) == "6"
    assert total_text(flops, np.array([0, 1])) == ""


def test_event_that_is_no_node_leaves_the_work_of_its_method_known(monkeypatch) -> None:
    one = session(DATA / "runs/convnet_xnnpack")
    whole = method_work(one, "forward").total
    assert whole.flops
    work_of = rows_module._work_of
    unmatched: list[str] = []

    def without_one(work: MethodWork, row: OperatorRow) -> Work:
        if row.link.payload_nodes and unmatched in ([], [row.label]):
            unmatched[:] = [row.label]
            return unknown("not matched to a node")
        return work_of(work, row)

    monkeypatch.setattr(rows_module, "_work_of", without_one)
    found = roofline(one, "forward", Limits())
    assert (unmatched[0], "not matched to a node") in found.unknown
    assert found.method.work == whole  # each instruction ran once
    monkeypatch.setattr(rows_module, "instructions", lambda _plan: [(0, 0, _Jump)])
    assert roofline(one, "forward", Limits()).method.work.flops is None


class _Jump:
    instr_args = JumpFalseCall(0, 0)


def test_without_calibration_the_limit_says_so() -> None:
    one = session(DATA / "runs/convnet_xnnpack")
    rows = roofline(one, "forward", Limits()).rows
    *_, share, limit = work_columns(rows, Limits(), AUTOMATIC)
    timed = [at for at, row in enumerate(rows) if row.time_ns and not row.is_coarse]
    assert {limit.cell(at) for at in timed} == {"not calibrated"}
    coarse = [at for at, row in enumerate(rows) if row.is_coarse and not row.work.reason]
    assert {limit.cell(at) for at in coarse} == {COARSE}
    assert {rows[at].flops_per_s for at in coarse} == {None}
    assert {share.cell(at) for at in timed} == {"missing"}
    assert "--calibrate" in limit.exact(limit.values[timed[0]])


def test_nodes_without_a_trace_have_work_and_a_trace_alone_has_none() -> None:
    one = session(DATA / "runs/convnet_xnnpack/model.pte")
    table = operators(one, "forward", AUTOMATIC).complete()
    assert sum(_column(table, "flops")) == method_work(one, "forward").total.flops
    assert method_json(one, "forward")["work"]["flops"] == method_work(one, "forward").total.flops
    alone = session(DATA / "runs/convnet_xnnpack/run.etdp")
    assert method_work(alone, "forward").total.flops is None


def test_comparison_says_what_a_variant_does_more() -> None:
    pair = [session(DATA / "runs" / name) for name in ("convnet_portable", "convnet_xnnpack")]
    found = compare_sessions(pair)
    work = weigh(found, 1)[-1]
    assert (work.area, work.word) == ("work", "better")
    assert work.text == "5.3 % fewer FLOPs and 5.3 % fewer bytes moved"
    (flops,) = [one for one in found.summary if one.what == "FLOPs"]
    assert flops.values == tuple(method_work(one, "forward").total.flops for one in pair)
    same = weigh(compare_sessions([pair[0], pair[0]]), 1)[-1]
    assert (same.word, same.text) == (SAME, "the same FLOPs and the same bytes moved")


class _Words(torch.nn.Module):
    """Attention, a convolution and an activation over any number of words."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
        self.mix = torch.nn.Conv1d(8, 6, 3, padding=1)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        shape = (1, words.shape[1], 2, 4)
        query, key = (one(words).view(shape).transpose(1, 2) for one in (self.query, self.key))
        scores = torch.softmax(query @ key.transpose(2, 3), -1) @ key
        joined = torch.cat((scores.transpose(1, 2).flatten(2), words), 1)
        return torch.relu(self.mix(joined.transpose(1, 2)))


_LONGEST = 32


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dynamic program whose payloads were written with the sizes of an example, and a run."""
    folder = tmp_path_factory.mktemp("words")
    length = torch.export.Dim("length", min=2, max=_LONGEST)
    given = (torch.ones(1, 7, 8),)
    exported = torch.export.export(_Words().eval(), given, dynamic_shapes=({1: length},))
    edge = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
    (folder / "model.pte").write_bytes(edge.to_executorch().buffer)
    torch.save([torch.ones(1, 11, 8)], folder / "in.pt")
    (folder / "run").mkdir()
    job = RunJob(str(folder / "model.pte"), inputs=str(folder / "in.pt"), runs=1, warmup=0)
    run_into(job, Task(folder / "run", lambda *_, **__: None))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("ran", [False, True])
def test_payload_of_an_example_counts_with_the_sizes_of_the_run_else_with_bounds(
    words: Path, ran: bool
) -> None:
    files = [words / "model.pte", *([words / "run"] if ran else [])]
    found = method_work(load_session(files), "forward")
    assert not found.unknown, found.unknown
    wanted = sum(counted(_Words(), (torch.ones(1, 11 if ran else _LONGEST, 8),)).values())
    matmuls = sum(one.work.flops or 0 for one in found.operators if one.label.startswith(MATMULS))
    assert matmuls == wanted
    assert found.total.bounded is not ran
    rows = roofline(load_session(files), "forward", Limits(at_bounds=False)).rows
    assert any(row.bytes_per_s is not None for row in rows) is ran


def test_payload_whose_sizes_do_not_follow_is_missing() -> None:
    """A rule that does not find the sizes of the example may not find others."""
    shape = GraphNode(
        "shape", NodeKind.CALL, "StaticReshape", (Argument("input", ("x",)),), ("y",),
        attributes={"new_shape": (2, 2)},
    )  # fmt: skip
    values = {name: GraphValue(name, TensorMeta(6, (4,))) for name in "xy"}
    graph = Graph("payload", (shape,), values, ("x",), ("y",))
    assert with_sizes(graph, [(4,)], SIZE_RULES) is not None
    assert with_sizes(graph, [(6,)], SIZE_RULES) is None
    right = replace(graph, values={**values, "y": GraphValue("y", TensorMeta(6, (2, 2)))})
    assert with_sizes(right, [(6,)], SIZE_RULES) is None


@pytest.mark.parametrize("sizes", [{"0": [1, 99, 8]}, {"7000": [1]}, {"0": [1, -1, 8]}, {"0": [3]}])
def test_sizes_that_the_program_cannot_have_are_not_used(
    words: Path, tmp_path: Path, sizes: dict[str, list[int]]
) -> None:
    shutil.copytree(words / "run", tmp_path / "run")
    report = json.loads((tmp_path / "run" / "run.json").read_text())
    (tmp_path / "run" / "run.json").write_text(json.dumps({**report, "sizes": sizes}))
    found = method_work(load_session([words / "model.pte", tmp_path / "run"]), "forward")
    assert found.total.bounded


def test_no_rate_of_sizes_that_the_runs_may_not_have_had() -> None:
    row = replace(only_work(Work(64, 32, 32, bounded=True)), time_ns=1000.0)
    known = measured(row, Limits())
    assert known.flops_per_s == pytest.approx(64e6)
    unknown_sizes = measured(row, Limits(at_bounds=False))
    assert (unknown_sizes.flops_per_s, unknown_sizes.bytes_per_s) == (None, None)
    assert unknown_sizes.without_rate.endswith("no rate")
    assert measured(replace(row, work=Work(64, 32, 32)), Limits(at_bounds=False)).flops_per_s
