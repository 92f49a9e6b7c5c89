"""Handles requests of views."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from devtools_app.actions.commands import Commands
from devtools_app.actions.host import CommandHost, Services
from devtools_app.actions.recipe_command import COMPARE
from devtools_app.state import requests, transitions
from devtools_app.state.trusted_code import agree


class Router:
    """Dispatches a request to the part that handles it."""

    def __init__(self, services: Services, window: CommandHost, commands: Commands) -> None:
        self._store = services.store
        self._recipe_store = services.recipe_store
        self._window = window
        self._commands = commands
        controller = self._controller = services.controller
        self._handlers: dict[type, Callable[[Any], object]] = {
            requests.Select: self._select,
            requests.GoTo: self._go_to,
            requests.ShowView: lambda one: window.show_view(one.view, begin=one.begin),
            requests.ShowTensor: self._show_tensor,
            requests.ShowLosses: self._show_losses,
            requests.OpenPaths: lambda one: controller.open(one.paths),
            requests.OpenVariant: lambda one: controller.open_result(one.files),
            requests.OpenAlone: lambda one: controller.open_alone(one.path),
            requests.Reload: lambda one: controller.reload((one.session,), partial=one.partial),
            requests.ChooseTicks: lambda one: controller.choose_ticks(one.session, one.unit),
            requests.ChooseFiles: self._choose_files,
            requests.LocateFiles: lambda _one: commands.locate_files(),
            requests.ShowSession: self._show_session,
            requests.CompareSessions: self._compare,
            requests.CloseSession: lambda one: controller.close(one.session),
            requests.OpenSource: lambda one: commands.open_source(one.file, one.line),
            requests.AddSourceRoot: lambda _one: commands.add_source_root(),
            requests.AskCompile: lambda _one: commands.compiles.ask(),
            requests.ShowDisk: lambda _one: commands.disk(),
            requests.Execute: lambda one: commands.runs.execute(one),
            requests.AskBundle: lambda one: commands.runs.ask_bundle(one),
            requests.EditRecipe: self._edit,
            requests.UndoRecipe: self._undo,
            requests.TrustCode: self._trust,
            requests.Recompile: lambda _one: commands.recipes.recompile(),
            requests.Bisect: lambda one: commands.bisects.start(one),
            requests.StartSweep: lambda one: commands.sweeps.start(one),
            requests.DoWithJob: lambda one: commands.jobs.do(one.job, one.what),
            requests.SetNote: self._set_note,
            requests.ShowStatus: lambda one: window.show_status(one.text),
        }

    def __call__(self, request: requests.Request) -> None:
        """Handle a request.

        Raises: KeyError for an unknown request
        """
        self._handlers[type(request)](request)

    def _select(self, request: requests.Select) -> None:
        self._store.put(transitions.select(self._store.state, request.selection))
        if request.view:
            self._window.show_view(request.view)

    def _show_session(self, request: requests.ShowSession) -> None:
        self._controller.show(request.session)
        if request.view:
            self._window.show_view(request.view)

    def _show_tensor(self, request: requests.ShowTensor) -> None:
        self._store.update(tensor=request.key)
        self._window.show_view("tensor")

    def _show_losses(self, request: requests.ShowLosses) -> None:
        shown = transitions.show_session(self._store.state, request.session)
        self._store.put(replace(shown, gap_reference=request.reference))
        self._window.show_view("gap")

    def _go_to(self, request: requests.GoTo) -> None:
        self._store.put(transitions.go_to(self._store.state, request.place))

    def _compare(self, request: requests.CompareSessions) -> None:
        shown = transitions.show_session(self._store.state, request.session)
        self._store.put(replace(shown, compared=(request.former, request.session)))
        self._window.show_view(COMPARE)

    def _choose_files(self, request: requests.ChooseFiles) -> None:
        if request.beside:
            self._commands.add_files()
        else:
            self._commands.open()

    def _edit(self, request: requests.EditRecipe) -> None:
        self._recipe_store.edit(request.job)
        if request.message:
            self._window.show_status(request.message)

    def _undo(self, request: requests.UndoRecipe) -> None:
        if request.again:
            self._recipe_store.redo()
        else:
            self._recipe_store.undo()

    def _trust(self, request: requests.TrustCode) -> None:
        agree(request.paths)
        self._commands.recipes.warm()
        self(request.then)

    def _set_note(self, request: requests.SetNote) -> None:
        notes = {**self._store.state.notes, request.session: request.text}
        self._store.update(notes=notes)
