"""The record of a language model is compiled again, with another partitioner too."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
import yaml

from runtime import Runtime
from tests.inspector.cli_runs import run
from tests.llm.configs import LENGTHS, SMALL

pytestmark = pytest.mark.slow
FAMILIES = ("llama3", "qwen3_0_6b", "gemma3")


CALLS = [([[3, 1, 4, 1]], 0), ([[5]], 4), ([[9, 2]], 5)]


def _logits(model: Path) -> list[torch.Tensor]:
    method = Runtime.get().load_program(model).load_method("forward")
    return [
        method.execute([torch.tensor(tokens), torch.tensor([place])])[0].clone()
        for tokens, place in CALLS
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


@pytest.mark.interop
@pytest.mark.parametrize(
    ("custom", "elsewhere"),
    [(False, False), (True, False), (False, True), (True, True)],
    ids=["plain", "custom", "elsewhere", "custom_elsewhere"],
)
def test_a_decoder_compiles_for_a_backend_of_the_package(
    *, custom: bool, elsewhere: bool, tmp_path: Path
) -> None:
    """It fuses norms, whose epsilon it reads; attention that it does not know stays outside."""
    model = {"use_kv_cache": True, "use_sdpa_with_kv_cache": custom}
    content = {
        "base": {"model_class": "llama3", "params": SMALL},
        "model": model,
        "export": LENGTHS,
    }
    config, out, again = tmp_path / "model.yaml", tmp_path / "out", tmp_path / "again"
    config.write_text(yaml.safe_dump(content))
    found = run("llm", "export", str(config), "-o", str(out))
    assert found.code == 0, found.err
    source = str(out / "model.etrecord")
    words = ("--backend-python", sys.executable) if elsewhere else ()
    found = run("compile", source, "--partitioner", "vulkan", *words, "-o", str(again))
    assert found.code == 0, found.err
    plan = Runtime.get().load_program(again / "model.pte").file.plan("forward")
    assert {one.id for one in plan.delegates} == {"VulkanBackend"}
    outside = [one.full_name for one in plan.operators if one.full_name.startswith("llama::")]
    assert bool(outside) is custom
    given, wanted = (_logits(folder / "model.pte") for folder in (again, out))
    torch.testing.assert_close(given, wanted, atol=1e-5, rtol=1e-5)


def test_a_program_compiled_from_a_record_is_compared_with_the_float_model(tmp_path: Path) -> None:
    """Its configuration is that of the record, as long as that file is the one it came from."""
    content = {
        "base": {"model_class": "llama3", "params": {**SMALL, "vocab_size": 256}},
        "model": {"use_kv_cache": True},
        "export": LENGTHS,
    }
    config, out = tmp_path / "model.yaml", tmp_path / "out"
    once, twice = tmp_path / "once", tmp_path / "twice"
    config.write_text(yaml.safe_dump(content))
    steps = (
        ("llm", "export", config, "-o", out),
        ("compile", out / "model.etrecord", "--partitioner", "xnnpack", "-o", once),
        ("compile", once / "model.etrecord", "-o", twice),
    )
    for step in steps:
        found = run(*map(str, step))
        assert found.code == 0, found.err
    words = ("llm", "gap", str(twice), "--prompt", "Once upon a time")
    found = run(*words[:2], str(once), *words[2:])
    assert found.code == 0, found.err
    assert str(once) in found.out
    assert "has changed" not in found.out
    config.write_text(config.read_text() + "# edited\n")
    found = run(*words)
    assert found.code == 0, found.err
    assert f"{config}: has changed since the compile" in found.out
    (once / "model.etrecord").write_bytes((out / "model.etrecord").read_bytes())
    found = run(*words)
    assert found.code == 2
    assert "no configuration is known that it was compiled from" in found.err
    assert "--config FILE.yaml" in found.err
    found = run(*words, "--config", str(config))
    assert found.code == 0, found.err
    assert "both choose the same token everywhere" in found.out
    found = run(*words, "--config", str(once / "model.pte"))
    assert "--config: " in found.err
