"""Payloads no recorded program holds, as the partitions and structure views show them."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.files.load import load_session
from inspector.graph.model_graph import model_graph
from inspector.structure.files import structure
from inspector.structure.node import StructureNode
from inspector.tables.files import all_issues
from inspector.tables.partitions import (
    constants_table,
    delegate_sheet,
    partitions,
)
from schema.errors import Severity
from tests.schema.payload_programs import Family, families, write

pytestmark = pytest.mark.slow
MOST = 2000


@pytest.mark.parametrize("family", families(), ids=str)
def test_family_is_a_partition_with_its_facts(family: Family, tmp_path: Path) -> None:
    session = load_session(write(family, tmp_path, inside=True))
    made = partitions(session, "forward")
    assert made is not None
    sheet = delegate_sheet(made, 0)
    groups = {
        group.title: {fact.label: fact.value for fact in group.facts} for group in sheet.groups
    }
    (delegate,) = made.facts.delegates
    assert delegate.payload is not None
    assert groups["Payload"]["format"] == delegate.payload.format
    assert set(groups.get("Compile specs", {})) == {key for key, _ in family.specs}
    assert constants_table(session, made, 0).length == len(delegate.payload.constants)
    odd = [issue.message for issue in delegate.payload.issues]
    assert list(groups.get("Odd", {}).values()) == odd
    assert not [one for one in all_issues(session) if one.severity is Severity.ERROR]


@pytest.mark.parametrize("family", families(), ids=str)
def test_family_opens_in_the_graph_and_in_the_structure(family: Family, tmp_path: Path) -> None:
    session = load_session(write(family, tmp_path, inside=True))
    graph = model_graph(session, "forward")
    assert graph is not None
    (region,) = {node.delegate for node in graph.nodes if node.delegate is not None}
    assert region == 0
    for top in structure(session):
        waiting = [top]
        seen: list[StructureNode] = []
        while waiting and len(seen) < MOST:
            node = waiting.pop()
            seen.append(node)
            waiting += node.children()
            if node.data is not None and node.offset is not None:
                assert 0 <= node.offset <= len(node.data)
                assert node.offset + (node.nbytes or 0) <= len(node.data)
        assert len(seen) > 10
