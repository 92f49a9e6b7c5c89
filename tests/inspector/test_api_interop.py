"""The documented API gives what the stock tool gives: frames, tables, totals, graphs, traces.

Both run in child processes that load executorch; every difference is a sentence.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.inspector.api_traces import write_session
from tests.inspector.sessions import DATA, folders
from tests.tools.forked import run_stock

pytestmark = pytest.mark.interop

FILES_ALONE = "all,trace alone"
OPTIONS = "no buffer,us to s,cycles,modules,parsed,raw metadata,converted"
# What the stock tool cannot open, and why; ours opens every one (test_api_inspector).
REFUSED = {
    "dynamic": "flatc",  # a tensor with a damaged type: the stock runtime's own fault
    "etdump_unprefixed": "flatc",
    "bool_and_int": "'int' object has no attribute 'target'",
    "bundled_two_suites": "'dict' object has no attribute 'graph_module'",
    "two_methods": "KeyError: 'forward'",
    "two_methods_xnnpack": "KeyError: 'forward'",
    "shared_state": "KeyError: 'forward'",
    "counter_state": "Tensors Debug Data is different",
    "kv_cache": "Tensors Debug Data is different",
}
TRACED = folders("run.etdp")
CHUNKS = [TRACED[start::4] for start in range(4)]


def asked(module: str, *arguments: str, folder: Path) -> dict[str, list[str]]:
    """Run one of the comparing modules and return its answer."""
    out = folder / "differences.json"
    run_stock(["-m", f"tests.inspector.{module}", out, *arguments])
    return json.loads(out.read_text("utf-8"))


def unexpected(found: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the differences that are not a known refusal of the stock tool."""
    return {
        case: lines
        for case, lines in found.items()
        if any(not _is_refusal(case.split(":")[0], line) for line in lines)
    }


def _is_refusal(session: str, line: str) -> bool:
    return line.startswith("stock refuses") and REFUSED.get(session, "\0") in line


@pytest.mark.parametrize("chunk", CHUNKS, ids=range(4))
def test_inspector_on_every_session_equals_the_stock_tool(
    chunk: list[Path], tmp_path: Path
) -> None:
    found = asked("api_against_stock", FILES_ALONE, *map(str, chunk), folder=tmp_path)
    assert len(found) == 2 * len(chunk)
    assert unexpected(found) == {}
    refused = {case.split(":")[0] for case, lines in found.items() if lines}
    assert refused == {folder.name for folder in chunk} & REFUSED.keys()


def test_inspector_with_options_equals_the_stock_tool(tmp_path: Path) -> None:
    names = ("corpus/v1.5.1/convnet_xnnpack", "corpus/special/control_flow", "extra/bundled_cases")
    chosen = [str(DATA / name) for name in names]
    found = asked("api_against_stock", OPTIONS, *chosen, folder=tmp_path)
    assert found == {case: [] for case in found}
    assert len(found) == 7 * len(chosen)


def test_inspector_on_random_traces_equals_the_stock_tool(tmp_path: Path) -> None:
    record = DATA / "corpus" / "v1.5.1" / "mm_xnnpack" / "model.etrecord"
    made = [write_session(tmp_path / f"seed {seed}", seed, record) for seed in range(24)]
    variants = "all,trace alone,parsed,raw metadata,converted"
    found = asked("api_against_stock", variants, *map(str, made), folder=tmp_path)
    assert found == {case: [] for case in found}
    assert len(found) == 5 * len(made)


def test_programs_of_the_corpus_lowered_again_give_the_same_texts_and_traces(
    tmp_path: Path,
) -> None:
    recorded = folders("model.etrecord", "run.etdp")
    chosen = [str(path) for path in recorded if path.parent.name in ("v1.5.1", "special")]
    chosen += [str(DATA / "extra" / name) for name in ("lstm_portable", "map_rows", "kv_cache")]
    found = asked("api_live_against_stock", *chosen, folder=tmp_path)
    assert found == {folder: [] for folder in chosen}


def test_live_programs_give_the_same_texts_tables_and_traces(tmp_path: Path) -> None:
    found = asked("api_live_against_stock", folder=tmp_path)
    assert len(found) == 5
    assert found == {case: [] for case in found}
