"""A record and a trace without the program: delegates have the times that the program shows."""

from __future__ import annotations

import numpy as np
import pytest

from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.graph.model_graph import model_graph
from inspector.profile.node_times import NodeTimes, node_times
from inspector.tables.partitions import counts_text, partitions
from tests.inspector.sessions import DATA

NETS = (
    "corpus/v1.5.1/convnet_xnnpack",
    "corpus/v1.5.1/tinygpt_xnnpack",
    "corpus/v1.5.1/mm_xnnpack",
    "runs/convnet_xnnpack",
)


def without_program(name: str) -> Session:
    folder = DATA / name
    return load_session([folder / "model.etrecord", folder / "run.etdp"])


def times_of(session: Session, method: str = "forward") -> NodeTimes:
    graph = model_graph(session, method)
    assert graph is not None
    return node_times(session, method, graph)


@pytest.mark.parametrize("name", NETS)
def test_delegates_have_the_times_of_their_calls(name: str) -> None:
    known, found = times_of(load_session([DATA / name])), times_of(without_program(name))
    assert known.delegate_ns
    assert found.delegate_ns == pytest.approx(known.delegate_ns)


def test_the_share_of_delegates_is_no_zero_for_what_is_not_known() -> None:
    both = partitions(load_session([DATA / NETS[-1]]), "forward")
    alone = partitions(without_program(NETS[-1]), "forward")
    record = partitions(load_session([DATA / NETS[-1] / "model.etrecord"]), "forward")
    assert both is not None
    assert alone is not None
    assert record is not None
    words = next(one for one in counts_text(both).split(" · ") if "of the time" in one)
    assert words in counts_text(alone)
    assert "of the time" not in counts_text(record)


@pytest.mark.parametrize("method", ["encode", "decode"])
def test_a_trace_of_one_of_two_alike_methods_times_the_nodes_of_neither(method: str) -> None:
    """Methods of the same calls: nothing in record and trace tells which one ran."""
    found = times_of(without_program("extra/two_methods_xnnpack"), method)
    assert np.isnan(found.node_ns).all()
    assert found.delegate_ns == {}


@pytest.mark.parametrize("method", ["encode", "decode"])
def test_methods_that_differ_have_their_own_times(method: str) -> None:
    known, found = (
        times_of(load_session([DATA / "extra/two_methods"]), method),
        times_of(without_program("extra/two_methods"), method),
    )
    assert np.isfinite(found.node_ns).any()
    assert np.nansum(found.node_ns) == pytest.approx(np.nansum(known.node_ns))
