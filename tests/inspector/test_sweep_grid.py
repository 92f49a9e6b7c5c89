"""Grids of sweeps: values as they are written, points, what is refused; Pareto fronts; results."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.experiments.sweeps.grid import (
    GridError,
    grid_of_file,
    parse_grid,
    points_of,
    value_text,
)
from inspector.experiments.sweeps.pareto import front
from inspector.experiments.sweeps.results import (
    PointResult,
    Results,
    Status,
    best_of,
    metric_of,
    read_results,
    results_text,
)
from inspector.experiments.sweeps.task import SweepSettings
from inspector.recipes.compile_job import CompileJob, Rules
from inspector.recipes.paths import placed
from inspector.recipes.source import Source
from inspector.tables.sweep import scatter, sweep_table
from schema.errors import FormatError

MANY = ",".join(map(str, range(1, 200)))
JOB = CompileJob(Source("model.py", "net"), partitioners=("xnnpack",))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("rules.min_nodes=1,5", [1, 5]),
        ("rules.min_nodes = 1 , 5 ", [1, 5]),
        ("rules.max_partitions=none,3", [None, 3]),
        ("external_constants=true,false", [True, False]),
        ("memory_planner=,naive", ["", "naive"]),
        ("memory_planner=1,true", ["1", "true"]),
        ("partitioners=none,xnnpack,xnnpack+demo", [[], ["xnnpack"], ["xnnpack", "demo"]]),
        ("partitioners=xnnpack:ops=[a,b]", [["xnnpack:ops=[a,b]"]]),
        ("rules.deny_ops=aten.add*+aten.mul*,", [["aten.add*", "aten.mul*"], []]),
        ('rules.deny_ops=[["a,b"], []]', [["a,b"], []]),
        ("rules.min_nodes=[2, 4]", [2, 4]),
        ("quantising.mode=,static", ["", "static"]),
        ("rules.granularity=maximal,module", ["maximal", "module"]),
    ],
)
def test_values_are_those_of_the_field(text: str, values: list[Any]) -> None:
    grid = parse_grid([text])
    assert [row[0] for row in grid.rows] == values
    points = points_of(JOB, grid, "")
    assert len(points) == len(values)


def test_points_are_all_combinations_in_order() -> None:
    grid = parse_grid(["rules.min_nodes=1,5,9", "memory_planner=naive,greedy"])
    points = points_of(JOB, grid, "")
    wanted = list(itertools.product([1, 5, 9], ["naive", "greedy"]))
    assert [(one.job.rules.min_nodes, one.job.memory_planner) for one in points] == wanted
    assert [one.number for one in points] == list(range(6))
    assert points[1].label == "rules.min_nodes=1, memory_planner=greedy"
    assert points[0].job == placed(replace(JOB, rules=Rules(min_nodes=1), memory_planner="naive"))


def test_equal_recipes_come_once_and_have_the_key_of_their_source() -> None:
    grid = parse_grid(["rules.min_nodes=1,1,2"])
    points = points_of(JOB, grid, "a")
    assert [one.job.rules.min_nodes for one in points] == [1, 2]
    again = points_of(JOB, parse_grid(["rules.min_nodes=2,3"]), "a")
    assert again[0].key == points[1].key
    other = points_of(JOB, grid, "another source")
    assert not {one.key for one in other} & {one.key for one in points}


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["rules.min_nodes"], "expected FIELD=VALUE"),
        (["=1"], "expected FIELD=VALUE"),
        (["rules.min_nodes=1", "rules.min_nodes=2"], "rules.min_nodes is given twice"),
        (["rules.min_nodes=one"], "rules.min_nodes: expected an integer, found 'one'"),
        (["rules.min_nodes=1.5"], "expected an integer, found 1.5"),
        (["rules.min_nodes="], "expected an integer, found ''"),
        (["rules.minnodes=1"], "job.rules: unknown minnodes; available:"),
        (["rule.min_nodes=1"], "job: unknown rule; available: source"),
        (["memory_planner.name=1"], "memory_planner has no fields"),
        (["external_constants=maybe"], "expected true or false, found 'maybe'"),
        (["rules.granularity=huge"], "expected maximal, module, operator, found 'huge'"),
        (["quantising.mode=int3"], "expected static, dynamic, weight-only"),
        (["rules.min_nodes=[1"], "expected a JSON list of values"),
        (["rules.min_nodes=[]"], "expected a JSON list of values"),
        (
            ["rules.min_nodes=" + MANY, "rules.max_partitions=" + MANY],
            "39,601 points; at most 10,000",
        ),
    ],
)
def test_grid_that_makes_no_recipe_is_refused_in_a_sentence(texts: list[str], words: str) -> None:
    with pytest.raises(GridError) as caught:
        points_of(JOB, parse_grid(texts), "")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_file_holds_values_of_fields_or_the_points_themselves() -> None:
    axes = grid_of_file(b'{"rules.min_nodes": [1, 2], "partitioners": [[], ["xnnpack"]]}', "g")
    assert len(points_of(JOB, axes, "")) == 4
    listed = [{"rules.min_nodes": 1, "memory_planner": "naive"}]
    listed += [{"rules.min_nodes": 7, "memory_planner": "greedy"}]
    found = points_of(JOB, grid_of_file(json.dumps(listed).encode(), "g"), "")
    assert [(one.job.rules.min_nodes, one.job.memory_planner) for one in found] == [
        (1, "naive"),
        (7, "greedy"),
    ]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\xff", "g.json: expected a grid as JSON"),
        (b"[" * 100_000, "g.json: expected a grid as JSON"),
        (b"3", "expected an object of fields or a list of points"),
        (b'{"rules.min_nodes": 1}', "rules.min_nodes: expected a list of values, found 1"),
        (b'[{"a": 1}, {"b": 1}]', "point 0: b is missing"),
        (b"[3]", "point 0: expected an object"),
        (b" " * (1 << 21), "expected a grid, found 2,097,152 bytes"),
    ],
)
def test_damaged_grid_file_is_named(data: bytes, words: str) -> None:
    with pytest.raises(GridError) as caught:
        grid_of_file(data, "g.json")
    assert words in str(caught.value)


def test_empty_grid_has_no_points() -> None:
    with pytest.raises(GridError, match="no points"):
        points_of(JOB, grid_of_file(b"[]", "g"), "")


@pytest.mark.parametrize(
    ("value", "text"), [([], "none"), (["a", "b"], "a+b"), (None, "none"), (True, "true"), (3, "3")]
)
def test_value_is_shown_as_it_is_written(value: object, text: str) -> None:
    assert value_text(value) == text


# ---- Pareto fronts
ROWS = st.lists(st.lists(st.integers(0, 6), min_size=2, max_size=2), max_size=12)


@settings(deadline=None)
@given(rows=ROWS)
def test_front_is_what_no_other_beats(rows: list[list[int]]) -> None:
    found = front(rows)
    for one, best in zip(rows, found, strict=True):
        beaten = any(
            all(a <= b for a, b in zip(other, one, strict=True)) and other != one for other in rows
        )
        assert best is not beaten


def test_points_that_are_not_done_or_not_known_are_not_best() -> None:
    def point(number: int, status: Status, **metrics: float | None) -> PointResult:
        return PointResult(number, f"k{number}", {}, status, metrics=metrics)

    points = (
        point(0, Status.DONE, size=5.0, delegated=50.0),
        point(1, Status.DONE, size=5.0, delegated=80.0),  # more of it is better
        point(2, Status.DONE, size=1.0, delegated=None),
        point(3, Status.FAILED, size=0.0, delegated=100.0),
        point(4, Status.DONE),
    )
    assert best_of(points, ("size", "delegated")) == (False, True, True, False, False)
    assert best_of(points, ("size",)) == (False, False, True, False, False)
    assert best_of((), ("size",)) == ()


# ---- results as a file
def _results() -> Results:
    points = (
        PointResult(
            0,
            "ab12",
            {"rules.min_nodes": 1},
            Status.DONE,
            "",
            {"size": 10, "latency": None},
            {"compile": 1.5},
            1,
            ("model.pte", "run/run.etdp"),
            {"runs": 3},
        ),
        PointResult(1, "cd34", {"rules.min_nodes": 5}, Status.FAILED, "no room", attempts=2),
        PointResult(2, "ef56", {"rules.min_nodes": 9}),
    )
    return Results("recipe.json", ("rules.min_nodes",), points, ("size",))


def test_results_are_the_same_after_the_file(tmp_path: Path) -> None:
    found = _results()
    (tmp_path / "results.json").write_text(results_text(found))
    assert read_results(tmp_path) == read_results(tmp_path / "results.json") == found
    assert found.metrics == ("size", "latency")
    assert [found.count(one) for one in Status] == [1, 1, 1]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["sweep"], 2),
        (["points"], {}),
        (["points", 0], 3),
        (["points", 0, "key"], "../../etc"),
        (["points", 0, "files"], ["../secret"]),
        (["points", 0, "files"], ["/etc/passwd"]),
        (["points", 0, "status"], "perhaps"),
        (["points", 0, "metrics"], {"size": "big"}),
        (["points", 0, "metrics"], {"size": math.inf}),
        (["points", 0, "number"], -1),
        (["points", 0, "changes"], []),
        (["objectives"], ["beauty"]),
        (["fields"], "all"),
    ],
)
def test_damaged_results_are_refused_with_the_place(
    tmp_path: Path, path: list[Any], value: object
) -> None:
    content: Any = json.loads(results_text(_results()))
    inner = content
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    (tmp_path / "results.json").write_text(json.dumps(content))
    with pytest.raises(FormatError) as caught:
        read_results(tmp_path)
    assert "results.json" in str(caught.value)
    assert "\n" not in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@settings(deadline=None)
@given(value=JSON, name=st.sampled_from(["points", "fields", "objectives", "recipe"]))
def test_any_json_is_results_or_refused(
    tmp_path_factory: pytest.TempPathFactory, value: object, name: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps({**json.loads(results_text(_results())), name: value}))
    try:
        found = read_results(path)
    except FormatError:
        return
    assert all(metric_of(name) for name in found.objectives)


@pytest.mark.parametrize(
    ("asked", "enough"),
    [
        (SweepSettings(), True),
        (SweepSettings(runs=3), True),
        (SweepSettings(runs=4), False),
        (SweepSettings(runs=3, inputs="ones"), False),
        (SweepSettings(gap=True), False),
        (SweepSettings(timeout=1.0), True),
        (SweepSettings(runs=3, device="pi"), False),
        (SweepSettings(runs=3, data="ones", samples=2), False),
    ],
)
def test_finished_point_is_done_again_only_for_what_it_lacks(
    asked: SweepSettings, enough: bool
) -> None:
    made = PointResult(
        0, "a", {}, Status.DONE, metrics={"latency": 1.0}, settings=SweepSettings(runs=3).content()
    )
    assert asked.met_by(made) is enough
    assert not asked.met_by(replace(made, status=Status.FAILED))
    median = {"runs": 3, "gap": False, "inputs": "random"}  # as earlier versions have it
    assert asked.met_by(replace(made, settings=median)) is (enough and not asked.runs)


def test_metrics_of_a_data_set_are_those_of_a_point() -> None:
    asked = SweepSettings(data="data.py:batches", metric="data.py:accuracy")
    metrics = {"eval.accuracy": 0.7, "eval.snr": 30.0, "size": 8.0}
    one = PointResult(0, "a", {}, Status.DONE, metrics=metrics, settings=asked.content())
    two = replace(one, number=1, key="b", metrics={**metrics, "eval.accuracy": 0.8})
    assert asked.met_by(one)
    assert not replace(asked, metric="").met_by(one)
    results = Results("recipe.json", (), (one, two), ("eval.accuracy",))
    assert results.metrics == ("size", "eval.snr", "eval.accuracy")
    assert results.best() == (False, True)
    assert list(results.content()["units"].values()) == ["B", "dB", ""]
    assert metric_of("eval.") is None
    assert "eval.accuracy" in [column.title for column in sweep_table(results).columns]


def test_noisy_points_are_marked_in_the_table_and_in_the_plot() -> None:
    metrics = {"latency": 1.0, "size": 8.0}
    one = PointResult(0, "a", {}, Status.DONE, metrics=metrics, noise="severe")
    results = Results("r.json", (), (one, replace(one, number=1, key="b", noise="")), ("size",))
    column = next(each for each in sweep_table(results).columns if each.title == "times")
    assert list(column.values) == ["noisy (severe)", None]
    found = scatter(results, "latency", "size")
    assert found is not None
    assert ["noisy (severe)" in dot.words for dot in found.dots] == [True, False]
    quiet = replace(results, points=results.points[1:])
    assert all(each.title != "times" for each in sweep_table(quiet).columns)
