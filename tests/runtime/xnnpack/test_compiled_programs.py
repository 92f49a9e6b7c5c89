"""Programs that our compiler delegates, on the stock runtime and on both engines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from compiler import to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from runtime import DebugLevel, EventTracer, Runtime
from runtime.tracing.sinks import MemorySink
from schema import flat_tensor
from schema import program as pte
from schema.etdump import DebugEvent
from tests.compiler.compare import calls_of, exported, flat, module_of
from tests.compiler.programs import EVERY
from tests.runtime.samples import inputs_of
from tests.runtime.stock import Stock
from tests.runtime.xnnpack.sessions import DATA, gap

pytestmark = [pytest.mark.slow, pytest.mark.interop]
NETS = (
    "conv_bn",
    "channels_last",
    "dynamic_batch",
    "dynamic_shapes",
    "elementwise",
    "half_net",
    "mobile_net",
    "pools",
    "transformer_bfloat16",
    "u_net",
)


@pytest.fixture(scope="module")
def buffers() -> dict[str, bytes]:
    """Return the programs of all nets."""
    found: dict[str, bytes] = {}
    for name in NETS:
        program = exported(EVERY[name], module_of(EVERY[name]))
        manager = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
        found[name] = bytes(manager.to_executorch().buffer)
    return found


@pytest.mark.parametrize("name", NETS)
def test_net_equals_stock_on_both_engines(
    name: str, buffers: dict[str, bytes], stock: Stock, tmp_path: Path
) -> None:
    sample = EVERY[name]
    calls = [("forward", flat(given)) for given in calls_of(sample)]
    (tmp_path / "net.pte").write_bytes(buffers[name])
    wanted = stock.calls(tmp_path / "net.pte", calls)
    for engine in ("torch", "native"):
        method = Runtime().load_program(buffers[name]).load_method("forward", engine=engine)
        for _ in range(2):  # later runs may take another way
            for (_, given), theirs in zip(calls, wanted, strict=True):
                for one, other in zip(method.execute(given), theirs, strict=True):
                    assert gap(one, other) <= max(sample.tolerance, 2e-5), engine


@pytest.mark.parametrize("name", NETS)
def test_inner_values_are_those_of_the_real_kernels(name: str, buffers: dict[str, bytes]) -> None:
    given = flat(EVERY[name].inputs)
    ours, real = (inner(buffers[name], given, engine) for engine in ("torch", "native"))
    assert ours
    assert list(ours) == list(real)
    for place, tensor in real.items():
        assert gap(ours[place], tensor) <= max(EVERY[name].tolerance, 2e-5), place


def inner(buffer: bytes, given: tuple[Any, ...], engine: str) -> dict[tuple[int, str], Any]:
    """Return the inner values of all partitions, by instruction and node."""
    sink = Kept()
    tracer = EventTracer(DebugLevel.INTERMEDIATE, sink=sink)
    method = Runtime().load_program(buffer, tracer=tracer).load_method("forward", engine=engine)
    method.execute(given)
    found: dict[tuple[int, str], Any] = {}
    for event in tracer.trace().run_data[-1].events:
        if isinstance(event, DebugEvent) and event.delegate_id_str:
            assert event.value is not None
            assert event.value.tensor is not None
            place = (event.instruction_id, event.delegate_id_str)
            found[place] = sink.tensors[event.value.tensor.offset]
    return found


class Kept(MemorySink):
    """Keeps the tensors themselves, too."""

    def __init__(self) -> None:
        super().__init__()
        self.tensors: dict[int, torch.Tensor] = {}

    def add(self, tensor: torch.Tensor) -> int | None:
        offset = super().add(tensor)
        if offset is not None:
            self.tensors[offset] = tensor.clone()
        return offset


@pytest.mark.parametrize("engine", ["torch", "native"])
def test_weights_in_a_file_beside_the_program_are_found(
    engine: str, stock: Stock, tmp_path: Path
) -> None:
    whole = pte.decode((DATA / "corpus/v1.5.1/convnet_xnnpack/model.pte").read_bytes())
    named = [(key, flat_tensor.PlacedBlob(data)) for key, data in whole.named_data_map().items()]
    assert len(named) > 4
    stripped = replace(whole, header=None, table=replace(whole.table, named_data=None))
    program, data = tmp_path / "net.pte", tmp_path / "net.ptd"
    program.write_bytes(pte.encode(stripped))
    data.write_bytes(flat_tensor.encode(flat_tensor.pack(named)))
    loaded = Runtime().load_program(program, data_path=[data])
    given = inputs_of(loaded.metadata("forward"))
    wanted = stock.calls(program, [("forward", given)], str(data))[0]
    found = loaded.load_method("forward", engine=engine).execute(given)
    assert gap(found[0], wanted[0]) <= 1e-5
