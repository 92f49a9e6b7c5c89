"""A compiler that moves factors past layers keeps their names: no such value is a divergence."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from inspector.files.load import load_session
from inspector.numerics.grades import ORDER
from inspector.numerics.replay import analysis, comparing, folded_factors
from inspector.numerics.replay.analysis import Options, analyse_gap
from inspector.numerics.replay.folded_factors import FoldedFactors
from inspector.numerics.replay.inputs import logged_tensor
from inspector.numerics.replay.moved_values import MOVED, UNREAD
from inspector.numerics.report import INSIDE, RunGap
from schema.etdump import DebugTensor
from schema.etdump.debug_buffer import DebugBuffer
from tests.conftest import DATA

STEM = DATA / "backends" / "openvino" / "openvino_moved"
_MOVED_NODES = {
    "aten_convolution_default",
    "aten_unsqueeze_copy_default",
    "aten_expand_copy_default_4",
    "aten_view_copy_default_4",
}
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
    assert _moved(run) == _MOVED_NODES
    compared = [row for row in run.rows if row.total is not None]
    assert len(compared) >= 12
    assert all(row.total is not None and row.total.max_abs < 1e-6 for row in compared)
    assert not any(row.diverges or row.differs for row in compared)


def _planted(
    monkeypatch: pytest.MonkeyPatch, nodes: set[str], factor: float, *, result: bool = False
) -> RunGap:
    """Return the comparison of a run in which tensors of some nodes are off by a factor.

    That of the run is, too, if ``result``.
    """
    inside, logged_run = analysis.inside_outputs, analysis.logged_run
    tensors: list[Any] = []

    def returned(*given: Any) -> Any:
        found = logged_run(*given)
        if result:
            passes = [each for every in found.outputs.values() for each in every]
            tensors.extend(each[slot] for each in passes for slot in each)
        return found

    def kept(*given: Any) -> Any:
        found = inside(*given)
        tensors.extend(each for one in found if one.node in nodes for each in one.passes)
        return found

    def wrong(buffer: DebugBuffer | None, tensor: DebugTensor) -> Any:
        found = logged_tensor(buffer, tensor)
        is_planted = any(tensor is one for one in tensors)
        return found * factor if is_planted and isinstance(found, torch.Tensor) else found

    monkeypatch.setattr(analysis, "inside_outputs", kept)
    monkeypatch.setattr(analysis, "logged_run", returned)
    for module in (comparing, folded_factors):
        monkeypatch.setattr(module, "logged_tensor", wrong)
    return _gap()


_BEHIND = (  # to the result of the run
    "aten__softmax_default",
    "aten_permute_copy_default_6",
    "aten_permute_copy_default_7",
    "aten_view_copy_default_14",
)


@pytest.mark.parametrize("start", range(len(_BEHIND)))
@pytest.mark.parametrize("factor", [0.5, 1.5, 16.0])
def test_an_error_that_is_read_is_still_found(
    monkeypatch: pytest.MonkeyPatch, start: int, factor: float
) -> None:
    """What comes after a node is as wrong as it is, as kernels would have computed it."""
    behind: set[str] = {*_BEHIND[start:]}
    run = _planted(monkeypatch, behind, factor, result=True)
    first = run.first_divergence()
    assert first is not None
    assert first.node == _BEHIND[start]
    assert not behind & _moved(run)
    assert not any(row.note == UNREAD for row in run.rows)
    assert "aten_convolution_default" in _moved(run)


@pytest.mark.parametrize("factor", [0.5, 2.0, 8.0, 16.0])
@pytest.mark.parametrize("node", [*sorted(_MOVED_NODES), "aten_hardtanh_default", *_BEHIND[:3]])
def test_a_value_that_its_readers_did_not_read_is_neither_folded_nor_a_divergence(
    monkeypatch: pytest.MonkeyPatch, node: str, factor: float
) -> None:
    """No layer beside it has such a factor: it may be of another step, and proves no error."""
    run = _planted(monkeypatch, {node}, factor)
    assert _moved(run) == _MOVED_NODES - {node}
    (row,) = (one for one in run.rows if one.node == node and one.place == INSIDE)
    assert row.differs
    assert row.note == UNREAD
    assert row.grade == ORDER
    assert not row.diverges
    assert run.first_divergence() is None


@pytest.mark.parametrize(
    ("shift", "is_folded"), [(128, True), (-128, True), (120, False), (8, False)]
)
@pytest.mark.parametrize("is_made", [True, False])
def test_integers_of_the_other_sign_are_the_same(
    shift: int, is_folded: bool, is_made: bool
) -> None:
    """A payload has unsigned integers where the record has signed ones, or already has them."""
    real, made = ((), "x"), ((), "q")
    node = SimpleNamespace(
        operator="quantized_decomposed::quantize_per_tensor",
        reads=(real,),
        writes=(made,),
        node=SimpleNamespace(args=()),
    )
    graph = SimpleNamespace(
        nodes=(node,),
        producers={made: (node, 0)},
        users={real: (node,)},
        inputs=(real,),
        graphs={},
    )
    integers = torch.randint(-100, 20, (4, 5), dtype=torch.int8)
    factors = FoldedFactors(cast("Any", graph), {real: integers * 0.02, made: integers})
    assert factors.explain(made if is_made else real, integers.int() + shift) is is_folded


@pytest.mark.parametrize(("of_run", "is_folded"), [("", True), ("nested", False), ("top", False)])
def test_only_a_constant_is_a_factor_in_a_nested_graph(of_run: str, is_folded: bool) -> None:
    """What a branch or a loop is given is computed by the run: nothing can have been folded."""
    scope = ("body",) if of_run == "nested" else ()
    real, factor, made = (scope, "x"), (scope, "w"), (scope, "y")
    node = SimpleNamespace(operator="aten::mul", reads=(real, factor), writes=(made,))
    nested = SimpleNamespace(inputs=("x", "w"))
    graph = SimpleNamespace(
        nodes=(node,),
        producers={made: (node, 0)},
        users={real: (node,), factor: (node,)},
        inputs=(real, factor) if of_run == "top" else (real,) if not scope else (),
        graphs={(): SimpleNamespace(inputs=("x", "w")), ("body",): nested},
    )
    values = torch.randn(3, 4)
    weights = torch.rand(3, 4) + 0.5
    factors = FoldedFactors(
        cast("Any", graph), {real: values, factor: weights, made: values * weights}
    )
    assert factors.explain(real, values * weights) is is_folded
