"""A language model whose embedding is its last layer: no larger than stock's program."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from tests.compiler.compare import (
    assert_equal,
    calls_of,
    eager_outputs,
    exported,
    flat,
    module_of,
)
from tests.compiler.programs import Sample
from tests.compiler.stock import Stock
from tests.compiler.xnnpack.test_programs import delegated

pytestmark = [pytest.mark.slow, pytest.mark.interop]
WORDS, WIDTH = 512, 64


class Tied(nn.Module):
    """Two blocks between an embedding and itself."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.Sequential(
            *(nn.TransformerEncoderLayer(WIDTH, 4, 128, batch_first=True) for _ in range(2))
        )
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.words(tokens)))


def test_tied_model_is_no_larger_than_stock_and_runs_on_it(stock: Stock, tmp_path: Path) -> None:
    sample = Sample(Tied, (torch.arange(8)[None] * 7,))
    module = module_of(sample)
    wanted = eager_outputs(module, calls_of(sample))
    path, theirs = tmp_path / "tied.pt2", tmp_path / "stock.pte"
    torch.export.save(exported(sample, module_of(sample)), path)
    answer = stock.ask("lowered", exported=str(path), program=str(theirs))
    assert "error" not in answer, answer["error"]
    buffer = delegated(sample).to_executorch().buffer
    assert len(buffer) <= theirs.stat().st_size
    raw = module.get_parameter("words.weight").detach().numpy().tobytes()
    # once among the constants of kernels, once among those of delegates, as in stock's
    assert bytes(buffer).count(raw) <= theirs.read_bytes().count(raw) <= 2
    found = stock.run(buffer, [("forward", flat(inputs)) for inputs in calls_of(sample)])
    assert_equal(found, wanted, 1e-4)
