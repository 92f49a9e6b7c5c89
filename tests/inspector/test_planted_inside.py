"""An error planted at a random place inside of an XNNPACK delegate is named first."""

from __future__ import annotations

import functools
import random
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.numerics.join import join_method
from inspector.numerics.replay.analysis import Options, analyse_gap
from inspector.numerics.report import Row
from inspector.rebuild import exported_program
from runtime.backends.xnnpack.torch_engine import TorchEngine
from schema import program as pte
from schema.payloads.xnnpack import codec
from schema.payloads.xnnpack import model as x
from schema.payloads.xnnpack.graph import node_kind
from schema.payloads.xnnpack.kernels import input_ids
from tests.compiler.programs import Sample
from tests.inspector.gap_sessions import Made, made, run

pytestmark = pytest.mark.slow
PLACES = 20
OTHER = {
    "Add": "Subtract",
    "Subtract": "Add",
    "Multiply": "Add",
    "Sigmoid": "Tanh",
    "Tanh": "Sigmoid",
    "Abs": "Negate",
}


class Deep(nn.Module):
    """Forty operators one after the other, of which XNNPACK takes all into one partition."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(12, 12) for _ in range(8))

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        at = given
        for place, layer in enumerate(self.layers):
            made = torch.tanh(layer(at)) if place % 2 else torch.sigmoid(layer(at))
            at = (made * given + at) - torch.abs(made)
        return at


@dataclass(frozen=True)
class Inside:
    """A program with one delegate, and what is in it."""

    made: Made
    program: pte.ProgramFile
    segment: int
    payload: x.XNNGraph


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's deserialiser has its own
        yield


@pytest.fixture(autouse=True)
def _rebuilt_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rebuild the recorded program, which is the same in all runs, once a test."""
    monkeypatch.setattr(exported_program, "rebuilt", functools.cache(exported_program.rebuilt))


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Inside:
    sample = Sample(Deep, (torch.randn(3, 12),))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = made(sample, tmp_path_factory.mktemp("deep"), delegated=True)
    program = found.session.program
    assert program is not None
    (delegate,) = program.plan("forward").delegates
    segment = delegate.processed.index
    return Inside(found, program, segment, codec.decode(program.segments[segment]))


def first(inside: Inside, model: bytes, folder: Path) -> Row | None:
    """Run another program in place of the one that was compiled, and compare."""
    path = folder / "model.pte"
    path.write_bytes(model)
    run(path, folder, inside.made.runs)
    found = load_session([str(path), str(folder / "run.etdp"), str(folder / "run.debug")])
    records = [file for file in inside.made.session.files if file.kind == "etrecord"]
    return divergence(replace(found, files=(*found.files, *records)))  # which is rebuilt once


def divergence(session: Session) -> Row | None:
    (found,) = analyse_gap(session, Options(runs=(0,))).runs
    return found.first_divergence()


def assert_named(inside: Inside, row: Row | None, index: int) -> None:
    """Check that a row is that of a node of the payload, or of the fused operator it is in."""
    assert row is not None, index
    wanted = inside.payload.table.xnodes[index].debug_handle
    graph = join_method(inside.made.session, "forward").graph
    assert graph is not None
    handles = {
        node.node.debug_handle for node in graph.nodes if node.node.name in (*row.covers, row.node)
    }
    last = index == len(inside.payload.table.xnodes) - 1
    assert wanted in handles or (last and row.place == "instruction"), (index, row)
    assert last or len(row.covers) <= 2


def with_payload(inside: Inside, table: x.XnnGraphTable) -> bytes:
    data = codec.encode(replace(inside.payload, table=table))
    segments = list(inside.program.segments)
    segments[inside.segment] = memoryview(data)
    return pte.encode(replace(inside.program, segments=tuple(segments)))


def chosen(places: Sequence[int], seed: int) -> list[int]:
    return random.Random(seed).sample(list(places), min(PLACES, len(places)))


def test_run_with_nothing_planted_inside_has_no_divergence(inside: Inside) -> None:
    assert divergence(inside.made.session) is None
    assert len(inside.payload.table.xnodes) >= 40


def test_planted_kernel_inside_is_named_wherever_it_is(inside: Inside, tmp_path: Path) -> None:
    nodes = inside.payload.table.xnodes
    places = [index for index, node in enumerate(nodes) if node_kind(node) in OTHER]
    assert len(places) >= PLACES
    for index in chosen(places, 1):
        changed = list(nodes)
        form: Any = nodes[index].xnode_union
        other = replace(form, kind=OTHER[node_kind(nodes[index])])
        changed[index] = replace(nodes[index], xnode_union=other)
        table = replace(inside.payload.table, xnodes=tuple(changed))
        assert_named(inside, first(inside, with_payload(inside, table), tmp_path), index)


def test_planted_narrow_node_inside_is_named_wherever_it_is(
    inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = TorchEngine._bind
    model = (inside.made.folder / "model.pte").read_bytes()
    for index in chosen(range(len(inside.payload.table.xnodes)), 2):

        def narrow(self: TorchEngine, node: Any, place: int = index) -> Any:
            bound = whole(self, node)
            if node.index != place:
                return bound
            return replace(bound, run=lambda *given: bound.run(*given).bfloat16().float())

        monkeypatch.setattr(TorchEngine, "_bind", narrow)
        assert_named(inside, first(inside, model, tmp_path), index)


def test_planted_weight_inside_is_named_wherever_it_is(inside: Inside, tmp_path: Path) -> None:
    model = (inside.made.folder / "model.pte").read_bytes()
    readers: dict[bytes, int] = {}
    table = inside.payload.table
    keys = {named.key: named.segment_index for named in inside.program.table.named_data or ()}
    for index, node in enumerate(table.xnodes):
        for _, ident in input_ids(node.xnode_union):
            tensor = table.xvalues[ident].tensor
            place = tensor.constant_buffer_idx if tensor is not None else 0
            if place and table.constant_data:
                raw = bytes(inside.program.segments[keys[table.constant_data[place].named_key]])
                readers[raw] = index
    assert len(readers) == 16
    for raw in random.Random(3).sample(sorted(readers), 16):
        new = planted(raw)
        old_name, new_name = (sha256(each).hexdigest().encode() for each in (raw, new))
        assert model.count(raw) == 1
        changed = model.replace(raw, new).replace(old_name, new_name)
        assert_named(inside, first(inside, changed, tmp_path), readers[raw])


def planted(raw: bytes) -> bytes:
    """Return weights of which one is another."""
    values = torch.frombuffer(bytearray(raw), dtype=torch.float32)
    values[len(values) // 2] += 0.5
    return values.numpy().tobytes()
