"""Decode of a Llama on both runtimes: python -m tests.bench.token_child FILE WAY.

WAY is float, 8da4w or 8da4w-int8.

The same file in the same process, one thread, generation by generation in turns; of each position
the least CPU time counts, since others share the machine and the cost of attention grows with it.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from tests.bench.zoo_child import counts

_ROUNDS = 40
_PROMPT, _TOKENS = 4, 48
SIZES = {
    "dim": 512,
    "n_layers": 8,
    "n_heads": 8,
    "n_kv_heads": 4,
    "hidden_dim": 1408,
    "vocab_size": 4096,
}
"""The Llama: two tables of 4,096 tokens, and eight layers of 2.9 million parameters."""


def config(way: str) -> dict[str, Any]:
    """Return the configuration of a way to export it; the last one has a cache of int8."""
    chosen: dict[str, Any] = {
        "base": {"model_class": "llama3", "params": SIZES, "seed": 0},
        "model": {
            "use_kv_cache": True,
            "use_sdpa_with_kv_cache": True,
            "quantize_kv_cache": way == "8da4w-int8",
        },
        "export": {"max_seq_length": 64, "max_context_length": 256},
        "backend": {"xnnpack": {"enabled": True}},
    }
    if way != "float":
        chosen["quantization"] = {"qmode": "8da4w", "group_size": 32}
    return chosen


def main() -> int:
    path, way = Path(sys.argv[1]), sys.argv[2]
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if not path.exists():
        _export(path, way)
    sys.stdout.write("\n" + json.dumps(measured(path)) + "\n")
    return 0


def _export(path: Path, way: str) -> None:
    from compiler.llm.config import config_of
    from compiler.llm.export import export_llm

    path.write_bytes(bytes(export_llm(config_of(config(way))).buffer))


def measured(path: Path) -> dict[str, Any]:
    """Return seconds a token of each side, and the instructions and delegate calls of a token."""
    runs = _sides(path)
    gc.collect()
    gc.freeze()  # a collection that looks at all of an export takes as long as a generation
    least: dict[str, list[float]] = {}
    for _ in range(_ROUNDS):
        for side, one in runs.items():
            times = _generated(one)
            known = least.get(side, times)
            least[side] = list(map(min, known, times))
    return {**{side: statistics.mean(times) for side, times in least.items()}, **counts(path)}


def _sides(path: Path) -> dict[str, Callable[[Sequence[Any]], Any]]:
    import executorch.kernels.quantized  # noqa: F401
    from executorch.extension.llm.custom_ops import custom_ops  # noqa: F401
    from executorch.extension.pybindings import portable_lib

    from runtime import Runtime

    portable_lib._unsafe_reset_threadpool(1)
    stock = portable_lib._load_for_executorch(str(path))
    method = Runtime.get().load_program(path).load_method("forward")
    return {"stock": stock.forward, "ours": method.execute}


def _generated(one: Callable[[Sequence[Any]], Any]) -> list[float]:
    """Return the CPU seconds of each token behind a prompt."""
    found: list[float] = []
    one([torch.arange(1, 1 + _PROMPT)[None], torch.tensor([0])])
    for place in range(_PROMPT, _PROMPT + _TOKENS):
        given = [torch.tensor([[place]]), torch.tensor([place])]
        start = time.process_time_ns()
        one(given)
        found.append((time.process_time_ns() - start) / 1e9)
    return found


if __name__ == "__main__":
    sys.exit(main())
