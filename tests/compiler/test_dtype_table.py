"""The table of dtype constraints: the answers of the verifier, and what the node panel shows."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from compiler.dialect.dtype_rules import _LETTERS, dtype_rule_of
from devtools_app.viewmodels.node_sections import dtype_group
from schema.dtypes.operator_dtypes import TABLE, OperatorDtypes, operator_dtypes
from schema.graph import GraphNode, NodeKind
from tests.tools.dtype_table import operators, text

NAMES = [str(dtype).removeprefix("torch.") for dtype in _LETTERS.values()]


def fits(table: OperatorDtypes, given: dict[str, str]) -> bool:
    """Return whether a row takes these dtypes: one alias is one dtype."""
    for row in table.rows:
        bound: dict[str, str] = {}
        if all(
            given[name] in table.aliases[alias]
            and bound.setdefault(alias, given[name]) == given[name]
            for name, alias in row.items()
            if name in given
        ):
            return True
    return False


def test_table_is_that_of_the_rules() -> None:
    assert TABLE.read_text("utf-8") == text(), "run python -m tests.tools.dtype_table"


@pytest.mark.parametrize("target", sorted(operators()))
def test_rows_accept_what_the_verifier_accepts(target: str) -> None:
    op: Any = operators()[target]
    rule, table = dtype_rule_of(op), operator_dtypes(target)
    assert rule is not None
    assert table is not None
    tensors = [a.name for a in op._schema.arguments if "Tensor" in str(a.type)]
    deciding = [name for name in tensors if name not in rule.others][:2]
    result = op._schema.returns[0].name or "__ret_0" if op._schema.returns else ""
    assert result
    for given in itertools.product(NAMES, repeat=len(deciding) + 1):
        inputs = {name: getattr(torch, dtype) for name, dtype in zip(deciding, given, strict=False)}
        expected = rule.accepts(inputs, [getattr(torch, given[-1]), *rule.fixed])
        named = {**dict(zip(deciding, given, strict=False)), result: given[-1]}
        assert fits(table, named) == expected, named


def test_sigmoid_has_the_documented_rows() -> None:
    table = operator_dtypes("aten.sigmoid.default")
    assert table is not None
    assert table.allowed()["__ret_0"] == ("bfloat16", "float16", "float32", "float64")
    assert fits(table, {"self": "int32", "__ret_0": "float32"})
    assert not fits(table, {"self": "float64", "__ret_0": "float32"})


def test_node_panel_names_the_dtypes_of_each_argument() -> None:
    node = GraphNode("e", NodeKind.CALL, "aten.embedding.default")
    facts = {fact.label: fact for fact in dtype_group(node).facts}
    assert list(facts) == ["weight", "indices", "result"]
    assert facts["indices"].value == "int32, int64"
    softmax = dtype_group(GraphNode("e", NodeKind.CALL, "aten._softmax.default")).facts
    assert softmax[0].exact.endswith("; 1 combination of dtypes in all")
    assert dtype_group(GraphNode("x", NodeKind.CALL, "my.op.default")).facts == ()


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        ("aten.topk.default", ["any"]),  # an edge operator that the verifier lets pass
        ("aten.upsample_nearest2d.vec", ["any"]),
        ("aten::topk.values", []),  # of a program: its kernel decides
        ("aten.add.out", []),
    ],
)
def test_operators_without_a_rule_take_any_dtype(target: str, shown: list[str]) -> None:
    found = dtype_group(GraphNode("e", NodeKind.CALL, target)).facts
    assert [fact.value for fact in found] == shown
