"""Partitions with their borders; structure trees that open everywhere and name what is wrong."""

from __future__ import annotations

import pytest

from inspector.structure.files import structure
from inspector.structure.node import PAGE, StructureNode, paged, value_node
from inspector.tables.partitions import (
    boundary_table,
    constants_table,
    counts_text,
    delegate_sheet,
    method_sheet,
    partitions,
)
from inspector.tables.selection import Selection
from inspector.tables.structure import line_table
from tests.app.sessions import DATA, folders, opened

MOST = 3000
PAYLOADS = sorted(path.name for path in (DATA / "corpus/payloads").glob("*.pte"))


@pytest.mark.parametrize("folder", folders())
def test_partitions_list_every_delegate_with_its_nodes(folder: str) -> None:
    session = opened(folder)
    for method in session.methods:
        made = partitions(session, method)
        if made is None:
            continue
        tops = [
            key
            for key, parent in zip(made.tree.rows.keys or (), made.tree.parents, strict=True)
            if parent < 0 and isinstance(key, Selection)
        ]
        assert [key.delegate for key in tops] == [one.index for one in made.facts.delegates]
        assert counts_text(made)
        for one in made.facts.delegates:
            sheet = delegate_sheet(made, one.index)
            assert sheet.title.endswith(str(one.index))
            assert boundary_table(made, one.index).length >= 0
            expected = len(one.payload.constants) if one.payload is not None else 0
            assert constants_table(session, made, one.index).length == expected
        stock = method_sheet(made).groups[0]
        numbers = [fact.value for fact in stock.facts]
        assert numbers[0] == str(made.facts.num_delegated_subgraphs)
        ours = {fact.label: fact.value for fact in method_sheet(made).groups[1].facts}
        facts = made.facts
        total = facts.compute_delegated + facts.compute_non_delegated
        assert ours["delegated"] == f"{facts.compute_delegated:,} of {total:,}"
        assert all(fact.partition(" ")[0] in counts_text(made) for fact in ours.values())


def test_boundaries_go_both_ways() -> None:
    made = partitions(opened("corpus/v1.5.1/tinygpt_xnnpack"), "forward")
    assert made is not None
    assert made.graph is not None
    for delegate in made.facts.delegates:
        own = [one for one in made.boundaries if one.delegate == delegate.index]
        assert {one.inward for one in own} == {True, False}
        inside = {node.name for node in made.graph.nodes if node.delegate == delegate.index}
        assert not any(one.other in inside for one in own)


@pytest.mark.parametrize("name", PAYLOADS)
def test_partitions_of_every_payload_open(name: str) -> None:
    session = opened(f"corpus/payloads/{name}")
    made = partitions(session, session.methods[0])
    assert made is not None
    assert session.program is not None
    assert len(made.facts.delegates) == len(session.program.plans[0].delegates)


def _walk(node: StructureNode, seen: list[StructureNode]) -> None:
    if len(seen) >= MOST:
        return
    seen.append(node)
    for child in node.children():
        _walk(child, seen)


@pytest.mark.parametrize("name", [*folders(), *(f"corpus/payloads/{name}" for name in PAYLOADS)])
def test_structure_opens_everywhere_and_stays_inside_the_bytes(name: str) -> None:
    session = opened(name)
    for file, top in zip(session.files, structure(session), strict=True):
        seen: list[StructureNode] = []
        _walk(top, seen)
        assert file.artifact is None or len(seen) > 1
        for node in seen:
            if node.data is not None and node.offset is not None:
                assert 0 <= node.offset <= len(node.data)
                assert node.offset + (node.nbytes or 0) <= len(node.data)


def test_structure_header_of_a_program_has_names_and_offsets() -> None:
    (top,) = structure(opened("corpus/v1.5.1/mm_xnnpack/model.pte"))
    header = top.children()[0]
    found = {node.name: (node.position, node.text) for node in header.children()}
    assert found["magic"] == (8, "eh00")
    assert found["file_identifier"] == (4, "ET12")


def test_structure_of_a_lone_debug_buffer_says_what_is_missing() -> None:
    session = opened("corpus/v1.5.1/mm_portable/run.debug")
    (top,) = structure(session)
    assert any("ETDump" in node.text for node in top.children())


def test_structure_of_a_run_shows_logged_values() -> None:
    session = opened("corpus/v1.5.1/mm_portable")
    top = next(node for node in structure(session) if node.type == "debug_buffer")
    seen: list[StructureNode] = []
    _walk(top, seen)
    assert any("min" in node.text and "max" in node.text for node in seen)


@pytest.mark.parametrize("count", [0, 1, PAGE, PAGE + 1, PAGE * PAGE + 1])
def test_paged_lists_reach_every_element_in_small_steps(count: int) -> None:
    made = paged(count, lambda low, high: [StructureNode(str(n)) for n in range(low, high)])
    assert len(made) <= PAGE
    last = made[-1] if made else None
    while last is not None and last.opens is not None:
        inner = last.children()
        assert 0 < len(inner) <= PAGE
        last = inner[-1]
    assert (last.name if last is not None else None) == (str(count - 1) if count else None)


def test_value_node_of_a_deep_list_opens_level_by_level() -> None:
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    node = value_node("deep", deep)
    for _ in range(5000):
        node = node.children()[0]
    assert node.text == "0 entries"


def test_node_that_cannot_be_read_says_why() -> None:
    def broken() -> list[StructureNode]:
        raise ValueError("bytes ran out")

    (child,) = StructureNode("x", opens=broken).children()
    assert child.failed
    assert "bytes ran out" in child.text


def test_structure_table_has_a_line_a_row() -> None:
    (top,) = structure(opened("corpus/v1.5.1/mm_xnnpack/model.pte"))
    rows = [(0, top), *((1, child) for child in top.children())]
    assert line_table(rows).length == len(rows)
