"""Adapters: their tokens are those of the merged model, and files are shared by programs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from compiler.errors import CompileError
from compiler.llm.config import LlmConfig, LoraConfig, config_of, read_config
from compiler.llm.export import export_llm
from compiler.llm.model import build_model
from compiler.llm.safetensors import read_checkpoint, write_safetensors
from runtime import Runtime
from tests.inspector.cli_runs import run
from tests.llm.configs import CACHE, CUSTOM, LENGTHS, NANO, PROMPT, SMALL, config, generated

pytestmark = pytest.mark.slow
ALPHA, RANK = 16, 4
Halves = dict[str, tuple[torch.Tensor, torch.Tensor]]
ATTENTION = ("self_attn.q_proj", "self_attn.v_proj")
FAMILIES: dict[str, tuple[LlmConfig, tuple[str, ...]]] = {
    "llama": (config("llama3", CACHE), ATTENTION),
    "qwen2_biased": (config("qwen2_5_0_5b", CUSTOM), (*ATTENTION, "mlp.down_proj")),
    "nano": (config(), ("attn.c_attn", "mlp.c_fc")),
}


def halves_of(chosen: LlmConfig, names: tuple[str, ...], seed: int = 1) -> Halves:
    """Return random halves of an adapter of the layers whose paths end with a name."""
    draw = torch.Generator().manual_seed(seed)
    module = build_model(chosen).module
    return {
        path: (
            torch.randn(RANK, layer.in_features, generator=draw) * 0.3,
            torch.randn(layer.out_features, RANK, generator=draw) * 0.3,
        )
        for path, layer in module.named_modules()
        if isinstance(layer, torch.nn.Linear) and path.endswith(names)
    }


def written_adapter(
    folder: Path, halves: Halves, prefix: str = "base_model.model.", **more: Any
) -> str:
    """Write an adapter as Hugging Face's package for adapters does."""
    folder.mkdir(parents=True)
    weights: dict[str, torch.Tensor] = {}
    for path, (down, up) in halves.items():
        weights[f"{prefix}{path}.lora_A.weight"] = down
        weights[f"{prefix}{path}.lora_B.weight"] = up
    write_safetensors(weights, folder / "adapter_model.safetensors")
    targets = sorted({path.rpartition(".")[2] for path in halves})
    content = {"r": RANK, "lora_alpha": ALPHA, "target_modules": targets, "bias": "none", **more}
    (folder / "adapter_config.json").write_text(json.dumps(content))
    return str(folder)


def _with(chosen: LlmConfig, adapter: str, **files: str) -> LlmConfig:
    base = replace(chosen.base, lora_config=LoraConfig(adapter_checkpoint=adapter))
    return replace(chosen, base=base, export=replace(chosen.export, **files))


def merged(chosen: LlmConfig, halves: Halves, factor: float = ALPHA / RANK) -> torch.nn.Module:
    """Return the model without an adapter, whose weights contain it."""
    plain = config_of({"export": LENGTHS})
    base = replace(chosen.base, lora_config=None)
    plain = replace(plain, base=base, model=chosen.model)
    module = build_model(plain).module
    with torch.no_grad():
        for path, (down, up) in halves.items():
            module.get_submodule(path).weight += factor * (up @ down)  # type: ignore
    return module


def _tokens(chosen: LlmConfig, program: bytes, data: list[Path]) -> list[int]:
    method = Runtime.get().load_program(program, data_path=data or None).load_method("forward")
    cache = chosen.model.use_kv_cache
    return generated(lambda *given: method.execute(list(given))[0].clone(), PROMPT, 10, cache=cache)


@pytest.mark.parametrize("delegated", [False, True])
@pytest.mark.parametrize("name", FAMILIES)
def test_tokens_are_those_of_the_merged_model(tmp_path: Path, name: str, delegated: bool) -> None:
    plain, names = FAMILIES[name]
    if delegated:
        backend = replace(plain.backend, xnnpack=replace(plain.backend.xnnpack, enabled=True))
        plain = replace(plain, backend=backend)
    halves = halves_of(plain, names)
    prefix = "" if name == "nano" else "base_model.model."
    files = {"foundation_weights_file": "foundation.ptd", "lora_weights_file": "adapter"}
    chosen = _with(plain, written_adapter(tmp_path / "adapter", halves, prefix), **files)
    program = export_llm(chosen)
    program.write_tensor_data_to_file(tmp_path)
    with torch.no_grad():
        wanted = generated(merged(chosen, halves), PROMPT, 10, cache=plain.model.use_kv_cache)
        bare = generated(build_model(plain).module, PROMPT, 10, cache=plain.model.use_kv_cache)
    data = [tmp_path / "foundation.ptd", tmp_path / "adapter.ptd"]
    assert _tokens(chosen, program.buffer, data) == wanted != bare
    held = sum(down.nbytes + up.nbytes for down, up in halves.values())
    assert held <= data[1].stat().st_size < held + 8000
    assert data[0].stat().st_size > 4 * sum(
        layer.weight.numel()
        for layer in build_model(plain).module.modules()
        if isinstance(layer, torch.nn.Linear)
    )
    assert len(program.buffer) < data[0].stat().st_size / 2


