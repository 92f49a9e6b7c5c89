"""The headline of the overview: what it is the mean of, how it was measured, what else it costs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from devtools_app.appearance.theme import Theme
from devtools_app.sample_data import LOOP
from devtools_app.state.requests import Select, ShowView
from devtools_app.viewmodels import status
from devtools_app.viewmodels.headline import TimeSum, time_sum
from devtools_app.viewmodels.status import status_facts
from devtools_app.views import overview
from devtools_app.views.overview import OverviewPane
from devtools_app.widgets.badge import Badge
from devtools_app.widgets.fields import PushButton
from devtools_app.widgets.flow_layout import FlowLayout
from devtools_app.widgets.headline_card import HeadlineCard
from devtools_app.widgets.run_strip import RunStrip, dot_heights
from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.profile.methods import analyse_profile
from inspector.tables.facts import Fact
from inspector.tables.method_facts import _values, cost_facts
from inspector.tables.selection import AUTOMATIC, Units
from inspector.trace.run_times import RunTimes
from tests.app.view_bench import Bench
from tests.inspector.test_measured_memory import MIB, measured_run

pytestmark = [pytest.mark.gui, pytest.mark.slow]
STEADY = tuple(1.0 + 0.001 * (at % 7) for at in range(40))


def _headline(*files: Path, units: Units = AUTOMATIC) -> TimeSum:
    return time_sum(status_facts(load_session(files), "forward"), units)


def _sample(*names: str) -> Session:
    return load_session([LOOP[0], *(Path(LOOP[0]) / name for name in names)])


def _reported(folder: Path, **changes: Any) -> Session:
    measured_run(folder, 32 * MIB)
    path = next(folder.rglob("run.json"))
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | changes), "utf-8")
    return load_session([folder])


def test_headline_of_runs_without_a_trace_says_so_with_its_spread() -> None:
    shown = time_sum(status_facts(_sample(), "forward"), AUTOMATIC)
    assert [text for text, _ in shown.badges][:2] == ["measured", "without a trace"]
    assert all(meaning for _, meaning in shown.badges)
    assert shown.runs is not None
    assert shown.kept.startswith(f"mean of {len(shown.runs.steady)} steady runs, without")
    assert "median" in shown.spread
    assert "with a trace" in shown.spread


def test_headline_of_a_trace_alone_is_tagged_with_what_is_in_it() -> None:
    logged = _headline(
        Path("tests/data/corpus/v1.5.1/convnet_xnnpack/model.pte"),
        Path("tests/data/corpus/v1.5.1/convnet_xnnpack/run.etdp"),
    )
    words = [text for text, _ in logged.badges]
    assert words == ["with tracing", "values logged", "ns assumed"]
    assert (logged.spread, logged.hatched) == ("", True)  # three runs have no percentiles


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"load_ms": 1.0, "init_ms": 2.0, "first_run_ms": 4.5}, "load 3 ms, first run 4.5 ms"),
        ({"load_ms": None, "init_ms": 2.0, "first_run_ms": None}, "load 2 ms"),
        ({"load_ms": None, "init_ms": None, "first_run_ms": 0.25}, "first run 250 µs"),
        ({"load_ms": None, "init_ms": None, "first_run_ms": None}, None),
        ({"load_ms": -1.0}, None),  # a report with such a time is none
        ({"first_run_ms": "fast"}, None),
    ],
)
def test_cold_start_is_shown_as_far_as_it_was_measured(
    changes: dict[str, Any], expected: str | None, tmp_path: Path
) -> None:
    session = _reported(tmp_path / "run", **changes)
    found = {fact.label: fact.value for fact in cost_facts(session, "forward", AUTOMATIC)}
    assert found.get("cold start") == expected
    whole = "" if expected is None and len(changes) == 1 else ", 32 MiB measured"
    assert found["memory"].endswith(f"planned{whole}")
    assert found["program"]


def test_run_that_was_stopped_before_the_first_traced_one_has_its_cold_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = _reported(tmp_path / "known", load_ms=2.0, init_ms=1.0, first_run_ms=1000.0)
    stopped = replace(analyse_profile(session), methods=())
    monkeypatch.setattr(status, "analyse_profile", lambda _session: stopped)
    monkeypatch.setattr(status, "time_of", lambda *_: None)
    found = status.status_facts(session, "forward")
    assert found.why_no_time == "no run was traced; cold start: load 3 ms, first run 1 s"
    session = _reported(tmp_path / "unknown", load_ms=None, init_ms=None, first_run_ms=None)
    assert status.status_facts(session, "forward").why_no_time == "no run was traced"


def test_costs_of_a_record_alone_claim_nothing(data: Path) -> None:
    record = data / "corpus/v1.5.1/convnet_xnnpack/model.etrecord"
    assert cost_facts(load_session([record]), "forward", AUTOMATIC) == ()


@pytest.mark.parametrize(
    ("times", "drawn"),
    [
        (STEADY, 40),
        ((9.0, *STEADY), 40),  # a cold run far away is only counted
        ((*STEADY[:20], 1.015, *STEADY[20:]), 41),  # one nearby is drawn
        ((2.0, 2.0, 2.0), 3),
        ((0.0, 0.0), 2),
        ((5.0,), 1),
    ],
)
def test_strip_draws_the_runs_near_the_steady_ones(
    times: tuple[float, ...], drawn: int, theme: Theme, qtbot: QtBot
) -> None:
    strip = RunStrip(theme)
    qtbot.addWidget(strip)
    strip.resize(400, 60)
    strip.show()
    strip.show_runs(RunTimes(times), "auto")
    qtbot.waitUntil(lambda: not strip.waiting)
    assert len(strip.visible_runs) == drawn
    kept = np.asarray(times)[RunTimes(times).mask] * 1e6
    low, high = strip._range()
    assert low < kept.min() <= kept.max() < high
    assert np.ptp(kept) >= 0.3 * (high - low) or not np.ptp(kept)
    assert ("outside of the axis" in strip.accessibleDescription()) is (drawn < len(times))
    number = int(strip.visible_runs[-1])
    height = float(dot_heights(np.array([number]))[0])
    place = strip.pixel_of(times[number] * 1e6, height)
    assert strip.pick(place) in strip.visible_runs
    assert strip.hover_text(number).startswith(f"run {number + 1}: ")
    assert "steady" in strip.accessibleDescription()


def test_card_turns_its_halves_below_each_other_where_it_is_narrow(
    theme: Theme, qtbot: QtBot
) -> None:
    session = _sample()
    time = time_sum(status_facts(session, "forward"), AUTOMATIC)
    card = HeadlineCard(theme, time, cost_facts(session, "forward", AUTOMATIC))
    qtbot.addWidget(card)
    places = {}
    for width in (1000, 420):
        card.resize(width, card.heightForWidth(width) if card.hasHeightForWidth() else 300)
        card.show()
        strip = card.findChild(RunStrip)
        figure = next(one for one in card.findChildren(QLabel) if one.text() == time.whole)
        qtbot.waitUntil(lambda strip=strip: strip.width() > 0)
        card.layout().activate()
        places[width] = strip.mapTo(card, strip.rect().topLeft()), figure.pos()
    assert places[1000][0].x() > places[1000][1].x() + 200
    assert places[420][0].y() > places[420][1].y()
    assert {badge.text for badge in card.findChildren(Badge)} >= {"measured", "without a trace"}


def test_every_figure_of_the_card_is_explained_on_hover(theme: Theme, qtbot: QtBot) -> None:
    session = _sample()
    time = time_sum(status_facts(session, "forward"), AUTOMATIC)
    card = HeadlineCard(theme, time, cost_facts(session, "forward", AUTOMATIC))
    qtbot.addWidget(card)
    texts = (*card.findChildren(QLabel), *card.findChildren(PushButton))
    figures = [one for one in texts if re.search(r"\d", one.text())]
    assert len(figures) > 6
    assert [one.text() for one in figures if not one.toolTip()] == []


def test_buttons_of_findings_lead_to_their_views_by_keyboard(qtbot: QtBot) -> None:
    bench = Bench(qtbot, OverviewPane)
    bench.open(_sample())
    card = next(one for one in bench.pane.findChildren(HeadlineCard))
    qtbot.waitUntil(lambda: any("FLOP" in one.text() for one in card.findChildren(QLabel)))
    calibrate = next(b for b in card.findChildren(PushButton) if b.text().startswith("Calibrate"))
    calibrate.click()  # a limit that is not known is an action, not a missing figure
    assert bench.asked.pop() == ShowView("roofline")
    assert not any("not calibrated" in one.text() for one in card.findChildren(QLabel))
    buttons = [one for one in bench.pane.findChildren(PushButton) if one.text() == "Show"]
    assert buttons
    for button in buttons:
        assert button.accessibleName().startswith("Show in ")
        qtbot.keyClick(button, Qt.Key.Key_Space)
    assert len([one for one in bench.asked if isinstance(one, (Select, ShowView))]) == len(buttons)


@pytest.mark.parametrize("width", [60, 130, 400])
def test_words_and_taller_buttons_of_a_row_share_a_middle(qtbot, width: int) -> None:
    row = QWidget()
    qtbot.addWidget(row)
    flow = FlowLayout(space=4, line_space=2)
    row.setLayout(flow)
    parts = [QWidget() for _ in range(6)]
    for number, part in enumerate(parts):
        part.setFixedSize(50, 10 + 8 * (number % 2))
        flow.addWidget(part)
    row.resize(width, flow.heightForWidth(width))
    row.show()
    boxes = [part.geometry() for part in parts]
    middles = {box.center().y() for box in boxes}
    across = max((width + 4) // 54, 1)
    assert len(middles) == -(-len(parts) // across)
    assert max(box.bottom() for box in boxes) == row.height() - 1


@pytest.mark.parametrize("order", [(0, 2), (2, 0), (0, 2, 0)])
def test_work_is_that_of_the_session(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, order: tuple[int, ...]
) -> None:
    sessions = {at: load_session(LOOP[at : at + 2]) for at in set(order)}
    bench = Bench(qtbot, OverviewPane)

    def work(session: Session) -> dict[str, tuple[Fact, ...]]:
        return {"forward": (Fact("work of", session.name),)}

    monkeypatch.setattr(overview, "methods_work", work)
    for at in order:
        bench.open(sessions[at])
    name = sessions[order[-1]].name

    def words() -> set[str]:
        return {one.text() for one in bench.pane.findChildren(QLabel)}

    qtbot.waitUntil(lambda: name in words() and "work of" in words())
    others = {one.name for one in sessions.values()} - {name}
    assert not others & words()


@pytest.mark.parametrize(("count", "words"), [(7, "and 1 more input"), (8, "and 2 more inputs")])
def test_inputs_that_are_not_listed_are_counted(count: int, words: str) -> None:
    assert _values("input", ["f32 [4]"] * count)[-1].value == words
