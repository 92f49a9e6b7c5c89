"""One architecture on both runtimes: python -m tests.bench.zoo_child run|grow FILE NAME WAY.

The same file in the same process, one thread, in turns; the least CPU time of a run counts, since
others share the machine.
"""

from __future__ import annotations

import gc
import json
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from schema import program as pte
from schema.program import model as m

_SECONDS, _BLOCK, _SETTLING = 4.0, 12, 5
_LONGEST = 96


def main() -> int:
    verb, path, name, way = sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4]
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    answer = grow(path, way) if verb == "grow" else run(path, name, way)
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
    return 0


def compiled(module: nn.Module, inputs: tuple[Tensor, ...], way: str, path: Path, **options: Any):
    """Write the program of a network."""
    from compiler import to_edge_transform_and_lower
    from compiler.backends.xnnpack import XnnpackPartitioner

    exported = torch.export.export(module.eval(), inputs, strict=False, **options)
    partitioner = [XnnpackPartitioner()] if way == "xnnpack" else []
    manager = to_edge_transform_and_lower(exported, partitioner=partitioner)
    with path.open("wb") as stream:
        manager.to_executorch().write_to_file(stream)


def sides(path: Path) -> dict[str, Callable[[Sequence[Any]], Any]]:
    """Return what runs a program: the stock runtime, and ours."""
    import executorch.kernels.quantized  # noqa: F401
    from executorch.extension.pybindings import portable_lib

    from runtime import Runtime

    portable_lib._unsafe_reset_threadpool(1)
    stock = portable_lib._load_for_executorch(str(path))
    method = Runtime.get().load_program(path).load_method("forward")
    return {"stock": stock.forward, "ours": method.execute}


def run(path: Path, name: str, way: str) -> dict[str, Any]:
    """Time one architecture, and count its instructions and delegate calls."""
    from tests.zoo.models import make

    module, inputs = make(name)
    if not path.exists():
        compiled(module, inputs, way, path)
    return {**least_seconds(sides(path), list(inputs)), **counts(path)}


def least_seconds(
    runs: dict[str, Callable[[Sequence[Any]], Any]], inputs: list[Any]
) -> dict[str, float]:
    """Return the least CPU time of a run of each side, run in blocks in turn."""
    least = dict.fromkeys(runs, float("inf"))
    for one in runs.values():
        for _ in range(_SETTLING):
            one(inputs)
    end = time.perf_counter() + _SECONDS
    while time.perf_counter() < end:
        for side, one in runs.items():
            for _ in range(_BLOCK):
                start = time.process_time_ns()
                one(inputs)
                taken = time.process_time_ns() - start
                if taken:  # clocks of virtual machines stand still now and then
                    least[side] = min(least[side], taken / 1e9)
    return least


def counts(path: Path) -> dict[str, int]:
    """Return how many instructions a program has, and how many of them call a delegate."""
    chains = pte.decode(path.read_bytes()).plans[0].chains
    kinds = [one.instr_args for chain in chains for one in chain.instructions]
    return {
        "instructions": len(kinds),
        "calls": sum(isinstance(one, m.DelegateCall) for one in kinds),
    }


class Layer(nn.Module):
    """Attention to what came before, and two linear layers."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.all, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = heads
        self.register_buffer("past", torch.tril(torch.ones(_LONGEST, _LONGEST)))

    def forward(self, x):
        length = x.shape[1]
        query, key, value = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in self.all(self.before(x)).chunk(3, -1)
        )
        scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
        hidden = self.past[:length, :length] == 0
        weights = functional.softmax(scores.masked_fill(hidden, float("-inf")), -1)
        x = x + self.out((weights @ value).transpose(1, 2).flatten(2))
        return x + self.narrow(functional.gelu(self.wide(self.after(x))))


class Decoder(nn.Module):
    """Logits of the next word, for as many words as there are."""

    def __init__(self, words: int = 128, width: int = 96, layers: int = 4) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(_LONGEST, width)
        self.layers = nn.Sequential(*(Layer(width, 3) for _ in range(layers)))
        self.logits = nn.Linear(width, words)

    def forward(self, index):
        x = self.words(index) + self.places(torch.arange(index.shape[1]))
        return self.logits(self.layers(x)[:, -1])


def grow(path: Path, way: str) -> dict[str, Any]:
    """Time the generation of words, one more each call: first in sizes that are new, then again."""
    length = torch.export.Dim("length", max=_LONGEST - 1)
    given = torch.randint(0, 128, (1, 8))
    compiled(Decoder(), (given,), way, path, dynamic_shapes=({1: length},))
    found: dict[str, Any] = counts(path)
    runs = sides(path)
    gc.collect()
    gc.freeze()  # a collection that looks at all of a compile takes as long as a generation
    for side, one in runs.items():
        taken = [_generated(one) for _ in range(3)]
        found[side], found[f"{side} again"] = taken[0], min(taken[1:])
    return found


def _generated(one: Callable[[Sequence[Any]], Any], words: int = 64) -> float:
    given = torch.zeros((1, 4), dtype=torch.long)
    start = time.process_time_ns()
    for _ in range(words):
        following = one([given])[0].argmax(-1, keepdim=True)
        given = torch.cat([given, following], 1)
    return (time.process_time_ns() - start) / 1e9 / words


if __name__ == "__main__":
    sys.exit(main())