@pytest.mark.parametrize("delegated", [False, True])
def test_programs_share_a_foundation(tmp_path: Path, delegated: bool) -> None:
    plain = config("llama3", CACHE)
    backend = replace(plain.backend, xnnpack=replace(plain.backend.xnnpack, enabled=delegated))
    plain = replace(plain, backend=backend)
    built: dict[str, tuple[LlmConfig, bytes, list[int]]] = {}
    for name, seed in (("one", 1), ("two", 2)):
        halves = halves_of(plain, ATTENTION, seed)
        folder = written_adapter(tmp_path / name, halves)
        files = {"foundation_weights_file": "foundation", "lora_weights_file": name}
        chosen = _with(plain, folder, **files)
        program = export_llm(chosen)
        program.write_tensor_data_to_file(tmp_path / name)
        with torch.no_grad():
            wanted = generated(merged(chosen, halves), PROMPT, 10, cache=True)
        built[name] = chosen, program.buffer, wanted
    (tmp_path / "two/foundation.ptd").unlink()
    assert built["one"][2] != built["two"][2]
    shared = tmp_path / "one/foundation.ptd"
    for name, (chosen, buffer, wanted) in built.items():
        assert _tokens(chosen, buffer, [shared, tmp_path / name / f"{name}.ptd"]) == wanted


def test_methods_have_adapters_of_their_own(tmp_path: Path) -> None:
    plain = config("llama3")
    found = {name: halves_of(plain, ATTENTION, seed) for name, seed in (("one", 1), ("two", 2))}
    methods = [
        {
            "method_name": name,
            "lora_config": {"adapter_checkpoint": written_adapter(tmp_path / name, halves)},
        }
        for name, halves in found.items()
    ]
    base = {"model_class": "llama3", "params": SMALL}
    given = {"base": base, "export": LENGTHS, "multimethod": {"methods": [*methods, {}]}}
    given["multimethod"]["methods"][2]["method_name"] = "plain"  # type: ignore
    chosen = config_of(given)
    program = Runtime.get().load_program(export_llm(chosen).buffer)
    tokens = torch.tensor([PROMPT])
    for name, halves in {**found, "plain": {}}.items():
        (logits,) = program.load_method(name).execute([tokens])
        with torch.no_grad():
            torch.testing.assert_close(logits, merged(chosen, halves)(tokens))


def test_the_verb_writes_and_takes_the_files(tmp_path: Path) -> None:
    plain = config_of({"base": {"params": {**NANO, "vocab_size": 256}}, "export": LENGTHS})
    halves = halves_of(plain, ("attn.c_attn", "attn.c_proj"))
    written_adapter(tmp_path / "adapter", halves, "")
    path = tmp_path / "model.yaml"
    content = {
        "base": {
            "params": {**NANO, "vocab_size": 256},
            "lora_config": {"adapter_checkpoint": "adapter"},
        },
        "export": {
            **LENGTHS,
            "foundation_weights_file": "foundation",
            "lora_weights_file": "adapter",
        },
        "quantization": {"qmode": "8da4w", "group_size": 32},
        "backend": {"xnnpack": {"enabled": True}},
    }
    path.write_text(yaml.safe_dump(content))
    for name, changes in (("float", ("quantization.qmode=null",)), ("small", ())):
        out = tmp_path / name
        ended = run("llm", "export", str(path), *changes, "-o", str(out))
        assert ended.code == 0, ended.err
        assert {one.name for one in out.glob("*.ptd")} == {"foundation.ptd", "adapter.ptd"}
    found = run(
        "llm", "run", str(tmp_path / "float"), "--prompt", "Hello", "--max-new-tokens", "8",
        "--format", "json",
    )  # fmt: skip
    assert found.code == 0, found.err
    chosen = read_config(path)
    with torch.no_grad():
        wanted = generated(merged(chosen, halves), list(b"Hello"), 8, cache=False)
    assert json.loads(found.out)["data"]["tokens"] == wanted
    sizes = [(tmp_path / name / "foundation.ptd").stat().st_size for name in ("float", "small")]
    assert sizes[1] < sizes[0] / 1.5
    adapters = [(tmp_path / name / "adapter.ptd").stat().st_size for name in ("float", "small")]
    assert adapters[0] == pytest.approx(adapters[1], rel=0.2)  # which stays in float


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"r": 8}, "not of rank 8"),
        ({"use_dora": True}, "use_dora: not supported"),
        ({"bias": "all"}, "bias: not supported"),
        ({"target_modules": ["q_proj", "k_proj", "v_proj"]}, "no weights for k_proj"),
    ],
)
def test_an_adapter_that_does_not_fit_is_one_sentence(
    tmp_path: Path, change: dict[str, Any], sentence: str
) -> None:
    chosen = config("llama3")
    folder = written_adapter(tmp_path / "adapter", halves_of(chosen, ATTENTION), **change)
    with pytest.raises(CompileError, match=sentence):
        build_model(_with(chosen, folder))


