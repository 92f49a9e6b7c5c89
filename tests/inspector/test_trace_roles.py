"""Roles of traces: times come from runs that logged no values, values from those that did."""

from __future__ import annotations

import itertools
import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from devtools_app.viewmodels.headline import time_sum
from devtools_app.viewmodels.status import status_facts, time_parts
from devtools_app.viewmodels.timeline import one_run
from inspector.files.load import load_session
from inspector.files.run_report import listed_files
from inspector.findings.session import findings
from inspector.numerics.tensors import logged_tensors
from inspector.profile.attribution import method_runs
from inspector.profile.methods import TIMES_WITH_VALUES, VALUES_LOGGED, analyse_profile
from inspector.profile.timeline_runs import median_run, timeline_runs
from inspector.tables.selection import AUTOMATIC, Units
from inspector.units import MINUS
from schema import etdump
from tests.inspector.cli_runs import run, valid
from tests.inspector.sessions import DATA

NET = DATA / "corpus/v1.5.1/convnet_xnnpack"


def _write(path: Path, *traces: Path) -> None:
    """Write the runs of some traces, without their values."""
    runs = [run for trace in traces for run in etdump.decode(trace.read_bytes()).run_data]
    kept = (
        etdump.run(run.name, [one for one in run.events if not isinstance(one, etdump.DebugEvent)])
        for run in runs
    )
    path.write_bytes(etdump.encode(etdump.dump(kept)))


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Traces of one program, with and without values, and one of another program."""
    folder = tmp_path_factory.mktemp("traces")
    _write(folder / "clean.etdp", NET / "run.etdp")
    (folder / "values.etdp").write_bytes((NET / "run.etdp").read_bytes())
    (folder / "values.debug").write_bytes((NET / "run.debug").read_bytes())
    return folder


@pytest.mark.parametrize(
    "names", list(itertools.permutations(("clean.etdp", "values.etdp", "values.debug")))
)
def test_times_are_of_the_trace_without_values_in_any_order(
    traces: Path, names: tuple[str, ...]
) -> None:
    session = load_session([str(NET / "model.pte"), *(str(traces / name) for name in names)])
    assert [Path(one.file).name for one in session.dumps] == ["clean.etdp", "values.etdp"]
    assert [Path(one.file).name for one in session.timed_dumps] == ["clean.etdp"]
    assert [Path(one.file).name for one in session.value_dumps] == ["values.etdp"]
    assert not session.times_with_values
    assert analyse_profile(session).tags == ("ns assumed",)
    alone = load_session([str(NET / "model.pte"), str(traces / "clean.etdp")])
    assert [one.times_ns.tolist() for one in method_runs(session)] == [
        one.times_ns.tolist() for one in method_runs(alone)
    ]
    assert logged_tensors(session)
    assert not any(one.text == TIMES_WITH_VALUES for one in findings(session))


def test_times_of_logged_runs_alone_are_shown_with_a_tag(traces: Path) -> None:
    files = ("values.etdp", "values.debug")
    session = load_session([str(NET / "model.pte"), *(str(traces / name) for name in files)])
    assert session.times_with_values
    assert VALUES_LOGGED in analyse_profile(session).tags
    assert findings(session)[0].text == TIMES_WITH_VALUES
    given = [NET / "model.pte", *(traces / name for name in files)]
    answer = run("table", "operators", *given, "--format", "json")
    assert VALUES_LOGGED in valid(answer, "table")["data"]["tags"]
    assert "times: values logged, ns assumed" in run("table", "operators", *given).out
    assert "values logged" not in run("table", "memory", *given).out


def test_times_of_logged_runs_are_hatched_without_shares_wherever_they_are_drawn(
    traces: Path,
) -> None:
    for trace, logged in (("values.etdp", True), ("clean.etdp", False)):
        session = load_session([str(NET / "model.pte"), str(traces / trace)])
        shown = time_sum(status_facts(session, "forward"), AUTOMATIC)
        assert shown.hatched is logged
        assert (VALUES_LOGGED in dict(shown.badges)) is logged
        assert [one.share is None for one in shown.slices] == [logged] * len(shown.slices)
        runs = timeline_runs(session, "forward")
        assert one_run(session, runs[median_run(runs) : median_run(runs) + 1]).data.logged is logged


def test_values_of_another_method_keep_their_times(traces: Path) -> None:
    """A trace with values lends its times where no clean one has the same calls."""
    other = DATA / "corpus/v1.5.1/tinygpt_portable/run.etdp"
    session = load_session([str(traces / "clean.etdp"), str(other)])
    assert len(session.timed_dumps) == 2
    assert session.times_with_values


@pytest.mark.parametrize("kernels", [(1,), (1, 2, 3), (7, 8)])
def test_values_of_an_engine_with_other_kernels_are_not_shown_as_times(
    traces: Path, tmp_path: Path, kernels: tuple[int, ...]
) -> None:
    """A runtime that logs values may run delegates by kernels of its own."""
    _with_kernels(traces / "clean.etdp", tmp_path / "clean.etdp", kernels)
    _with_kernels(traces / "values.etdp", tmp_path / "values.etdp", (4, 5))
    shutil.copy(traces / "values.debug", tmp_path)
    names = ("clean.etdp", "values.etdp", "values.debug")
    session = load_session([str(NET / "model.pte"), *(str(tmp_path / name) for name in names)])
    assert [Path(one.file).name for one in session.timed_dumps] == ["clean.etdp"]
    assert [Path(one.file).name for one in session.value_dumps] == ["values.etdp"]
    assert not session.times_with_values


def _with_kernels(source: Path, target: Path, numbers: tuple[int, ...]) -> None:
    """Write the first run of a trace with kernels inside of its first call."""
    part = etdump.decode(source.read_bytes()).run_data[1]  # behind the load
    events = list(part.events)
    at, call = next(
        (at, one)
        for at, one in enumerate(events)
        if isinstance(one, etdump.ProfileEvent) and (one.name or "").startswith("DELEGATE")
    )
    events[at:at] = [replace(call, name="kernel", delegate_id_int=number) for number in numbers]
    target.write_bytes(etdump.encode(etdump.dump([etdump.run(part.name, events)])))


def _copy(folder: Path, name: str, method: str = "") -> Path:
    """Return a folder with a copy of the clean trace, and a report if a method is named."""
    place = folder / name
    place.mkdir()
    shutil.copy(folder / "clean.etdp", place / "run.etdp")
    if method:
        _report(place, [0.01] * 5, method=method)
    return place


def test_second_trace_of_a_method_is_not_shown_and_says_so(traces: Path, tmp_path: Path) -> None:
    shutil.copy(traces / "clean.etdp", tmp_path)
    again, wider = _copy(tmp_path, "again"), _copy(tmp_path, "wider")
    pair = [tmp_path / "clean.etdp", again]
    session = load_session([NET / "model.pte", *pair])
    assert [Path(one.file).name for one in session.timed_dumps] == ["clean.etdp"]
    assert [session.role_of(one) for one in session.dumps] == ["times", "another run, not shown"]
    (issue,) = session.all_issues()
    assert (issue.where, issue.message.split(";")[0]) == (
        str(again / "run.etdp"),
        "not shown: clean.etdp is of the same method",
    )
    alone = load_session([NET / "model.pte", pair[0]])
    assert analyse_profile(session).methods == analyse_profile(alone).methods
    assert "role another run, not shown" in run("summary", NET / "model.pte", *pair).out
    # the trace of more methods is shown, whatever the order
    _write(wider / "run.etdp", NET / "run.etdp", DATA / "corpus/v1.5.1/mm_portable/run.etdp")
    for order in ((pair[0], wider), (wider, pair[0])):
        (shown,) = load_session(list(order)).timed_dumps
        assert Path(shown.file).parent == wider


def test_traces_whose_reports_name_two_methods_both_count(traces: Path, tmp_path: Path) -> None:
    """The calls alone would be those of one method."""
    shutil.copy(traces / "clean.etdp", tmp_path)
    one, other = _copy(tmp_path, "one", "encode"), _copy(tmp_path, "other", "decode")
    assert len(load_session([one, other]).timed_dumps) == 2
    assert len(load_session([one, _copy(tmp_path, "third", "encode")]).timed_dumps) == 1


def test_values_are_those_of_the_buffer_of_their_own_trace(traces: Path, tmp_path: Path) -> None:
    """Offsets of one trace mean nothing in the debug buffer of another run."""
    second = tmp_path / "second"
    second.mkdir()
    for name in ("values.etdp", "values.debug"):
        shutil.copy(traces / name, second)
    given = [NET / "model.pte", second, traces / "values.etdp", traces / "values.debug"]
    session = load_session(given)
    assert [Path(one.file).parent for one in session.value_dumps] == [second]
    assert {one.buffer.file for one in logged_tensors(session) if one.buffer} == {
        str(second / "values.debug")
    }
    unknown = load_session([given[0], given[1], given[2]])  # without the buffer of the second
    assert unknown.buffer_of(unknown.dumps[1]) is None


def _longer(event: etdump.AnyEvent) -> etdump.AnyEvent:
    is_timed = isinstance(event, etdump.ProfileEvent)
    return replace(event, end_time=event.end_time + 1) if is_timed else event


def _slow_down(trace: Path) -> None:
    """Make each event of a trace a tick longer, which leaves its size as it is."""
    size = trace.stat().st_size
    runs = [
        (run.name, [_longer(one) for one in run.events])
        for run in etdump.decode(trace.read_bytes()).run_data
    ]
    trace.write_bytes(etdump.encode(etdump.dump(etdump.run(name, kept) for name, kept in runs)))
    assert trace.stat().st_size == size


def test_report_is_of_the_trace_whose_content_it_lists(ran: Path) -> None:
    listed = listed_files(ran)
    assert {one["path"] for one in listed if "sha256" in one} == {"run.etdp"}
    _report(ran, [0.01] * 5, files=listed)
    assert analyse_profile(load_session([str(ran)])).methods[0].bare_ms is not None
    _slow_down(ran / "run.etdp")
    session = load_session([str(ran)])
    assert [one.bare_ms for one in analyse_profile(session).methods] == [None]
    assert "other content of the same size" in session.all_issues()[0].message


def _report(folder: Path, times_ms: list[float], **more: object) -> None:
    trace = folder / "run.etdp"
    files = [{"path": trace.name, "bytes": trace.stat().st_size}]
    content = {
        "method": "forward",
        "run_ms": times_ms,
        "traced_run_ms": [9.0],
        "files": files,
        **more,
    }
    (folder / "run.json").write_text(json.dumps(content))


@pytest.fixture
def ran(traces: Path, tmp_path: Path) -> Path:
    """A program and the clean trace of a run with its report."""
    shutil.copy(NET / "model.pte", tmp_path)
    shutil.copy(traces / "clean.etdp", tmp_path / "run.etdp")
    _report(tmp_path, [0.01] * 19 + [5.0])
    return tmp_path


def test_latency_is_the_mean_of_the_steady_runs_without_a_trace(ran: Path) -> None:
    session = load_session([str(ran)])
    (time,) = analyse_profile(session).methods
    assert time.bare is not None
    assert (time.bare.mean, len(time.bare.steady)) == (pytest.approx(0.01), 19)
    assert time.latency_ms == time.bare_ms
    assert time.tracing_ms == pytest.approx(time.method_ms - 0.01)
    assert analyse_profile(session).tags == ()  # the report says whose clock it was
    assert any(one.text.startswith("The trace adds ") for one in findings(session))
    answer = run("profile", ran, "--format", "json")
    found = valid(answer, "profile")["data"]["methods"]["forward"]
    assert found["bare_ms"] + found["tracing_ms"] == found["method_ms"]
    assert "19 steady of 20 runs without a trace" in run("profile", ran).out


@pytest.mark.parametrize(
    "change",
    [
        {"files": [{"path": "run.etdp", "bytes": 3}]},
        {"files": 7},
        {"run_ms": ["fast"]},
        {"run_ms": [math.nan]},
        {"run_ms": [-1.0]},
        {"method": None},
    ],
)
def test_report_of_another_run_or_a_damaged_one_is_left_out(
    ran: Path, change: dict[str, object]
) -> None:
    _report(ran, [0.01] * 5, **change)
    session = load_session([str(ran)])
    (time,) = analyse_profile(session).methods
    assert (time.bare_ms, time.latency_ms) == (None, time.method_ms)
    assert analyse_profile(session).tags == ("ns assumed",)


def test_report_of_earlier_versions_has_no_runs_without_a_trace(ran: Path) -> None:
    _report(ran, [0.01] * 5)
    content = json.loads((ran / "run.json").read_text())
    del content["traced_run_ms"]
    (ran / "run.json").write_text(json.dumps(content))
    session = load_session([str(ran)])
    (time,) = analyse_profile(session).methods
    assert time.bare_ms is None
    assert analyse_profile(session).tags == ()


def test_sum_of_the_status_line_closes_with_the_cost_of_tracing(ran: Path) -> None:
    facts = status_facts(load_session([str(ran)]), "forward")
    assert facts.time is not None
    parts = time_parts(facts, Units("ns", "B"))
    assert parts[0].label == "method"
    assert parts[-1].label == "tracing"
    values = [float(part.value.split()[0].replace(",", "").replace(MINUS, "-")) for part in parts]
    assert values[0] == pytest.approx(sum(values[1:]), abs=3)


def test_sums_name_the_logging_of_values_where_the_trace_without_them_is_damaged(
    ran: Path, traces: Path
) -> None:
    for name in ("values.etdp", "values.debug"):
        shutil.copy(traces / name, ran)
    trace = ran / "run.etdp"
    listed = [
        {"path": one, "bytes": (ran / one).stat().st_size} for one in (trace.name, "values.etdp")
    ]
    trace.write_bytes(trace.read_bytes()[:200])
    _report(ran, [0.01] * 20, files=listed)
    session = load_session([str(ran)])
    facts = status_facts(session, "forward")
    assert time_parts(facts, AUTOMATIC)[-1].label == "logging of values"
    assert time_sum(facts, AUTOMATIC).slices[-1].word == "logging of values"
    assert "cost of logging values" in run("table", "operators", ran).out
    assert "with logging of values" in run("profile", ran).out
    assert not any(one.text.startswith("The trace adds") for one in findings(session))


def test_sum_of_the_status_line_has_one_unit(ran: Path) -> None:
    facts = status_facts(load_session([str(ran)]), "forward")
    assert facts.time is not None
    time = replace(
        facts.time,
        method_ms=0.517,
        delegates_ms=0.4235,
        operators_ms=0.08399,
        unattributed_ms=0.009235,
        bare=None,
    )
    parts = time_parts(replace(facts, time=time), AUTOMATIC)
    assert {part.value.split()[1] for part in parts} == {"ms"}
    assert [part.value.split()[0] for part in parts][:2] == ["0.517", "0.423"]
