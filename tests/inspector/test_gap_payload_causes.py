"""Why layers of integers differ, where payload and record show it, and integers of both signs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from inspector.files.load import load_session
from inspector.numerics.replay import payload_causes
from inspector.numerics.replay.analysis import Options, analyse_gap
from inspector.numerics.replay.payload_causes import EPSILON, HALVED, WEIGHTS
from inspector.numerics.replay.quanta import in_sign
from inspector.numerics.report import Row, RunGap
from inspector.tables.numeric_gap import summary
from runtime.emulation.recorded import UNKNOWN
from schema.payloads.openvino.ir import Layer, Port
from schema.payloads.openvino.origins import values_of
from tests.conftest import DATA
from tests.inspector.cli_runs import run

STEM = DATA / "backends" / "openvino" / "openvino_integers_int8"
FILES = [str(STEM.with_suffix(end)) for end in (".pte", ".etrecord", ".etdp", ".debug")]


def _gap() -> RunGap:
    inputs, *_ = torch.load(STEM.with_suffix(".pt"))
    (found,) = analyse_gap(load_session(FILES), Options(inputs=inputs)).runs
    return found


def _row(found: RunGap, node: str) -> Row:
    (row,) = (one for one in found.rows if one.node == node and one.place == "inside")
    return row


def test_layers_that_differ_have_what_payload_and_record_show() -> None:
    found = _gap()
    convolution, norm = (
        _row(found, name) for name in ("aten_convolution_default", "aten_mul_tensor")
    )
    assert convolution.note == WEIGHTS.format(count=5, all=162, own=64, recorded=64) + HALVED
    assert norm.note == EPSILON.format(eps=0.01)
    assert found.first_divergence() is convolution
    assert convolution.note in summary(found)
    others = [row for row in found.rows if row not in (convolution, norm)]
    assert not any(row.note and "payload" in row.note for row in others)
    answer = run("gap", *FILES)
    assert f"by itself: {convolution.note}" in answer.out


def test_integers_of_activations_are_compared() -> None:
    """Their layers are named after the node that rounds, also for a second one that rounds alike.

    One is added up in other steps.
    """
    found = _gap()
    rounded = [row for row in found.rows if row.operator.endswith("::quantize_per_tensor")]
    compared = [row for row in rounded if row.total is not None]
    assert len(compared) == 4
    assert all(row.total is not None and row.total.max_abs == 0 for row in compared)
    moved = _row(found, "aten_view_copy_default_4")
    assert moved.total is None
    assert "another value under this name" in moved.reason


@pytest.mark.parametrize(("shift", "is_told"), [(0, False), (1, True), (2, False)])
@pytest.mark.parametrize("turned", [True, False])
def test_only_weights_that_are_nearly_the_same_are_told(
    monkeypatch: pytest.MonkeyPatch, shift: int, turned: bool, is_told: bool
) -> None:
    """Weights two steps beside are others; equal ones differ in nothing."""
    stored: list[Any] = []

    def aligned(own: Any, value: Any) -> Any:
        if own.numel() != value.numel():
            return None
        other = own.flatten(1).clone() if own.dim() > 1 else own.clone()
        other[0, 0] -= shift * int(other[0, 0].sign() or 1)
        stored.append(own)
        recorded = other.T.contiguous() if turned else other
        return original(own.flatten(1), recorded)

    original = payload_causes._aligned
    monkeypatch.setattr(payload_causes, "_aligned", aligned)
    row = _row(_gap(), "aten_convolution_default")
    assert stored
    assert ("1 of 162 weights" in row.note) is is_told
    assert bool(row.note) is is_told


@pytest.mark.parametrize("dtypes", [("int8", "uint8"), ("uint8", "int8")])
def test_integers_get_the_sign_of_the_record(dtypes: tuple[str, str]) -> None:
    lowest = {"int8": -128, "uint8": 0}
    found = (torch.arange(256) + lowest[dtypes[0]]).to(getattr(torch, dtypes[0]))
    like = (torch.arange(256) + lowest[dtypes[1]]).to(getattr(torch, dtypes[1]))
    for sides in ([like, like], [UNKNOWN, like], [like, UNKNOWN]):
        assert torch.equal(in_sign(found, sides), like)
    assert in_sign(like, [like, like]) is like
    assert in_sign(found, [like.float(), like.float()]) is found


def _layer(name: str, ports: int, names: str = "") -> Layer:
    port = SimpleNamespace(ident="0", names=names, precision="I8", dims=())
    outputs = tuple(cast("Port", port) for _ in range(ports))
    return cast("Layer", SimpleNamespace(name=name, type="FakeQuantize", fused="", outputs=outputs))


@pytest.mark.parametrize(
    ("name", "ports", "names", "expected"),
    [
        ("q_3/quantized_decomposed.quantize_per_tensor.default/FakeQuantize", 1, "", ("q_3",)),
        ("q/quantized_decomposed.quantize_per_tensor.tensor/FakeQuantize", 1, "", ("q",)),
        ("q/quantized_decomposed.quantize_per_tensor.default/FakeQuantize", 1, "d:0", ("d",)),
        ("q/quantized_decomposed.quantize_per_tensor.default/FakeQuantize/Sub", 1, "", None),
        ("q/quantized_decomposed.quantize_per_tensor.default/Convert", 1, "", None),
        ("c/aten.convolution.default/Convolution", 1, "", None),
    ],
)
def test_layer_that_rounds_has_the_value_of_its_node(
    name: str, ports: int, names: str, expected: tuple[str, ...] | None
) -> None:
    """A port that is named after another node has the value of that one."""
    found = values_of([_layer(name, ports, names)], ["layer"], {})
    assert found.get("layer") == expected
