"""Does what views ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from devtools_app.actions import requests
from devtools_app.state import transitions
from inspector.tables.selection import Selection

if TYPE_CHECKING:
    from devtools_app.actions.host import WindowHost


class Router:
    """Dispatches a request to the part of the window that handles it."""

    def __init__(self, window: WindowHost) -> None:
        self._window = window
        self._handlers: dict[type, Callable[[Any], object]] = {
            requests.Select: self._select,
            requests.GoTo: self._go_to,
            requests.ShowView: lambda one: window.show_view(one.view),
            requests.OpenPaths: lambda one: window.controller.open(one.paths),
            requests.ChooseFiles: self._choose_files,
            requests.ShowSession: lambda one: window.controller.show(one.session),
            requests.CloseSession: lambda one: window.controller.close(one.session),
            requests.OpenSource: lambda one: window.commands.open_source(one.file, one.line),
            requests.AddSourceRoot: lambda _one: window.commands.add_source_root(),
            requests.AskCompile: lambda _one: window.bound["compile"].trigger(),
            requests.Execute: lambda one: window.commands.runs.execute(one),
            requests.AskBundle: lambda one: window.commands.runs.ask_bundle(one),
            requests.ChoosePath: lambda one: window.commands.runs.choose(one),
            requests.EditRecipe: lambda one: window.recipe_store.edit(one.job),
            requests.UndoRecipe: self._undo,
            requests.OfferEdits: lambda one: window.commands.recipes.offer(one),
            requests.Recompile: lambda _one: window.commands.recipes.recompile(),
            requests.Bisect: lambda one: window.commands.bisects.start(one),
            requests.SetNote: self._set_note,
            requests.Say: lambda one: window.status.say(one.text),
        }

    def __call__(self, request: requests.Request) -> None:
        """Handle a request.

        Raises: KeyError for an unknown request
        """
        self._handlers[type(request)](request)

    def select(self, selection: Selection) -> None:
        """Select this."""
        store = self._window.store
        store.put(transitions.select(store.state, selection))

    def _select(self, request: requests.Select) -> None:
        self.select(request.selection)
        if request.view:
            self._window.show_view(request.view)

    def _go_to(self, request: requests.GoTo) -> None:
        store = self._window.store
        store.put(transitions.go_to(store.state, request.place))

    def _choose_files(self, request: requests.ChooseFiles) -> None:
        if request.beside:
            self._window.commands.add_files()
        else:
            self._window.commands.open()

    def _undo(self, request: requests.UndoRecipe) -> None:
        if request.again:
            self._window.recipe_store.redo()
        else:
            self._window.recipe_store.undo()

    def _set_note(self, request: requests.SetNote) -> None:
        store = self._window.store
        store.update(notes={**store.state.notes, request.session: request.text})
