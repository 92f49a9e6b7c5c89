"""File > Compile…: the dialog, the panel that shows it, and the session of its result."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from devtools_app.jobs.follower import JobProgress
from devtools_app.jobs.recompile import output_files
from devtools_app.state.requests import Notice, OpenPaths, ShowSession
from devtools_app.state.trusted_code import agree

if TYPE_CHECKING:  # the dialog brings parts of the inspector along, which start later
    from devtools_app.actions.host import CommandHost, Services
    from devtools_app.dialogs.compile_dialog import CompileDialog
    from devtools_app.state.compile_form import CompileForm

PANEL = "compile"


class CompileCommand:
    """Asks what to compile and opens the result.

    Attributes:
        dialog: the last one opened, None before
    """

    def __init__(self, services: Services, window: CommandHost) -> None:
        """Connect to the compiles of a window.

        Args:
            services: with the compiles, the preferences and open sessions
            window: shows the panel
        """
        self._services = services
        self._window = window
        self._follower = services.jobs["compile"]
        self.dialog: CompileDialog | None = None
        self._follower.finished.connect(self._open)

    def ask(self) -> None:
        """Open the dialog; while a compile runs, show that instead."""
        from devtools_app.dialogs.compile_dialog import CompileDialog
        from devtools_app.state.compile_form import form_from

        compiling = self._follower
        if compiling.running:
            self._window.show_view(PANEL)
            return
        if self.dialog is not None:
            self.dialog.deleteLater()
        services, settings = self._services, self._services.controller.settings
        form = form_from(settings.last_compile).fresh()
        dialog = CompileDialog(services.theme, form, services.paths, services.parent)
        self.dialog = dialog
        dialog.submitted.connect(self._start)
        dialog.rejected.connect(compiling.cool)
        dialog.finished.connect(dialog.shut_down)
        compiling.warm()
        dialog.open()

    def _start(self, form: CompileForm) -> None:
        from devtools_app.state.compile_form import form_content

        sentence = self._follower.start(
            form.request(), form.folder, force=form.replace, stages=True
        )
        if sentence and self.dialog is not None:
            self.dialog.show_problem(sentence)
            return
        agree(os.path.abspath(path) for path in form.runs())  # the dialog has said so
        controller = self._services.controller
        controller.put_settings(replace(controller.settings, last_compile=form_content(form)))
        if self.dialog is not None:
            self.dialog.accept()
        self._window.show_view(PANEL)

    def _open(self, progress: JobProgress) -> None:
        """Open the created files; a session that has them already is reloaded.

        A user who went elsewhere meanwhile keeps what he looks at, and is offered the result.
        """
        assert progress.outcome is not None
        paths = output_files(progress.target, progress.outcome)
        controller = self._services.controller
        same = [
            one.id for one in self._services.store.state.sessions if set(one.paths) == set(paths)
        ]
        if same:
            controller.reload((same[0],))
        if self._services.store.state.view != PANEL:
            request = ShowSession(same[0]) if same else OpenPaths(paths)
            text = f"{os.path.basename(progress.target)} is compiled."
            self._window.notice(Notice(text, offers=(("Open", request),)))
        elif same:
            controller.show(same[0])
        else:
            controller.open(paths)
