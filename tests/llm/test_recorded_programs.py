"""The record of a language model is compiled again, with another partitioner too."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import yaml

from runtime import Runtime
from tests.inspector.cli_runs import run
from tests.llm.configs import LENGTHS, SMALL

pytestmark = pytest.mark.slow
FAMILIES = ("llama3", "qwen3_0_6b", "gemma3")


def _logits(model: Path) -> list[torch.Tensor]:
    method = Runtime.get().load_program(model).load_method("forward")
    calls = [([[3, 1, 4, 1]], 0), ([[5]], 4), ([[9, 2]], 5)]
    return [
        method.execute([torch.tensor(tokens), torch.tensor([place])])[0].clone()
        for tokens, place in calls
    ]


@pytest.mark.parametrize("words", [(), ("--partitioner", "xnnpack")], ids=["portable", "xnnpack"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_recorded_decoder_with_plain_attention_compiles_again(
    family: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    """Sizes that torch reads from a record are formulas of which it knows less than at export."""
    content = {
        "base": {"model_class": family, "params": SMALL},
        "model": {"use_kv_cache": True},
        "export": LENGTHS,
    }
    config, out, again = tmp_path / "model.yaml", tmp_path / "out", tmp_path / "again"
    config.write_text(yaml.safe_dump(content))
    found = run("llm", "export", str(config), "-o", str(out))
    assert found.code == 0, found.err
    found = run("compile", str(out / "model.etrecord"), *words, "-o", str(again))
    assert found.code == 0, found.err
    for one, other in zip(_logits(again / "model.pte"), _logits(out / "model.pte"), strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
