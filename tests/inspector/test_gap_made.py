"""Comparisons of programs that are compiled and run here: no wrong joins, all covered, no gap."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compiler.emit.delegates import called_module
from inspector.numerics.inside import ABSORBED, AT_BOUNDARY, FUSED, SHARED
from inspector.numerics.join import join_method
from inspector.numerics.replay.analysis import Options, analyse_gap
from inspector.numerics.report import Row
from tests.compiler.control_flow import SAMPLES
from tests.compiler.programs import EVERY
from tests.inspector.gap_sessions import Made, made

pytestmark = pytest.mark.slow

PORTABLE = (
    *("attention", "bfloat16", "counter", "dynamic_shapes"),
    *("float16", "gru", "in_place", "indexing", "integers", "kv_cache", "lstm", "mixed_types"),
    *("nested_structures", "reductions", "shapes", "cached_decoder"),
)
DELEGATED = (
    *("attention", "channels_last", "conv_bn", "depthwise_two_heads", "elementwise", "gru"),
    *("half_net", "multi_head", "pools", "softmax"),
)
LOOPS = (
    *("cond_nested", "map_of_cond", "map_two", "nested_loops", "scan", "while_loop"),
    "while_loop_swap",
)
TURNS = ("map_of_cond",)  # whose rows come from branches that take turns: nobody says which when
DECOMPOSED = ("gru",)  # whose exported nodes are whole layers
TOLD = (FUSED, SHARED, AT_BOUNDARY, ABSORBED)
CASES = [*((name, False) for name in PORTABLE), *((name, True) for name in DELEGATED)]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's deserialiser has its own
        yield


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, bool], Made]:
    """Return all of them, each compiled once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            case: made(EVERY[case[0]], tmp_path_factory.mktemp("made"), delegated=case[1])
            for case in CASES
        }


@pytest.mark.parametrize("case", CASES, ids=str)
def test_join_of_a_program_made_here_is_that_of_the_compiler(
    case: tuple[str, bool], programs: dict[tuple[str, bool], Made]
) -> None:
    found = programs[case]
    join = join_method(found.session, "forward")
    assert join.graph is not None
    for (step, slot), target in join.targets.items():
        source: Any = found.sources[step]
        if not target.same or source.target.__name__ == "executorch_call_delegate":
            continue
        assert target.node == source.name, (step, slot, source.target)
        maker = join.graph.producers[target.value]
        assert (maker[0].node.name, maker[1]) == (source.name, slot)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gap_of_a_program_made_here_covers_all_and_finds_nothing(
    case: tuple[str, bool], programs: dict[tuple[str, bool], Made]
) -> None:
    found = programs[case]
    report = analyse_gap(found.session, Options())
    assert len(report.runs) == len(found.runs)
    for run in report.runs[:1]:
        cover = report.coverage([run])
        assert cover["compared"] + cover["stated_reasons"] == cover["instruction_outputs"]
        assert cover["compared"] >= 0.9 * cover["instruction_outputs"]
        assert run.first_divergence() is None


@pytest.mark.parametrize("name", LOOPS)
def test_gap_of_branches_and_loops_compares_each_pass_with_its_own(
    name: str, tmp_path: Path
) -> None:
    found = made(SAMPLES[name], tmp_path)
    report = analyse_gap(found.session, Options())
    run = report.runs[0]  # whose inputs are the example inputs
    cover = report.coverage([run])
    left = [(row.operator, row.reason) for row in run.rows if not row.compared]
    assert len(left) == (1 if name in TURNS else 0), left
    assert cover["compared"] + cover["stated_reasons"] == cover["instruction_outputs"]
    assert run.first_divergence() is None
    assert not any(row.total and row.total.max_abs for row in run.rows)


@pytest.mark.parametrize("name", DELEGATED)
def test_inner_tensors_of_the_torch_engine_are_those_of_the_unfused_graphs(
    name: str, programs: dict[tuple[str, bool], Made]
) -> None:
    session = programs[name, True].session
    for reference in ("edge", "exported"):
        (run,) = analyse_gap(session, Options(reference=reference, runs=(0,))).runs
        compared: list[Row] = [row for row in run.inside() if row.compared]
        left = [row for row in run.inside() if not row.compared and row.reason not in TOLD]
        assert compared or (reference, name) == ("exported", *DECOMPOSED)
        if reference == "edge":  # of which every node of the delegate is one
            assert len(left) <= 0.05 * len(run.inside())
        for row in compared:
            assert row.total is not None
            assert row.total.out_of_tolerance == 0, (reference, row.node)


@pytest.mark.parametrize("name", DELEGATED)
def test_nodes_of_delegates_made_here_are_those_of_the_compiler(
    name: str, programs: dict[tuple[str, bool], Made]
) -> None:
    found = programs[name, True]
    join = join_method(found.session, "forward")
    assert join.calls
    for step, nodes in join.calls.items():
        graph: Any = called_module(found.sources[step]).original_module.graph
        calls = (node for node in graph.nodes if node.op == "call_function")
        wanted = {node.name for node in calls if "getitem" not in node.name}
        assert {node.node.name for node in nodes} == wanted
