"""VGF containers of several segments of TOSA run as one graph; one with a shader is refused."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from runtime import Runtime
from runtime.delegates.errors import DelegateError
from schema import payloads
from schema.flatbuf.writer import write_root
from schema.payloads.vgf import tables as vgf
from schema.payloads.vgf.payload import _open
from schema.program import codec
from tests.conftest import DATA

PROGRAM = DATA / "backends/vgf_slopes.pte"


def _slot(binding: int, resource: int) -> vgf.BindingSlot:
    return vgf.BindingSlot(binding, resource)


def _segments(count: int, *, shader: int = -1) -> bytes:
    """Return a container that runs the module of the program several times in a row."""
    program = codec.decode(PROGRAM.read_bytes())
    data = bytes(program.delegate_data(program.plan("forward").delegates[0]))
    container = _open(memoryview(data))
    modules = container.read("modules", vgf.MODULES)
    sequence = container.read("sequence", vgf.SEQUENCE)
    resources = container.read("resources", vgf.RESOURCES)
    assert modules is not None
    assert sequence is not None
    assert resources is not None
    (one,) = sequence.segments
    first, last = one.inputs[0], one.outputs[0]
    own = len(resources.mrt_entry)
    places = [first.mrt_index, *range(own, own + count - 1), last.mrt_index]
    segments = [
        replace(
            one,
            type=0 if number == shader else one.type,
            name=f"part {number}",
            set_infos=(),
            inputs=(_slot(first.binding, places[number]),),
            outputs=(_slot(last.binding, places[number + 1]),),
        )
        for number in range(count)
    ]
    between = (resources.mrt_entry[last.mrt_index],) * (count - 1)
    offset, size = container.sections["constants"]
    return _container(
        data[:128],
        [
            write_root(vgf.MODULES, modules),
            write_root(vgf.SEQUENCE, replace(sequence, segments=tuple(segments))),
            write_root(vgf.RESOURCES, vgf.ResourceTable((*resources.mrt_entry, *between))),
            data[offset : offset + size],
        ],
    )


def _container(head: bytes, sections: Sequence[bytes]) -> bytes:
    data, places = b"", []
    for section in sections:
        places += [128 + len(data), len(section)]
        data += section + bytes(-len(section) % 8)
    fields = struct.unpack_from("<4sHH4BI", head)
    return struct.pack("<4sHH4BI8Q", *fields, *places).ljust(128, b"\0") + data


def _program(folder: Path, payload: bytes) -> Any:
    program = codec.decode(PROGRAM.read_bytes())
    place = program.plan("forward").delegates[0].processed
    assert place is not None
    segments = [*program.segments]
    segments[place.index] = memoryview(payload)
    changed = folder / "model.pte"
    changed.write_bytes(codec.encode(replace(program, segments=tuple(segments))))
    return Runtime.get().load_program(str(changed))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_segments_run_in_a_row(tmp_path: Path, count: int) -> None:
    (x,), _ = torch.load(PROGRAM.with_suffix(".pt"))
    method = _program(tmp_path, _segments(count)).load_method("forward")
    expected = torch.where(x > 0, x, x * 0.3**count)
    torch.testing.assert_close(method.execute([x])[0], expected)


def test_nodes_of_segments_have_names_of_their_own() -> None:
    graphs = [payloads.decode_strict("VgfBackend", _segments(count)).graph for count in (1, 2)]
    assert all(graph is not None for graph in graphs)
    one, two = (graph for graph in graphs if graph is not None)
    names = [node.name for node in two.nodes]
    assert len(set(names)) == len(names) == 2 * len(one.nodes)
    assert [node.target for node in two.nodes] == [node.target for node in one.nodes] * 2
    assert all(name in two.values for node in two.nodes for name in (*node.inputs, *node.outputs))


def test_shader_between_graphs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DelegateError, match="compute"):
        _program(tmp_path, _segments(3, shader=1)).load_method("forward")
