"""Random nets: no divergence is named where none is planted, and the planted one is named first."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.inspector import gap_families
from tests.inspector.gap_families import (
    HITS,
    WAYS,
    Case,
    Inputs,
    Layers,
    cases,
    compiled,
    compiled_net,
    gap,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

WHOLE, PART = 12, 3
PLANTED = 16
NAMED = 0.85  # of the planted errors; the rest changes nothing that rounding does not
RECURRENT = 0.95  # of the outputs of instructions


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's deserialiser has its own
        yield


@pytest.mark.parametrize("first", range(0, WHOLE, PART))
def test_run_without_an_error_has_no_divergence(first: int, tmp_path: Path) -> None:
    for case in cases(PART, first):
        run = gap(compiled(case, tmp_path / str(case.seed)))
        named = run.first_divergence()
        assert named is None, (str(case), named)
        assert not run.doubtful(), str(case)
        outputs = run.outside()
        assert sum(row.compared for row in outputs) >= RECURRENT * len(outputs), str(case)


@pytest.mark.parametrize("mode", ["dynamic", "static"])
@pytest.mark.parametrize("layer", [nn.GRU, nn.LSTM])
def test_recurrent_net_in_delegates_is_joined_by_what_the_compiler_recorded(
    layer: type[nn.Module], mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def net(draw: random.Random) -> tuple[nn.Module, Inputs]:
        del draw
        return gap_families.Recurrent(layer(6, 8, batch_first=True), 8), (torch.randn(1, 4, 6),)

    monkeypatch.setitem(gap_families.NETS, "net", net)
    run = gap(compiled(Case(5, "net", mode, "xnnpack", "torch"), tmp_path))
    assert run.first_divergence() is None
    assert all(row.compared for row in run.outside())
    assert {row.grade for row in run.outside()} == {"INSTRUCTION"}
    assert {row.grade for row in run.inside() if row.compared} == {"DELEGATE_ID"}


def test_planted_error_is_the_first_divergence(tmp_path: Path) -> None:
    said: Counter[str] = Counter()
    for case in cases(PLANTED, 200):
        said += gap_families.judged(case, tmp_path / str(case.seed), 2)
    planted = sum(said[word] for word in HITS)
    assert planted >= PLANTED
    assert said["elsewhere"] == said["uncertain"] == said["false"] == 0
    assert said["named"] >= NAMED * planted, said


@pytest.mark.parametrize("way", WAYS)
def test_scale_of_zeros_is_no_divergence(way: tuple[str, str], tmp_path: Path) -> None:
    """Runtimes choose 0.1 where all values are 0, ATen chooses the smallest scale."""
    layers = [nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3, groups=2), nn.Conv2d(4, 2, 1)]
    with torch.no_grad():
        layers[0].bias.fill_(-100.0)
    module, inputs = Layers(layers, [False] * len(layers)), (torch.randn(1, 3, 8, 8),)
    made = compiled_net(Case(1, "dead", "dynamic", *way), module.eval(), inputs, tmp_path)
    run = gap(made)
    assert run.first_divergence() is None
    assert all(row.compared for row in run.outside())
    if way[0] == "portable":
        chosen = [row for row in run.rows if "choose_qparams" in row.node and row.own]
        assert max(row.own.max_abs for row in chosen if row.own) > 0.09
        place = next(row.instruction for row in chosen if row.own and row.own.max_abs > 0.09)
        planted = gap(made, gap_families.Planted(place))
        first = planted.first_divergence()
        assert first is not None
        assert first.instruction == place


@pytest.mark.parametrize("way", WAYS)
def test_quantum_of_a_scale_chosen_at_run_time_is_granted(
    way: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values far below the smallest scale torchao chooses, where the engine's own is smaller."""

    def tiny(draw: random.Random) -> tuple[nn.Module, Inputs]:
        del draw
        layers = [each for _ in range(4) for each in (nn.Conv2d(4, 4, 3, padding=1), nn.ReLU6())]
        module = Layers(layers, [False] * len(layers))
        with torch.no_grad():
            for parameter in module.parameters():
                parameter *= 0.01 if parameter.dim() > 1 else 1e-4
        return module, (torch.randn(1, 4, 6, 6) * 0.01,)

    monkeypatch.setitem(gap_families.NETS, "tiny", tiny)
    run = gap(compiled(Case(1, "tiny", "dynamic", *way), tmp_path))
    assert run.first_divergence() is None
    rounded = [row.own.max_abs for row in run.rows if row.own and "dequantize" in row.node]
    assert way[0] == "portable" or max(rounded) > 1e-4  # beyond 2 % of the largest magnitude
