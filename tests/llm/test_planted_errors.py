"""A kernel that is wrong from some call on: that call and its node are named along a generation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from tests.inspector.cli_runs import run, valid

pytestmark = pytest.mark.slow

TEXT = "abcda"
FROM = 3  # the first wrong call
SIZES = {
    "dim": 32,
    "n_layers": 2,
    "n_heads": 4,
    "n_kv_heads": 2,
    "vocab_size": 256,
    "hidden_dim": 64,
}
LENGTHS = {"max_seq_length": 16, "max_context_length": 16}

ACTIVATION = f"""
import torch
from runtime import Runtime

counted = []
SCHEMA = "aten::sigmoid.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"


@Runtime.get().operator_registry.register(SCHEMA, kernel_key="v1/6;0,1,2|6;0,1,2")
def wrong(x):
    counted.append(x)
    number = (len(counted) - 1) % {2 * len(TEXT)}  # two layers; the calls are made more than once
    return torch.sigmoid(x) * (1.01 if number >= {2 * FROM} else 1)
"""
CACHE = f"""
import torch
from runtime import Runtime

SCHEMA = (
    "llama::update_cache.out(Tensor value, Tensor(a!) cache, int start_pos, *, Tensor(b!) out)"
    " -> Tensor(b!)"
)


@Runtime.get().operator_registry.register(SCHEMA, kernel_key="v1/6;0,1,2,3|6;0,1,2,3|6;0")
def wrong(value, cache, start_pos):
    at = start_pos - (start_pos >= {FROM})  # what was there is lost
    cache[:, at : at + value.shape[1]] = value
    return torch.zeros(1)
"""
PLANTED = {  # library, whether the cache is written by an operator, node
    "activation": (ACTIVATION, False, "aten_sigmoid_default"),
    "cache position": (CACHE, True, "llama_custom_sdpa_default"),  # the first that reads it
}


@pytest.fixture(params=PLANTED)
def planted(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path, str]:
    """Return a program, a library with a wrong kernel, and the node that it changes."""
    code, by_operator, node = PLANTED[request.param]
    model = {"use_kv_cache": True, "use_sdpa_with_kv_cache": by_operator}
    content = {
        "base": {"model_class": "llama3_2", "params": SIZES},
        "model": model,
        "export": LENGTHS,
        "debug": {"generate_etrecord": True},
    }
    config, library = tmp_path / "model.yaml", tmp_path / "wrong.py"
    config.write_text(yaml.safe_dump(content))
    library.write_text(code)
    found = run("llm", "export", str(config), "-o", str(tmp_path / "out"))
    assert found.code == 0, found.err
    return tmp_path / "out", library, node


def _divergence(data: dict[str, Any]) -> tuple[int, str]:
    first = data["first_divergence"]
    (call,) = (one["call"] for one in data["runs"] if one["block"] == first["block"])
    return call, first["node"]


def test_gap_of_a_sequence_names_the_call_and_the_node(
    tmp_path: Path, planted: tuple[Path, Path, str]
) -> None:
    folder, library, node = planted
    inputs, out = tmp_path / "inputs", tmp_path / "run"
    inputs.mkdir()
    for number, token in enumerate(TEXT.encode()):
        given = [torch.tensor([[token]]), torch.tensor([number])]
        torch.save(given, inputs / f"{number}.pt")
    words = ("--sequence", str(inputs), "--debug-level", "intermediate")
    found = run("run", str(folder), *words, "--library", str(library), "-o", str(out))
    assert found.code == 0, found.err
    answer = run("gap", str(folder), str(out), "--format", "json")
    assert _divergence(valid(answer, "gap")["data"]) == (FROM, node)
    text = run("gap", str(folder), str(out)).out
    assert f"first divergence: call {FROM}, {node} " in text, text


def test_gap_of_a_text_runs_with_the_library_and_names_them(
    planted: tuple[Path, Path, str],
) -> None:
    folder, library, node = planted
    words = ("--prompt", TEXT, "--by-node", str(len(TEXT)), "--library", str(library))
    answer = run("llm", "gap", str(folder), *words, "--format", "json")
    assert answer.code == 0, answer.err
    data = valid(answer, "llm")["data"]
    errors = [one["max_abs"] for one in data["rows"]]
    assert max(errors[:FROM]) < 1e-5 < min(errors[FROM:]) / 100
    assert _divergence(data["nodes"]) == (FROM, node)


def test_a_library_that_is_not_there_is_named(planted: tuple[Path, Path, str]) -> None:
    found = run("llm", "gap", str(planted[0]), "--prompt", TEXT, "--library", "nowhere.py")
    assert found.code
    assert "nowhere.py" in found.err
