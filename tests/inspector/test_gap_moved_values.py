"""A compiler that moves factors past layers keeps their names: no such value is a divergence."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from inspector.files.load import load_session
from inspector.numerics.replay import comparing, moved_values
from inspector.numerics.replay.analysis import Options, analyse_gap
from inspector.numerics.replay.inputs import logged_tensor
from inspector.numerics.replay.moved_values import MOVED
from inspector.numerics.report import RunGap
from schema.backends import Backend
from schema.etdump import DebugTensor
from schema.etdump.debug_buffer import DebugBuffer
from tests.conftest import DATA

STEM = DATA / "backends" / "openvino" / "openvino_moved"
_FILES = (".pte", ".etrecord", ".etdp", ".debug")


def _gap() -> RunGap:
    inputs, *_ = torch.load(STEM.with_suffix(".pt"))
    files = [str(STEM.with_suffix(end)) for end in _FILES]
    (run,) = analyse_gap(load_session(files), Options(inputs=inputs)).runs
    return run


def _moved(run: RunGap) -> set[str]:
    return {row.node for row in run.rows if row.reason == MOVED}


def test_folded_and_moved_factors_are_told_and_are_no_divergence() -> None:
    """The scale of a batch norm is in the weights before it, those of attention before its views.

    The run has the recorded outputs to the last bits.
    """
    run = _gap()
    assert run.first_divergence() is None
    assert _moved(run) == {
        "aten_convolution_default",
        "aten_unsqueeze_copy_default",
        "aten_expand_copy_default_4",
        "aten_view_copy_default_4",
    }
    compared = [row for row in run.rows if row.total is not None]
    assert len(compared) >= 12
    assert all(row.total is not None and row.total.max_abs < 1e-6 for row in compared)
    assert not any(row.diverges or row.differs for row in compared)


def test_a_backend_that_moves_nothing_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moved_values, "backend_of", Backend)
    first = _gap().first_divergence()
    assert first is not None
    assert first.node == "aten_convolution_default"


def test_an_error_that_the_outputs_have_is_still_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes after the softmax is as wrong as it is, as kernels would have computed it."""
    _, (expected,), *_ = torch.load(STEM.with_suffix(".pt"))

    def behind(found: torch.Tensor) -> bool:
        is_softmax = found.shape[-2:] == (9, 9) and bool((found.sum(-1) - 1).abs().max() < 1e-5)
        of_heads = tuple(found.shape) in ((1, 2, 9, 4), (1, 9, 2, 4))
        is_result = found.shape == expected.shape and torch.allclose(found, expected, atol=1e-5)
        return is_softmax or of_heads or is_result

    def wrong(buffer: DebugBuffer | None, tensor: DebugTensor) -> Any:
        found = logged_tensor(buffer, tensor)
        is_real = isinstance(found, torch.Tensor) and found.is_floating_point()
        return found * 1.5 if is_real and behind(found) else found

    monkeypatch.setattr(comparing, "logged_tensor", wrong)
    run = _gap()
    first = run.first_divergence()
    assert first is not None
    assert first.node == "aten__softmax_default"
    assert "aten__softmax_default" not in _moved(run)
    assert "aten_convolution_default" in _moved(run)
