"""Recorded programs and instructions as typed code: every node on a line of its own."""

from __future__ import annotations

import pytest

from inspector.cli import main
from inspector.graph.model_graph import model_graph
from inspector.graph.program_text import INSTRUCTIONS, program_text, text_names
from schema.graph import Graph
from tests.inspector.cli_runs import run, valid
from tests.inspector.sessions import DATA, session

CASES = [
    "corpus/special/dynamic",
    "corpus/special/control_flow",
    "corpus/v1.5.1/tinygpt_xnnpack",
    "corpus/v1.0.1/mm_xnnpack",
    "extra/two_methods",
]


def names_of(graph: Graph, prefix: str = "") -> set[str]:
    found = {prefix + node.name for node in graph.nodes}
    for node in graph.nodes:
        for inner in node.subgraphs:
            if inner in graph.subgraphs:
                found |= names_of(graph.subgraphs[inner], f"{prefix}{node.name}/{inner}/")
    return found


@pytest.mark.parametrize("folder", CASES)
def test_every_node_has_a_line_that_names_it(folder: str) -> None:
    one = session(DATA / folder)
    for method in one.methods:
        for name in text_names(one, method):
            text = program_text(one, method, name)
            if name != INSTRUCTIONS:
                assert one.record is not None
                assert set(text.line_of) == names_of(one.record.graph(name))
            for node, line in text.line_of.items():
                short = node.rsplit("/", 1)[-1]
                shown = text.lines[line - 1]
                outputs = [one for one in shown.split('"')[0].split(",") if one.strip()]
                assert outputs
                assert text.node_at(line) is not None
                if ": " not in shown and "=" not in shown:
                    assert "return" in shown or "(" in shown, short


def test_code_has_types_source_lines_signature_and_operators() -> None:
    one = session(DATA / "corpus/special/dynamic")
    lines = program_text(one, "forward", "edge_dialect_exported_program/forward").lines
    code = "\n".join(lines)
    assert 'x: "f32[2, 3, 8, 8]"' in code
    assert "# File: zoo/special.py:23 in forward, code: x=s.c(x)" in code
    assert "aten.convolution.default(x, p_c_weight, p_c_bias, stride = (1, 1)" in code
    assert "p_c_weight: PARAMETER target='c.weight'" in code
    assert "BUFFER_MUTATION target='k'" in code
    assert "debug_handle 3" in code


def test_lists_of_values_and_constants_are_whole() -> None:
    one = session(DATA / "corpus/special/dynamic")
    code = "\n".join(program_text(one, "forward", "exported_program").lines)
    assert "aten.reshape.default(slice_1, [mul, 2])" in code


def test_nodes_of_code_are_those_of_the_compiled_graph() -> None:
    one = session(DATA / "corpus/special/control_flow")
    graph = model_graph(one, "forward")
    assert graph is not None
    text = program_text(one, "forward", "edge_dialect_exported_program/forward")
    assert {node.name for node in graph.nodes} <= set(text.line_of)


def test_verb_prints_the_code_of_every_recorded_graph(capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(DATA / "corpus/special/control_flow")
    assert main(["graph", folder, "--code"]) == 0
    out = capsys.readouterr().out
    assert "# forward: exported_program" in out
    assert "def true_graph_0(" in out
    answer = run("graph", folder, "--code", "--format", "json", "--graph", INSTRUCTIONS)
    assert list(valid(answer, "graph")["data"]["code"]["forward"]) == [INSTRUCTIONS]
    assert run("graph", folder, "--code", "--graph", "nothing").code == 2


def test_unknown_program_is_a_key_error() -> None:
    one = session(DATA / "corpus/special/dynamic")
    with pytest.raises(KeyError, match="nothing"):
        program_text(one, "forward", "nothing")
