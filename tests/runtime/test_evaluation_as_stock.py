"""The errors that `etscope eval` finds over a data set are those of the stock runtime's outputs."""

from __future__ import annotations

import math
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch

from inspector.experiments.evaluate.report import VariantFigures, evaluation_report
from inspector.jobs.eval_samples import read_evaluation
from tests.inspector.cli_runs import run
from tests.runtime.stock import Stock

pytestmark = [pytest.mark.slow, pytest.mark.interop]

_MODEL = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.linear = torch.nn.Linear(8 * 6 * 6, 5)

    def forward(self, x):
        return self.linear(torch.relu(self.convolution(x)).flatten(1))

def net():
    torch.manual_seed(0)
    return Net().eval(), (torch.ones(4, 3, 6, 6),)

def batches():
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(4, 3, 6, 6, generator=generator) * (1 + n / 4) for n in range(6)]
"""
_XNNPACK = ("--partitioner", "xnnpack")
VARIANTS = {
    "portable": (),
    "xnnpack": _XNNPACK,
    "static": (*_XNNPACK, "--quantize", "static"),
    "dynamic": (*_XNNPACK, "--quantize", "dynamic"),
}


def test_errors_over_a_data_set_are_those_of_the_stock_runtime(
    stock: Stock, tmp_path: Path
) -> None:
    model = tmp_path / "model.py"
    model.write_text(_MODEL, "utf-8")
    for name, options in VARIANTS.items():
        answer = run("compile", f"{model}:net", "-o", tmp_path / name, *options)
        assert answer.code == 0, answer.err
    folders = [tmp_path / name for name in VARIANTS]
    answer = run("eval", *folders, "--data", f"{model}:batches", "-o", tmp_path / "out")
    assert answer.code == 0, answer.err
    space = runpy.run_path(str(model))
    net, samples = space["net"]()[0], space["batches"]()
    with torch.no_grad():
        wanted = [net(sample) for sample in samples]
    calls = [("forward", [sample]) for sample in samples]
    report = evaluation_report(read_evaluation(tmp_path / "out"))
    assert report.samples == len(samples)
    for folder, found in zip(folders, report.variants, strict=True):
        outputs = [output for (output,) in stock.calls(folder / "model.pte", calls)]
        _assert_errors(found, outputs, wanted)


def _assert_errors(
    found: VariantFigures, outputs: list[torch.Tensor], wanted: list[torch.Tensor]
) -> None:
    """The figures of a variant are those of these outputs, up to the last digits of sums."""
    (figures,) = found.outputs
    pairs = [
        (one.double().numpy(), two.double().numpy())
        for one, two in zip(outputs, wanted, strict=True)
    ]
    errors = [float(np.abs(one - two).max()) for one, two in pairs]
    close = pytest.approx
    assert figures.total.max_abs == close(max(errors), rel=1e-5, abs=1e-6)
    assert figures.median == close(float(np.median(errors)), rel=1e-5, abs=1e-6)
    mean = np.concatenate([np.abs(one - two).ravel() for one, two in pairs]).mean()
    assert figures.mean_abs == close(float(mean), rel=1e-5, abs=1e-6)
    same = [(one.argmax(-1) == two.argmax(-1)).mean() for one, two in pairs]
    assert figures.top_1 == close(float(np.mean(same)))
    if max(errors) > 1e-4:  # below that the order of float sums decides
        noise = sum(float(((one - two) ** 2).sum()) for one, two in pairs)
        signal = sum(float((two**2).sum()) for _, two in pairs)
        assert figures.total.snr_db == close(10 * math.log10(signal / noise), abs=0.01)
        worst = found.worst[0].index
        assert errors[worst] == close(found.worst[0].max_abs, rel=1e-5)
    else:
        assert found.name in ("portable", "xnnpack")
