"""Every event of a trace has facts: those of the runtime, too, which are no operator."""

from __future__ import annotations

import pytest

from devtools_app.viewmodels.node_facts import node_facts
from inspector.profile.methods import analyse_profile
from inspector.profile.timeline_runs import timeline_runs
from inspector.tables.selection import AUTOMATIC, Selection, SelectionKind
from tests.app.sessions import DATA, folders, opened

TRACED = [one for one in folders() if (DATA / one / "run.etdp").exists()]


@pytest.mark.parametrize("folder", TRACED)
def test_every_event_has_facts(folder: str) -> None:
    session = opened(folder)
    rows = analyse_profile(session).rows
    for method in session.methods or ("forward",):
        own = {run.block: run.first_row for run in timeline_runs(session, method)}
        for number, first in own.items():
            for row in range(first, first + len(rows.sources[number])):
                sheet = node_facts(session, method, _event(row), AUTOMATIC)
                assert sheet.title
                assert any(group.facts for group in sheet.groups)


@pytest.mark.parametrize("folder", TRACED)
def test_the_whole_run_has_its_name_and_its_time(folder: str) -> None:
    session = opened(folder)
    rows = analyse_profile(session).rows
    whole = [at for at, row in enumerate(rows) if row.event_name == "Method::execute"]
    for at in whole:
        sheet = node_facts(
            session, session.methods[0] if session.methods else "", _event(at), AUTOMATIC
        )
        assert sheet.title == "Method::execute"
        assert sheet.groups[0].notice == "No operator"
        known = rows[at].statistics
        (times,) = (group.facts for group in sheet.groups if group.title.startswith("Time"))
        if known is not None and rows[at].total_ms is not None:
            assert times[0].label in ("mean", "time")
            assert float(times[0].exact.split()[0].replace(",", "")) == pytest.approx(
                known.avg * 1e6
            )
        else:
            assert times[0].value == "missing"


def test_a_row_that_is_not_there_has_none() -> None:
    session = opened(TRACED[0])
    assert not node_facts(session, session.methods[0], _event(1 << 40), AUTOMATIC).title


def _event(row: int) -> Selection:
    return Selection(SelectionKind.EVENT, event=row)
