"""The record of a quantized model belongs to its program where no backend takes the layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.inspector.cli_runs import run
from tests.llm.configs import CACHE, LENGTHS, SMALL

pytestmark = pytest.mark.slow
SEVERAL = {
    "methods": [{"method_name": "prefill"}, {"method_name": "decode", "export_seq_len": 1}],
    "share_mutable_buffers": True,
}
MODELS: dict[str, dict[str, Any]] = {
    "any length": {"model": CACHE},
    "one length": {"model": {**CACHE, "enable_dynamic_shape": False}},
    "several methods": {"model": CACHE, "multimethod": SEVERAL},
}
TABLES: dict[str, dict[str, Any]] = {
    "tables": {"model": CACHE, "quantization": {"embedding_quantize": "4,32"}},
    "tables of 8 bits": {"model": CACHE, "quantization": {"embedding_quantize": "8,0"}},
    "tables and a backend": {
        "model": {**CACHE, "use_sdpa_with_kv_cache": True},
        "quantization": {"qmode": "8da4w", "group_size": 32, "embedding_quantize": "4,32"},
        "backend": {"xnnpack": {"enabled": True}},
    },
}
FLOAT: dict[str, dict[str, Any]] = {"float": {"model": CACHE, "quantization": {}}}
DATA = """
import torch

def calls():
    for number, method in enumerate(("prefill", "decode", "decode")):
        count = 3 if method == "prefill" else 1
        place = number + 2 if number else 0
        inputs = torch.full((1, count), number + 1), torch.tensor([place])
        yield {"method": method, "inputs": inputs}
"""


def _exported(home: Path, name: str, seed: int = 0) -> Path:
    content = {
        "base": {"model_class": "llama3", "params": SMALL, "seed": seed},
        "export": LENGTHS,
        "quantization": {"qmode": "8da4w", "group_size": 32},
        "debug": {"generate_etrecord": True},
        **({**MODELS, **TABLES, **FLOAT}[name]),
    }
    home.mkdir()
    (home / "model.yaml").write_text(yaml.safe_dump(content))
    found = run("llm", "export", str(home / "model.yaml"), "-o", str(home / "out"))
    assert found.code == 0, found.err
    return home / "out"


@pytest.mark.parametrize("name", MODELS)
def test_packed_weights_do_not_contradict_the_record(tmp_path: Path, name: str) -> None:
    out = _exported(tmp_path / "one", name)
    words = ["--inputs", "random"] if name != "several methods" else []
    if not words:
        (tmp_path / "data.py").write_text(DATA)
        words = ["--sequence", f"{tmp_path / 'data.py'}:calls"]
    found = run("run", str(out), *words, "-o", str(tmp_path / "run"))
    assert found.code == 0, found.err
    other = _exported(tmp_path / "two", name, seed=1)
    mixed = run("check", str(out / "model.pte"), str(other / "model.etrecord"))
    assert mixed.code, mixed.out
    assert "differ" in mixed.out + mixed.err


@pytest.mark.parametrize("name", TABLES)
def test_a_quantized_table_does_not_contradict_record_and_trace(tmp_path: Path, name: str) -> None:
    # a pass makes its look-up after the graph was recorded
    out = _exported(tmp_path / "one", name)
    found = run("run", str(out), "--inputs", "random", "-o", str(tmp_path / "run"))
    assert found.code == 0, found.err
    whole = run("check", str(out), str(tmp_path / "run"))
    assert whole.code == 0, whole.out
    plain = _exported(tmp_path / "two", "float") / "model.etrecord"
    for file in (out / "model.pte", tmp_path / "run" / "run.etdp"):
        mixed = run("check", str(file), str(plain))
        assert mixed.code, mixed.out
        assert "do not belong" in mixed.out
