"""The wheel's own runtime and its runner of language models with our files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from compiler.llm.config import LlmConfig, config_of
from compiler.llm.export import backend_config, exported_llm, quantized_programs
from compiler.llm.model import build_model
from compiler.llm.quantization import QuantizationConfig
from compiler.partition.named_partitioners import create_partitioner, parse_partitioner
from compiler.pipeline.edge_manager import to_edge_transform_and_lower
from runtime.llm import GenerationConfig, TextRunner
from tests.llm.configs import CACHE, CUSTOM, LENGTHS, config, generated
from tests.tools.forked import run_stock

pytestmark = [pytest.mark.interop, pytest.mark.slow]
PROMPT = "Hello"
# each token is one character, ASCII where it is printable
WORDS = {chr(at if 32 <= at < 127 else 256 + at): at for at in range(256)}
CASES: dict[str, tuple[LlmConfig, bool]] = {
    "nano": (config(vocab_size=256), True),
    "nano_cache": (config(model=CACHE, vocab_size=256), False),
    "llama": (config("llama3", CUSTOM, vocab_size=256), True),
    "qwen3": (config("qwen3_0_6b", {**CUSTOM, "quantize_kv_cache": True}, vocab_size=256), True),
    "gemma2": (config("gemma2", CACHE, vocab_size=256, windows=[6, 0]), False),
    "sink": (config("llama3", {**CUSTOM, "use_attention_sink": "2,6"}, vocab_size=256), True),
}
OTHER = {
    "model_class": "olmo2",  # of transformers
    "params": {
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 256,
        "intermediate_size": 128,
        "pad_token_id": 0,
    },
}
CASES["olmo2"] = (config_of({"base": OTHER, "model": CACHE, "export": dict(LENGTHS)}), True)
SCRIPT = """
import json, sys
from executorch.extension.llm.custom_ops import custom_ops
from executorch.kernels import quantized
from executorch.extension.llm.runner import GenerationConfig, TextLLMRunner

pieces = []
runner = TextLLMRunner(sys.argv[1], sys.argv[2])
chosen = GenerationConfig(echo=False, max_new_tokens=12, temperature=0.0)
runner.generate(sys.argv[3], chosen, pieces.append)
open(sys.argv[4], "w").write(json.dumps(pieces))
"""


LAYERS: dict[str, Any] = {"qmode": "8da4w", "group_size": 32}
TABLE: dict[str, Any] = {"embedding_quantize": "4,32"}
WORDED: dict[str, tuple[LlmConfig, bool]] = {
    f"{name} {'xnnpack' if delegated else 'portable'}": (
        replace(
            config("llama3", {**CUSTOM, "quantize_kv_cache": int8}, vocab_size=256),
            quantization=QuantizationConfig(**words),
        ),
        delegated,
    )
    for name, words, delegated, int8 in (
        ("8da4w", LAYERS, True, False),
        ("embedding", TABLE, False, False),
        ("embedding", TABLE, True, False),
        ("both int8 cache", {**LAYERS, **TABLE}, True, True),
    )
}


def _written(folder: Path, chosen: LlmConfig, *, delegated: bool) -> Path:
    """Write the program of a configuration, and the tokenizer beside it."""
    tokenizers = pytest.importorskip("tokenizers")
    own = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=WORDS, merges=[]))
    own.decoder = tokenizers.decoders.Fuse()
    own.save(str(folder / "tokenizer.json"))
    found = exported_llm(chosen)
    edge = to_edge_transform_and_lower(
        quantized_programs(chosen, found.programs),
        partitioner=[create_partitioner(parse_partitioner("xnnpack"))] if delegated else None,
        constant_methods=found.constants,
    )
    path = folder / "model.pte"
    path.write_bytes(edge.to_executorch(backend_config(chosen)).buffer)
    return path


def _stock_text(program: Path) -> str:
    """Return what the wheel's runner generates."""
    folder = program.parent
    given = [program, folder / "tokenizer.json", PROMPT, folder / "out.json"]
    done = run_stock(["-c", SCRIPT, *given], check=False)
    assert (folder / "out.json").is_file(), done.stderr[-2000:]
    return "".join(json.loads((folder / "out.json").read_text()))


@pytest.mark.parametrize("name", CASES)
def test_the_stock_runner_generates_the_tokens_of_eager(tmp_path: Path, name: str) -> None:
    if name == "olmo2":
        pytest.importorskip("transformers")
    chosen, delegated = CASES[name]
    found = _stock_text(_written(tmp_path, chosen, delegated=delegated))
    with torch.no_grad():
        module = build_model(chosen).module
        tokens = [WORDS[letter] for letter in PROMPT]
        wanted = generated(module, tokens, 12, cache=chosen.model.use_kv_cache)
    letters = {token: letter for letter, token in WORDS.items()}
    assert found == "".join(letters[one] for one in wanted)


@pytest.mark.parametrize("name", WORDED)
def test_the_stock_runner_generates_the_tokens_of_our_runner(tmp_path: Path, name: str) -> None:
    chosen, delegated = WORDED[name]
    path = _written(tmp_path, chosen, delegated=delegated)
    runner = TextRunner(path, tmp_path / "tokenizer.json")
    ours: list[str] = []
    runner.generate(PROMPT, GenerationConfig(max_new_tokens=12), ours.append)
    assert len("".join(ours)) == 12
    assert _stock_text(path) == "".join(ours)
