"""Caches of windows are rings: as short as the window allows, and without an end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from compiler.llm.attention import CacheOptions
from compiler.llm.config import LlmConfig
from compiler.llm.decoder import Decoder
from compiler.llm.export import export_llm
from compiler.llm.model import build_model
from compiler.llm.plan import plan_lengths
from inspector.worker import llm_gap
from inspector.worker.llm_gap import reference_reader
from runtime import Runtime
from runtime.llm import GenerationConfig, TextRunner
from tests.llm.configs import CACHE, CUSTOM, PROMPT, config, generated

pytestmark = pytest.mark.slow
COUNT = 90  # tokens, beyond the 48 positions of the context
SHORT = {"max_seq_length": 8, "max_context_length": 48}
CASES: dict[str, LlmConfig] = {
    "mistral": config("mistral", CACHE, windows=[6, 6]),
    "custom": config("llama3", CUSTOM, windows=[6, 9]),
    "scaled": config("llama3_2", CACHE, windows=[5, 5], use_scaled_rope=True),
    "gemma3": config("gemma3", CACHE, windows=[6, 4], local_rope_theta=1000.0),
    "sink": config("llama3", {**CACHE, "use_attention_sink": "2,6"}),
    "custom_sink": config("llama3", {**CUSTOM, "use_attention_sink": "4,7"}),
}


def _short(chosen: LlmConfig) -> LlmConfig:
    return replace(chosen, export=replace(chosen.export, max_seq_length=8))


def _whole(chosen: LlmConfig) -> Decoder:
    """Return the model without a cache, for texts of any length."""
    built = build_model(chosen)
    cache = CacheOptions(length=4 * COUNT, sink=built.cache.sink)
    module = Decoder(built.sizes, cache, all_logits=False, dtype=torch.float32)  # type: ignore
    module.load_state_dict(
        {k: v for k, v in built.module.state_dict().items() if "kv_cache" not in k}, strict=False
    )
    return module.eval()


def _caches(chosen: LlmConfig) -> list[int]:
    module = build_model(chosen).module
    dim = 1 if chosen.model.use_sdpa_with_kv_cache else 2
    found = dict(module.named_buffers())
    return [one.shape[dim] for name, one in found.items() if name.endswith("kv_cache.keys")]


@pytest.mark.parametrize("name", CASES)
def test_tokens_beyond_the_context_are_those_of_a_model_that_sees_all(name: str) -> None:
    chosen = _short(CASES[name])
    method = Runtime.get().load_program(export_llm(chosen).buffer).load_method("forward")
    found = generated(
        lambda *given: method.execute(list(given))[0].clone(), PROMPT, COUNT, cache=True
    )
    with torch.no_grad():
        assert found == generated(_whole(chosen), PROMPT, COUNT, cache=False)


def test_a_call_may_be_as_long_as_the_configuration_allows() -> None:
    chosen = _short(CASES["custom_sink"])
    tokens = torch.randint(0, 96, (1, 80), generator=torch.Generator().manual_seed(3))
    module, whole = build_model(chosen).module, _whole(chosen)
    method = Runtime.get().load_program(export_llm(chosen).buffer).load_method("forward")
    with torch.no_grad():
        for at in range(0, 80, 8):
            given = tokens[:, at : at + 8], torch.tensor([at])
            wanted = whole(tokens[:, : at + 8])
            torch.testing.assert_close(module(*given), wanted, rtol=1e-4, atol=1e-5)
            (found,) = method.execute(list(given))
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_only_layers_with_a_short_window_have_rings() -> None:
    assert _caches(_short(CASES["custom"])) == [6 + 7, 9 + 7]
    assert _caches(_short(CASES["sink"])) == [2 + 6 + 7] * 2
    mixed = _short(config("gemma2", CACHE, windows=[6, 0]))
    assert _caches(mixed) == [6 + 7, 48]
    assert _caches(_short(config("mistral", CACHE, windows=[64, 64]))) == [48, 48]
    for chosen, rolls in ((mixed, False), (_short(CASES["custom"]), True)):
        names = {one.name for one in export_llm(chosen).executorch_program.execution_plan}
        assert ("use_rolling_kv_cache" in names) is rolls


def test_a_quantized_ring_stays_close_to_the_float_one() -> None:
    plain = _short(CASES["custom"])
    small = replace(plain, model=replace(plain.model, quantize_kv_cache=True))
    tokens = list(range(60))
    difference = (
        (torch.stack(list(reference_reader(plain)(tokens))) - _logits(small, tokens)).abs().max()
    )
    assert 0 < difference < 0.05


def _logits(chosen: LlmConfig, tokens: list[int]) -> torch.Tensor:
    module = build_model(
        replace(chosen, debug=replace(chosen.debug, generate_full_logits=True))
    ).module
    with torch.no_grad():
        found = [module(torch.tensor([[one]]), torch.tensor([at])) for at, one in enumerate(tokens)]
    return torch.cat([one[0] for one in found])


def test_a_plan_counts_rings_by_their_length() -> None:
    chosen = _short(config("gemma2", CACHE, windows=[6, 0]))
    row = 2 * 2 * 16 * 4  # keys and values, groups, size of a head, bytes
    found = plan_lengths(chosen, (8, 48, 1000))
    assert [one.cache for one in found] == [row * (8 + 8), row * (13 + 48), row * (13 + 1000)]


def test_a_runner_goes_on_behind_the_context(tmp_path: Path) -> None:
    texts: dict[str, Any] = {}
    for name, windows in (("rolls", [6, 6]), ("ends", [6, 0])):
        chosen = _short(config("mistral", CACHE, windows=windows, vocab_size=256))
        path = tmp_path / f"{name}.pte"
        path.write_bytes(export_llm(chosen).buffer)
        runner = TextRunner(path, "bytes")
        many = GenerationConfig(max_new_tokens=COUNT, ignore_eos=True)
        texts[name] = runner.generate("Hello", many)
        if name == "rolls":
            again = runner.generate("x" * 60, GenerationConfig(max_new_tokens=3, ignore_eos=True))
            assert len(again.tokens) == 3
    assert len(texts["rolls"].tokens) == COUNT
    assert len(texts["ends"].tokens) == 48 - 5 + 1


@pytest.mark.parametrize("name", ["mistral", "custom_sink"])
def test_the_reference_reads_a_text_of_any_length_call_by_call(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All logits of a long text would not fit into memory at once."""
    calls: list[int] = []

    def counted(chosen: LlmConfig) -> Any:
        made = build_model(chosen)
        made.module.register_forward_pre_hook(lambda _, given: calls.append(given[0].shape[1]))
        return made

    monkeypatch.setattr(llm_gap, "build_model", counted)
    tokens = torch.randint(1, 90, (600,)).tolist()
    logits = llm_gap.reference_reader(_short(CASES[name]))(tokens)
    next(logits)
    assert calls == [8]
    assert sum(1 for _ in logits) == 599
    assert calls == [8] * 75
