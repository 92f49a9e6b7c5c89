"""What the window keeps over a restart: its place on the screen, and part of its state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import QByteArray
from PySide6.QtWidgets import QMainWindow

from devtools_app.state.settings import Settings
from devtools_app.state.state import State
from devtools_app.state.store import Store


def restore(window: QMainWindow, store: Store, settings: Settings, views: Sequence[str]) -> None:
    """Put a window and its state back to the settings, with the first view for one that is gone."""
    if settings.geometry:
        window.restoreGeometry(QByteArray.fromBase64(settings.geometry.encode("ascii", "ignore")))
    store.update(
        view=settings.view if settings.view in views else next(iter(views), ""),
        group=settings.group,
        fronts=settings.fronts,
        graph_filters=settings.graph_filters,
        gates=settings.gates,
    )


def remembered(window: QMainWindow, state: State, settings: Settings) -> Settings:
    """Return the settings with the place of a window and its state."""
    return replace(
        settings,
        geometry=bytes(window.saveGeometry().toBase64().data()).decode("ascii"),
        view=state.view,
        group=state.group,
        fronts=dict(state.fronts),
        gates=state.gates,
        overlay=state.overlay,
        graph_filters=state.graph_filters,
    )
