"""Several sessions below one another on the timeline."""

from __future__ import annotations

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from devtools_app.state.requests import GoTo
from devtools_app.state.transitions import add_session, go_to
from devtools_app.viewmodels.timeline_content import SESSIONS, timeline_content
from devtools_app.viewmodels.timeline_counters import IN_USE
from devtools_app.viewmodels.timeline_sessions import SessionBeside
from devtools_app.views.timeline import TimelinePane
from inspector.units import Quantity
from tests.app.sessions import opened
from tests.app.timeline_traces import delegated_run, traced
from tests.app.view_bench import Bench

pytestmark = pytest.mark.gui
PROGRAM = "corpus/v1.5.1/tinygpt_xnnpack"  # forward
METHODS = "extra/two_methods"  # decode and encode


@pytest.fixture
def bench(qtbot: QtBot) -> Bench:
    made = Bench(qtbot, TimelinePane)
    made.pane.resize(1200, 700)
    made.open(traced([delegated_run(12), delegated_run(12, begin=9000)]))
    return made


def pane_of(bench: Bench) -> TimelinePane:
    assert isinstance(bench.pane, TimelinePane)
    return bench.pane


def show_all_sessions(bench: Bench) -> None:
    runs = pane_of(bench).runs
    at = runs.findData(SESSIONS)
    runs.setCurrentIndex(at)
    runs.activated.emit(at)
    bench.settle()


def groups_of(pane: TimelinePane) -> list[str]:
    """Return the titles over the lanes, without the run."""
    assert pane.canvas.data is not None
    groups = dict.fromkeys(lane.group for lane in pane.canvas.data.lanes)
    return [group.rpartition(" · ")[0] for group in groups]


def test_all_sessions_start_together_and_a_click_goes_to_the_other(
    bench: Bench, qtbot: QtBot
) -> None:
    pane = pane_of(bench)
    assert pane.runs.findData(SESSIONS) < 0
    late = traced([delegated_run(3, begin=700_000)], name="late")
    bench.store.put(add_session(bench.store.state, late, ()))
    bench.settle()
    show_all_sessions(bench)
    data = pane.canvas.data
    assert data is not None
    groups = list(dict.fromkeys(lane.group for lane in data.lanes))
    assert groups == ["A  made · run 1", "B  late · run 1"]
    first = [float(data.start[data.lane == lane].min()) for lane in (0, 3)]
    assert first == [0.0, 0.0]
    assert bench.store.state.current == "B"
    pane.canvas.select(int(np.flatnonzero(data.lane == 1)[1]))
    asked = bench.asked[-1]
    assert isinstance(asked, GoTo)
    assert asked.place.session == "A"
    own = int(np.flatnonzero((data.lane == 4) & ~data.unattributed)[0])
    pane.canvas.select(own)
    assert pane.canvas.marks.selected == {own}  # not the event of the same row of the other
    pane.canvas.select_span((0.0, 100.0))
    qtbot.waitUntil(lambda: not pane.range.working)
    assert pane.range.content is not None
    assert pane.range.content.session is late


def test_counters_of_several_sessions_have_one_scale() -> None:
    named = [
        SessionBeside("A", opened(PROGRAM)),
        SessionBeside("B", opened("corpus/v1.5.1/convnet_xnnpack")),
    ]
    content = timeline_content(named[0].session, "forward", SESSIONS, named)
    assert content.timeline is not None
    in_use = [one for one in content.timeline.data.counters if one.label == IN_USE]
    largest = [float(np.nanmax(one.value)) for one in in_use]
    assert largest[0] != largest[1]
    assert [one.top for one in in_use] == [max(one.top for one in in_use)] * 2


def test_hovering_shows_the_share_of_the_run_of_the_same_session(bench: Bench) -> None:
    late = traced([delegated_run(3, begin=700_000)], name="late")
    bench.store.put(add_session(bench.store.state, late, ()))
    bench.settle()
    pane = pane_of(bench)
    show_all_sessions(bench)
    data = pane.canvas.data
    assert data is not None
    call = int(np.flatnonzero((data.lane == 4) & ~data.unattributed)[0])
    assert "100 ns (100 ns) · 23 % of Method::execute" in pane.canvas.hover_text(call)


def test_sessions_with_another_unit_are_left_out_and_named() -> None:
    session = traced([delegated_run(2)])
    cycles = traced([delegated_run(2)], unit="cycles", name="c")
    content = timeline_content(
        session, "", SESSIONS, [SessionBeside("A  made", session), SessionBeside("B  c", cycles)]
    )
    assert content.timeline is not None
    assert content.timeline.data.quantity is Quantity.TIME
    assert "left out for another unit: B  c" in content.timeline.note


