"""The Chrome trace: every event once, nested where its times allow, on a lane of its own else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.export.chrome_trace import chrome_trace
from inspector.files.load import load_session
from inspector.files.session import Session, SessionOptions
from inspector.profile.timeline_runs import timeline_runs
from inspector.trace.blocks import trace_blocks
from schema import etdump
from schema.etdump import ETDump, EventKind, ProfileEvent
from schema.etdump.build import dump, run
from tests.inspector.cli_runs import run as run_verb
from tests.inspector.sessions import folders, label, session


def _slices(loaded: Session) -> list[dict[str, Any]]:
    return [event for event in chrome_trace(loaded)["traceEvents"] if event["ph"] == "X"]


def _nests(slices: list[dict[str, Any]]) -> bool:
    """Return whether slices of each lane nest, as Perfetto asks for; exact ticks are compared."""
    lanes: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for one in slices:
        ends = (one["args"]["start_ticks"], one["args"]["end_ticks"])
        lanes.setdefault((one["pid"], one["tid"]), []).append((ends[0], max(ends)))
    for spans in lanes.values():
        stack: list[int] = []
        for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while stack and stack[-1] <= start:
                stack.pop()
            if stack and end > stack[-1]:
                return False
            stack.append(end)
    return True


@pytest.mark.parametrize("folder", folders("run.etdp"), ids=label)
def test_every_profile_event_is_a_slice(folder: Path) -> None:
    loaded = session(folder)
    slices = _slices(loaded)
    tables = [table for block in trace_blocks(loaded.dumps).blocks for table in block.runs]
    assert len(slices) == sum(int((table.kind == EventKind.PROFILE).sum()) for table in tables)
    assert min(one["ts"] for one in slices) == 0
    assert all(one["dur"] >= 0 for one in slices)
    assert _nests(slices)
    for one in slices:
        ticks = one["args"]["end_ticks"] - one["args"]["start_ticks"]
        assert one["dur"] == pytest.approx(ticks / 1000)


@pytest.mark.parametrize("folder", folders("run.etdp"), ids=label)
def test_inner_events_of_the_corpus_nest_in_their_calls(folder: Path) -> None:
    slices = _slices(session(folder))
    assert {one["tid"] for one in slices} == {0}
    calls = [one for one in slices if one["name"] == "DELEGATE_CALL"]
    for inner in (one for one in slices if one["cat"] == "delegate"):
        assert any(
            call["pid"] == inner["pid"]
            and call["args"]["instruction"] == inner["args"]["instruction"]
            and call["args"]["start_ticks"] <= inner["args"]["start_ticks"]
            and inner["args"]["end_ticks"] <= call["args"]["end_ticks"]
            for call in calls
        )


def _traced(trace: ETDump, unit: str = "ns") -> Session:
    decoded = etdump.decode(etdump.encode(trace), file="run.etdp")
    from inspector.files.session import LoadedFile

    file = LoadedFile("run.etdp", "etdump", 1, memoryview(b"x"), decoded)
    return Session("made", (file,), SessionOptions(source_time_scale=unit))


spans = st.tuples(st.integers(0, 60), st.integers(0, 60)).map(sorted)


@given(st.lists(spans, max_size=8), spans)
def test_any_times_of_a_backend_nest_or_have_a_lane(
    inner: list[list[int]], call: list[int]
) -> None:
    events = [
        ProfileEvent(None, 0, 3, 100 + start, 100 + end, delegate_id_str="op")
        for start, end in inner
    ]
    events.append(ProfileEvent("DELEGATE_CALL", 0, 3, 100 + call[0], 100 + call[1]))
    events.append(ProfileEvent("Method::execute", -1, 0, 90, 170))
    slices = _slices(_traced(dump([run("Execute", events)])))
    outer = [one for one in slices if one["tid"] == 0]
    assert _nests(outer)
    nested = {one["tid"] for one in slices if one["cat"] == "delegate"}
    assert len(nested) <= 1
    outside = any(start < call[0] or end > call[1] for start, end in inner)
    if outside:
        assert nested != {0}


def test_strayed_events_have_a_named_lane() -> None:
    events = [
        ProfileEvent(None, 0, 3, 5, 9, delegate_id_int=7),
        ProfileEvent("DELEGATE_CALL", 0, 3, 100, 200),
    ]
    trace = chrome_trace(_traced(dump([run("Execute", events)])))["traceEvents"]
    names = [one["args"]["name"] for one in trace if one["name"] == "thread_name"]
    assert names == ["method", "inside the call of instruction 3"]
    assert next(one["tid"] for one in trace if one["name"] == "7") == 1


def test_cycles_stay_cycles() -> None:
    loaded = _traced(dump([run("Execute", [ProfileEvent("Method::execute", -1, 0, 7, 1007)])]))
    cycles = Session("c", loaded.files, SessionOptions(source_time_scale="cycles"))
    assert chrome_trace(cycles)["otherData"]["unit"] == "cycles"
    assert [one["dur"] for one in _slices(cycles)] == [1000]
    assert [one["dur"] for one in _slices(loaded)] == [1]


def test_traces_of_several_files_each_begin_at_zero(tmp_path: Path) -> None:
    paths: list[Path] = []
    for number, start in enumerate((10**15, 5)):
        path = tmp_path / f"run_{number}.etdp"
        event = ProfileEvent("Method::execute", -1, 0, start, start + 1000)
        path.write_bytes(etdump.encode(dump([run("Execute", [event])])))
        paths.append(path)
    slices = _slices(load_session(paths))
    assert [(one["ts"], one["dur"], one["pid"]) for one in slices] == [(0, 1, 0), (0, 1, 1)]


def test_text_is_the_trace_file_and_json_has_it_as_data() -> None:
    folder = folders("run.etdp")[0]
    document = json.loads(run_verb("trace", folder).out)
    assert document == run_verb("trace", folder, "--format", "json").json["data"]
    assert document["traceEvents"]


@pytest.mark.parametrize("path", folders("run.etdp"), ids=label)
def test_runs_are_called_as_in_the_timeline(path: Path) -> None:
    found = session(path)
    named = {
        event["args"]["name"]
        for event in chrome_trace(found)["traceEvents"]
        if event["name"] == "process_name"
    }
    for method in found.methods:
        runs = [one for one in timeline_runs(found, method) if one.executes]
        assert {f"{method} {one.label}" for one in runs} <= named
