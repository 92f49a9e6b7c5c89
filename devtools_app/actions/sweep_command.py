"""Starts the sweep requested by the Sweep view, and shows its results as they come."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from devtools_app.state.requests import Notice, StartSweep, TrustCode
from devtools_app.state.sweep_file import RESULTS
from devtools_app.state.trusted_code import is_agreed

if TYPE_CHECKING:
    from devtools_app.actions.host import CommandHost, Services
    from inspector.experiments.sweeps.request import SweepRequest

PANEL = "sweep"


class SweepCommand:
    """Starts sweeps, after the user agreed to run the code they need."""

    def __init__(self, services: Services, window: CommandHost) -> None:
        """Connect to the sweeps of a window.

        Args:
            services: with the jobs and the state
            window: shows messages and the view
        """
        self._services = services
        self._window = window
        services.jobs.sweeping.began.connect(self._show)

    def start(self, request: StartSweep) -> None:
        """Start or continue a sweep; confirm before running code that is not trusted yet."""
        code = tuple(path for path in _code_of(request.request) if not is_agreed(path))
        if code:
            text = f"The sweep runs the code in {' and '.join(code)}, with your rights."
            offers = (("Run it", TrustCode(code, request)),)
            question = Notice(text, "warning", offers=offers, decline="Do not run", leaves=True)
            self._window.notice(question)
            return
        sentence = self._services.jobs.sweeping.start(request.request, request.target)
        if sentence:
            self._window.notice(Notice(sentence, "error"))
            return
        self._window.dismiss_notice()
        self._window.show_view(PANEL)

    def _show(self, folder: str) -> None:
        """Show the results of the sweep that has begun."""
        self._services.store.update(sweep=str(Path(folder) / RESULTS))


def _code_of(request: SweepRequest) -> tuple[str, ...]:
    """Return the files whose code a sweep runs: of its recipe, its values and its data set."""
    from inspector.recipes.compile_job import code_files
    from inspector.recipes.emission import file_of, in_file
    from inspector.recipes.recipe import RecipeError
    from inspector.recipes.recipe_file import read_recipe
    from schema.errors import FormatError

    try:
        found = code_files(read_recipe(request.recipe).recipe.job)
    except (RecipeError, FormatError, OSError):
        return ()  # the sweep itself reports it
    rows = [*request.grid.values(), *(one.values() for one in request.points)]
    values = [value for row in rows for value in row]
    texts = [part for value in values for part in (value if isinstance(value, list) else [value])]
    words = [request.settings.data, request.settings.metric, *texts]
    named = (file_of(word) for word in words if isinstance(word, str) and in_file(word))
    return tuple(dict.fromkeys(str(Path(path)) for path in (*found, *named)))
