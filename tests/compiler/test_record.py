"""The ETRecord of a compile: read by the stock tools and by our own inspector."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch.utils import _pytree

import inspector
from compiler import EdgeProgramManager, ExecutorchProgramManager, to_edge
from compiler.record.examples import plain_containers
from inspector.check.pairs import program_and_record
from schema import etrecord
from schema.program import decode
from tests.compiler.compare import exported, module_of
from tests.compiler.control_flow import SAMPLES
from tests.compiler.programs import EVERY
from tests.compiler.stock import Stock

pytestmark = pytest.mark.slow


def _compiled(name: str) -> tuple[EdgeProgramManager, ExecutorchProgramManager]:
    sample = (EVERY | SAMPLES)[name]
    edge = to_edge(exported(sample, module_of(sample)), generate_etrecord=True)
    return edge, edge.to_executorch()


@pytest.mark.parametrize("name", ["conv_bn", "lstm", "dynamic_shapes", "kv_cache", "integers"])
def test_record_read_by_our_reader_has_no_issues_and_all_nodes(name: str, tmp_path: Path) -> None:
    edge, program = _compiled(name)
    path = tmp_path / "model.etrecord"
    program.get_etrecord().save(path)
    record = etrecord.decode(path.read_bytes())
    assert record.check() == ()
    assert record.verify_checksums() == ()
    graph = record.edge_graph()
    assert graph is not None
    calls = [n for n in edge.exported_program().graph.nodes if n.op == "call_function"]
    recorded = {node.name for node in graph.calls()}
    assert {n.name for n in calls if hasattr(n.target, "_schema")} <= recorded
    handles = record.debug_handle_map
    assert handles is not None
    assert {place: given[0] for place, given in handles["forward"].items()} == (
        program.debug_handle_map["forward"]
    )


@pytest.mark.parametrize(
    "name", ["kv_cache", "counter", "cond", "map_two", "nested_loops", "while_loop"]
)
def test_record_of_state_and_control_flow_belongs_to_its_program(name: str, tmp_path: Path) -> None:
    _, program = _compiled(name)
    path = tmp_path / "model.etrecord"
    program.get_etrecord().save(path)
    found = program_and_record(decode(program.buffer), etrecord.decode(path.read_bytes()))
    assert found.mismatch == ""
    assert found.matched


def test_record_names_the_users_lines_and_modules(tmp_path: Path) -> None:
    _, program = _compiled("attention")
    path = tmp_path / "model.etrecord"
    program.get_etrecord().save(path)
    graph = etrecord.decode(path.read_bytes()).edge_graph()
    assert graph is not None
    assert any("programs.py" in node.stack_trace for node in graph.calls())
    assert {"query", "key", "value"} <= {node.module_path for node in graph.calls()}
    assert all(node.debug_handle is not None for node in graph.calls())


def test_record_not_asked_for_is_an_error() -> None:
    sample = EVERY["linear"]
    program = to_edge(exported(sample, module_of(sample))).to_executorch()
    with pytest.raises(RuntimeError, match="generate_etrecord=True"):
        program.get_etrecord()


def test_record_is_that_of_the_edge_program_however_often_it_is_emitted(tmp_path: Path) -> None:
    edge, first = _compiled("in_place")
    second = edge.to_executorch()
    paths = [tmp_path / "a.etrecord", tmp_path / "b.etrecord"]
    for program, path in zip((first, second), paths, strict=True):
        program.get_etrecord().save(path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert first.buffer == second.buffer


@pytest.mark.interop
@pytest.mark.parametrize("name", ["conv_bn", "attention", "gru"])
def test_stock_and_our_inspector_join_a_stock_trace_with_the_record(
    name: str, stock: Stock, tmp_path: Path
) -> None:
    edge, program = _compiled(name)
    record, trace = tmp_path / "model.etrecord", tmp_path / "run"
    written = program.get_etrecord()
    written.update_representative_inputs(list(EVERY[name].inputs))
    written.save(record)
    stock.run(program.buffer, [("forward", EVERY[name].inputs)], trace=str(trace))
    gap = "yes" if name == "conv_bn" else ""
    facts = stock.ask("record", etrecord=str(record), trace=str(trace), gap=gap)
    assert "error" not in facts, facts["error"]
    rows = [row for row in facts["rows"] if row["name"].startswith("native_call")]
    assert rows
    assert all(row["op_types"] and row["lines"] for row in rows)
    nodes = edge.exported_program().graph.nodes
    assert facts["edge_nodes"] == [n.name for n in nodes if hasattr(n.target, "_schema")]
    assert bool(facts["gaps"]) == bool(gap)
    assert max(facts["gaps"], default=0) < 1e-8
    ours = inspector.Inspector(
        etdump_path=f"{trace}.etdp", etrecord=str(record), debug_buffer_path=f"{trace}.debug"
    )
    events = [e for b in ours.event_blocks for e in b.events if e.name.startswith("native_call")]
    assert [list(e.op_types) for e in events] == [row["op_types"] for row in rows]
    assert all(event.stack_traces for event in events)


def test_constants_of_the_record_hold_lifted_numbers(tmp_path: Path) -> None:
    _, program = _compiled("mixed_types")
    path = tmp_path / "model.etrecord"
    program.get_etrecord().save(path)
    record = etrecord.decode(path.read_bytes())
    held = record.constants("edge_dialect_exported_program/forward")
    assert any(name.startswith("_lifted_tensor_constant") for name in held)


class Sums(torch.nn.Module):
    def forward(self, pair: Any) -> torch.Tensor:
        return pair["first"] + pair["second"]


@pytest.mark.interop
def test_inputs_in_containers_of_other_classes_are_read_by_the_stock_tool(
    stock: Stock, tmp_path: Path
) -> None:
    given = defaultdict(list, first=torch.ones(2), second=torch.zeros(2))
    exported = torch.export.export(Sums(), (given,))
    path = tmp_path / "model.etrecord"
    to_edge(exported, generate_etrecord=True).to_executorch().get_etrecord().save(path)
    assert "error" not in stock.ask("parsed", etrecord=str(path))
    record = etrecord.decode(path.read_bytes())
    assert record.check() == ()
    ((kept,), _) = record.example_inputs("edge_dialect_exported_program/forward").value
    assert list(kept) == ["first", "second"]


class Pair(NamedTuple):
    """Two things under names."""

    one: Any
    other: Any


def test_containers_become_plain_with_the_same_leaves() -> None:
    ones, zeros = torch.ones(2), torch.zeros(3)
    given = (Pair([ones], {"a": Pair(zeros, None)}), OrderedDict(b=(3, "text"), a=True))
    plain = plain_containers(given)
    assert plain[0] == ([ones], {"a": (zeros, None)})
    assert type(plain[0]) is tuple
    assert plain[1] == OrderedDict(b=(3, "text"), a=True)
    leaves, wanted = (_pytree.tree_leaves(tree) for tree in (plain, given))
    assert all(one is other for one, other in zip(leaves, wanted, strict=True))
