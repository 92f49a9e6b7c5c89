"""Kernels that a backend names are a table, and a column of Operators where there are any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from typing_extensions import override

import inspector
from compiler import export, to_edge_transform_and_lower
from compiler.partition.named_partitioners import create_partitioner, parse_partitioner
from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.tables.query import QueryError
from runtime import Runtime
from runtime.delegates.interface import BackendExecutionContext
from schema.backends import BACKENDS
from schema.origins import measured_by
from tests.compiler.toy_backend import TRAITS, ToyExecutor
from tests.inspector.cli_runs import run, valid
from tests.inspector.sessions import DATA

KERNELS = ("Sine jit_avx512_f32", "Sine jit_avx512_f32", "Sine ref")


class NamingExecutor(ToyExecutor):
    """Names the kernel of each sine but the last."""

    @override
    def execute(self, context: BackendExecutionContext, handle: int, args: Sequence[Any]) -> None:
        value = args[0]
        for identity in range(handle):
            started = context.tracer.start()
            value = torch.sin(value)
            mark = measured_by(KERNELS[identity]) if identity < len(KERNELS) else None
            context.tracer.end(identity, started, mark)
        context.store(args[1], value)


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(4):
            x = torch.sin(x)
        return x + 1


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a run of four sines, of which three have named kernels."""
    monkeypatch.setitem(BACKENDS, TRAITS.id, replace(TRAITS, executor=f"{__name__}:NamingExecutor"))
    made = to_edge_transform_and_lower(
        export(Net().eval(), (torch.ones(3),)),
        partitioner=create_partitioner(parse_partitioner("toy")),
        generate_etrecord=True,
    ).to_executorch()
    made.save(tmp_path / "model.pte")
    made.get_etrecord().save(tmp_path / "model.etrecord")
    loaded = Runtime().load_program(tmp_path / "model.pte", enable_etdump=True)
    method = loaded.load_method("forward")
    for _ in range(3):
        method.execute([torch.ones(3)])
    loaded.write_etdump_result_to_file(tmp_path / "run.etdp")
    return tmp_path


def session_of(folder: Path) -> Session:
    names = ("model.pte", "model.etrecord", "run.etdp")
    return load_session([folder / name for name in names])


def test_layers_with_named_kernels_are_rows_in_order(folder: Path) -> None:
    frame = inspector.table(session_of(folder), "kernels").dataframe()
    assert list(frame["kind"]) == ["Sine"] * 3
    assert list(frame["kernel"]) == ["jit_avx512_f32", "jit_avx512_f32", "ref"]
    names = ["aten_sin_default", "aten_sin_default_1", "aten_sin_default_2"]
    assert list(frame["node"]) == names
    assert (frame["mean"] > 0).all()
    assert list(frame["delegate"]) == ["TOY 0"] * 3
    data = valid(run("table", "kernels", folder, "--format", "json"), "table")["data"]
    assert len(data["tables"][0]["rows"]) == 3


def test_operators_have_a_column_of_kernels_where_a_backend_names_some(folder: Path) -> None:
    frame = inspector.table(session_of(folder), "operators").dataframe()
    found = [one for one in frame["kernel_inside"] if one]
    assert found == list(KERNELS)


def test_traces_without_names_have_no_such_column_and_no_table() -> None:
    folder = DATA / "runs/convnet_xnnpack"
    files = [path for path in folder.iterdir() if path.suffix in (".pte", ".etrecord", ".etdp")]
    session = load_session(files)
    assert "kernel_inside" not in inspector.table(session, "operators").dataframe()
    with pytest.raises(QueryError, match="no kernel names"):
        inspector.table(session, "kernels")
