"""Weights in delegates have the names of the program: held to the bytes that its state dict has."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.export import ExportedProgram

from compiler import export, to_edge_transform_and_lower
from compiler.partition.named_partitioners import create_partitioner, parse_partitioner
from compiler.quantize.program import quantize_program
from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.size.files import session_sizes
from inspector.size.users import is_hash, part_title, stored_users

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:The tensor attributes"),  # torch's recurrent layers
]


class TwoWeights(nn.Module):
    """One module with several parameters of one shape, as attention has its projections."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.randn(6, 6))
        self.second = nn.Parameter(torch.randn(6, 6))
        self.shift = nn.Parameter(torch.randn(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(nn.functional.linear(x, self.first, self.shift), self.second)


class Tied(nn.Module):
    """Two layers that share a weight, and one of the same shape that does not."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.own = (nn.Linear(6, 6) for _ in range(3))
        self.two.weight = self.one.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.own(self.two(torch.relu(self.one(x))))


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.attention(x, x, x, need_weights=False)[0]


def recurrent(kind: type[nn.LSTM | nn.GRU]) -> nn.Module:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = kind(6, 6, num_layers=2, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.cell(x)[0]

    return Recurrent()


def images(*layers: nn.Module) -> tuple[nn.Module, torch.Tensor]:
    return nn.Sequential(*layers), torch.randn(1, 4, 9, 9)


def tokens(model: nn.Module, width: int) -> tuple[nn.Module, torch.Tensor]:
    return model, torch.randn(1, 5, width)


MODELS = {
    "two weights of a module": lambda: tokens(TwoWeights(), 6),
    "tied": lambda: tokens(Tied(), 6),
    "attention": lambda: tokens(Attention(), 8),
    "encoder": lambda: tokens(nn.TransformerEncoderLayer(8, 2, 12, batch_first=True), 8),
    "LSTM": lambda: tokens(recurrent(nn.LSTM), 6),
    "GRU": lambda: tokens(recurrent(nn.GRU), 6),
    "convolutions": lambda: images(nn.Conv2d(4, 6, 3), nn.ReLU(), nn.Conv2d(6, 6, 1, bias=False)),
    "depthwise": lambda: images(nn.Conv2d(4, 4, 3, groups=4), nn.Conv2d(4, 8, 3, groups=2)),
    "prelu": lambda: images(nn.Conv2d(4, 4, 3), nn.PReLU(4)),
}


def layouts(tensor: torch.Tensor) -> set[bytes]:
    """Return the bytes of a weight in every order of its dimensions."""
    ways = permutations(range(tensor.dim()))
    return {tensor.detach().permute(way).contiguous().numpy().tobytes() for way in ways}


def session_of(program: ExportedProgram, folder: Path) -> Session:
    xnnpack = create_partitioner(parse_partitioner("xnnpack"))
    edge = to_edge_transform_and_lower(program, partitioner=xnnpack, generate_etrecord=True)
    made = edge.to_executorch()
    (folder / "model.pte").write_bytes(made.buffer)
    made.get_etrecord().save(str(folder / "model.etrecord"))
    return load_session([folder])


def titled_blobs(session: Session) -> list[tuple[str, bytes]]:
    users = stored_users(session)
    found = []
    for one in session_sizes(session):
        for part in one.size.parts if one.size is not None else ():
            if part.kind == "named data":
                data = Path(one.file.path).read_bytes()[part.offset : part.offset + part.nbytes]
                found.append((part_title(part, users), data))
    return found


@pytest.mark.parametrize("name", MODELS)
def test_weights_have_the_names_of_the_state_dict(tmp_path: Path, name: str) -> None:
    torch.manual_seed(3)
    model, given = MODELS[name]()
    blobs = titled_blobs(session_of(export(model.eval(), (given,)), tmp_path))
    known = {key: layouts(value) for key, value in model.state_dict().items()}
    equal = [(title, {key for key in known if data in known[key]}) for title, data in blobs]
    assert sum(bool(keys) for _, keys in equal) >= 2
    assert not [(title, keys) for title, keys in equal if keys and title not in keys]


@pytest.mark.parametrize("name", ["two weights of a module", "attention", "encoder", "depthwise"])
def test_quantized_weights_and_scales_have_names_of_their_own(tmp_path: Path, name: str) -> None:
    """The program calls them by number: what only their module tells is not said of several."""
    torch.manual_seed(3)
    model, given = MODELS[name]()
    program = export(model.eval(), (given,))
    quantized = quantize_program(program, "static", [(given,)])
    session = session_of(quantized, tmp_path)
    found = [title for title, _ in titled_blobs(session)]
    assert len(found) == len(set(found))
    assert not any(map(is_hash, found))
    assert any(title.endswith(" scales") or " scales in " in title for title in found)
