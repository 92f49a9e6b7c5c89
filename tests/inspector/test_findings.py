"""Findings: three to seven, ranked, true to the analyses they come from, about the right thing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from inspector.check.session import check_session
from inspector.files.load import load_session
from inspector.files.session import Session, SessionOptions
from inspector.findings.session import FEWEST, MOST, Finding, Tone, findings, rank
from inspector.graph.delegation import analyse_delegation
from inspector.memory.plan import analyse_memory
from inspector.profile.methods import analyse_profile
from inspector.size.files import session_sizes
from inspector.trace.blocks import trace_blocks
from inspector.units import format_bytes, format_share
from schema import etdump
from schema.etdump import ProfileEvent
from schema.etdump.build import dump, run
from schema.objects.identity_cache import clear
from tests.inspector.sessions import DATA, folders, label, session

pytestmark = pytest.mark.slow

SESSIONS = folders()
LONE = sorted(
    path
    for pattern in ("corpus/payloads/*.pte", "old/*.p*", "records/*.etrecord", "extra/*/run.etdp")
    for path in DATA.glob(pattern)
)
VIEWS = {
    "overview",
    "graph",
    "operators",
    "timeline",
    "memory",
    "size",
    "partitions",
    "issues",
}


@pytest.mark.parametrize("path", [*SESSIONS, *LONE], ids=label)
def test_findings_are_three_to_seven_and_ranked(path: Path) -> None:
    loaded = load_session([path])
    found = findings(loaded)
    assert FEWEST <= len(found) <= MOST
    assert [*found] == sorted(found, key=rank)
    assert len({one.text for one in found}) == len(found)
    assert {one.view for one in found} <= VIEWS
    assert all(one.text and not one.text.endswith(".") for one in found)
    clear()
    assert findings(load_session([path])) == found


@pytest.mark.parametrize("folder", SESSIONS, ids=label)
def test_targets_of_findings_are_there(folder: Path) -> None:
    loaded = session(folder)
    rows = analyse_profile(loaded).rows
    parts = {part.name for one in session_sizes(loaded) if one.size for part in one.size.parts}
    for one in findings(loaded):
        assert one.event is None or one.event < len(rows)
        assert not one.part or one.part in parts
        assert not one.method or one.method in loaded.methods
        if one.instruction is not None and one.view == "memory":
            assert loaded.program is not None
            plan = analyse_memory(loaded.program, one.method)
            assert any(one.instruction == arena.peak_instruction for arena in plan.arenas)


def _with(found: tuple[Finding, ...], words: str) -> Finding:
    (one,) = [one for one in found if words in one.text]
    return one


@pytest.mark.parametrize("folder", folders("run.etdp"), ids=label)
def test_share_of_the_slowest_operators_is_that_of_their_rows(folder: Path) -> None:
    loaded = session(folder)
    profile = analyse_profile(loaded)
    for one in findings(loaded):
        words = r"(\d+) % of the time of (\w+) is in (\d+) operators?( call)?"
        match = re.match(words, one.text)
        if match is None:
            continue
        assert one.event is not None
        block = profile.rows[one.event].block
        rows = [row for row in profile.rows if row.block == block]
        kernels = {
            row.instruction_id: row.event_name for row in rows if "native_call" in row.event_name
        }
        shares: dict[str, float] = {}
        calls = [row for row in rows if row.event_name == "OPERATOR_CALL"]
        if not all(row.instruction_id in kernels for row in calls):
            continue  # the runtime's own operators, named by the program
        for row in calls:
            name = kernels[row.instruction_id]
            shares[name] = shares.get(name, 0.0) + (row.share or 0.0)
        count = len(calls) if match[4] else int(match[3])
        assert count == int(match[3])
        ranked = sorted(shares.items(), key=lambda pair: -pair[1])
        largest = ranked if match[4] else ranked[:count]
        assert round(100 * sum(share for _, share in largest)) == int(match[1]) <= 100
        assert one.detail.startswith(largest[0][0].removeprefix("native_call_"))


def test_one_operator_called_many_times_is_summed(tmp_path: Path) -> None:
    names = ("a.out", "b.out", "b.out", "b.out")
    events = [ProfileEvent("Method::execute", -1, 0, 0, 1000)]
    for number, name in enumerate(names):
        start, end = 200 * number, 200 * number + 190
        events.append(ProfileEvent(f"native_call_{name}", 0, number, start, end))
        events.append(ProfileEvent("OPERATOR_CALL", 0, number, start, end))
    one = _with(findings(_traced(tmp_path, [events])), "2 operators")
    assert one.text.startswith("76 %")
    assert one.detail == "b.out 57 % in 3 calls, a.out 19 %"


@pytest.mark.parametrize("folder", folders("model.pte"), ids=label)
def test_delegation_and_peak_are_those_of_the_analyses(folder: Path) -> None:
    loaded = session(folder)
    program = loaded.program
    assert program is not None
    entries = {entry.method: entry for entry in analyse_delegation(loaded)}
    for one in findings(loaded):
        if " computing node" in one.text and one.view == "partitions" and "average" not in one.text:
            entry = entries[one.method]
            total = entry.compute_delegated + entry.compute_non_delegated
            assert one.text.startswith(f"{entry.compute_delegated} of {total} ")
        if one.view == "memory":
            arenas = analyse_memory(program, one.method).arenas
            assert any(format_bytes(arena.peak_bytes) in one.text for arena in arenas)


@pytest.mark.parametrize("folder", SESSIONS, ids=label)
def test_peak_names_each_writer_once(folder: Path) -> None:
    """Two outputs of one delegate are that many values of it."""
    for one in findings(session(folder)):
        if one.view == "memory":
            words = one.detail.partition(";")[0].split(" and ")
            assert len(words) == len(set(words))


def test_mixed_files_come_first_and_are_bad() -> None:
    program = session(DATA / "corpus/v1.5.1/mm_portable").files[0]
    record = next(
        file for file in session(DATA / "extra/kv_cache").files if file.kind == "etrecord"
    )
    mixed = Session("mix", (program, record))
    first = findings(mixed)[0]
    assert first.tone is Tone.BAD
    assert check_session(mixed).mismatch in first.text


def test_damaged_trace_is_said_to_be_damaged() -> None:
    first = findings(session(DATA / "corpus/special/dynamic"))[0]
    assert (first.tone, first.view) == (Tone.BAD, "issues")


def _traced(tmp_path: Path, runs: list[list[ProfileEvent]], unit: str = "ns") -> Session:
    path = tmp_path / "run.etdp"
    path.write_bytes(etdump.encode(dump([run("Execute", events) for events in runs])))
    return load_session([path], SessionOptions(source_time_scale=unit, time_scale_assumed=False))


def _run(start: int, total: int, inside: int) -> list[ProfileEvent]:
    return [
        ProfileEvent("native_call_a.out", 0, 0, start, start + inside),
        ProfileEvent("OPERATOR_CALL", 0, 0, start, start + inside),
        ProfileEvent("Method::execute", -1, 0, start, start + total),
    ]


def test_time_nothing_accounts_for_is_named(tmp_path: Path) -> None:
    found = findings(_traced(tmp_path, [_run(0, 1000, 600)]))
    assert _with(found, "outside of its instructions").text.startswith("40 % of the time")
    assert not any("Ticks are assumed" in one.text for one in found)


def test_slow_first_run_is_named(tmp_path: Path) -> None:
    loaded = _traced(tmp_path, [_run(0, 3000, 2900), *(_run(9000, 1000, 950),) * 3])
    assert len(trace_blocks(loaded.dumps).blocks) == 1
    assert "3.0 times the median of the other 3" in _with(findings(loaded), "Times are of 4").detail
    more = _traced(tmp_path, [_run(0, 3000, 2900), *(_run(9000, 1000, 950),) * 5])
    assert _with(findings(more), "cold").text == "Means leave out 1 cold first run of 6 runs"
    steady = _traced(tmp_path, [_run(0, 1000, 950)] * 5)
    assert not any("run" in one.text for one in findings(steady))


def test_cost_of_calling_small_kernels_is_named(tmp_path: Path) -> None:
    events = [
        ProfileEvent("native_call_a.out", 0, 0, 400, 500),
        ProfileEvent("OPERATOR_CALL", 0, 0, 0, 900),
        ProfileEvent("Method::execute", -1, 0, 0, 1000),
    ]
    one = _with(findings(_traced(tmp_path, [events])), "calling kernels")
    assert one.text.startswith("80 %")


def test_run_without_operators_is_named(tmp_path: Path) -> None:
    events = [ProfileEvent("Method::execute", -1, 0, 0, 1000)]
    one = _with(findings(_traced(tmp_path, [events])), "none of its operators")
    assert one.tone is Tone.WARN


def test_cycles_are_no_time(tmp_path: Path) -> None:
    found = findings(_traced(tmp_path, [_run(0, 1000, 600)], "cycles"))
    assert _with(found, "counts cycles")
    assert not any("%" in one.text for one in found)


def test_trace_without_events_is_named(tmp_path: Path) -> None:
    found = findings(_traced(tmp_path, []))
    assert "no events" in found[0].text


@pytest.mark.parametrize(
    ("share", "wanted"), [(0.0, "0 %"), (0.004, "0.4 %"), (0.5, "50 %"), (1.0, "100 %")]
)
def test_percent_never_hides_a_little(share: float, wanted: str) -> None:
    assert format_share(share) == wanted
