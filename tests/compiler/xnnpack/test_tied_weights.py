"""Weights that kernels and delegates read are in the file once; the stock runtime finds them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from compiler import ExecutorchBackendConfig
from inspector.size.owners import program_size
from schema.program import decode, encode
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
    assert bytes(buffer).count(raw) == 1 <= theirs.read_bytes().count(raw)
    found = stock.run(buffer, [("forward", flat(inputs)) for inputs in calls_of(sample)])
    assert_equal(found, wanted, 1e-4)


class Several(nn.Module):
    """Weights of odd sizes that kernels and delegates read, and some that only one does."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.ModuleList(nn.Embedding(3 + 2 * at, 5 + at) for at in range(4))
        self.own = nn.Linear(7, 3)

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, ...]:
        read = [each(tokens) for each in self.words]
        return (
            *(
                nn.functional.linear(one, each.weight)
                for one, each in zip(read, self.words, strict=True)
            ),
            self.own(read[2]),
        )


@pytest.mark.parametrize("alignment", [16, 64, 4096])
def test_shared_weights_start_where_delegates_may_read(stock: Stock, alignment: int) -> None:
    sample = Sample(Several, (torch.tensor([[0, 2, 1]]),))
    module = module_of(sample)
    wanted = eager_outputs(module, calls_of(sample))
    config = ExecutorchBackendConfig(segment_alignment=alignment)
    buffer = bytes(delegated(sample).to_executorch(config).buffer)
    program = decode(buffer)
    for each in module.get_submodule("words").parameters():
        assert buffer.count(each.detach().numpy().tobytes()) == 1
    assert program.table.segments is not None
    assert program.header is not None
    base = program.header.segment_base_offset
    starts = {base + place.offset for place in program.table.segments if place.size}
    assert not any(start % alignment for start in starts)
    assert_equal(stock.run(buffer, [("forward", flat(calls_of(sample)[0]))]), wanted, 1e-5)
    assert encode(program, alignment=alignment) == buffer
    parts = program_size(program, memoryview(buffer)).parts
    assert sum(part.nbytes for part in parts) == len(buffer)
    assert sum(" = " in part.name and part.kind == "constant" for part in parts) == 4
