"""Language models by configuration: the same tokens as eager, with and without a cache."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from compiler.errors import CompileError
from compiler.llm.config import (
    LlmConfigError,
    ModelConfig,
    config_of,
    metadata_of,
    read_config,
    split_settings,
)
from compiler.llm.export import export_llm, exported_llm
from compiler.llm.families import FamilyError
from compiler.llm.model import build_model
from compiler.llm.safetensors import CheckpointError, read_safetensors, write_safetensors
from compiler.quantize.weights import WeightModes, quantize_weights
from runtime import Runtime
from tests.llm.configs import CACHE, CASES, PROMPT, config, generated

ALIASES: list[Any] = ["x"]  # as aliases of a YAML file: each level names the one below ten times
for _level in range(9):
    ALIASES = [ALIASES] * 10
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", CASES)
def test_a_program_generates_the_tokens_of_eager(name: str) -> None:
    chosen = CASES[name]
    method = Runtime.get().load_program(export_llm(chosen).buffer).load_method("forward")
    cache = chosen.model.use_kv_cache
    found = generated(
        lambda *given: method.execute(list(given))[0].clone(), PROMPT, 12, cache=cache
    )
    eager = build_model(chosen).module
    with torch.no_grad():
        assert found == generated(eager, PROMPT, 12, cache=cache)
        if "int8" not in name and name != "sink":
            whole = build_model(replace(chosen, model=ModelConfig())).module
            assert found == generated(whole, PROMPT, 12, cache=False)


def test_two_methods_share_the_cache() -> None:
    chosen = config_of(
        {
            "base": {"model_class": "llama3", "params": config("llama3").base.params},
            "model": {**CACHE, "enable_dynamic_shape": False},
            "export": {"max_seq_length": 32, "max_context_length": 48},
            "multimethod": {
                "methods": [
                    {"method_name": "prefill", "export_seq_len": len(PROMPT)},
                    {"method_name": "decode", "export_seq_len": 1},
                ]
            },
        }
    )
    program = Runtime.get().load_program(export_llm(chosen).buffer)
    methods = {1: program.load_method("decode"), len(PROMPT): program.load_method("prefill")}

    def step(tokens: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        return methods[tokens.shape[1]].execute([tokens, place])[0].clone()

    eager = build_model(chosen).module
    with torch.no_grad():
        wanted = generated(eager, PROMPT, 10, cache=True)
    assert generated(step, PROMPT, 10, cache=True) == wanted


def test_constant_methods_answer_a_runner() -> None:
    chosen = config("llama3", CACHE)
    chosen = replace(
        chosen, base=replace(chosen.base, metadata='{"get_bos_id": 1, "get_eos_ids": [2, 3]}')
    )
    program = Runtime.get().load_program(export_llm(chosen).buffer)

    def asked(name: str) -> list[object]:
        return list(program.load_method(name).execute([]))

    assert asked("get_max_context_len") == [48]
    assert asked("get_vocab_size") == [96]
    assert asked("use_kv_cache") == [True]
    assert asked("get_bos_id") == [1]
    assert asked("get_eos_ids") == [2, 3]


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ({"model": {"kv": True}}, "config: model: unknown kv; available: dtype_override"),
        ({"export": {"max_seq_length": "a"}}, "config: export.max_seq_length: expected an int"),
        ({"export": {"max_seq_length": 256}}, "export.max_context_length: 128 is less than"),
        ({"model": {"quantize_kv_cache": True}}, "model.quantize_kv_cache: needs model.use_kv_"),
        ({"backend": {"qnn": {"enabled": True}}}, "backend.qnn.enabled: no partitioner"),
        ({"quantization": {"use_spin_quant": "native"}}, "quantization.use_spin_quant: not supp"),
        ({"model": {**CACHE, "use_attention_sink": "4"}}, "model.use_attention_sink: expected SI"),
        ({"model": {**CACHE, "use_attention_sink": "4,0"}}, "model.use_attention_sink: expected a"),
        ({"model": {**CACHE, "local_global_attention": []}}, "model.local_global_attention: expe"),
        ({"model": {**CACHE, "local_global_attention": [-1]}}, "model.local_global_attention: ex"),
        ({"export": {"foundation_weights_file": "../x"}}, "export.foundation_weights_file: expec"),
        ({"export": {"lora_weights_file": "/tmp/x.ptd"}}, "export.lora_weights_file: expected the"),
        ({"export": {"foundation_weights_file": "."}}, "export.foundation_weights_file: expec"),
        ({"export": {"foundation_weights_file": "a\\b"}}, "export.foundation_weights_file: exp"),
        (
            {"export": {"foundation_weights_file": "a", "lora_weights_file": "a.ptd"}},
            "export.lora_weights_file: expected another file than foundation_weights_file",
        ),
        ({"base": {"metadata": {"x": ALIASES}}}, "config: more than 100,000 entries"),
        ({"export": {"output_name": "x.pte"}}, "export.output_name: not supported"),
        ({"model": {"use_shared_embedding": True}}, "model.use_shared_embedding: needs torchao's"),
        (
            {"model": {"quantize_kv_cache": True}, "quantization": {"use_qat": True}},
            "needs model.use_kv_cache: true; quantization.use_qat: not supported",
        ),
        ({"quantization": {"group_size": 0}}, "quantization.group_size: expected at least 1"),
        ({"quantization": {"qmode": "5w"}}, "quantization.qmode: unknown '5w'; available: 8da4w,"),
        *[
            (
                {"quantization": {"embedding_quantize": word}},
                f"BITS,GROUP, such as 4,32, found {word!r}",
            )
            for word in ("x", "4;32", "3,32", "4,-3")
        ],
        (
            {"quantization": {"modules": {"lm_head": "dynamic"}}},
            "quantization.modules.lm_head: unknown word 'dynamic'; available: 8da4w[:group=N]",
        ),
        ({"quantization": {"pt2e_quantize": "xnnpack"}}, "quantization.pt2e_quantize: xnnpack is"),
        ({"multimethod": {"methods": [{"method_name": ""}]}}, "multimethod.methods[0].method_name"),
        (
            {"multimethod": {"methods": [{"method_name": "a", "export_seq_len": 500}]}},
            "multimethod.methods[0].export_seq_len: expected 1 to",
        ),
        (
            {"model": {"dtype_override": "fp8"}},
            "model.dtype_override: unknown 'fp8'; available: fp32, fp16, bf16",
        ),
        (
            {"base": {"lora_config": {"adapter_checkpoint": "a", "adapter_quant": "x"}}},
            "base.lora_config.adapter_quant: unknown 'x'; available: int8, fp16, fp32",
        ),
        ({1: 2}, "config: expected a string as key, found 1"),
        ({"base": {1: 2}}, "config: base: expected a string as key, found 1"),
        ({"base": {"seed": 1 << 70}}, "base.seed: expected a number of 64 bits, found 1180"),
    ],
)
def test_an_invalid_key_is_named_by_its_path(content: dict[str, object], path: str) -> None:
    with pytest.raises(LlmConfigError) as found:
        config_of(content)
    assert path in str(found.value)


@pytest.mark.parametrize(
    ("quantization", "sentence"),
    [
        ({"qmode": "8da4w", "group_size": 7}, "group_size: h.0.attn.c_attn has 128 inputs, which"),
        ({"qmode": "4w:group=48"}, "qmode: h.0.attn.c_attn has 128 inputs, which groups of 48"),
        (
            {"embedding_quantize": "4,7"},
            "embedding_quantize: wpe has 128 inputs, which groups of 7",
        ),
        ({"modules": {"lm_head": "8da4w:group=7"}}, "modules: lm_head has 128 inputs, which"),
    ],
)
def test_groups_that_do_not_divide_a_layer_are_named_by_their_key(
    quantization: dict[str, object], sentence: str
) -> None:
    with pytest.raises(LlmConfigError) as found:
        export_llm(config_of({"quantization": quantization}))
    assert str(found.value).startswith(f"quantization.{sentence}")


def test_settings_change_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("base: {checkpoint: weights}\nmodel: {use_kv_cache: true}\n")
    found = read_config(path, ("export.max_seq_length=64", "model.local_global_attention=[0, 16]"))
    assert found.export.max_seq_length == 64
    assert found.model.local_global_attention == (0, 16)
    assert found.base.checkpoint == str(tmp_path / "weights")
    with pytest.raises(LlmConfigError, match=r"expected GROUP\.NAME=VALUE"):
        read_config(path, ("max_seq_length",))


def test_settings_in_one_text_are_split_between_names() -> None:
    words = ("a.b=4,32", "model.local_global_attention=[0, 16]", "c.d.e='1,2'")
    assert split_settings(",".join(words)) == words
    assert split_settings("") == ()


def test_sizes_that_are_missing_or_unknown_are_named() -> None:
    with pytest.raises(FamilyError, match="unknown widht; available: dim"):
        export_llm(config("llama3", widht=3))
    with pytest.raises(FamilyError, match=r"base\.model_class: unknown model_type 'gpt9'"):
        export_llm(config("gpt9"))
    with pytest.raises(FamilyError, match=r"base\.model_class: unknown model_type 'gpt9'"):
        export_llm(config_of({"base": {"model_class": "gpt9"}}))
    with pytest.raises(FamilyError, match=r"base\.params: dim is missing"):
        export_llm(config_of({"base": {"model_class": "llama3", "params": {"n_layers": 1}}}))


@pytest.mark.parametrize("family", ["llama3", "qwen3_0_6b", "gemma3", "phi_4_mini", "mistral"])
def test_typed_sizes_by_names_of_a_config_json_have_no_others(family: str, tmp_path: Path) -> None:
    sizes = {
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "head_dim": 16,
        "vocab_size": 64,
        "intermediate_size": 32,
        "torch_dtype": "float32",
    }
    assert build_model(config_of({"base": {"model_class": family, "params": sizes}})).module
    wrong = {**sizes, "num_hidden_layer": 2}
    with pytest.raises(FamilyError, match=r"base\.params: unknown name 'num_hidden_layer'; avail"):
        build_model(config_of({"base": {"model_class": family, "params": wrong}}))
    path = tmp_path / "config.json"  # the file of a checkpoint may say more
    path.write_text(json.dumps({**sizes, "unsloth_version": "1"}))
    assert build_model(config_of({"base": {"model_class": family, "params": str(path)}})).module


_ORIGINAL = "original_max_position_embeddings"
_LLAMA3 = {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, _ORIGINAL: 8}
_LONG = {
    "short_factor": [1.0, 2.0],
    "long_factor": [1.0, 2.0],
    _ORIGINAL: 8,
    "max_position_embeddings": 64,
}


# longer than any context of these tests: refused by the sizes alone
_DYNAMIC = {"rope_type": "dynamic", "factor": 2, "max_position_embeddings": 1 << 20}
_ONE = {"short_factor": [1.0], "long_factor": [2.0]}


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"dim": "64"}, "base.params.dim: expected an integer, found '64'"),
        ({"dim": 0}, "base.params.dim: expected at least 1, found 0"),
        ({"n_layers": -1}, "base.params.n_layers: expected at least 1"),
        ({"n_heads": 5}, "base.params.n_heads: 5 heads do not divide dim 64"),
        ({"n_kv_heads": 3}, "base.params.n_kv_heads: 3 heads of keys do not divide n_heads 4"),
        ({"head_dim": 7}, "base.params.head_dim: expected an even number"),
        ({"act_fn": "sine"}, "base.params.act_fn: unknown 'sine'; available: silu"),
        ({"windows": [4]}, "base.params.windows: expected one for each of 2 layers"),
        ({"windows": [4, -1]}, "base.params.windows: expected at least 0"),
        ({"rope_theta": 0}, "base.params.rope_theta: expected above 0"),
        ({"partial_rotary_factor": 2.0}, "base.params.partial_rotary_factor: expected above 0"),
        *[
            ({"rope_scaling": scaling}, f"base.params.rope_scaling{sentence}")
            for scaling, sentence in (
                ({"rope_type": "ntk"}, ": unknown 'ntk'; available: default, linear"),
                ({"rope_type": "llama3"}, ".factor: expected a positive number, found None"),
                ({"rope_type": "linear", "factor": -1}, ".factor: expected a positive number"),
                ({"rope_type": "dynamic", "factor": 2}, ".max_position_embeddings: expected a"),
                (
                    {"rope_type": "yarn", "factor": "2", _ORIGINAL: 8},
                    ".factor: expected a positive number",
                ),
                ({**_LLAMA3, "high_freq_factor": 1}, ".high_freq_factor: 1 is not above low_freq"),
                ({"rope_type": "longrope", **_LONG}, ".short_factor: expected 8 numbers, found 2"),
            )
        ],
        ({"rope_scaling": "x"}, "base.params.rope_scaling: expected an object"),
        *[
            (
                {"head_dim": 2, "rope_scaling": scaling, **more},
                f"base.params.rope_scaling{sentence}",
            )
            for scaling, more, sentence in (
                (_DYNAMIC, {}, ": dynamic needs more than 2 turned elements, found 2"),
                (
                    _DYNAMIC,
                    {"head_dim": 8, "partial_rotary_factor": 0.25},
                    ": dynamic needs more than 2 turned elements, found 2",
                ),
                (
                    {**_DYNAMIC, "max_position_embeddings": 0.5},
                    {"head_dim": 8},
                    ".max_position_embeddings: expected at least 1, found 0.5",
                ),
                (
                    {"rope_type": "yarn", "factor": 2, _ORIGINAL: 8},
                    {"rope_theta": 1},
                    ": yarn needs a rope_theta above 1, found 1",
                ),
                (
                    {"rope_type": "longrope", **_LONG, "short_factor": [1.0], "long_factor": []},
                    {},
                    ".long_factor: expected 1 numbers, found 0",
                ),
                (
                    {"rope_type": "longrope", **_ONE, _ORIGINAL: 1, "max_position_embeddings": 4},
                    {},
                    ".original_max_position_embeddings: expected above 1, found 1",
                ),
            )
        ],
        ({"vocab_size": 10**12}, "parameters, more than"),
    ],
)
def test_sizes_that_do_not_fit_are_named_before_weights_exist(
    params: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(CompileError) as found:
        build_model(config("llama3", **params))
    assert sentence in str(found.value)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"hidden_size": "64"}, "base.params.hidden_size: expected an integer, found '64'"),
        ({"hidden_size": 0}, "base.params.hidden_size: expected at least 1, found 0"),
        ({"num_attention_heads": 5}, "base.params.num_attention_heads: 5 heads do not divide"),
        ({"rms_norm_eps": -1.0}, "base.params.rms_norm_eps: expected at least 0, found -1.0"),
        ({"rms_norm_eps": math.inf}, "base.params.rms_norm_eps: expected a finite number"),
        ({"rope_theta": math.nan}, "base.params.rope_theta: expected a finite number, found nan"),
        ({"hidden_act": "sine"}, "base.params.hidden_act: unknown 'sine'; available: silu"),
        ({"layer_types": ["full_attention"]}, "base.params.layer_types: expected one for each of"),
        ({"hidden_siz": 64}, "base.params: unknown name 'hidden_siz'; available: "),
        *[
            (
                {"head_dim": 2, name: _DYNAMIC},
                f"base.params.{name}: dynamic needs more than 2 turned",
            )
            for name in ("rope_scaling", "rope_parameters")
        ],
    ],
)
def test_sizes_by_the_names_of_a_checkpoint_are_told_by_these(
    params: dict[str, Any], sentence: str
) -> None:
    sizes = {
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "vocab_size": 96,
        "intermediate_size": 128,
    }
    with pytest.raises(CompileError) as found:
        build_model(config_of({"base": {"model_class": "llama3", "params": {**sizes, **params}}}))
    assert str(found.value).startswith(sentence)


@pytest.mark.parametrize(
    "text", ["base: &a {params: *a}", f"a: {'[' * 5000}", "base: {metadata: {get_x: {a: 1}}}"]
)
def test_a_file_with_too_many_levels_or_kinds_is_one_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text)
    with pytest.raises(LlmConfigError):
        metadata_of(read_config(path))


def test_a_safetensors_file_is_read_without_unpickling(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    tensors = {"a": torch.randn(3, 4), "b": torch.arange(5), "c": torch.ones(2).bfloat16()}
    write_safetensors({**tensors, "empty": torch.empty(0, 2)}, path)
    found = read_safetensors(path)
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())
    assert found["empty"].shape == (0, 2)
    data = path.read_bytes()
    for bad in (data[:4], b"\xff" * 16, data[:-3], data[:9] + b"?" + data[10:]):
        path.write_bytes(bad)
        with pytest.raises(CheckpointError):
            read_safetensors(path)


@pytest.mark.parametrize("second", [(0, 8), (4, 12), (4, 8), (0, 16)])
def test_tensors_of_safetensors_that_share_bytes_are_refused(
    tmp_path: Path, second: tuple[int, int]
) -> None:
    path, (begin, end) = tmp_path / "model.safetensors", second
    entries = {
        "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
        "none": {"dtype": "F32", "shape": [0], "data_offsets": [4, 4]},
        "b": {"dtype": "F32", "shape": [(end - begin) // 4], "data_offsets": [begin, end]},
    }
    header = json.dumps(entries).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(16))
    with pytest.raises(CompileError, match=r"(a and b|b and a) share bytes"):
        read_safetensors(path)


@pytest.mark.parametrize(
    "entry",
    [
        '{"dtype": "F32", "shape": [-1, -1], "data_offsets": [0, 4]}',
        '{"dtype": "F32", "shape": [1099511627776, 1099511627776], "data_offsets": [0, 4]}',
        '{"dtype": "F32", "shape": ["1"], "data_offsets": [0, 4]}',
        '{"dtype": "F32", "shape": [1.5], "data_offsets": [0, 4]}',
        '{"dtype": "F32", "shape": [Infinity], "data_offsets": [0, 4]}',
        '{"dtype": "F32", "shape": [0, 4611686018427387904], "data_offsets": [0, 0]}',
        '{{"dtype": "F32", "shape": [{}], "data_offsets": [0, 4]}}'.format(", ".join("1" * 99)),
        '{"dtype": ["F32"], "shape": [1], "data_offsets": [0, 4]}',
        '{"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}',
        '{"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}',
        "null",
    ],
)
def test_a_hostile_header_of_safetensors_is_one_sentence(tmp_path: Path, entry: str) -> None:
    path = tmp_path / "a.safetensors"
    header = f'{{"a": {entry}}}'.encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    with pytest.raises(CheckpointError, match=r"a\.safetensors: a: "):
        read_safetensors(path)


@pytest.mark.parametrize("word", ["8da4w:group=32", "8da8w", "4w", "int8"])
@pytest.mark.parametrize("family", ["nano_gpt", "llama3"])
def test_quantized_weights_stay_close_to_the_float_program(word: str, family: str) -> None:
    program = exported_llm(config(family, CACHE)).programs["forward"]
    how = WeightModes(word, "4:group=32")
    changed = quantize_weights(program, how)
    given = torch.tensor([PROMPT]), torch.tensor([0])
    wanted, found = program.module()(*given), changed.module()(*given)
    difference = (wanted - found).abs().max()
    assert 0 < difference < wanted.abs().max()
    targets = {str(node.target) for node in changed.graph.nodes}
    assert any("dequantize" in target for target in targets)


def test_a_module_can_be_left_in_float() -> None:
    program = exported_llm(config("llama3", CACHE)).programs["forward"]

    def quantized(how: WeightModes) -> int:
        changed = quantize_weights(program, how)
        return sum("dequantize" in str(node.target) for node in changed.graph.nodes)

    every = quantized(WeightModes("int8"))
    assert quantized(WeightModes("int8", modules={"model.layers.1": "none"})) == every - 7
    assert quantized(WeightModes("none", modules={"model.layers.1.mlp": "int8"})) == 3
    with pytest.raises(CompileError, match=r"^quantization\.modules\.layers: no linear"):
        quantized(WeightModes("int8", modules={"layers": "none"}))
    with pytest.raises(CompileError, match="which groups of 48 do not divide"):
        quantized(WeightModes("8da4w:group=48"))


def test_a_configuration_is_quantized_and_run_by_the_documented_names(tmp_path: Path) -> None:
    import compiler.llm as llm
    from runtime.llm import GenerationConfig, TextRunner

    plain = config("nano_gpt", CACHE, vocab_size=256)
    wanted = llm.export_llm(plain).buffer
    chosen = replace(
        plain,
        quantization=replace(plain.quantization, embedding_quantize="4,32", qmode="int8"),
    )
    program = llm.export_llm(chosen)
    names = {one.name for one in program.executorch_program.execution_plan[0].operators}
    assert "quantized_decomposed::embedding_4bit" in names
    assert program.buffer != wanted
    path = tmp_path / "model.pte"
    path.write_bytes(wanted)
    runner = TextRunner(path, "bytes")
    pieces: list[str] = []
    first = runner.generate("Hello", GenerationConfig(max_new_tokens=8), pieces.append)
    assert runner.position == 12
    again = runner.generate("Hello", GenerationConfig(max_new_tokens=8))
    assert again.tokens != first.tokens or runner.position == 24
    runner.reset()
    assert runner.generate("Hello", GenerationConfig(max_new_tokens=8)).tokens == first.tokens
    runner.reset()
    drawn = GenerationConfig(max_new_tokens=8, temperature=1.0, top_p=0.9, seed=3)
    one = runner.generate("Hello", drawn).tokens
    runner.reset()
    assert runner.generate("Hello", drawn).tokens == one
    runner.reset()
    ended = runner.generate("Hello", GenerationConfig(), on_call=lambda _: runner.stop())
    assert ended.ended == "stopped"
    runner.reset()
    full = runner.generate("Hello", GenerationConfig(ignore_eos=True))
    assert full.ended == "length"
    assert len(full.tokens) == 48 - 5 + 1


@pytest.mark.parametrize(
    "more",
    [{"qmode": "int8"}, {"embedding_quantize": "4,32"}, {"modules": {"lm_head": "none"}}],
)
def test_two_ways_to_quantize_are_refused(more: dict[str, Any]) -> None:
    quantization = {"pt2e_quantize": "xnnpack_dynamic", **more}
    (name,) = more
    with pytest.raises(CompileError, match=rf"quantization.pt2e_quantize: excludes {name}: set"):
        config_of({"quantization": quantization})


@pytest.mark.parametrize("name", ["norm_eps", "rope_theta", "attn_scale", "local_rope_theta"])
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_sizes_that_are_no_finite_numbers_are_refused(name: str, number: float) -> None:
    given: dict[str, Any] = {name: number}
    with pytest.raises(CompileError, match=rf"^base.params.{name}: expected a finite number"):
        build_model(config("llama3", **given))
