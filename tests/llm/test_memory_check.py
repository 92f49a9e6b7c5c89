"""What an export needs is compared with the memory of the machine before weights exist."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from compiler.llm import memory_check, model
from compiler.llm.config import LlmConfigError, config_of
from compiler.llm.export import exported_llm
from compiler.llm.memory_check import available_bytes, check_model_memory, needed_elements
from compiler.llm.model import build_model
from compiler.llm.size_checks import FamilyError
from inspector.cli.llm_files import read_source
from inspector.recipes.source import Source
from inspector.worker.language_model import AnswerError, exported_config
from tests.llm.configs import CACHE, CASES, SMALL, config

_GIB = 1 << 30
# families of the package, with few of their sizes: the others are its defaults
FEW: dict[str, dict[str, Any]] = {
    "longcat_flash": {"num_layers": 2, "hidden_size": 512},
    "olmo": {"hidden_size": 4096},
    "gpt_oss": {"num_hidden_layers": 4},
    "mixtral": {"num_hidden_layers": 2},
    "stablelm": {},
    "bloom": {"hidden_size": 4096, "n_layer": 24},
    "mamba": {"hidden_size": 4096, "num_hidden_layers": 48},
}


def _given(family: str, **more: Any) -> Any:
    return config_of({"base": {"model_class": family, "params": {**FEW[family]}}, **more})


@pytest.fixture
def nothing_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test fail where weights are made."""

    make = model._module

    def refuse(*given: Any, **named: Any) -> Any:
        assert torch.empty(0).is_meta, "weights were made"
        return make(*given, **named)

    monkeypatch.setattr(model, "_module", refuse)


def _has(monkeypatch: pytest.MonkeyPatch, size: float) -> None:
    monkeypatch.setattr(memory_check, "available_bytes", lambda: int(size))


@pytest.mark.zoo
@pytest.mark.usefixtures("nothing_built")
@pytest.mark.parametrize("family", FEW)
@pytest.mark.parametrize("cached", [False, True])
def test_families_of_the_package_are_too_large_before_weights_exist(
    family: str, monkeypatch: pytest.MonkeyPatch, *, cached: bool
) -> None:
    pytest.importorskip("transformers")
    chosen = _given(family, model={"use_kv_cache": cached})
    parameters, cache = needed_elements(chosen)
    assert parameters > 1e9
    _has(monkeypatch, parameters * 4 * 2.3 + cache - 1)
    with pytest.raises(LlmConfigError) as found:
        exported_llm(chosen)
    sentence = str(found.value)
    assert sentence.startswith(f"base.params: {parameters:,} parameters in fp32 (")
    assert f"({parameters * 4 / _GIB:,.1f} GiB)" in sentence
    assert f"need {(parameters * 9.2 + cache) / _GIB:,.1f} GiB at the peak" in sentence
    assert "set model.dtype_override: bf16 or smaller sizes as base.params." in sentence
    assert all(f"base.params.{name} ({FEW[family][name]:,})" in sentence for name in FEW[family])
    assert "\n" not in sentence
    _has(monkeypatch, parameters * 9.2 + cache + 1)
    with pytest.raises(AssertionError, match="weights were made"):
        exported_llm(chosen)


@pytest.mark.parametrize("name", CASES)
def test_own_decoders_are_counted_as_their_modules(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = CASES[name]
    parameters, cache = needed_elements(chosen)
    module = build_model(chosen).module
    assert parameters == sum(one.numel() for one in module.parameters())
    assert (cache > 0) is chosen.model.use_kv_cache
    weights = parameters * 4
    _has(monkeypatch, weights + cache)
    check_model_memory(chosen)
    _has(monkeypatch, weights + cache - 1)
    with pytest.raises(LlmConfigError, match=r"parameters in fp32 .* need .* GiB, this machine"):
        check_model_memory(chosen)


@pytest.mark.usefixtures("nothing_built")
def test_what_to_set_is_what_would_help(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = config("llama3", dim=4096, n_layers=32, hidden_dim=14336, n_heads=32, vocab_size=128256)
    _has(monkeypatch, 4 * _GIB)
    with pytest.raises(LlmConfigError) as found:
        exported_llm(wide)
    assert "bf16" not in str(found.value)  # half of it is too much too
    assert "base.params.n_layers (32)" in str(found.value)
    long = {"max_context_length": 1 << 28}
    content = {"base": {"model_class": "llama3", "params": SMALL}, "model": CACHE, "export": long}
    with pytest.raises(LlmConfigError, match=r"^export\.max_context_length: .* set a shorter one$"):
        exported_llm(config_of(content))
    methods = [{"method_name": "a"}, {"method_name": "b", "lora_config": _LORA}]
    parameters, _ = needed_elements(config("llama3"))
    _has(monkeypatch, parameters * 4 * 3)
    content = {"base": content["base"], "multimethod": {"methods": methods}}
    with pytest.raises(LlmConfigError, match=r"^base\.params: "):  # two models and the peak of one
        exported_llm(config_of(content))
    path = tmp_path / "model.yaml"
    path.write_text("base: {model_class: nano_gpt}\n")
    assert read_source(Source(str(path)))
    _has(monkeypatch, 1)
    with pytest.raises(AnswerError, match=r"model\.yaml: base\.params: .* parameters in fp32"):
        exported_config(str(path), "", (), lambda *_, **__: None)


_LORA = {"adapter_checkpoint": "adapter", "lora_rank": 2, "lora_alpha": 2}


def test_memory_of_a_container_is_what_its_group_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_check, "_CGROUP", tmp_path)
    whole = available_bytes()
    assert whole is not None
    assert whole > _GIB // 4
    for name, text in (("max", "1000"), ("current", "700"), ("stat", "anon 5\ninactive_file 50")):
        (tmp_path / f"memory.{name}").write_text(text)
    assert available_bytes() == 350
    (tmp_path / "memory.max").write_text("max")  # no limit
    free = available_bytes()
    assert free is not None
    assert free > _GIB // 4


@pytest.mark.parametrize(
    "options",
    [
        {"use_sdpa_with_kv_cache": True},
        {"quantize_kv_cache": True},
        {"use_attention_sink": "2,6"},
        {"local_global_attention": [4, 0]},
    ],
)
@pytest.mark.parametrize(
    ("family", "params", "sentence"),
    [
        ("gpt9", {}, "base.model_class: unknown model_type 'gpt9'"),
        ("llama3", {"widht": 3}, "unknown widht; available: dim"),
        ("llama3", {"n_heads": 3}, "heads"),
    ],
)
def test_options_of_a_cache_do_not_hide_what_is_wrong_with_sizes(
    options: dict[str, Any], family: str, params: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(FamilyError) as caught:
        exported_llm(config(family, {**CACHE, **options}, **params))
    assert sentence in str(caught.value)
    assert "needs model.use_kv_cache" not in str(caught.value)
