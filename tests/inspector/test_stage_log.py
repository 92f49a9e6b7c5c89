"""Stages of a compile: what became of nodes, followed both ways, and files that are none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.files.stage_log import StageChange, StageLog, StageNode, Step, changed, read_stages
from inspector.tables.stage_steps import CHANGED, Steps, node_table
from schema.errors import FormatError


def nodes(*texts: str) -> tuple[StageNode, ...]:
    """Return nodes of ``name:operator`` or ``name:operator:handle``."""
    parts = [text.split(":") for text in texts]
    return tuple(StageNode(p[0], p[1], "", int(p[2]) if len(p) > 2 else 0) for p in parts)


def test_same_graph_is_kept() -> None:
    graph = nodes("a:add", "b:mul")
    found = changed(graph, graph, {})
    assert (found.kept, found.plus, found.minus) == (2, 0, 0)
    assert found.behind("a") == found.ahead("a") == ("a",)


def test_new_name_of_the_same_operator_is_kept() -> None:
    found = changed(nodes("relu:aten.relu"), nodes("aten_relu:aten.relu"), {"aten_relu": ("relu",)})
    assert (found.kept, found.plus, found.minus) == (1, 0, 0)
    assert (found.behind("aten_relu"), found.ahead("relu")) == (("relu",), ("aten_relu",))


def test_operator_that_is_taken_apart_is_replaced_by_its_parts() -> None:
    after = nodes("p:permute", "m:addmm")
    found = changed(nodes("l:linear"), after, {"p": ("l",), "m": ("l",)})
    assert found.replaced == ((("l",), ("p", "m")),)
    assert (found.plus, found.minus) == (2, 1)
    assert found.ahead("l") == ("p", "m")


def test_other_operator_of_the_same_name_is_replaced() -> None:
    found = changed(nodes("a:add"), nodes("a:sub"), {})
    assert found.replaced == ((("a",), ("a",)),)


def test_new_node_stands_for_those_that_are_gone_with_its_handle() -> None:
    found = changed(nodes("a:mul:4", "b:add:4", "c:relu:5"), nodes("f:fma:4", "c:relu:5"), {})
    assert found.replaced == ((("a", "b"), ("f",)),)
    assert found.kept == 1


def test_node_of_nothing_is_added_and_one_without_heirs_removed() -> None:
    found = changed(nodes("a:add:1", "b:mul:2"), nodes("b:mul:2", "c:clone:9"), {})
    assert (found.added, found.removed) == (("c",), ("a",))
    assert (found.behind("c"), found.ahead("a")) == ((), ())


NAMES = st.sampled_from("abcdefgh")
GRAPHS = st.dictionaries(NAMES, st.tuples(st.sampled_from(("add", "mul")), st.integers(0, 4))).map(
    lambda found: tuple(StageNode(name, op, "", handle) for name, (op, handle) in found.items())
)
ORIGINS = st.dictionaries(NAMES, st.lists(NAMES, unique=True, max_size=3))


@pytest.mark.slow
@given(before=GRAPHS, after=GRAPHS, origins=ORIGINS)
def test_every_node_is_accounted_for(
    before: tuple[StageNode, ...], after: tuple[StageNode, ...], origins: dict[str, list[str]]
) -> None:
    found = changed(before, after, origins)
    assert found.kept + found.plus == len(after)
    old, new = {node.name for node in before}, {node.name for node in after}
    for name in new:
        assert set(found.behind(name)) <= old
        assert all(name in found.ahead(one) for one in found.behind(name))
    for name in old:
        assert set(found.ahead(name)) <= new
        assert all(name in found.behind(one) for one in found.ahead(name))
        assert (name in found.removed) == (not found.ahead(name))


@given(before=GRAPHS, after=GRAPHS, origins=ORIGINS)
def test_log_comes_back_from_its_file(
    tmp_path_factory: pytest.TempPathFactory,
    before: tuple[StageNode, ...],
    after: tuple[StageNode, ...],
    origins: dict[str, list[str]],
) -> None:
    change = changed(before, after, origins)
    steps = (
        Step("export", "forward", 1.5, None, 0, len(before)),
        Step("edge", "forward", 0.5, 0, 1, len(after), change),
        Step("emit", "", 0.25),
    )
    log = StageLog(steps, (before, after), "a note", "0a")
    path = tmp_path_factory.mktemp("log") / "stages.json"
    path.write_text(json.dumps(log.content()), "utf-8")
    again = read_stages(path)
    assert again.content() == log.content()
    assert again.graphs == log.graphs


def log_of_three() -> StageLog:
    """Return export, edge, and delegation of two nodes of three."""
    exported = nodes("conv:conv2d", "relu:relu", "sin:sin")
    edge = nodes("e_conv:convolution:1", "e_relu:relu:2", "e_sin:sin:3")
    last = nodes("call:call_delegate", "getitem:getitem", "e_sin:sin:3")
    lowered = changed(exported, edge, {"e_conv": ["conv"], "e_relu": ["relu"], "e_sin": ["sin"]})
    inside = {"call": ["e_conv", "e_relu"], "getitem": ["e_conv", "e_relu"]}
    return StageLog(
        (
            Step("export", "forward", 1, None, 0, 3),
            Step("edge", "forward", 1, 0, 1, 3, lowered),
            Step("pass Nothing", "forward", 1, 1, 1, 3, StageChange(3)),
            Step("delegate", "forward", 1, 1, 2, 3, changed(edge, last, inside)),
        ),
        (exported, edge, last),
    )


def test_node_is_followed_through_stages_both_ways() -> None:
    log = log_of_three()
    assert log.traced(0, "relu", 3) == ("call", "getitem")
    assert log.traced(3, "call", 0) == ("conv", "relu")
    assert log.traced(0, "sin", 3) == ("e_sin",)
    assert log.traced(3, "e_sin", 0) == ("sin",)
    assert log.lowered("forward") == 1
    assert log.lowered("other") is None


@pytest.mark.parametrize(
    ("wanted", "found"), [("1", [1]), ("edge", [1]), ("Nothing", [2]), ("pass Nothing", [2])]
)
def test_stage_is_found_by_number_and_name(wanted: str, found: list[int]) -> None:
    assert log_of_three().find(wanted) == found


def broken(change: dict[str, object]) -> bytes:
    return json.dumps({**log_of_three().content(), **change}).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b"[" * 100_000,
        broken({"stages": 2}),
        broken({"texts": [1]}),
        broken({"texts": []}),
        broken({"graphs": [[["a", 0]]]}),
        broken({"graphs": []}),
        broken({"steps": [{"stage": "edge"}]}),
        broken({"note": None}),
    ],
)
def test_file_that_holds_no_stages_is_refused_with_its_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "stages.json"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"stages\.json"):
        read_stages(path)


def test_operator_taken_apart_has_the_value_of_its_result() -> None:
    edge = (
        StageNode("range", "arange", "i64 [3]"),
        StageNode("same", "eq", "bool [3, 3]"),
        StageNode("cast", "to_copy", "f32 [3, 3]"),
        StageNode("norm", "native_layer_norm", "f32 [3, 3], f32 [3, 1]"),
        StageNode("first", "getitem", "f32 [3, 3]"),
    )
    behind = {"range": ["eye"], "same": ["eye"], "cast": ["eye"], "norm": ["ln"], "first": ["ln"]}
    exported = nodes("eye:eye", "ln:layer_norm")
    lowered = changed(exported, edge, behind)
    log = StageLog(
        (Step("export", "f", 1, None, 0, 2), Step("edge", "f", 1, 0, 1, 5, lowered)),
        (exported, edge),
    )
    table = node_table(Steps(log, "", {}), 1, CHANGED)
    values = next(one for one in table.columns if one.title == "value").values
    assert list(values) == ["f32 [3, 3]", "f32 [3, 3], f32 [3, 1]"]
