"""The quantizer: what it annotates, overrides, and observers that never saw data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from compiler.quantize.calibration import (
    CalibrationError,
    calibrate,
    inputs_from_file,
    require_observed,
    unobserved,
)
from compiler.quantize.program import quantize_program
from tests.compiler.xnnpack import quantizing as q

pytestmark = pytest.mark.slow


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(32, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block, self.head = Block(), nn.Linear(32, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.block(x) + 1)


def layers_quantized(chosen: q.XNNPACKQuantizer) -> dict[str, str]:
    """Return how the weight of each linear layer, and what a sum reads, is quantized."""
    program = q.quantized(Net(), (q.ROW,), chosen)
    found: dict[str, str] = {}
    names = iter(("block", "head"))
    for node in program.graph.nodes:
        if node.target is torch.ops.aten.linear.default:
            weight: Any = node.args[1]
            found[next(names)] = str(weight.target).removeprefix("quantized_decomposed.")
        elif node.target is torch.ops.aten.add.Tensor:
            found["sum"] = str(node.args[0].target).removeprefix("quantized_decomposed.")
    return found


CHANNEL, TENSOR = "dequantize_per_channel.default", "dequantize_per_tensor.default"
PLAIN = "p_block_layer_weight"


def is_sum(node: torch.fx.Node) -> bool:
    return node.target is torch.ops.aten.add.Tensor


@pytest.mark.parametrize(
    ("chosen", "block", "head", "summed"),
    [
        (q.quantizer(q.STATIC), CHANNEL, CHANNEL, TENSOR),
        (q.quantizer(q.STATIC).set_module_name("block", q.PER_TENSOR), TENSOR, CHANNEL, TENSOR),
        (q.quantizer(q.STATIC).set_module_name("block.layer", None), PLAIN, CHANNEL, TENSOR),
        (q.quantizer(q.STATIC).set_module_type(Block, q.PER_TENSOR), TENSOR, CHANNEL, TENSOR),
        (
            q.quantizer(q.STATIC).set_operator_type(torch.ops.aten.linear.default, q.PER_TENSOR),
            TENSOR,
            TENSOR,
            TENSOR,
        ),
        (
            q.quantizer(q.STATIC).set_operator_type(torch.ops.aten.add, None),
            CHANNEL,
            CHANNEL,
            TENSOR,
        ),
        (
            q.quantizer(q.STATIC).set_filter_function(is_sum),
            PLAIN,
            "p_head_weight",
            TENSOR,
        ),
        (q.quantizer(q.WEIGHTS), CHANNEL, CHANNEL, "aten.linear.default"),
    ],
    ids=["global", "name", "left_out", "type", "operator", "packet", "filter", "weights"],
)
def test_nodes_are_quantized_by_the_first_setting_about_them(
    chosen: q.XNNPACKQuantizer, block: str, head: str, summed: str
) -> None:
    found = layers_quantized(chosen)
    assert found == {"block": block, "head": head, "sum": summed}


class Numbers(nn.Module):
    def forward(self, x: torch.Tensor, count: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * 2 + 1, (count + 1) * 3


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.float64, torch.float16])
def test_sums_with_numbers_in_other_types_than_float32_keep_theirs(dtype: torch.dtype) -> None:
    inputs = (torch.linspace(-1, 1, 6), torch.arange(5).to(dtype))
    first, second = q.reference(q.quantized(Numbers().eval(), inputs, q.STATIC), inputs)
    assert second.dtype == dtype
    assert torch.equal(second, Numbers()(*inputs)[1])
    assert not torch.equal(first, Numbers()(*inputs)[0])


def test_setters_chain_and_supported_configurations_are_listed() -> None:
    known = q.XNNPACKQuantizer.get_supported_quantization_configs()
    assert len(known) == 4
    for config in known:
        assert q.XNNPACKQuantizer.get_supported_operator_for_quantization_config(config)
    assert q.XNNPACKQuantizer.get_supported_operator_for_quantization_config(q.DYNAMIC) == []
    every = q.XNNPACKQuantizer.get_supported_operator_for_quantization_config(None)
    assert [nn.Linear] in every


def test_observers_that_never_saw_data_are_an_error_that_names_them() -> None:
    graph = q.prepared(Net(), (q.ROW,), q.quantizer(q.STATIC))
    blank = unobserved(graph)
    assert len(blank) > 4
    with pytest.raises(CalibrationError, match=r"never saw data.*activation_post_process.* of x"):
        require_observed(graph)
    told: list[tuple[int, int]] = []
    calibrate(graph, [(q.ROW,), (q.ROW * 2,)], lambda done, of: told.append((done, of)))
    assert told == [(0, 2), (1, 2), (2, 2)]
    require_observed(graph)
    dynamic = q.prepared(Net(), (q.ROW,), q.quantizer(q.DYNAMIC))
    assert all("weight" in text for text in unobserved(dynamic))


def test_calibration_names_the_call_that_a_graph_refuses() -> None:
    graph = q.prepared(Net(), (q.ROW,), q.quantizer(q.STATIC))
    with pytest.raises(CalibrationError, match="input 2 of 2"):
        calibrate(graph, [(q.ROW,), (q.ROW[:, :3],)])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            (torch.ones(1, 4, dtype=torch.int64),),
            "argument 1 is torch.int64, expected torch.float32",
        ),
        ((torch.full((1, 4), float("nan")),), "argument 1 has values that are NaN or infinite"),
        ((torch.ones(1, 5),), "argument 1 has the sizes [1, 5], where the example has [1, 4]"),
        ((torch.ones(1, 4), torch.ones(1)), "expected 1 arguments, found 2"),
    ],
)
def test_calibration_inputs_that_do_not_fit_are_told_from_the_example(
    given: tuple[torch.Tensor, ...], words: str
) -> None:
    program = torch.export.export(torch.nn.Linear(4, 2), (torch.ones(1, 4),))
    with pytest.raises(CalibrationError) as caught:
        quantize_program(program, "static", [(torch.rand(1, 4),), given])
    assert str(caught.value) == f"calibration input 2 of 2: {words}"


@pytest.mark.parametrize(
    ("content", "calls"),
    [
        ([(q.ROW,), (q.ROW,)], 2),
        ([q.ROW], 1),
        ((q.ROW, 2), 1),
        ({"other": [], "forward": [q.ROW]}, 1),
        (q.ROW, 1),
    ],
)
def test_calibration_files_hold_the_arguments_of_calls(
    tmp_path: Path, content: Any, calls: int
) -> None:
    torch.save(content, tmp_path / "inputs.pt")
    found = inputs_from_file(tmp_path / "inputs.pt")
    assert len(found) == calls
    assert torch.equal(found[0][0], q.ROW)


@pytest.mark.parametrize("content", [b"", b"no tensors", None, [], [3], {"x": 1}])
def test_other_files_are_refused_by_name(tmp_path: Path, content: Any) -> None:
    path = tmp_path / "inputs.pt"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        torch.save(content, path)
    with pytest.raises(CalibrationError, match=r"inputs\.pt"):
        inputs_from_file(path)


@pytest.mark.timeout(600)
def test_training_quantizes_weights_and_not_what_they_meet_by_channel() -> None:
    # One net for all kinds: torchao takes 25 s of processor time for its patterns of each.
    layers = (
        *(nn.Conv2d(8, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6)),
        *(nn.Conv2d(6, 8, 3), nn.BatchNorm2d(8), nn.ReLU()),
        *(nn.Conv2d(8, 8, 3, groups=8), nn.BatchNorm2d(8), nn.Conv2d(8, 4, 1)),
    )
    program = q.trained(nn.Sequential(*layers), (q.IMAGE,), q.STATIC)
    made = [str(node.target) for node in program.graph.nodes]
    assert not any("quantize_per_channel" in name and "dequantize" not in name for name in made)
    assert sum("dequantize_per_channel" in name for name in made) >= 4


def test_what_would_keep_padding_apart_from_its_layer_is_not_quantized_dynamically() -> None:
    module, inputs = q.CASES["conv_same_even"]
    for config, found in ((q.DYNAMIC, False), (q.STATIC, True)):
        nodes = q.quantized(module, inputs, config).graph.nodes
        assert any("quantize" in str(node.target) for node in nodes) is found
