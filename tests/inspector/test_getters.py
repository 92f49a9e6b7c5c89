"""Getter methods: their values in the summary and the overview, beside the runtime's answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from compiler import to_edge
from devtools_app.state.requests import ShowView
from devtools_app.viewmodels.goto import goto_choices
from devtools_app.viewmodels.overview import overview
from inspector.files.getters import getters
from inspector.files.load import load_session
from inspector.tables.selection import Units
from runtime import Runtime
from schema.program import decode
from tests.inspector.cli_runs import run, valid

CONSTANTS = {
    "get_bos_id": 1,
    "get_eos_ids": [2, 7],
    "use_kv_cache": True,
    "temperature": 0.8,
    "get_vocab": torch.tensor([3, 5, 8]),
    "get_table": torch.arange(40.0),
}
EXPECTED = {
    "get_bos_id": "1",
    "get_eos_ids": "[2, 7]",
    "use_kv_cache": "True",
    "temperature": "0.8",
    "get_vocab": "i64 [3] = 3, 5, 8",
    "get_table": "f32 [40], 40 elements",
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    class Add(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    exported = torch.export.export(Add(), (torch.ones(2),))
    path = tmp_path_factory.mktemp("getters") / "model.pte"
    to_edge(exported, constant_methods=CONSTANTS).to_executorch().save(str(path))
    return path


def test_getters_have_the_values_that_the_runtime_returns(program: Path) -> None:
    found = getters(decode(program.read_bytes()))
    assert found == EXPECTED
    loaded = Runtime.get().load_program(program)
    for name in ("get_bos_id", "use_kv_cache", "temperature"):
        assert str(loaded.load_method(name).execute(())[0]) == found[name]
    assert str(list(loaded.load_method("get_eos_ids").execute(()))) == found["get_eos_ids"]


def test_getters_are_found_by_name(program: Path) -> None:
    choices = goto_choices(load_session([str(program)]), "forward")
    found = {one.title: one.detail for one in choices if one.payload == ShowView("overview")}
    assert found == {name: f"getter · {value}" for name, value in EXPECTED.items()}


def test_summary_prints_the_values_of_getters(program: Path) -> None:
    text = run("summary", program).out
    assert "= [2, 7]" in text
    assert "= i64 [3] = 3, 5, 8" in text
    methods = valid(run("summary", program, "--format", "json"), "summary")["data"]["methods"]
    assert {name: one["constant"] for name, one in methods.items()} == {**EXPECTED, "forward": None}


def test_overview_has_one_group_for_metadata(program: Path) -> None:
    groups = {
        one.title: one for one in overview(load_session([str(program)]), "forward", Units()).methods
    }
    assert list(groups) == ["forward", "Metadata"]
    assert {fact.label: fact.value for fact in groups["Metadata"].facts} == EXPECTED


def test_program_without_getters_has_no_metadata() -> None:
    plain = Path(__file__).parents[1] / "data/corpus/v1.5.1/mm_portable/model.pte"
    assert getters(decode(plain.read_bytes())) == {}
    assert (
        json.loads(run("summary", plain, "--format", "json").out)["data"]["methods"]["forward"][
            "constant"
        ]
        is None
    )