def test_names_of_an_adapter_lead_to_its_layers(tmp_path: Path) -> None:
    chosen = config("llama3")
    halves = halves_of(chosen, ("self_attn.q_proj",))
    wanted = merged(chosen, halves)(torch.tensor([PROMPT]))
    for prefix in ("", "base_model.model.", "base_model.model.model."):
        named = {path.removeprefix("model."): both for path, both in halves.items()}
        given = named if prefix.endswith("model.model.") else halves
        folder = written_adapter(tmp_path / f"a{len(prefix)}", given, prefix)
        found = build_model(_with(chosen, folder)).module(torch.tensor([PROMPT]))
        torch.testing.assert_close(found, wanted)
    scaled = written_adapter(tmp_path / "rs", halves, use_rslora=True)
    found = build_model(_with(chosen, scaled)).module(torch.tensor([PROMPT]))
    torch.testing.assert_close(
        found, merged(chosen, halves, ALPHA / RANK**0.5)(torch.tensor([PROMPT]))
    )
    other = {"model.layers.7.self_attn.q_proj": next(iter(halves.values()))}
    with pytest.raises(CompileError, match=r"no linear layer .*layers\.7"):
        build_model(_with(chosen, written_adapter(tmp_path / "other", other)))
    with pytest.raises(CompileError, match="file not found"):
        build_model(_with(chosen, str(tmp_path / "nothing")))


def _written(folder: Path, weights: dict[str, torch.Tensor], **options: Any) -> str:
    folder.mkdir()
    write_safetensors(weights, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps(options))
    return str(folder)


def test_layers_of_several_ranks_are_refused_where_no_option_has_the_rank(tmp_path: Path) -> None:
    chosen = config("llama3")
    paths = list(halves_of(chosen, ("self_attn.q_proj",)))[:2]
    width = build_model(chosen).module.get_submodule(paths[0]).weight.shape  # type: ignore
    weights: dict[str, torch.Tensor] = {}
    for path, rank in zip(paths, (2, 4), strict=True):
        weights[f"{path}.lora_A.weight"] = torch.ones(rank, width[1])
        weights[f"{path}.lora_B.weight"] = torch.ones(width[0], rank)
    with pytest.raises(CompileError, match=r"ranks \[2, 4\]: not supported"):
        build_model(_with(chosen, _written(tmp_path / "a", weights, lora_alpha=8)))


def test_a_layer_that_an_adapter_has_twice_is_refused(tmp_path: Path) -> None:
    chosen = config("llama3")
    ((path, (down, up)), *_) = halves_of(chosen, ("self_attn.q_proj",)).items()
    twice = {
        f"{prefix}{path}.lora_{half}.weight": tensor
        for prefix in ("", "base_model.model.")
        for half, tensor in (("A", down), ("B", up))
    }
    with pytest.raises(CompileError, match="twice"):
        build_model(_with(chosen, _written(tmp_path / "a", twice, r=RANK)))
    named = {f"{path}.lora_A.weight": down, f"{path}.lora_A.default.weight": down}
    with pytest.raises(CompileError, match="twice"):
        build_model(_with(chosen, _written(tmp_path / "b", {**named, f"{path}.lora_B.weight": up})))


@pytest.mark.parametrize(
    ("shape", "options", "sentence"),
    [
        ((8,), {}, "not supported"),
        ((8,), {"r": 8}, "not of rank 8"),
        ((4, 8), {"r": "all"}, "r: expected a positive number"),
        ((4, 4), {"r": 4, "lora_alpha": [1]}, "lora_alpha: expected a positive number"),
    ],
)
def test_a_damaged_adapter_is_one_sentence(
    tmp_path: Path, shape: tuple[int, ...], options: dict[str, Any], sentence: str
) -> None:
    weights = {f"q_proj.lora_{half}.weight": torch.ones(shape) for half in "AB"}
    chosen = _with(config("llama3"), _written(tmp_path / "a", weights, **options))
    with pytest.raises(CompileError, match=sentence):
        build_model(chosen)


@pytest.mark.parametrize("text", ["[]", "{", '{"weight_map": {"a": 1}}', "[" * 100_000])
def test_a_damaged_index_is_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(text)
    with pytest.raises(CompileError, match="not an index of safetensors files"):
        read_checkpoint(tmp_path)
