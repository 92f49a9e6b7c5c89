"""Starts the bisection requested by the Bisect panel, in its own process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devtools_app.state.requests import Notice
from devtools_app.state.variant_places import folder_of

if TYPE_CHECKING:
    from devtools_app.actions.host import CommandHost, Services
    from devtools_app.actions.recipe_command import RecipeCommand
    from devtools_app.state.requests import Bisect

PANEL = "bisect"


class BisectCommand:
    """Starts bisections of the program shown."""

    def __init__(self, services: Services, window: CommandHost, recipes: RecipeCommand) -> None:
        """Connect to the jobs of a window.

        Args:
            services: with the variant shown and the jobs
            window: shows the panel
            recipes: knows which code is trusted
        """
        self._services = services
        self._window = window
        self._recipes = recipes

    def start(self, request: Bisect) -> None:
        """Start or resume; confirm before running code that is not trusted yet."""
        one = self._services.recipe_store.variant
        if one is None or not self._recipes.may_run(one, "The bisection", request):
            return
        sentence = self._services.jobs["bisect"].start(
            request.job, folder_of(one, request.job), about=one.program, force=request.fresh
        )
        if sentence:
            self._window.notice(Notice(sentence, "error"))
            return
        self._window.dismiss_notice()
        self._window.show_view(PANEL)
