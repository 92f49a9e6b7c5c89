"""Models with mutable buffers: each run differs, so do the recorded tensors."""

from __future__ import annotations

import torch
from executorch.exir import ExecutorchBackendConfig
from executorch.exir.passes import MemoryPlanningPass
from torch.export import export
from writing import Recipe, write_all


class Counter(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("total", torch.full((3,), 10.0))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.count.add_(1.0)
        self.total.mul_(0.5)
        return x * self.count, self.total.sum() + self.count


class Plain(torch.nn.Module):
    """A second method of the counter, which leaves its state alone."""

    def __init__(self, counter: Counter) -> None:
        super().__init__()
        self.counter = counter

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) + 1


class Count(Plain):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.counter(x)


class Attention(torch.nn.Module):
    """One head with a cache of keys and values, written at a position."""

    def __init__(self, width: int = 8, length: int = 6) -> None:
        super().__init__()
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.register_buffer("keys", torch.zeros(1, length, width))
        self.register_buffer("values", torch.zeros(1, length, width))
        self.register_buffer("mask", torch.tril(torch.ones(length, length)), persistent=False)

    def forward(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        query, key, value = self.qkv(x).chunk(3, -1)
        self.keys.index_copy_(1, position, key)
        self.values.index_copy_(1, position, value)
        scores = query @ self.keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[position] == 0, float("-inf"))
        return torch.softmax(scores, -1) @ self.values


def counter_state() -> Recipe:
    runs = [("forward", (torch.full((3,), float(step + 1)),)) for step in range(4)]
    config = ExecutorchBackendConfig(emit_mutable_buffer_names=True)
    return Recipe("counter_state", runs, Counter(), config=config, reference=False)


def counter_state_no_debug() -> Recipe:
    runs = [("forward", (torch.full((3,), float(step + 1)),)) for step in range(20)]
    return Recipe("counter_state_no_debug", runs, Counter(), debug=False, reference=False)


def shared_state() -> Recipe:
    counter, x = Counter(), torch.ones(3)
    exported = {
        "count": export(Count(counter), (x,), strict=False),
        "plain": export(Plain(counter), (x,), strict=False),
    }
    runs = [("count", (x,)), ("plain", (x,)), ("count", (x,))]
    config = ExecutorchBackendConfig(
        memory_planning_pass=MemoryPlanningPass(share_mutable_buffers=True)
    )
    return Recipe("shared_state", runs, exported=exported, config=config, debug=False)


def kv_cache() -> Recipe:
    runs = [("forward", (torch.randn(1, 1, 8), torch.tensor([step]))) for step in range(4)]
    config = ExecutorchBackendConfig(
        memory_planning_pass=MemoryPlanningPass(alloc_graph_input=False, alloc_graph_output=False)
    )
    model = Attention().eval().requires_grad_(False)
    return Recipe("kv_cache", runs, model, config=config, reference=False)


if __name__ == "__main__":
    write_all([counter_state, counter_state_no_debug, shared_state, kv_cache])
