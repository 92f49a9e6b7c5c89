"""The card of a method's time: the headline, its spread, its runs, its parts, other costs."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QFontMetrics, QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from devtools_app.appearance.theme import FontSize, Theme, set_role
from devtools_app.viewmodels.headline import TimeSum
from devtools_app.widgets.badge import Badge
from devtools_app.widgets.cards import Card, card_text
from devtools_app.widgets.fields import PushButton
from devtools_app.widgets.flow_layout import FlowLayout
from devtools_app.widgets.run_strip import RunStrip
from devtools_app.widgets.time_bar import TimeBar
from inspector.tables.facts import Fact
from inspector.tables.glossary import definition
from inspector.tables.method_facts import CALIBRATE
from inspector.trace.run_times import RunTimes

_SPREAD, _KEPT = ("p50", "p10", "p90", "with tracing"), ("mean", "steady run")  # explained
_WIDE = 36  # heights of a line from which figure and runs are side by side


class HeadlineCard(Card):
    """Shows one time of a method with all that it has to be read with.

    Signals:
        chosen(view): request to show a part
    """

    chosen = Signal(str)

    def __init__(self, theme: Theme, time: TimeSum, costs: tuple[Fact, ...]) -> None:
        super().__init__(theme, "")
        title = f"Time of {time.method or 'the run'}"
        self.setAccessibleName(title)
        self._beside = QHBoxLayout()
        self._beside.setSpacing(16)
        self._costs = FlowLayout(space=16, line_space=3)
        self._inside.setSpacing(6)
        self._inside.addLayout(self._head(title, time))
        self._inside.addLayout(self._beside)
        self._add_figure(time)
        bar = TimeBar(theme)
        bar.show_slices(time.slices, hatched=time.hatched)
        bar.chosen.connect(self.chosen)
        self.add(bar)
        self._inside.addLayout(self._costs)
        self.add_costs(costs)

    def _head(self, title: str, time: TimeSum) -> FlowLayout:
        head = FlowLayout(space=8, line_space=4)
        heading = QLabel(title)
        set_role(heading, "role", "muted")
        head.addWidget(heading)
        for text, meaning in time.badges:
            head.addWidget(Badge(self._theme, text, "", meaning))
        return head

    def _add_figure(self, time: TimeSum) -> None:
        whole = QLabel(time.whole)
        whole.setFont(self._theme.sans(FontSize.HEADLINE, strong=True))
        whole.setToolTip(definition("time"))
        figure = QVBoxLayout()
        figure.setSpacing(0)
        figure.addWidget(whole)
        figure.addWidget(self._spread(time) if time.spread else self._kept(time))
        self._beside.addLayout(figure, 2)
        if time.runs is not None and len(time.runs.times) > 1:
            self._beside.addLayout(self._runs(time, time.runs), 3)

    def _runs(self, time: TimeSum, runs: RunTimes) -> QVBoxLayout:
        strip = RunStrip(self._theme)
        strip.show_runs(runs, time.unit)
        found = QVBoxLayout()
        found.setSpacing(0)
        found.addWidget(strip)
        if time.spread:
            found.addWidget(self._kept(time))
        return found

    def _spread(self, time: TimeSum) -> QLabel:
        return self._small(time.spread, _SPREAD)

    def _kept(self, time: TimeSum) -> QLabel:
        return self._small(time.kept, _KEPT)

    def _small(self, text: str, words: tuple[str, ...]) -> QLabel:
        label = card_text(self._theme, text, FontSize.SMALL)
        set_role(label, "role", "muted")
        label.setToolTip("\n".join(f"{word}: {definition(word)}" for word in words))
        return label

    def add_costs(self, costs: tuple[Fact, ...]) -> None:
        """Add figures below the parts of the time."""
        for fact in costs:
            self._costs.addWidget(self._cost(fact))

    def _cost(self, fact: Fact) -> QWidget:
        found = QWidget()
        line = QHBoxLayout(found)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(6)
        label = QLabel(fact.label)
        value = self._calibrate() if fact.exact == CALIBRATE else QLabel(fact.value)
        for one, hover in ((label, definition(fact.label)), (value, fact.exact)):
            one.setFont(self._theme.sans(FontSize.SMALL))
            one.setToolTip(hover)
            line.addWidget(one)
        set_role(label, "role", "muted")
        value.setAccessibleName(f"{fact.label}: {value.text()}")
        return found

    def _calibrate(self) -> QPushButton:
        """Return the action in place of a limit that was not measured."""
        button = PushButton("Calibrate this machine")
        set_role(button, "link", "true")
        button.clicked.connect(lambda: self.chosen.emit("roofline"))
        return button

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        wide = self.width() >= _WIDE * QFontMetrics(self.font()).height()
        down, across = QBoxLayout.Direction.TopToBottom, QBoxLayout.Direction.LeftToRight
        if self._beside.direction() != (across if wide else down):
            self._beside.setDirection(across if wide else down)
        super().resizeEvent(event)
