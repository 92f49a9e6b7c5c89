"""Times of nodes are sums of columns, equal to those of the operator rows one by one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.graph.model_graph import model_graph
from inspector.profile import operator_rows as rows_module
from inspector.profile.node_times import node_times
from inspector.profile.operator_rows import operator_rows
from tests.inspector.sessions import DATA

CORPUS = DATA / "corpus/v1.5.1"
FILES = {
    "program": ("model.pte", "run.etdp"),
    "record": ("model.pte", "model.etrecord", "run.etdp"),
}
MODELS = ("convnet_portable", "convnet_xnnpack", "tinygpt_xnnpack", "mm_portable")


def _session(model: str, files: str) -> Session:
    return load_session([CORPUS / model / name for name in FILES[files]])


def _sum(row: rows_module.OperatorRow) -> float:
    return 0.0 if row.samples_ns is None else float(np.nansum(row.samples_ns[row.steady]))


@pytest.mark.parametrize("files", FILES)
@pytest.mark.parametrize("model", MODELS)
def test_times_of_delegates_and_of_nodes_add_up_to_the_rows(model: str, files: str) -> None:
    session = _session(model, files)
    graph = model_graph(session, "forward")
    assert graph is not None
    times = node_times(session, "forward", graph)
    timed = [row for row in operator_rows(session, "forward") if row.event is not None]
    called: dict[int, float] = {}
    for row in timed:
        if row.link.delegate is not None:
            called[row.link.delegate] = called.get(row.link.delegate, 0.0) + _sum(row)
    assert dict(times.delegate_ns) == pytest.approx(
        {index: total / times.runs for index, total in called.items()}
    )
    outside = [row for row in timed if row.kind == "operator" and row.link.delegate is None]
    own = [node.id for node in graph.nodes if node.delegate is None]
    assert np.nansum(times.node_ns[own]) * times.runs == pytest.approx(sum(map(_sum, outside)))


def test_times_of_nodes_make_no_row_of_an_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    session = _session("convnet_portable", "program")
    graph = model_graph(session, "forward")
    assert graph is not None
    monkeypatch.setattr(rows_module, "_row", None)
    assert np.isfinite(node_times(session, "forward", graph).node_ns).any()


def test_overhead_of_a_call_belongs_to_no_single_module_of_its_nodes() -> None:
    sample = Path(__file__).parents[2] / "devtools_app/sample_data/keyword_net"
    names = ("model.pte", "model.etrecord", "run.etdp")
    session = load_session([sample / name for name in names])
    graph = model_graph(session, "forward")
    assert graph is not None
    modules = {node.node.name: node.node.module_path for node in graph.nodes}
    rests = [row for row in operator_rows(session, "forward") if row.kind == "rest"]
    assert any(row.module for row in rests)
    for row in rests:
        inside = [modules[name] for name in row.link.nodes]
        assert all(f"{path}.".startswith(f"{row.module}.") for path in inside) or not row.module
