"""Random inputs that programs use as indices: valid for every seed, or named by the error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim

from compiler import to_edge
from inspector.worker.index_inputs import index_limits, remedy_of_random
from inspector.worker.inputs import generated_inputs
from runtime import Runtime
from schema.program import decode
from tests.inspector.cli_runs import run

pytestmark = pytest.mark.slow
_ROWS = 12


class Table(nn.Module):
    """A table whose rows are chosen by a function."""

    def __init__(self, choose: Callable[..., Any]) -> None:
        super().__init__()
        self.choose = choose
        self.register_buffer("rows", torch.randn(_ROWS, 3))

    def forward(self, tokens, place):
        return self.choose(self.rows, tokens, place)


def _at_positions(rows: Any, tokens: Any, place: Any) -> Any:
    return rows[torch.arange(tokens.shape[0]) + place] * tokens.unsqueeze(1)


def _from_start(rows: Any, tokens: Any, place: Any) -> Any:
    start = place[0].item()
    torch._check(start >= 0)
    torch._check(start + 4 <= _ROWS)
    return rows.narrow(0, start, 4) * tokens[0]


CASES: dict[str, tuple[Callable[..., Any], dict[int, int]]] = {
    "computed positions": (_at_positions, {1: 1}),
    "a start read from a tensor": (_from_start, {1: 1}),
    "rows": (lambda rows, tokens, place: rows[tokens] + place, {0: _ROWS}),
    "rows by a reshaped input": (
        lambda rows, tokens, place: nn.functional.embedding(tokens.unsqueeze(0), rows) + place,
        {0: _ROWS},
    ),
    "index_select": (
        lambda rows, tokens, place: rows.index_select(1, place.expand(2)) + tokens[0],
        {1: 3},
    ),
    "no index": (lambda rows, tokens, place: rows[0] * tokens[0] + place, {}),
}


def _program(choose: Callable[..., Any]) -> bytes:
    given = (torch.zeros(4, dtype=torch.long), torch.zeros(1, dtype=torch.long))
    dynamic = ({0: Dim("count", max=_ROWS - 1)}, {}) if choose is _at_positions else None
    program = torch.export.export(Table(choose).eval(), given, dynamic_shapes=dynamic)
    return bytes(to_edge(program).to_executorch().buffer)


@pytest.mark.parametrize("name", CASES)
def test_random_indices_are_valid_for_every_seed(name: str) -> None:
    choose, limits = CASES[name]
    buffer = _program(choose)
    plan = decode(buffer).plan("forward")
    by_place = {place: index_limits(plan).get(index) for place, index in enumerate(plan.inputs)}
    assert {place: limit for place, limit in by_place.items() if limit} == limits
    method = Runtime().load_program(buffer).load_method("forward")
    for seed in range(12):
        method.execute(generated_inputs(plan, "random", seed))


def test_indices_of_a_table_take_all_its_rows() -> None:
    plan = decode(_program(CASES["rows"][0])).plan("forward")
    seen = {int(row) for seed in range(30) for row in generated_inputs(plan, "random", seed)[0]}
    assert seen == set(range(_ROWS))


def test_the_remedy_names_integer_inputs_only() -> None:
    words = remedy_of_random(decode(_program(CASES["rows"][0])).plan("forward"))
    assert words.startswith("Inputs 0 (int64 [4]), 1 (int64 [1]) are random")
    linear = torch.export.export(nn.Linear(2, 2), (torch.randn(1, 2),))
    plan = decode(bytes(to_edge(linear).to_executorch().buffer)).plan("forward")
    assert remedy_of_random(plan) == ""


class Divided(nn.Module):
    """An index that no analysis of operators bounds: the remainder is of a negative number."""

    def forward(self, rows, place):
        return rows[(place - 5).to(torch.float32).sub(9).to(torch.long)]


def test_refused_random_inputs_are_named_with_the_fix(tmp_path: Path) -> None:
    given = (torch.randn(8, 2), torch.full((1,), 15))
    buffer = to_edge(torch.export.export(Divided(), given)).to_executorch().buffer
    path = tmp_path / "model.pte"
    path.write_bytes(buffer)
    done = run("run", path, "-o", tmp_path / "out")
    text = " ".join(done.err.split())
    assert done.code
    assert "--inputs zeros" in text
    assert "Input 1 (int64 [1]) is random" in text