def test_sessions_without_a_run_are_named_with_that_reason() -> None:
    one, idle = traced([delegated_run(2)]), traced([])
    sessions = [
        SessionBeside("A  made", one),
        SessionBeside("B  idle", idle),
        SessionBeside("C  also", traced([delegated_run(3)])),
    ]
    content = timeline_content(one, "", SESSIONS, sessions)
    assert content.timeline is not None
    assert "no run: B  idle" in content.timeline.note
    assert "C  also" not in content.timeline.note


SHOWN = {
    "the only method of the other": ((PROGRAM, "forward"), (METHODS, ""), "decode"),
    "the method that was shown last": ((PROGRAM, "forward"), (METHODS, "encode"), "encode"),
    "that of the same name before it": (
        ("extra/two_methods_xnnpack", "encode"),
        (METHODS, "decode"),
        "encode",
    ),
    "one that ran, not one that was shown": (
        (METHODS, "encode"),
        ("extra/bundled_two_suites", "score"),
        "forward",
    ),
    "from two methods to one": ((METHODS, "encode"), (PROGRAM, ""), "forward"),
    "a last method that is gone": ((PROGRAM, "forward"), (METHODS, "closed"), "decode"),
}


@pytest.mark.parametrize("case", SHOWN)
def test_a_session_without_the_method_stands_beside_with_its_own(case: str) -> None:
    (mine, method), (other, last), expected = SHOWN[case]
    session = opened(mine)
    named = [SessionBeside("A", session), SessionBeside("B", opened(other), last)]
    content = timeline_content(session, method, SESSIONS, named)
    assert content.methods == {0: method, 1: expected}
    assert content.timeline is not None
    titles = list(dict.fromkeys(lane.group for lane in content.timeline.data.lanes))
    several = expected != method
    assert titles[0].startswith(f"A · {method} · " if several else "A · run")
    assert titles[1].startswith(f"B · {expected} · " if several else "B · run")
    word = f"no run of {method}: B, whose {expected} is shown"
    assert content.timeline.note.startswith(word) == several  # where the line is cut last


def test_a_method_without_a_run_has_nothing_to_stand_beside() -> None:
    session, other = opened("extra/bundled_two_suites"), opened(PROGRAM)
    named = [
        SessionBeside("A", session),
        SessionBeside("B", other),
        SessionBeside("C", opened(METHODS)),
    ]
    content = timeline_content(session, "score", SESSIONS, named)
    assert SESSIONS not in [key for _, key in content.choices]
    assert content.chosen != SESSIONS


def test_the_method_of_a_trace_alone_has_no_name() -> None:
    session, alone = opened(PROGRAM), traced([delegated_run(2)])
    named = [SessionBeside("A", session), SessionBeside("B", alone)]
    content = timeline_content(session, "forward", SESSIONS, named)
    assert content.methods == {0: "forward", 1: ""}
    assert content.timeline is not None
    titles = list(dict.fromkeys(lane.group for lane in content.timeline.data.lanes))
    assert titles[1] == "B · run 1"
    assert "no run" not in content.timeline.note


def test_methods_stay_where_they_are_when_another_session_is_clicked(qtbot: QtBot) -> None:
    bench = Bench(qtbot, TimelinePane)
    pane = pane_of(bench)
    bench.open(opened(METHODS))
    bench.store.update(method="encode")  # not the one that it opens on
    bench.settle()
    bench.store.put(add_session(bench.store.state, opened(PROGRAM), ()))
    bench.settle()
    show_all_sessions(bench)
    titles = groups_of(pane)
    assert [title.split(" · ")[1] for title in titles] == ["encode", "forward"]
    data = pane.canvas.data
    assert data is not None
    first = [lane.group.partition(" · ")[0] for lane in data.lanes].index
    own = first(titles[0].partition(" · ")[0])
    pane.canvas.select(int(np.flatnonzero((data.lane == own + 1) & ~data.unattributed)[0]))
    asked = bench.asked[-1]
    assert isinstance(asked, GoTo)
    assert asked.place.method == "encode"
    assert asked.place.selection.method == "encode"
    bench.store.put(go_to(bench.store.state, asked.place))
    bench.settle()
    assert groups_of(pane) == titles


def test_the_range_is_of_the_run_that_is_drawn_among_hundreds_too() -> None:
    """The chooser lists 200 runs; the median of all may be a later one."""
    runs = [delegated_run(1, begin=2000 * at) for at in range(1, 203)]
    slow = [delegated_run(2, begin=900_000 + 2000 * at) for at in range(250)]
    session = traced([*runs, *slow])
    named = [SessionBeside("A", session), SessionBeside("B", traced([delegated_run(1)]))]
    content = timeline_content(session, "", SESSIONS, named)
    assert content.timeline is not None
    title = content.timeline.data.lanes[0].group
    assert title == f"A · {content.run}"
