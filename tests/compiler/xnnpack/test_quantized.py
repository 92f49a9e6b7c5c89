"""Quantized programs on the stock runtime: as PT2E computes them, and as the stock compiler's."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from compiler import to_edge_transform_and_lower
from compiler.backends.xnnpack import ConfigPrecisionType, XnnpackPartitioner
from inspector.files.load import load_session
from schema.etrecord.parts.verdicts import NodeOutcome
from schema.payloads.xnnpack import XNNGraph, decode
from schema.payloads.xnnpack.graph import node_kind
from tests.compiler.stock import Stock
from tests.compiler.xnnpack import quantizing as q

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
OUTSIDE = {"plain_between": {"aten.cumsum.default"}}


def lowered(program: Any, **options: Any) -> Any:
    return to_edge_transform_and_lower(program, partitioner=XnnpackPartitioner(**options))


def left(manager: Any) -> set[str]:
    verdicts = manager.verdicts["forward"]
    return {v.operator for v in verdicts if v.outcome is not NodeOutcome.DELEGATED}


def payloads(manager: Any) -> list[XNNGraph]:
    children = manager.exported_program().graph_module.named_children()
    return [decode(module.processed_bytes) for _, module in children]


def kinds(manager: Any) -> Counter[str]:
    return Counter(node_kind(node) for graph in payloads(manager) for node in graph.table.xnodes)


def datatypes(manager: Any) -> set[int]:
    values = [v.xvalue_union for graph in payloads(manager) for v in graph.table.xvalues]
    tensors = [getattr(value, "tensor_value", value) for value in values]
    return {tensor.datatype for tensor in tensors}


@pytest.mark.interop
@pytest.mark.parametrize("config", [q.STATIC, q.PER_TENSOR], ids=["channel", "tensor"])
def test_static_programs_differ_from_the_reference_by_one_quantum(
    config: Any, stock: Stock
) -> None:
    programs = {n: q.quantized(m, inputs, config) for n, (m, inputs) in q.CASES.items()}
    managers = {name: lowered(program) for name, program in programs.items()}
    assert {n: left(m) for n, m in managers.items() if left(m)} == OUTSIDE
    runs = [(m.to_executorch().buffer, q.CASES[name][1]) for name, m in managers.items()]
    for (name, program), found in zip(programs.items(), stock.run_each(runs), strict=True):
        assert not isinstance(found, str), (name, found)
        (wanted,) = q.reference(program, q.CASES[name][1])
        steps = 2.01 if name in ("net", "plain_between") else 1.01  # several in a row
        assert (found[0] - wanted).abs().max() <= steps * q.quantum(program) + 1e-6, name


@pytest.mark.interop
def test_programs_compute_what_the_stock_compilers_do_bit_by_bit(
    stock: Stock, tmp_path: Path
) -> None:
    made = {
        "net": q.quantized(*q.CASES["net"], q.STATIC),
        "linear": q.quantized(*q.CASES["linear"], q.DYNAMIC),
        "qat": q.trained(*q.CASES["conv"], q.STATIC),
    }
    for name, program in made.items():
        inputs = q.CASES.get(name, q.CASES["conv"])[1]
        path, theirs = tmp_path / f"{name}.pt2", tmp_path / f"{name}.pte"
        torch.export.save(program, path)
        answer = stock.ask("lowered", exported=str(path), program=str(theirs))
        assert "error" not in answer, answer
        manager = lowered(program)
        ours = manager.to_executorch().buffer
        assert len(left(manager)) <= len(answer["left"]), name
        assert len(ours) <= theirs.stat().st_size, name
        found = stock.run_each([(ours, inputs), (theirs.read_bytes(), inputs)])
        assert torch.equal(found[0][0], found[1][0]), name


@pytest.mark.interop
def test_dynamic_layers_are_near_the_reference(stock: Stock) -> None:
    cases = {
        "linear": q.CASES["linear"],
        "conv": q.CASES["conv"],
        **{name: q.CASES[name] for name in ("conv_same", "conv_transposed")},
        "rows": q.CASES["linear_rows"],
        "shared": (Shared(), (q.ROW,)),
    }
    programs = {name: q.quantized(*case, q.DYNAMIC) for name, case in cases.items()}
    managers = {name: lowered(program) for name, program in programs.items()}
    assert not any(map(left, managers.values()))
    assert all({9, 6} <= datatypes(manager) for manager in managers.values())
    assert kinds(managers["shared"])["Convert"] == 1
    runs = [(m.to_executorch().buffer, cases[name][1]) for name, m in managers.items()]
    for name, found in zip(cases, stock.run_each(runs), strict=True):
        assert not isinstance(found, str), (name, found)
        (wanted,) = q.reference(programs[name], cases[name][1])
        # The kernels quantize each row by itself, the reference the whole tensor.
        assert (found[0] - wanted).abs().max() <= 0.03 * wanted.abs().max(), name


class Shared(nn.Module):
    """Two layers that read the same value."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(32, 8), nn.Linear(32, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.first(x) + self.second(x)


