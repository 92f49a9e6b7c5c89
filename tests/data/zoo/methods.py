"""Programs with several methods, with weights outside, and with odd layouts of their bytes."""

from __future__ import annotations

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import ExecutorchBackendConfig
from torch.export import export
from writing import Recipe, write_all


class Coder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shared = torch.nn.Linear(8, 8)
        self.head = torch.nn.Linear(8, 4)

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.shared(x))

    def decode(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.sigmoid(self.shared(x)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.decode(self.encode(x))


class Encode(torch.nn.Module):
    def __init__(self, coder: Coder) -> None:
        super().__init__()
        self.coder = coder

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.coder.encode(x)


class Decode(Encode):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.coder.decode(x)


def _two_methods(name: str, partitioner: list[XnnpackPartitioner]) -> Recipe:
    coder, x = Coder().eval(), torch.randn(2, 8)
    exported = {
        "encode": export(Encode(coder), (x,), strict=False),
        "decode": export(Decode(coder), (x,), strict=False),
    }
    runs = [("encode", (x,)), ("decode", (x,)), ("encode", (x,))]
    return Recipe(name, runs, exported=exported, partitioner=partitioner)


def two_methods() -> Recipe:
    return _two_methods("two_methods", [])


def two_methods_xnnpack() -> Recipe:
    return _two_methods("two_methods_xnnpack", [XnnpackPartitioner()])


def external_weights() -> Recipe:
    config = ExecutorchBackendConfig(external_constants=True)
    runs = [("forward", (torch.randn(2, 8),))] * 2
    return Recipe("external_weights", runs, Coder().eval(), config=config)


def external_split() -> Recipe:
    config = ExecutorchBackendConfig(
        external_constants=lambda node: "shared" if "shared" in node.name else "head"
    )
    runs = [("forward", (torch.randn(2, 8),))]
    # The stock Python binding runs with one data file at most: no trace.
    return Recipe("external_split", runs, Coder().eval(), config=config, trace=False)


def inline_delegate() -> Recipe:
    config = ExecutorchBackendConfig(extract_delegate_segments=False)
    runs = [("forward", (torch.randn(2, 8),))] * 2
    return Recipe(
        "inline_delegate", runs, Coder().eval(), partitioner=[XnnpackPartitioner()], config=config
    )


def wide_alignment() -> Recipe:
    config = ExecutorchBackendConfig(
        segment_alignment=4096, constant_tensor_alignment=256, delegate_alignment=64
    )
    runs = [("forward", (torch.randn(2, 8),))]
    return Recipe("wide_alignment", runs, Coder().eval(), config=config, record=False, debug=False)


if __name__ == "__main__":
    write_all(
        [
            two_methods,
            two_methods_xnnpack,
            external_weights,
            external_split,
            inline_delegate,
            wide_alignment,
        ]
    )
