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


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Traces of one program, with and without values, and one of another program."""
    folder = tmp_path_factory.mktemp("traces")
    dump = etdump.decode((NET / "run.etdp").read_bytes())
    events = [
        (run.name, [one for one in run.events if not isinstance(one, etdump.DebugEvent)])
        for run in dump.run_data
    ]
    clean = etdump.dump(etdump.run(name, kept) for name, kept in events)
    (folder / "clean.etdp").write_bytes(etdump.encode(clean))
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
