"""Constant methods that a configuration adds, and settings that exclude one another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.export import export

from compiler import to_edge_transform_and_lower
from compiler.llm.config import LlmConfigError, config_of
from compiler.llm.export import constants_of, export_llm, exported_llm
from compiler.llm.model import build_model
from runtime import ExecutionError, Runtime
from runtime.llm import TextRunner
from tests.llm.configs import CACHE, SMALL

LLAMA = {"model_class": "llama3", "params": {**SMALL, "n_layers": 1}}


def _content(metadata: object, **groups: Any) -> dict[str, Any]:
    return {"base": {**LLAMA, "metadata": metadata}, **groups}


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ("{", "base.metadata: not JSON"),
        ('"{bad"', "base.metadata: not JSON"),
        ("[" * 100_000, "base.metadata: not JSON"),
        ("[1]", "base.metadata: expected values by the name"),
        ({"": 1}, "base.metadata: expected the name of a method, found ''"),
        ({"a/b": 1}, "base.metadata: expected the name of a method, found 'a/b'"),
        ({"x": None}, "base.metadata.x: expected a number"),
        ({"x": [[1]]}, "base.metadata.x: expected a number"),
        ({"x": 1 << 63}, "base.metadata.x: expected a number of 64 bits"),
        ({"x": [1, -(1 << 70)]}, "base.metadata.x: expected a number of 64 bits"),
        ({"x": "\ud800"}, "base.metadata.x: expected a number"),
        ({"x": "a\0b"}, "base.metadata.x: expected a number"),
        ({"get_bos_id": "x"}, "base.metadata.get_bos_id: expected an integer, found 'x'"),
        ({"get_bos_id": [1]}, "base.metadata.get_bos_id: expected an integer"),
        ({"get_eos_ids": [1, 2.5]}, "base.metadata.get_eos_ids: expected an integer"),
        ({"get_max_seq_len": True}, "base.metadata.get_max_seq_len: expected an integer"),
    ],
)
def test_what_no_program_can_hold_is_named_by_its_path(metadata: object, words: str) -> None:
    with pytest.raises(LlmConfigError) as found:
        config_of(_content(metadata))
    assert words in str(found.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (_content({"forward": 1}), "base.metadata: forward names a method and a value"),
        (
            _content(None, multimethod={"methods": [{"method_name": "get_vocab_size"}]}),
            "multimethod.methods: get_vocab_size names a method and a value",
        ),
    ],
)
def test_a_name_is_that_of_one_method(content: dict[str, Any], words: str) -> None:
    with pytest.raises(LlmConfigError, match=words):
        exported_llm(config_of(content))


@pytest.mark.parametrize("value", ["x", [3, "y"]])
def test_a_token_that_is_no_number_is_refused_by_the_runner(tmp_path: Path, value: object) -> None:
    edge = to_edge_transform_and_lower(
        export(torch.nn.Linear(2, 2), (torch.ones(1, 2),)), constant_methods={"get_eos_ids": value}
    )
    (tmp_path / "model.pte").write_bytes(edge.to_executorch().buffer)
    with pytest.raises(ExecutionError, match=r"get_eos_ids: expected a number, found '[xy]'"):
        TextRunner(tmp_path / "model.pte", "bytes").load()


def test_values_are_asked_by_name() -> None:
    metadata = {"least": -(1 << 63), "text": "é", "several": [1, "a", 2.5], "none": []}
    program = Runtime.get().load_program(export_llm(config_of(_content(metadata))).buffer)
    for name, value in metadata.items():
        wanted = value if isinstance(value, list) else [value]
        assert list(program.load_method(name).execute([])) == wanted


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            {"model": {**CACHE, "use_attention_sink": "2,6", "local_global_attention": [4]}},
            "model.use_attention_sink: excludes model.local_global_attention",
        ),
        (
            {"quantization": {"embedding_quantize": "4,"}},
            "quantization.embedding_quantize: expected BITS,GROUP",
        ),
        ({"quantization": {"group_size": 32}}, "quantization.group_size: needs quantization.qmode"),
        (
            {"quantization": {"calibration_limit": 5}},
            "quantization.calibration_limit: not supported",
        ),
        (
            {"quantization": {"calibration_seq_length": 5}},
            "quantization.calibration_seq_length: not supported",
        ),
    ],
)
def test_settings_without_effect_are_refused(content: dict[str, Any], words: str) -> None:
    with pytest.raises(LlmConfigError, match=words):
        config_of(content)


@pytest.mark.parametrize("pattern", [[1, 2, 3], [8, 0]])
def test_a_pattern_of_windows_is_repeated_over_all_layers(pattern: list[int]) -> None:
    params = {**SMALL, "n_layers": 4}
    content = {"base": {**LLAMA, "params": params}, "model": {**CACHE}}
    content["model"]["local_global_attention"] = pattern
    if 4 % len(pattern) == 0:
        assert export_llm(config_of(content)).buffer
        return
    words = "model.local_global_attention: 3 windows, which do not divide the 4 layers"
    with pytest.raises(LlmConfigError, match=words):
        export_llm(config_of(content))


@pytest.mark.parametrize("value", [{"a": 1}, "2", 1 << 70, [1, "a"], True, 1.5])
@pytest.mark.parametrize("name", ["bos_token_id", "eos_token_id"])
def test_tokens_of_a_checkpoint_are_numbers(name: str, value: object) -> None:
    chosen = config_of(_content(None))
    model = replace(build_model(chosen), config={name: value})
    with pytest.raises(LlmConfigError, match=f"config.json: {name}: expected a token"):
        constants_of(chosen, model)


def test_negative_tokens_of_a_checkpoint_stand_for_none() -> None:
    chosen = config_of(_content(None))
    model = replace(build_model(chosen), config={"bos_token_id": -1, "eos_token_id": [-1, 3]})
    found = constants_of(chosen, model)
    assert "get_bos_id" not in found
    assert found["get_eos_ids"] == [3]
