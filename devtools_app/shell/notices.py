"""Messages of sessions: each is shown while its session is, and ends with its cause."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from PySide6.QtCore import QObject

from devtools_app.state.requests import Ask, Notice
from devtools_app.state.state import State
from devtools_app.state.store import Store
from devtools_app.widgets.message_strip import MessageStrip


class Notices(QObject):
    """Keeps the last message of each session and shows that of the current one."""

    def __init__(self, strip: MessageStrip, store: Store, ask: Ask, parent: QObject) -> None:
        """Follow a store.

        Args:
            strip: shows the messages
            store: with the sessions
            ask: handles the offers of a message
            parent: that it lives as long as
        """
        super().__init__(parent)
        self._strip = strip
        self._store = store
        self._ask = ask
        self._kept: dict[str, Notice] = {}
        store.changed.connect(self._follow)
        strip.dismissed.connect(self._forget)

    def show(self, notice: Notice) -> None:
        """Show a message now, or when its session is shown; one of no session goes with this."""
        current = self._store.state.current
        kept = notice if notice.session else replace(notice, leaves=True)
        self._kept[notice.session or current] = kept
        if notice.session in ("", current):
            self._present(kept)

    def dismiss(self) -> bool:
        """Hide the message and forget it; return whether there was one."""
        shown = bool(self._strip.text)
        self._strip.put_away()
        self._forget()
        return shown

    def _present(self, notice: Notice) -> None:
        offers = [(label, partial(self._ask, request)) for label, request in notice.offers]
        texts = (notice.text, notice.tone, notice.details)
        self._strip.show_message(*texts, offers, notice.decline)

    def _forget(self) -> None:
        self._kept.pop(self._store.state.current, None)

    def _follow(self, old: State, new: State) -> None:
        """Drop expired messages, and show the message of a session that came to the front."""
        before, now = ({one.id: one.session for one in each.sessions} for each in (old, new))
        ended = {
            key
            for key, notice in self._kept.items()
            if (key and key not in now)
            or (notice.leaves and key != new.current)
            or (notice.until_read and before.get(key) is not now.get(key))
        }
        for key in ended:
            del self._kept[key]
        if old.current != new.current or old.current in ended:
            notice = self._kept.get(new.current)
            if notice is None:
                self._strip.put_away()
            else:
                self._present(notice)
