"""Delegation numbers against what the stock tool said when the session was made."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from inspector.compare.numbers import delegation_summary
from inspector.files.load import load_session
from inspector.findings.session import findings
from inspector.graph.delegation import analyse_delegation, stored_bytes, summary_text
from inspector.join.delegate_owner import choose
from inspector.join.operator_names import op_type
from inspector.tables.method_facts import method_group
from inspector.tables.partitions import counts_text, known_partitions
from inspector.tables.selection import AUTOMATIC
from schema.etrecord import ListedNode
from schema.graph import is_compute
from tests.inspector.sessions import DATA, folders, label, session

MADE = folders("stock.json", "model.pte", "model.etrecord")


@pytest.mark.parametrize("folder", MADE, ids=label)
def test_numbers_of_the_compiled_program_equal_those_of_the_stock_tool(folder: Path) -> None:
    stock: dict[str, Any] = json.loads((folder / "stock.json").read_text())["delegation"]
    found = {entry.method: entry for entry in analyse_delegation(session(folder))}
    assert found.keys() == stock.keys()
    for method, wanted in stock.items():
        entry = found[method]
        assert entry.summary == wanted["summary"]
        counted = {row.op_type: (row.delegated, row.non_delegated) for row in entry.by_operator}
        rows = {name: (inside, outside) for name, inside, outside in wanted["by_operator"]}
        total = rows.pop("Total", (0, 0))  # no operators, no total
        assert total == (entry.num_delegated_nodes, entry.num_non_delegated_nodes)
        assert counted == rows


@pytest.mark.parametrize("folder", folders("model.pte"), ids=label)
def test_program_alone_counts_payload_nodes_and_kernel_calls(folder: Path) -> None:
    alone = load_session([folder / "model.pte"])
    program = alone.program
    assert program is not None
    for entry in analyse_delegation(alone):
        assert entry.counting == "payload"
        plan = program.plan(entry.method)
        assert entry.num_delegated_subgraphs == len(plan.delegates)
        inside = sum(
            len(one.payload.graph.calls())
            for one in entry.delegates
            if one.payload and one.payload.graph
        )
        assert entry.num_delegated_nodes == inside


@pytest.mark.parametrize("folder", folders("model.pte"), ids=label)
def test_constants_that_delegates_share_are_counted_once(folder: Path) -> None:
    alone = load_session([folder / "model.pte"])
    stored = sum(file.size for file in alone.files)
    for entry in analyse_delegation(alone):
        nbytes = stored_bytes(entry.delegates)
        assert nbytes <= stored
        assert nbytes <= sum(one.nbytes + one.named_bytes for one in entry.delegates)
        twice = stored_bytes([*entry.delegates, *entry.delegates])
        assert twice - nbytes == sum(one.nbytes for one in entry.delegates)
        facts = method_group(alone, entry.method, AUTOMATIC).facts
        hints = [fact.exact for fact in facts if "of payload and named data" in fact.exact]
        found = sum(int(hint.split(", ")[1].split(" B")[0].replace(",", "")) for hint in hints)
        assert found == nbytes


@pytest.mark.parametrize("folder", folders("model.pte", "model.etrecord"), ids=label)
def test_each_recorded_node_is_on_one_side(folder: Path) -> None:
    for entry in analyse_delegation(session(folder)):
        assert entry.num_delegated_nodes == sum(len(one.nodes) for one in entry.delegates)
        names = [name for one in entry.delegates for name in one.nodes]
        assert len(set(names)) == len(names)


def test_record_after_delegation_counts_its_lowered_modules() -> None:
    folder = DATA / "corpus/special/xnnpack_two_delegates"
    (entry,) = analyse_delegation(session(folder))
    assert entry.counting in ("handles", "lowered")
    assert entry.num_delegated_subgraphs == 2
    assert [one.backend_id for one in entry.delegates] == ["XnnpackBackend"] * 2
    assert all(one.nodes for one in entry.delegates)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("aten_add_tensor_12", "aten_add_tensor"), ("getitem", "getitem"), ("max_2d", "max_2d")],
)
def test_operator_type_is_the_name_without_its_number(name: str, wanted: str) -> None:
    assert op_type(name) == wanted


@pytest.mark.parametrize("name", ["getitem_3", "aten_view_copy_default", "StaticTranspose_1"])
def test_moving_data_is_not_computing(name: str) -> None:
    assert not is_compute(name)
    assert is_compute("aten_convolution_default")


@pytest.mark.parametrize(
    "name", ["cortex_m::quantized_transpose_conv2d.out", "cadence::quantized_linear.out"]
)
def test_operators_on_quantized_values_compute(name: str) -> None:
    assert is_compute(name)
    assert not is_compute("quantized_decomposed.quantize_per_tensor.default")


def node(name: str, target: str, source: str = "") -> ListedNode:
    return ListedNode(name, "call_function", target, 3, source=source or name)


def test_getitem_is_on_the_side_of_what_it_reads() -> None:
    nodes = [
        node("aten_split_copy_tensor", "aten.split_copy.Tensor"),
        node("getitem", "_operator.getitem", "aten_split_copy_tensor"),
        node("getitem_1", "_operator.getitem", "aten_split_copy_tensor"),
        node("aten_linear_default", "aten.linear.default"),
        node("aten_slice_copy_tensor", "aten.slice_copy.Tensor"),
        node("aten_view_copy_default", "aten.view_copy.default"),
    ]
    left = Counter({"aten::split_copy": 1})
    assert choose(nodes, range(6), left, 3, Counter()) == [3, 4, 5]
    assert choose(nodes, range(6), Counter(), 6, Counter()) == [0, 1, 2, 3, 4, 5]


def test_what_runs_behind_a_delegate_is_the_last_of_the_nodes_that_share_a_handle() -> None:
    kinds = ("quantize", "dequantize", "mul", "quantize", "dequantize")
    nodes = [node(f"{kind}_{place}", f"q.{kind}.x") for place, kind in enumerate(kinds)]
    one = Counter({"q::dequantize": 1})
    assert choose(nodes, range(5), Counter(), 4, one) == [0, 1, 2, 3]
    assert choose(nodes, range(5), one, 4, Counter()) == [0, 2, 3, 4]
    assert choose(nodes, range(5), Counter({"q::quantize": 1}), 3, one) == [1, 2, 3]
    assert choose(nodes, range(5), Counter(), 3, Counter({"q::dequantize": 2})) == [0, 2, 3]


def test_summary_has_the_documented_wording() -> None:
    assert summary_text(1, 205, 1) == (
        "Total delegated subgraphs: 1\n"
        "Number of delegated nodes: 205\n"
        "Number of non-delegated nodes: 1\n"
    )


def test_delegates_that_cannot_be_read_are_named_where_nodes_are_counted(tmp_path: Path) -> None:
    whole = (DATA / "corpus/v1.5.1/convnet_xnnpack/model.pte").read_bytes()
    cut = tmp_path / "cut.pte"
    cut.write_bytes(whole[: len(whole) * 6 // 10])
    opened = load_session([str(cut)])
    (entry,) = analyse_delegation(opened)
    assert len(entry.unread) == 1
    words = "the inside of 1 delegate cannot be read"
    told = [one for one in findings(opened) if "computing nodes are in 2 delegates" in one.text]
    assert [words in one.detail for one in told] == [True]
    facts = method_group(opened, "forward", AUTOMATIC).facts
    assert next(one.value for one in facts if one.label == "nodes").endswith(words)
    assert words in counts_text(known_partitions(opened, "forward", AUTOMATIC))
    changes = {one.what: one.values for one in delegation_summary((opened, opened), "forward")}
    assert set(changes["delegated"]) == {None}
