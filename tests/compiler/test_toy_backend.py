"""A backend of one file and one entry in the table of traits is known everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import inspector
from compiler import export, to_edge_transform_and_lower
from compiler.partition.named_partitioners import create_partitioner, parse_partitioner
from devtools_app.appearance.colours import LIGHT
from inspector.files.load import load_session
from runtime import Runtime
from schema import payloads
from schema.backends import BACKENDS, short_backend
from tests.compiler.toy_backend import MARK, TRAITS


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(torch.sin(x)) + x


def test_backend_of_one_file_is_compiled_for_run_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BACKENDS, TRAITS.id, TRAITS)
    x = torch.linspace(-1, 1, 6)
    program = to_edge_transform_and_lower(
        export(Net().eval(), (x,)),
        partitioner=create_partitioner(parse_partitioner("toy")),
        generate_etrecord=True,
    ).to_executorch()
    path, trace = tmp_path / "toy.pte", tmp_path / "toy.etdp"
    program.save(path)
    program.get_etrecord().save(tmp_path / "toy.etrecord")
    loaded = Runtime().load_program(path, enable_etdump=True)
    (result,) = loaded.load_method("forward").execute([x])
    loaded.write_etdump_result_to_file(trace)
    torch.testing.assert_close(result, Net()(x))

    session = load_session([path, tmp_path / "toy.etrecord", trace])
    assert not session.all_issues()
    shown = str(inspector.table(session, "operators"))
    assert "TOY 0" in shown
    assert "aten_sin_default_1" in shown  # the nodes inside, by the handles of the payload
    assert short_backend(TRAITS.id) == "TOY"
    assert LIGHT.backend(TRAITS.id) == LIGHT.backends[3]


def test_payload_of_a_backend_of_one_file_is_decoded_by_id_and_by_mark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = MARK + bytes([3])
    assert payloads.decode("Renamed", data).format == "unknown"
    monkeypatch.setitem(BACKENDS, TRAITS.id, TRAITS)
    for backend_id in (TRAITS.id, "Renamed"):
        graph = payloads.decode(backend_id, data).graph
        assert graph is not None
        assert [node.target for node in graph.calls()] == ["Sine"] * 3
