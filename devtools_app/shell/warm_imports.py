"""Imports what the window will need next, while it is already on the screen."""

from __future__ import annotations

import importlib
import logging
import threading

from devtools_app.views import VIEWS

_LOG = logging.getLogger(__name__)
_READERS = ("inspector.files.load", "inspector.findings.session", "devtools_app.viewmodels.status")
_LATER = ("devtools_app.viewmodels.python_tokens",)  # imported where a view first draws with them


class Warming:
    """One thread that imports modules, one after the other, until it is told to stop."""

    def __init__(self, modules: tuple[str, ...] | None = None) -> None:
        views = tuple(f"devtools_app.views.{view.name}" for view in VIEWS)
        self._modules = (*_READERS, *views, *_LATER) if modules is None else modules
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="importing", daemon=True)

    def start(self) -> None:
        """Begin to import."""
        self._thread.start()

    def stop(self) -> None:
        """Wait for the module at hand; the others are left."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def _run(self) -> None:
        for name in self._modules:
            if self._stop.is_set():
                return
            try:
                importlib.import_module(name)
            except Exception:  # noqa: BLE001 - whoever needs the module says so where people see it
                _LOG.exception("%s cannot be imported", name)
