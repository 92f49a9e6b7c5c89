"""The table of schemas: those of torch, shown in the Node panel without importing it."""

from __future__ import annotations

import json

import torch

from devtools_app.viewmodels.node_facts import node_facts
from devtools_app.viewmodels.node_sections import dtype_group, schema_group, schema_parts
from inspector.graph.model_graph import COMPILED
from inspector.profile.join_index import join_index
from inspector.tables.selection import AUTOMATIC, Selection, SelectionKind
from schema.dtypes.operator_schemas import TABLE, operator_schema
from schema.graph import GraphNode, NodeKind
from tests.app.sessions import opened
from tests.tools.schema_table import schemas


def test_table_is_that_of_torch() -> None:
    kept, found = json.loads(TABLE.read_text("utf-8")), schemas()
    # other tests may have registered more operators under the names of ours
    same = {name: found.get(name) for name in kept}
    assert kept == same, "run python -m tests.tools.schema_table"
    assert {name for name in found if name.startswith("aten.")} <= kept.keys()


def test_schemas_are_found_by_the_names_of_graphs_and_of_kernels() -> None:
    expected = "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    assert operator_schema("aten.add.Tensor") == expected
    assert operator_schema("aten::add.Tensor") == expected
    found = operator_schema("aten::mean.out")
    assert found is not None
    assert found.endswith("Tensor(a!) out) -> Tensor(a!)")
    assert operator_schema("quantized_decomposed.quantize_per_tensor.default") is not None
    assert operator_schema("my_ops.mine.default") is None


def test_node_panel_has_schema_and_dtypes_of_an_operator() -> None:
    node = GraphNode("n", NodeKind.CALL, "aten.sigmoid.default")
    facts = schema_group(node).facts
    assert [(fact.label, fact.value) for fact in facts] == [
        ("self", "Tensor"),
        ("returns", "Tensor"),
    ]
    assert facts[0].exact == "aten::sigmoid(Tensor self) -> Tensor"
    dtypes = {fact.label: fact for fact in dtype_group(node).facts}
    assert dtypes["row 1"].value == "self T0, result T0"
    assert dtypes["row 2"].value == "self T1, result T2"
    assert dtypes["row 1"].exact.startswith("T0: ")
    assert not schema_group(GraphNode("n", NodeKind.CALL, "my_ops.mine.default")).facts
    session = opened("corpus/v1.5.1/convnet_portable")
    graph = join_index(session, "forward").graph
    assert graph is not None
    one = next(each for each in graph.nodes if "convolution" in each.name)
    chosen = Selection(SelectionKind.NODE, "forward", COMPILED, one.name)
    sheet = node_facts(session, "forward", chosen, AUTOMATIC)
    schema = next(group for group in sheet.groups if group.title == "Schema")
    assert [fact.label for fact in schema.facts[:3]] == ["input", "weight", "bias"]


def test_parts_of_any_schema_are_its_arguments() -> None:
    for name in json.loads(TABLE.read_text("utf-8")):
        text = operator_schema(name)
        assert text is not None
        parsed = torch._C.parse_schema(text)
        assert [part for part, _ in schema_parts(text)][:-1] == [a.name for a in parsed.arguments]
    text = "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    assert schema_parts(text)[2:] == [("alpha", "Scalar = 1"), ("returns", "Tensor")]
