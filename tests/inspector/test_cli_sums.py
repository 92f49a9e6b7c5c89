"""Numbers that must add up, on every committed file."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.inspector.cli_runs import LONE, SESSIONS, loaded_once, run
from tests.inspector.sessions import label

pytestmark = pytest.mark.slow

ALL = [*SESSIONS, *LONE]


@pytest.fixture(autouse=True)
def _shared(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded_once(monkeypatch)


def _data(verb: str, path: Path, *more: str) -> dict:
    return run(verb, path, "--format", "json", *more).json["data"]


@pytest.mark.parametrize("path", ALL, ids=label)
def test_parts_sum_to_the_files(path: Path) -> None:
    data = _data("size", path, "--duplicates")
    parts = data["parts"]
    measured = {part["file"] for part in parts}
    assert data["total_bytes"] == sum(Path(file).stat().st_size for file in measured)
    assert sum(part["bytes"] for part in parts) == data["total_bytes"]
    assert math.isclose(sum(part["share"] for part in parts), 1.0)
    for file in measured:
        own = sorted((part["offset"], part["bytes"]) for part in parts if part["file"] == file)
        ends = [offset + size for offset, size in own]
        assert [offset for offset, _ in own] == [0, *ends[:-1]]
    names = {part["name"] for part in parts}
    assert all(part["duplicate_of"] in names for part in parts if part["duplicate_of"])


@pytest.mark.parametrize("path", ALL, ids=label)
def test_times_add_up(path: Path) -> None:
    data = _data("profile", path)
    for total in (data["totals"], *data.get("methods", {}).values()):
        if total["method_ms"] is None:
            continue
        both = total["attributed_ms"] + total["unattributed_ms"]
        assert math.isclose(total["method_ms"], both, rel_tol=1e-9, abs_tol=1e-12)
    for time in data.get("methods", {}).values():
        parts = time["delegates_ms"] + time["operators_ms"] + time["control_ms"]
        assert math.isclose(parts, time["attributed_ms"], rel_tol=1e-9, abs_tol=1e-12)
        assert time["unattributed_ms"] >= 0
    for row in data["rows"]:
        raw = row["raw_ms"]
        if raw is None:
            continue
        assert min(raw) <= row["min_ms"] <= row["avg_ms"] <= row["max_ms"] <= max(raw)
        points = [row[f"{name}_ms"] for name in ("p10", "p50", "p90")]
        if len(raw) < 5:  # all of them count, and a percentile would be one of them
            assert row["avg_ms"] == pytest.approx(sum(raw) / len(raw))
            assert points == [None] * 3
        elif None not in points:
            assert sorted(points) == points
        assert row["share"] is None or 0 <= row["share"] <= 1 + 1e-9


@pytest.mark.parametrize("unit", ["us", "ms", "s", "cycles"])
def test_unit_scales_every_time(unit: str) -> None:
    path = next(path for path in SESSIONS if path.name == "lstm_portable")
    plain, scaled = _data("profile", path), _data("profile", path, "--source-time-scale", unit)
    assert scaled["unit"] == {"source": unit, "assumed": False}
    if unit == "cycles":
        assert scaled["totals"]["method_ms"] is None
        assert all(row["raw_ms"] is None for row in scaled["rows"])
        assert any(row["raw_ticks"] for row in scaled["rows"])
        return
    factor = {"us": 1e3, "ms": 1e6, "s": 1e9}[unit]
    assert scaled["totals"]["method_ms"] == pytest.approx(plain["totals"]["method_ms"] * factor)


@pytest.mark.parametrize("path", ALL, ids=label)
def test_planned_values_lie_in_their_arena(path: Path) -> None:
    for method in _data("memory", path)["methods"].values():
        for arena in method["arenas"]:
            assert arena["lower_bound_bytes"] <= arena["peak_bytes"] <= arena["planned_bytes"]
            assert sum(value["peak_bytes"] for value in arena["values"]) == arena["peak_bytes"]
            assert arena["hole_bytes"] == arena["planned_bytes"] - arena["peak_bytes"]
            steps = max(method["instruction_count"], 1)  # without work one moment
            assert arena["peak_bytes"] == _peak(arena["values"], steps)
            for value in arena["values"]:
                assert value["offset"] >= 0
                assert value["offset"] + value["bytes"] <= arena["planned_bytes"]
                assert -1 <= value["first"] <= value["last"] < steps


@pytest.mark.parametrize("path", ALL, ids=label)
def test_summary_has_the_peaks_of_the_memory_view(path: Path) -> None:
    shown = _data("summary", path)["methods"]
    for name, method in _data("memory", path)["methods"].items():
        arenas = method["arenas"]
        assert shown[name]["arena_bytes"] == sum(one["planned_bytes"] for one in arenas)
        assert shown[name]["peak_bytes"] == sum(one["peak_bytes"] for one in arenas)


def _peak(values: list[dict], steps: int) -> int:
    """Count the bytes in use at every instruction, each address once."""
    most = 0
    for step in range(steps):
        alive = [value for value in values if 0 <= value["first"] <= step <= value["last"]]
        used, end = 0, 0
        for low, high in sorted((one["offset"], one["offset"] + one["bytes"]) for one in alive):
            used += max(high - max(low, end), 0)
            end = max(end, high)
        most = max(most, used)
    return most


@pytest.mark.parametrize("path", ALL, ids=label)
def test_delegation_counts_agree_with_their_tables(path: Path) -> None:
    methods = _data("delegation", path)["methods"]
    for method in methods.values():
        rows = method["by_operator"]
        inside = sum(row["occurrences_in_delegated_graphs"] for row in rows)
        outside = sum(row["occurrences_in_non_delegated_graphs"] for row in rows)
        assert inside == method["num_delegated_nodes"]
        assert outside == method["num_non_delegated_nodes"]
        assert method["honest"]["compute_delegated"] <= inside
        assert sum(len(one["nodes"]) for one in method["delegates"]) == inside
    summary = _data("summary", path)["methods"]
    for name, method in methods.items():
        shown = summary[name]["delegation"]
        assert shown == {key: method[key] for key in shown}


@pytest.mark.parametrize("path", ALL, ids=label)
def test_trace_slices_nest(path: Path) -> None:
    lanes: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in _data("trace", path)["traceEvents"]:
        if event["ph"] == "X":
            times = (event["ts"], event["ts"] + event["dur"])
            lanes.setdefault((event["pid"], event["tid"]), []).append(times)
    for slices in lanes.values():
        stack: list[tuple[float, float]] = []
        for start, end in sorted(slices, key=lambda times: (times[0], -times[1])):
            while stack and stack[-1][1] <= start:
                stack.pop()
            assert not stack or end <= stack[-1][1] + 1e-6
            stack.append((start, end))
