"""A compile says which state the methods of one module do not share."""

from __future__ import annotations

import torch
from torch import nn

from compiler import to_edge_transform_and_lower
from inspector.worker.separate_states import separate_states


class Memory(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        for name in ("kept", "alone", "table"):
            self.register_buffer(name, torch.zeros(3))


class Writer(nn.Module):
    def __init__(self, memory: Memory) -> None:
        super().__init__()
        self.memory = memory

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.memory.kept.copy_(x)
        return x + self.memory.table


class Reader(Writer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.memory.alone.add_(x)
        return self.memory.kept + self.memory.table + self.memory.alone


def _warning(first: Memory, second: Memory, *settings: str) -> str:
    given = (torch.ones(3),)
    modules = {"write": Writer(first), "read": Reader(second)}
    exported = {name: torch.export.export(one, given) for name, one in modules.items()}
    edge = to_edge_transform_and_lower(exported)
    lowered = {name: edge.exported_program(name) for name in modules}
    return separate_states(exported, lowered, settings)


def test_methods_of_one_module_with_a_state_each_are_told() -> None:
    memory = Memory()
    assert _warning(memory, memory) == (
        "read and write keep memory.kept apart, which is one state of their module: "
        "--backend-config share_mutable_buffers=true lets them share it"
    )


def test_a_state_that_is_shared_needs_no_words() -> None:
    memory = Memory()
    assert _warning(memory, memory, "share_mutable_buffers=true") == ""


def test_states_of_two_modules_are_their_own() -> None:
    assert _warning(Memory(), Memory()) == ""
