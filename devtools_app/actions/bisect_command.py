"""Starts the bisection requested by the Bisect panel, in its own process."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from devtools_app.sessions.session_controller import Notice
from devtools_app.state.variant_places import variants_place

if TYPE_CHECKING:
    from devtools_app.actions.host import WindowHost
    from devtools_app.actions.recipe_command import RecipeCommand
    from devtools_app.actions.requests import Bisect
    from devtools_app.state.variants import Variant
    from inspector.jobs.bisect import BisectJob

PANEL = "bisect"
_DIGITS = 12  # of the hash in the name of a folder


class BisectCommand:
    """Starts bisections of the program shown."""

    def __init__(self, window: WindowHost, recipes: RecipeCommand) -> None:
        """Connect to a window.

        Args:
            window: asked for the variant shown
            recipes: knows whose code may be run
        """
        self._window = window
        self._recipes = recipes

    def start(self, request: Bisect) -> None:
        """Start or resume; confirm before running code that is not trusted yet."""
        one = self._window.recipe_store.variant
        if one is None:
            return
        self._recipes.when_agreed(one, "The bisection", lambda: self._begin(one, request))

    def _begin(self, one: Variant, request: Bisect) -> None:
        window = self._window
        folder = folder_of(one, request.job)
        sentence = window.jobs["bisect"].start(
            request.job, folder, about=one.program, force=request.fresh
        )
        if sentence:
            window.notice(Notice(sentence, "error"))
            return
        window.strip.hide()
        window.show_view(PANEL)


def folder_of(one: Variant, job: BisectJob) -> str:
    """Return where the trials of a bisection of a variant are kept."""
    first = one.files[0] if one.files else one.recipe.job.source.path
    return bisect_folder(str(variants_place(first)), job)


def bisect_folder(place: str, job: BisectJob) -> str:
    """Return where the state of a bisection is kept: the same question finds the same trials.

    Args:
        place: folder of the variants of the program
        job: what is bisected
    """
    from inspector.jobs.bisect import key_of

    name = hashlib.sha256(key_of(job).encode()).hexdigest()[:_DIGITS]
    return os.path.join(place, f"bisect-{name}")


def trials_in(folder: str) -> bool:
    """Return whether a bisection has left its state in a folder."""
    from inspector.jobs.bisect_trials import STATE

    return os.path.isfile(os.path.join(folder, STATE))
