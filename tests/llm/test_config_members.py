"""Members of ``config.json`` that are null, 0, of another type, or left out, by family."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from compiler.errors import CompileError
from compiler.llm.config import config_of
from compiler.llm.decoder import DecoderSizes
from compiler.llm.model import sizes_of
from compiler.llm.size_checks import HfSizes

FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "phi3", "gemma", "gemma2", "gemma3_text")
SIZES = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "vocab_size": 96,
    "intermediate_size": 128,
    "head_dim": 16,
}
NESTED = [
    {path: value}
    for path in ("rope_theta", "full_attention", "sliding_attention", "rope_type")
    for value in (None, 0, "x", [], {"rope_theta": 0}, {"rope_theta": "x"}, {"rope_theta": None})
]
VALUES: tuple[Any, ...] = (None, 0, -1, 0.5, True, "x", [], {}, *NESTED)


def _sizes(folder: Path, kind: str, **members: Any) -> DecoderSizes:
    content = {**SIZES, "model_type": kind, **members}
    (folder / "config.json").write_text(json.dumps(content))
    found, _ = sizes_of(config_of({"base": {"model_class": "", "checkpoint": str(folder)}}))
    assert isinstance(found, DecoderSizes)
    return found


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("name", [one.name for one in fields(HfSizes)])
def test_any_value_of_a_member_is_taken_or_refused_by_path(
    tmp_path: Path, kind: str, name: str
) -> None:
    more = {"use_sliding_window": True}
    for value in VALUES:
        with suppress(CompileError):
            _sizes(tmp_path, kind, **{**more, name: value})


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ({"head_dim": 0}, "head_dim: expected at least 1, found 0"),
        ({"num_key_value_heads": 0}, "num_key_value_heads: expected at least 1, found 0"),
        ({"num_key_value_heads": -4}, "num_key_value_heads: expected at least 1, found -4"),
        ({"rope_theta": 0}, "rope_theta: expected above 0, found 0"),
        ({"rope_theta": 0.0}, "rope_theta: expected above 0, found 0.0"),
        ({"rope_local_base_freq": 0}, "rope_local_base_freq: expected above 0, found 0"),
        ({"partial_rotary_factor": 0}, "partial_rotary_factor: expected above 0, found 0"),
        ({"query_pre_attn_scalar": 0}, "query_pre_attn_scalar: expected above 0, found 0"),
        (
            {"rope_parameters": {"rope_type": "default", "rope_theta": 0}},
            "rope_parameters.rope_theta: expected above 0, found 0",
        ),
        (
            {"rope_parameters": {"sliding_attention": {"rope_theta": -1}}},
            "rope_parameters.sliding_attention.rope_theta: expected above 0, found -1",
        ),
    ],
)
def test_zeros_are_refused_by_path(
    tmp_path: Path, kind: str, members: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(CompileError) as found:
        _sizes(tmp_path, kind, **members)
    assert f"config.json: {sentence}" in str(found.value)


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_null_is_a_default(tmp_path: Path, kind: str) -> None:
    found = _sizes(tmp_path, kind, head_dim=None, num_key_value_heads=None, rope_theta=None)
    assert (found.size_of_head, found.groups, found.rope_theta) == (16, 4, 10000.0)


@pytest.mark.parametrize("count", [4097, 10**9])
def test_more_layers_than_are_built_are_refused(tmp_path: Path, count: int) -> None:
    with pytest.raises(CompileError, match=f"num_hidden_layers: expected at most 4,096.*{count:,}"):
        _sizes(tmp_path, "llama", num_hidden_layers=count)


def test_what_no_shape_shows_has_the_default_of_the_family(tmp_path: Path) -> None:
    assert _sizes(tmp_path, "mistral").window_of_layers == (4096, 4096)
    assert _sizes(tmp_path, "mistral", sliding_window=None).window_of_layers == (0, 0)
    assert _sizes(tmp_path, "gemma3_text").windows == (4096, 4096)
    assert _sizes(tmp_path, "phi3").norm_eps == 1e-5
    gemma = _sizes(tmp_path, "gemma2")
    assert (gemma.attn_logit_softcapping, gemma.final_logit_softcapping) == (50.0, 30.0)
    assert gemma.windows == (4096, 0)
    assert _sizes(tmp_path, "gemma2", final_logit_softcapping=None).final_logit_softcapping == 0.0
    kept = _sizes(tmp_path, "qwen3", num_hidden_layers=30, use_sliding_window=True)
    assert kept.windows == (0,) * 28 + (4096,) * 2
