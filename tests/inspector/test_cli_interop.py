"""What the verbs say against what the stock tool says of the same files, asked in the same run."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.inspector.cli_runs import run
from tests.inspector.sessions import folders, label
from tests.oracle.client import Oracle

pytestmark = pytest.mark.interop

TRACED = folders("run.etdp")
RECORDED = folders("model.etrecord", "model.pte")
# The stock tool refuses the whole session, with or without its record; see lessons and READMEs.
REFUSED = {"dynamic", "etdump_unprefixed"}


def _data(verb: str, *paths: Path) -> dict[str, Any]:
    answer = run(verb, *paths, "--format", "json")
    assert (answer.code, answer.err) == (0, "")
    return answer.json["data"]


def _rows(facts: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**event, "block": b["name"]} for b in facts["blocks"] for event in b["events"]]


STATISTICS = {
    "avg": np.mean,
    "min": np.min,
    "max": np.max,
    **{f"p{at}": partial(np.percentile, q=at) for at in (10, 50, 90)},
}


def _compare(data: dict[str, Any], stock: list[dict[str, Any]], *, nodes: bool) -> None:
    """Ours leaves cold runs and outliers out, and has no percentiles of fewer than five runs."""
    ours = data["rows"]
    every = all(time["steady_runs"] == time["runs"] for time in data["methods"].values())
    assert [(row["block"], row["event_name"]) for row in ours] == [
        (row["block"], row["name"]) for row in stock
    ]
    for one, two in zip(ours, stock, strict=True):
        assert one["is_delegated_op"] == bool(two["is_delegated_op"])
        assert one["raw_ms"] == two["raw"]
        for name, value in (two["perf"] or {}).items():
            own = one[f"{name}_ms"]
            if not every or (own is None and len(one["raw_ms"]) < 5):
                own = STATISTICS[name](one["raw_ms"])
            assert own == pytest.approx(value, rel=1e-12, abs=1e-15)
        if nodes and two["delegate_backend_name"]:
            assert one["delegate_backend_name"] == two["delegate_backend_name"]
        if nodes and two["op_types"]:
            assert set(one["op_types"]) == set(two["op_types"])


@pytest.mark.parametrize("folder", TRACED, ids=label)
def test_profile_rows_equal_the_events_of_the_stock_inspector(oracle: Oracle, folder: Path) -> None:
    facts = oracle(folder)
    answers = [facts["inspector"], facts["inspector_without_debug_buffer"]]
    known = next((one for one in answers if one is not None and "error" not in one), None)
    alone = facts["inspector_etdump_only"]
    if known is None and "error" in alone:
        assert folder.name in REFUSED
        return
    if known is not None:
        _compare(_data("profile", folder), _rows(known), nodes=True)
    if "error" not in alone:
        _compare(_data("profile", folder / "run.etdp"), _rows(alone), nodes=True)


@pytest.mark.parametrize("folder", RECORDED, ids=label)
def test_delegation_numbers_equal_those_of_the_stock_tool(oracle: Oracle, folder: Path) -> None:
    rebuilt = oracle(folder)["rebuilt"]
    if "error" in rebuilt or not rebuilt["same_program"]:
        pytest.skip("the stock tool cannot make this program again from its record")
    ours = _data("delegation", folder)["methods"]
    assert ours.keys() == rebuilt["delegation"].keys()
    for method, stock in rebuilt["delegation"].items():
        mine = ours[method]
        for name in ("subgraphs", "nodes"):
            assert mine[f"num_delegated_{name}"] == stock[f"num_delegated_{name}"]
        assert mine["num_non_delegated_nodes"] == stock["num_non_delegated_nodes"]
        rows = {
            row["op_type"]: (
                row["occurrences_in_delegated_graphs"],
                row["occurrences_in_non_delegated_graphs"],
            )
            for row in mine["by_operator"]
        }
        wanted = {name: (inside, outside) for name, inside, outside in stock["by_operator"]}
        wanted.pop("Total", None)
        assert rows == wanted


@pytest.mark.parametrize("folder", RECORDED, ids=label)
def test_planned_places_equal_those_of_the_stock_memory_trace(oracle: Oracle, folder: Path) -> None:
    rebuilt = oracle(folder)["rebuilt"]
    if "error" in rebuilt or not rebuilt["same_program"]:
        pytest.skip("the stock tool cannot make this program again from its record")
    ours = _data("memory", folder)["methods"]
    for method, traces in rebuilt["memory_trace"].items():
        places = {
            (arena["mem_id"], value["offset"], value["bytes"])
            for arena in ours[method]["arenas"]
            for value in arena["values"]
        }
        if isinstance(traces["offsets"], dict):
            assert "memory planning" in traces["offsets"]["error"]
            continue
        stock = {
            (event["pid"], event["ts"], event["dur"])
            for event in traces["offsets"]
            if event["ph"] == "X"
        }
        assert stock <= places
