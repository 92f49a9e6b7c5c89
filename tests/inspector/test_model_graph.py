"""The model graph and the index of what belongs together."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.files.load import load_session
from inspector.graph.model_graph import COMPILED, graph_names, model_graph
from inspector.profile.join_index import join_index
from inspector.profile.methods import analyse_profile
from schema.graph import NodeKind
from tests.inspector.sessions import DATA, folders, label, session

ALL = folders("model.pte")
NET = DATA / "corpus/v1.5.1/convnet_xnnpack"


@pytest.mark.parametrize("folder", ALL, ids=label)
def test_every_graph_is_whole(folder: Path) -> None:
    loaded = session(folder)
    for method in loaded.methods:
        for name in graph_names(loaded, method):
            graph = model_graph(loaded, method, name)
            if graph is None:
                continue
            names = [node.name for node in graph.nodes]
            assert len(set(names)) == len(names)
            assert [node.id for node in graph.nodes] == list(range(len(names)))
            for edge in graph.edges:
                assert edge.value in graph.nodes[edge.source].node.outputs
                assert edge.value in graph.nodes[edge.target].node.inputs


@pytest.mark.parametrize("folder", folders("model.pte", "run.etdp"), ids=label)
def test_index_leads_back_to_where_it_came_from(folder: Path) -> None:
    loaded = session(folder)
    for method in loaded.methods:
        index = join_index(loaded, method)
        for row, step in index.event_instruction.items():
            assert row in index.of_instruction(step).events
            assert index.of_event(row).instructions == (step,)
        for name, steps in index.node_instructions.items():
            for step in steps:
                assert name in index.of_instruction(step).nodes


@pytest.mark.parametrize("folder", folders("run.etdp"), ids=label)
def test_index_rows_are_rows_of_the_profile(folder: Path) -> None:
    loaded = session(folder)
    rows = analyse_profile(loaded).rows
    for method in loaded.methods:
        index = join_index(loaded, method)
        for row, step in index.event_instruction.items():
            assert rows[row].instruction_id == step


def test_payload_stands_in_place_of_the_delegate_call() -> None:
    graph = model_graph(load_session([NET / "model.pte"]), "forward")
    assert graph is not None
    assert graph.source == "program"
    inside = [node for node in graph.nodes if node.delegate == 0]
    assert [node.node.target for node in inside] == [
        "StaticTranspose",
        "Conv2d",
        "DepthwiseConv2d",
        "Conv2d",
        "StaticTranspose",
        "Add",
    ]
    assert all(node.node.kind is not NodeKind.DELEGATE for node in graph.nodes)
    into = {edge.source for edge in graph.edges if graph.nodes[edge.target].delegate == 0}
    assert graph.by_name["input v2"] in into


def test_recorded_nodes_are_grouped_by_delegate_then_module() -> None:
    graph = model_graph(session(NET), "forward")
    assert graph is not None
    node = graph.nodes[graph.by_name["aten_convolution_default"]]
    assert [region.label for region in node.regions] == ["XNNPACK · delegate 0", "stem", "0"]
    assert [weight.name for weight in node.weights] == ["stem.0.weight", "stem.0.bias"]


def test_weights_are_folded_into_their_reader() -> None:
    graph = model_graph(session(DATA / "corpus/v1.5.1/tinygpt_portable"), "forward")
    assert graph is not None
    placeholders = [node for node in graph.nodes if node.node.kind is NodeKind.PLACEHOLDER]
    assert len(placeholders) == 1  # the token input


def test_inner_event_leads_to_its_payload_node() -> None:
    loaded = load_session([NET / "model.pte", NET / "run.etdp"])
    index = join_index(loaded, "forward")
    rows = analyse_profile(loaded).rows
    inner = [n for n, row in enumerate(rows) if row.event_name.startswith("Convolution")]
    assert [index.of_event(row).nodes for row in inner] == [
        ("XnnpackBackend_0/Conv2d_1",),
        ("XnnpackBackend_0/DepthwiseConv2d_2",),
    ]


def test_lstm_instructions_that_share_a_handle_are_told_apart_by_order() -> None:
    loaded = session(DATA / "extra/lstm_portable")
    rows = [row for row in analyse_profile(loaded).rows if row.link.grade.value == "ORDER"]
    assert len(rows) > 50
    kernels = [row.link.node for row in rows if row.event_name == "OPERATOR_CALL"]
    assert len(set(kernels)) == len(kernels)


def test_graph_is_built_once_with_and_without_its_default_name() -> None:
    loaded = session(NET)
    assert model_graph(loaded, "forward") is model_graph(loaded, "forward", COMPILED)