@pytest.mark.interop
def test_weights_of_torchao_are_written_as_whole_numbers(stock: Stock) -> None:
    from torchao.quantization import (
        Int8DynamicActivationIntxWeightConfig,
        Int8WeightOnlyConfig,
        IntxWeightOnlyConfig,
        quantize_,
    )
    from torchao.quantization.granularity import PerAxis, PerGroup

    dynamic, alone = Int8DynamicActivationIntxWeightConfig, IntxWeightOnlyConfig
    four, eight = torch.int4, torch.int8
    cases = [
        (dynamic(weight_dtype=four, weight_granularity=PerGroup(32)), {9, 10}, 1e-2),
        (dynamic(weight_dtype=four, weight_granularity=PerAxis(0)), {9, 8}, 1e-4),
        (dynamic(weight_dtype=eight, weight_granularity=PerAxis(0)), {9, 6}, 1e-4),
        (alone(weight_dtype=eight, granularity=PerAxis(0)), {6}, 1e-5),
        (alone(weight_dtype=four, granularity=PerAxis(0)), {8}, 1e-5),
        (alone(weight_dtype=four, granularity=PerGroup(32)), {1}, 1e-5),
        (Int8WeightOnlyConfig(), {6}, 1e-5),
    ]
    runs, wanted = [], []
    x = (torch.randn(3, 64),)
    for config, types, _ in cases:
        module = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).eval()
        quantize_(module, config)
        manager = lowered(torch.export.export(module, x))
        assert not left(manager)
        assert types <= datatypes(manager), config
        runs.append((manager.to_executorch().buffer, x))
        wanted.append(module(*x).detach())
    for (config, _, tolerance), found, right in zip(
        cases, stock.run_each(runs), wanted, strict=True
    ):
        assert not isinstance(found, str), found
        assert (found[0] - right).abs().max() <= tolerance * right.abs().max(), config


_REBUILDING = """
import sys, torch
from inspector import parse_etrecord
record = parse_etrecord(sys.argv[1])
x, wanted = torch.load(sys.argv[2])
for program in (record.exported_program, record.edge_dialect_program):
    found = program.module()(x)
    assert (found - wanted).abs().max() <= 0.02 * wanted.abs().max(), (found, wanted)
"""


@pytest.mark.parametrize("name", ["Int8DynamicActivationIntxWeightConfig", "Int8WeightOnlyConfig"])
def test_record_of_torchao_weights_is_rebuilt_where_nobody_imported_torchao(
    tmp_path: Path, name: str
) -> None:
    from torchao import quantization

    module, x = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).eval(), torch.ones(64)
    quantization.quantize_(module, getattr(quantization, name)())
    exported = torch.export.export(module, (x[None],))
    manager = to_edge_transform_and_lower(
        exported, partitioner=XnnpackPartitioner(), generate_etrecord=True
    )
    delegates = manager.to_executorch().get_etrecord()
    delegates.save(tmp_path / "model.etrecord")
    torch.save((x[None], module(x[None]).detach()), tmp_path / "x.pt")
    command = [sys.executable, "-c", _REBUILDING, tmp_path / "model.etrecord", tmp_path / "x.pt"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    handles = manager_maps(tmp_path / "model.etrecord")
    # what a node makes is what the last of its operators makes
    assert handles
    assert all(list(found) == sorted(found) for found in handles)


def manager_maps(path: Path) -> list[tuple[int, ...]]:
    record = load_session([path], strict=True).record
    assert record is not None
    maps = record.delegate_map["forward"].values()
    return [tuple(found) for each in maps for found in each.handles.values()]


@pytest.mark.interop
def test_weight_only_layers_equal_the_reference(stock: Stock) -> None:
    case = q.CASES["linear"]
    program = q.quantized(*case, q.WEIGHTS)
    manager = lowered(program)
    assert not left(manager)
    assert 6 in datatypes(manager)
    ((found,),) = stock.run_each([(manager.to_executorch().buffer, case[1])])
    torch.testing.assert_close(found, q.reference(program, case[1])[0], rtol=1e-5, atol=1e-6)


@pytest.mark.interop
def test_switched_off_precisions_run_on_plain_numbers_or_not_at_all(stock: Stock) -> None:
    case = q.CASES["conv"]
    program = q.quantized(*case, q.STATIC)
    plain = lowered(program, config_precisions=ConfigPrecisionType.FP32)
    assert 3 not in datatypes(plain)
    assert "aten.convolution.default" not in left(plain)
    none = lowered(program, config_precisions=ConfigPrecisionType.DYNAMIC_QUANT)
    reasons = [v.reason for v in none.verdicts["forward"] if "convolution" in v.operator]
    assert reasons == ["aten.convolution.default: it runs in STATIC_QUANT, which is disabled"]
    ((found,),) = stock.run(plain.to_executorch().buffer, [("forward", case[1])])
    (wanted,) = q.reference(program, case[1])
    assert (found - wanted).abs().max() <= 1.01 * q.quantum(program)


def test_every_operator_of_a_quantized_program_is_in_the_map_once() -> None:
    for config in (q.STATIC, q.DYNAMIC):
        manager = lowered(q.quantized(*q.CASES["net"], config))
        for _, module in manager.exported_program().graph_module.named_children():
            found = [h for each in module.meta["debug_handle_map"].values() for h in each]
            assert len(found) == len(set(found))
            inside = module.original_module.graph.nodes
            calls = {n.meta.get("debug_handle") for n in inside if n.op == "call_function"}
            assert set(found) <= calls
