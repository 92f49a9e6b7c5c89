"""An ETRecord without its program: what is known of its methods, and what the figures are of."""

from __future__ import annotations

from typing import Any

import pytest

from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.findings.session import findings
from inspector.join import record_maps
from inspector.roofline.method_work import work_note
from inspector.tables.method_facts import method_group, work_facts
from inspector.tables.methods import method_json
from inspector.tables.selection import AUTOMATIC
from schema.graph import Argument, Graph, GraphNode, GraphValue, NodeKind, TensorMeta
from tests.inspector.cli_runs import run, valid
from tests.inspector.sessions import DATA

# state that is written, bodies of control flow, several outputs, delegates
NAMES = (
    "extra/counter_state",
    "extra/kv_cache",
    "extra/map_rows",
    "corpus/special/control_flow",
    "corpus/special/dynamic",
    "corpus/v1.5.1/mm_xnnpack",
)
FUSING = "FLOPs and bytes are of the recorded graph, before delegates fuse its nodes"


def _session(name: str, *files: str) -> Session:
    return load_session([DATA / name / file for file in files])


def _described(values: list[dict[str, Any]]) -> list[tuple[object, object]]:
    return [(one.get("dtype", one["type"]), one.get("sizes")) for one in values]


@pytest.mark.parametrize("name", NAMES)
def test_a_record_has_the_inputs_and_outputs_of_its_program(name: str) -> None:
    both = _session(name, "model.pte")
    alone = _session(name, "model.etrecord")
    for method in alone.methods:
        of_program, of_record = method_json(both, method), method_json(alone, method)
        for side in ("inputs", "outputs"):
            assert of_record[side]
            assert _described(of_record[side]) == _described(of_program[side])
        facts = method_group(alone, method, AUTOMATIC).facts
        shown = [one.label for one in facts if one.label.startswith("output")]
        assert len(shown) == len(of_record["outputs"])


def test_constants_are_outputs_in_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method may return numbers, texts and None beside tensors, and changed state."""
    values = {"x": GraphValue("x", TensorMeta("float32", (3,)))}
    literals = (7, 2.5, True, "word", None)
    args = (*(Argument(literal=one) for one in literals), Argument(values=("x",)), Argument())
    kinds = (*("user_output",) * 6, "buffer_mutation")
    node = GraphNode("output", NodeKind.OUTPUT, "output", args, attributes={"output_kinds": kinds})
    graph = Graph("forward", (node,), values, ("x",), ("x",))
    monkeypatch.setattr(record_maps, "edge_graph", lambda *_: graph)
    record = _session("extra/counter_state", "model.etrecord").record
    assert record is not None
    inputs, outputs = record_maps.ends(record, "forward")
    assert inputs == (values["x"],)
    assert [one.kind for one in outputs] == ["int", "double", "bool", "string", "null", "tensor"]


def test_sizes_that_vary_are_symbols() -> None:
    answer = run("summary", DATA / "extra/dynamic_rows/model.etrecord", "--format", "json")
    method = valid(answer, "summary")["data"]["methods"]["forward"]
    assert [one["value"] for one in method["inputs"]] == [None]
    symbol, columns = method["inputs"][0]["sizes"]
    assert isinstance(symbol, str)
    assert columns == 4
    assert method["instructions"] is None


@pytest.mark.parametrize(
    ("name", "fused"), [("corpus/v1.5.1/mm_xnnpack", True), ("corpus/v1.5.1/mm_portable", False)]
)
def test_work_of_a_record_says_that_delegates_may_fuse_its_nodes(name: str, fused: bool) -> None:
    alone = _session(name, "model.etrecord")
    assert work_note(alone) == (FUSING if fused else "")
    assert any(FUSING in one.text for one in findings(alone)) is fused
    assert (FUSING in (work_facts(alone, "forward")[0].exact or "")) is fused
    out = run("roofline", DATA / name / "model.etrecord").out
    assert (FUSING in out) is fused
    assert not work_note(_session(name, "model.etrecord", "model.pte"))
