"""Comparisons of programs that are compiled and run here: no wrong joins, all covered, no gap."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from inspector.numerics.analysis import Options, analyse_gap
from inspector.numerics.join import join_method
from tests.compiler.programs import EVERY
from tests.inspector.gap_sessions import Made, made

pytestmark = pytest.mark.slow

PORTABLE = (
    *("attention", "bfloat16", "bool_output", "conv_bn", "counter", "dynamic_shapes", "einsum"),
    *("float16", "gru", "in_place", "indexing", "integers", "kv_cache", "lstm", "mixed_types"),
    *("nested_structures", "reductions", "same_output_twice", "shapes", "cached_decoder"),
)
DELEGATED = ("channels_last", "elementwise", "gru", "half_net", "pools", "softmax")
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
        maker = join.graph.makers[target.value]
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
