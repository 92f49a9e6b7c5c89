"""Recurrent nets by the stock compiler: ``python -m tests.inspector.stock_recurrent FOLDER``.

A process of its own, since the stock package changes torch for all who share one with it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn


class Recurrent(nn.Module):
    def __init__(self, layer: nn.Module, width: int) -> None:
        super().__init__()
        self.layer, self.out = layer, nn.Linear(width, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.layer(x)[0])


def nets() -> dict[str, tuple[nn.Module, torch.Tensor]]:
    """Return the nets and their inputs."""
    both = nn.LSTM(8, 16, batch_first=True, bidirectional=True)
    return {
        "lstm_both_ways": (Recurrent(both, 32), torch.randn(1, 3, 8)),
        "gru_of_two": (Recurrent(nn.GRU(8, 16, 2), 16), torch.randn(3, 2, 8)),
        "rnn": (Recurrent(nn.RNN(8, 16, batch_first=True), 16), torch.randn(2, 4, 8)),
    }


def main(folder: Path) -> None:
    """Compile each for XNNPACK, and run it on the stock runtime with all values."""
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower
    from executorch.runtime import Runtime

    torch.manual_seed(0)
    for name, (module, inputs) in nets().items():
        home = folder / name
        home.mkdir(parents=True)
        exported = torch.export.export(module.eval(), (inputs,), strict=True)
        partitioners: Any = [XnnpackPartitioner()]
        done = to_edge_transform_and_lower(
            exported, partitioner=partitioners, generate_etrecord=True
        ).to_executorch()
        (home / "model.pte").write_bytes(done.buffer)
        done.get_etrecord().save(str(home / "model.etrecord"))
        torch.save([inputs], home / "inputs.pt")
        program = Runtime.get().load_program(
            str(home / "model.pte"), enable_etdump=True, debug_buffer_size=10_000_000
        )
        program.load_method("forward").execute([inputs])
        (home / "stock").mkdir()
        traced = [str(home / "stock" / name) for name in ("run.etdp", "run.debug")]
        program.write_etdump_result_to_file(*traced)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]))
