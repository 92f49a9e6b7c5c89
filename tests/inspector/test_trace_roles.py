"""Roles of traces: times come from runs that logged no values, values from those that did."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from inspector.files.load import load_session
from inspector.findings.session import findings
from inspector.numerics.tensors import logged_tensors
from inspector.profile.attribution import method_runs
from inspector.profile.methods import TIMES_WITH_VALUES, VALUES_LOGGED, analyse_profile
from schema import etdump
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


def test_values_of_another_method_keep_their_times(traces: Path) -> None:
    """A trace with values lends its times where no clean one has the same calls."""
    other = DATA / "corpus/v1.5.1/tinygpt_portable/run.etdp"
    session = load_session([str(traces / "clean.etdp"), str(other)])
    assert len(session.timed_dumps) == 2
    assert session.times_with_values
