"""The tour of the sample: opens it, brings up a view a step, and ends whenever the user wants."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QWidget

from devtools_app.appearance.theme import Theme
from devtools_app.sample_data import LOOP
from devtools_app.sessions.session_controller import SessionController
from devtools_app.state import transitions
from devtools_app.state.store import Store
from devtools_app.widgets.tour_card import TourCard


class Tour(QObject):
    """One tour at a time; it changes nothing but the view and the selection."""

    def __init__(
        self,
        page: QWidget,
        theme: Theme,
        store: Store,
        controller: SessionController,
        bring_up: Callable[[str], object],
        bring_up_panel: Callable[[str], object],
    ) -> None:
        super().__init__(page)
        self._page, self._theme = page, theme
        self._store, self._controller = store, controller
        self._bring_up, self._bring_up_panel = bring_up, bring_up_panel
        self._card: TourCard | None = None
        self._at = -1
        self._waits = False  # for the sample to be open
        # queued: the session is shown first
        controller.opener.ended.connect(self._opened, Qt.ConnectionType.QueuedConnection)

    @property
    def running(self) -> bool:
        """Return whether a step is shown."""
        return self._at >= 0

    @property
    def card(self) -> TourCard | None:
        """Return the card with the step, None before the first tour."""
        return self._card

    def start(self) -> None:
        """Show the first step, on the sample; it is opened unless it is open."""
        found = self._sample()
        if found:
            self._controller.show(found)
            self._go(0)
            return
        self._waits = True
        self._controller.open(LOOP)

    def leave(self) -> bool:
        """End the tour; return whether there was one."""
        if not self.running:
            return False
        self._at = -1
        if self._card is not None:
            self._card.hide()
        return True

    def _opened(self) -> None:
        found = self._sample() if self._waits else ""
        self._waits = False
        if found:
            self._controller.show(found)
            self._go(0)

    def _sample(self) -> str:
        """Return the id of the sample's first session, empty if it is not open."""
        for one in self._store.state.sessions:
            if any(Path(path).is_relative_to(LOOP[0]) for path in one.paths):
                return one.id
        return ""

    def _step(self, by: int) -> None:
        self._go(self._at + by)

    def _go(self, number: int) -> None:
        from devtools_app.viewmodels.tour_steps import STEPS, slowest_outside

        if not 0 <= number < len(STEPS) or not self._store.state.sessions:
            self.leave()
            return
        self._at, step = number, STEPS[number]
        if self._card is None:
            self._card = TourCard(self._theme, self._page)
            self._card.stepped.connect(self._step)
            self._card.left.connect(self.leave)
        state = self._store.state
        if step.selects and state.session is not None:
            found = slowest_outside(state.session, state.method)
            self._store.put(transitions.select(state, found))
        self._bring_up(step.view)
        if step.panel:
            self._bring_up_panel(step.panel)
        self._card.show_step(step.title, step.text, number + 1, len(STEPS))
        self._card.forward.setFocus(Qt.FocusReason.OtherFocusReason)
