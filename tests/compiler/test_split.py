"""Programs split into a program and external data run the same, and merge into what they were."""

from __future__ import annotations

import copy
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from compiler import ExecutorchBackendConfig, to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from runtime import Runtime
from schema import flat_tensor
from schema.errors import FormatError
from schema.program import decode, encode
from schema.program.alignment import alignment_of
from schema.program.split import merge, split
from tests.compiler.stock import Stock
from tests.inspector.cli_runs import run

CORPUS = Path(__file__).parents[1] / "data/corpus"
INPUTS = (torch.linspace(-1, 1, 216).reshape(2, 3, 6, 6),)


class Net(nn.Module):
    """Weights, equal constants of several shapes, state, and a constant without elements."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.norm, self.last = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 5)
        self.register_buffer("none", torch.zeros(0, 5))
        self.register_buffer("row", torch.ones(5))
        self.register_buffer("column", torch.ones(5, 1))
        self.register_buffer("state", torch.arange(5.0))
        self.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what reads all of them."""
        y = self.last(torch.relu(self.norm(self.conv(x))).mean((2, 3)).sin())
        self.state.add_(y[0])
        return torch.cat([y, self.none]) + self.row * self.column.sum() + self.state, self.none


class Head(nn.Module):
    """Shares a weight with the other method."""

    def __init__(self, net: Net) -> None:
        super().__init__()
        self.last = net.last

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return one linear layer."""
        return self.last(x)


CASES = [
    pytest.param(delegated, methods, alignment, id=f"{name}-{alignment or 128}")
    for delegated, methods, alignment, name in (
        (False, 1, None, "portable"),
        (False, 2, 4096, "portable_two"),
        (True, 1, 1024, "xnnpack"),
        (True, 2, None, "xnnpack_two"),
    )
]


@cache
def program_of(delegated: bool, methods: int, alignment: int | None, external: bool = False) -> Any:
    net = Net().eval()
    programs = {"forward": torch.export.export(net, INPUTS)}
    if methods > 1:
        programs["head"] = torch.export.export(Head(net), (torch.ones(1, 4),))
    partitioner = [XnnpackPartitioner()] if delegated else None
    options: dict[str, Any] = {} if alignment is None else {"segment_alignment": alignment}
    config = ExecutorchBackendConfig(external_constants=external, **options)
    return to_edge_transform_and_lower(programs, partitioner=partitioner).to_executorch(config)


def parts_of(buffer: bytes) -> tuple[bytes, bytes]:
    program = decode(buffer)
    rest, data = split(program)
    step = alignment_of(program)
    return encode(rest, alignment=step), flat_tensor.encode(data, alignment=step)


def whole_of(rest: bytes, *files: bytes) -> bytes:
    program, data = decode(rest), [flat_tensor.decode(file) for file in files]
    return encode(merge(program, data), alignment=alignment_of(program, *data))


def calls(buffer: bytes, data: str) -> list[torch.Tensor]:
    paths = {"data_path": data} if data else {}
    method = Runtime.get().load_program(buffer, **paths).load_method("forward")
    return [value for _ in range(2) for value in method.execute(list(INPUTS))]


@pytest.mark.slow
@pytest.mark.interop
@pytest.mark.parametrize(("delegated", "methods", "alignment"), CASES)
def test_both_forms_run_the_same_and_merge_into_the_file_that_was_split(
    delegated: bool, methods: int, alignment: int | None, stock: Stock, tmp_path: Path
) -> None:
    buffer = program_of(delegated, methods, alignment).buffer
    rest, data = parts_of(buffer)
    assert whole_of(rest, data) == buffer
    assert alignment_of(decode(buffer)) == (alignment or 128)
    left = decode(rest)
    assert not left.named_data_map()
    path = tmp_path / "data.ptd"
    path.write_bytes(data)
    net, wanted = Net().eval(), list[torch.Tensor]()
    for _ in range(2):  # the state changes
        wanted += net(*copy.deepcopy(INPUTS))
    forward = [("forward", INPUTS)] * 2
    found = [
        calls(buffer, ""),
        calls(rest, str(path)),
        [value for call in stock.run(buffer, forward) for value in call],
        [value for call in stock.run(rest, forward, data=str(path)) for value in call],
    ]
    for values in found:
        for value, right in zip(values, wanted, strict=True):
            torch.testing.assert_close(value, right, rtol=1e-5, atol=1e-5)
    for one, other in (found[:2], found[2:]):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.slow
@pytest.mark.interop
@pytest.mark.parametrize("delegated", [False, True])
def test_programs_of_the_stock_compiler(delegated: bool, stock: Stock, tmp_path: Path) -> None:
    buffer = stock.compiled(torch.export.export(Net().eval(), INPUTS), delegated=delegated)
    rest, data = parts_of(buffer)
    path = tmp_path / "data.ptd"
    path.write_bytes(data)
    (wanted,) = stock.run(buffer, [("forward", INPUTS)])
    for one in (
        stock.run(rest, [("forward", INPUTS)], data=str(path))[0],
        stock.run(whole_of(rest, data), [("forward", INPUTS)])[0],
    ):
        assert all(torch.equal(a, b) for a, b in zip(one, wanted, strict=True))
    assert parts_of(whole_of(rest, data)) == (rest, data)


@pytest.mark.parametrize("delegated", [False, True])
def test_programs_compiled_with_external_constants_are_merged_and_split_again(
    delegated: bool, tmp_path: Path
) -> None:
    made = program_of(delegated, 1, None, external=True)
    made.write_tensor_data_to_file(str(tmp_path))
    (file,) = tmp_path.glob("*.ptd")
    whole = whole_of(made.buffer, file.read_bytes())
    wanted = calls(made.buffer, str(file))
    assert all(torch.equal(a, b) for a, b in zip(calls(whole, ""), wanted, strict=True))
    keys = {e.key for e in flat_tensor.decode(file.read_bytes()).entries if e.layout is not None}
    again = flat_tensor.decode(parts_of(whole)[1])
    assert keys <= {entry.key for entry in again.entries}


def test_data_of_another_program_is_refused() -> None:
    rest, data = parts_of(program_of(False, 1, None).buffer)
    other = Net()
    with torch.no_grad():
        other.last.weight += 1
    exported = torch.export.export(other.eval(), INPUTS)
    buffer = to_edge_transform_and_lower(exported).to_executorch().buffer
    with pytest.raises(FormatError, match=r"none of \d+ keys; give the \.ptd file"):
        whole_of(rest, parts_of(buffer)[1])
    with pytest.raises(FormatError, match="0 keys"):
        merge(decode(rest), [])
    twice = flat_tensor.decode(data)
    entry = twice.entries[0]
    changed = flat_tensor.pack([(entry.key, flat_tensor.PlacedBlob(b"other"))])
    with pytest.raises(FormatError, match="one content for each key"):
        merge(decode(rest), [twice, changed])
    short = [(e.key, flat_tensor.PlacedBlob(e.data[: len(e.data) // 2])) for e in twice.entries]
    with pytest.raises(FormatError, match="bytes in external data"):
        merge(decode(rest), [flat_tensor.pack(short)])


@pytest.mark.parametrize("delegated", [False, True])
def test_damaged_files_are_refused_with_an_error_of_the_format(delegated: bool) -> None:
    buffer = program_of(delegated, 2, None).buffer
    rest, data = parts_of(buffer)
    draw, refused = random.Random(7), 0
    for _ in range(80):
        which = draw.randrange(3)
        damaged = bytearray((buffer, rest, data)[which])
        if draw.random() < 0.3:
            del damaged[draw.randrange(len(damaged)) :]
        for _ in range(3):
            if damaged:
                damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        try:
            if which == 0:
                parts_of(bytes(damaged))
            else:
                whole_of(*((damaged, data) if which == 1 else (rest, damaged)))
        except FormatError:
            refused += 1
    assert refused > 20


def test_verbs_split_and_merge(tmp_path: Path) -> None:
    model = tmp_path / "model.pte"
    model.write_bytes(program_of(True, 2, None).buffer)
    answer = run("split", model, "-o", tmp_path / "parts", "--format", "json")
    assert (answer.code, answer.err) == (0, "")
    facts = answer.json["data"]
    assert {row["path"] for row in facts["files"]} == {"model.pte", "model.ptd"}
    parts = [tmp_path / "parts" / row["path"] for row in facts["files"]]
    assert [path.stat().st_size for path in parts] == [row["bytes"] for row in facts["files"]]
    merged = run("merge", *parts, "-o", tmp_path / "whole.pte", "--format", "json")
    assert merged.json["data"]["keys"] == facts["tensors"] + facts["blobs"]
    assert (tmp_path / "whole.pte").read_bytes() == model.read_bytes()
    trace = tmp_path / "parts" / "run.etdp"  # other files of a folder are ignored
    trace.write_bytes((CORPUS / "special/dynamic/run.etdp").read_bytes())
    merged = run("merge", tmp_path / "parts", "-o", tmp_path / "again.pte")
    assert (merged.code, merged.err) == (0, "")
    assert (tmp_path / "again.pte").read_bytes() == model.read_bytes()
    trace.unlink()
    for arguments, words in (
        (("split", model), "-o FOLDER"),
        (("split", parts[0], "-o", tmp_path / "none"), "no constants and no named data"),
        (("split", parts[1], "-o", tmp_path / "none"), "one .pte is needed"),
        (("split", model, "-o", tmp_path / "parts"), "not empty"),
        (("merge", parts[0], "-o", tmp_path / "none.pte"), "at least one .ptd"),
        (("merge", *parts, "-o", parts[0], "--force"), "being read"),
        (("merge", *parts), "-o MODEL.pte"),
    ):
        refused = run(*arguments)
        assert refused.code == 2
        assert words in refused.err
