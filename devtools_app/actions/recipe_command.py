"""Ctrl+R and related commands: compiles a recipe to a variant and opens it next to its parent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from devtools_app.jobs.follower import JobProgress
from devtools_app.jobs.recompile import Compare, Failed, Open, RecompileJob, RecompileStep
from devtools_app.state.requests import CompareSessions, Notice, Recompile, Request, TrustCode
from devtools_app.state.run_form import Runnable, runnable
from devtools_app.state.state import OpenSession, State
from devtools_app.state.trusted_code import untrusted_code
from devtools_app.state.variant_places import variant_folder
from devtools_app.state.variant_steps import compared_sessions
from devtools_app.state.variants import Variant, derived, with_variant
from inspector.units import format_ms

if TYPE_CHECKING:
    from devtools_app.actions.host import CommandHost, Services
    from inspector.jobs.measure import Measurement
    from inspector.recipes.recipe import Recipe

COMPARE = "compare"
_NOTHING = (
    "The recipe of this program is unknown: open its ETRecord with it, or a program compiled by "
    "ETScope."
)


class RecipeCommand:
    """Compiles variants of the current program, and edits its recipe."""

    def __init__(self, services: Services, window: CommandHost) -> None:
        """Connect to the jobs of a window.

        Args:
            services: with the recipes and the jobs
            window: shows messages and the comparison
        """
        self._services = services
        self._window = window
        self._store = services.store
        self._jobs = services.jobs
        self._awaited: int | None = None  # the variant that is being opened
        self._variant = -1  # the one that was opened last
        self._left = ("", "")  # session and view in front at the start
        self._steps: dict[type[RecompileStep], Callable[[RecompileJob], object]] = {
            Failed: self._failed,
            Open: self._open,
            Compare: self._compare,
        }
        self._jobs.recompiling.step_requested.connect(lambda step: self._steps[type(step)](step.of))
        self._store.changed.connect(self._arrived)
        self._jobs["measure"].finished.connect(self._measured)

    def recompile(self) -> None:
        """Recompile, run and compare; confirm before running code that is not trusted yet."""
        one = self._services.recipe_store.variant
        if one is None:
            self._window.notice(Notice(_NOTHING, "warning"))
        elif self.may_run(one, "Recompiling", Recompile()):
            self._start(one)

    def may_run(self, one: Variant, what: str, request: Request) -> bool:
        """Return whether the code named by a recipe is trusted; if not, ask the user.

        Args:
            one: variant of the draft
            what: would run the code, as the first word of a sentence
            request: handled when the user agrees
        """
        code = untrusted_code(one.draft.present)
        if code:
            text = f"{what} runs the code in {' and '.join(code)}, with your rights."
            offer = ("Run it", TrustCode(code, request))
            question = Notice(text, "warning", offers=(offer,), decline="Do not run", leaves=True)
            self._window.notice(question)
        return not code

    def warm(self) -> None:
        """Start the worker that previews the edits of the recipe shown."""
        one = self._services.recipe_store.variant
        if one is not None:
            self._jobs.previews.ask(one.draft.present, one.recipe.job)

    def copy_python(self) -> None:
        """Copy a script that builds the program."""
        self._copy(as_python=True)

    def copy_command(self) -> None:
        """Copy commands that build the program."""
        self._copy(as_python=False)

    def _copy(self, *, as_python: bool) -> None:
        from PySide6.QtGui import QGuiApplication

        from devtools_app.viewmodels.recipe_texts import commands, recipe_texts

        one = self._services.recipe_store.variant
        if one is None:
            self._window.notice(Notice(_NOTHING, "warning"))
            return
        text = recipe_texts(one).script if as_python else commands(one)
        QGuiApplication.clipboard().setText(text)
        what = "a Python script that builds" if as_python else "commands that build"
        self._window.show_status(f"Copied {what} this program")

    def _start(self, one: Variant) -> None:
        recompiling = self._jobs.recompiling
        self._left = (self._store.state.current, self._store.state.view)
        base = self._base(one)
        first = base.program or (one.files[0] if one.files else one.recipe.job.source.path)
        recompiling.give_up()  # the newer request takes the number of the one at work
        folder = variant_folder(first, _title(self._store.state, one))
        form = self._jobs.run_form
        if base.traces:  # it runs where it ran before
            form = replace(form, device=base.device)
        job = RecompileJob(one.id, one.draft.present, folder, form, base)
        sentence = recompiling.start(job)
        if sentence:
            self._window.notice(Notice(sentence, "error"))
            return
        self._window.dismiss_notice()
        self._jobs["measure"].cancel()  # what is compared now is about to be another pair

    def _base(self, one: Variant) -> Runnable:
        shown = _session_of(self._store.state, one)
        found = runnable(shown.id, shown.session) if shown is not None else None
        return found or Runnable(one.session, "")

    # -- the steps of a recompile ----------------------------------------------------------

    def _open(self, found: RecompileJob) -> None:
        store = self._store
        parent = store.state.history.find(found.parent)
        outcome = found.outcome
        failure = f"not run: {outcome.sentence}" if outcome is not None else ""
        if parent is not None:
            history = derived(store.state.history, found.parent, _recipe(found))
            result = replace(history.variants[-1], files=found.files, failure=failure)
            self._awaited = self._variant = result.id
            store.update(history=with_variant(history, result))
        self._services.controller.open_result(found.files, behind=not self._is_watched())

    def _failed(self, found: RecompileJob) -> None:
        from inspector.jobs.messages import Ended

        store, outcome = self._store, found.outcome
        assert outcome is not None
        if outcome.ended is Ended.CANCELLED:
            self._window.show_status("Recompiling was cancelled")
            return
        history = store.state.history
        parent = history.find(found.parent)
        if parent is not None:
            recipe = replace(parent.recipe, job=found.job)
            store.update(history=derived(history, parent.id, recipe, failure=outcome.sentence))
        text = f"Not recompiled: {outcome.sentence}."
        session = parent.session if parent is not None else ""
        self._window.notice(Notice(text, "error", outcome.details, session=session))

    def _arrived(self, _old: State, new: State) -> None:
        """Continue as soon as a variant is open."""
        if not new.sessions:
            self._jobs.previews.rest()
        one = new.history.find(self._awaited)
        if one is None or not one.session:
            return
        self._awaited = None
        self._jobs.recompiling.answer()

    def _is_watched(self) -> bool:
        """Return whether the user still looks at the session of the start."""
        return (self._store.state.current, self._store.state.view) == self._left

    def _compare(self, found: RecompileJob) -> None:
        """Show the variant next to its parent, or offer that to a user who went elsewhere.

        Both are measured side by side; a running measurement is of another pair.
        """
        jobs, state = self._jobs, self._store.state
        former, one = (
            _session_of(state, state.history.find(key)) for key in (found.parent, self._variant)
        )
        pair = (former, one) if former is not None and one is not None else ()
        outcome = found.outcome
        if one is not None and outcome is not None:  # with its session: opening it ends others
            text = f"The new variant was compiled but did not run: {outcome.sentence.rstrip('.')}."
            self._window.notice(Notice(text, "warning", outcome.details, session=one.id))
        if one is not None and one.id == state.current:
            if pair:
                self._store.update(compared=tuple(each.id for each in pair))
            self._window.show_view(COMPARE)
        elif one is not None:
            offers = (("Compare", CompareSessions(pair[0].id, one.id)),) if pair else ()
            self._window.notice(Notice(f"{one.session.name} is ready.", offers=offers))
        jobs.previews.forget()
        jobs.measurements.measure(pair or compared_sessions(self._store.state), jobs.run_form)
        jobs.recompiling.answer()

    def _measured(self, found: JobProgress) -> None:
        """Note the times in the history of variants, as Compare has them."""
        store = self._store
        history = store.state.history
        if found.state is None:
            return
        for number, (session, _) in enumerate(found.about):
            one, typical = history.of_session(session), typical_ms(found.state, number)
            if one is not None and typical is not None:
                history = with_variant(history, replace(one, facts=(format_ms(typical),)))
        store.update(history=history)


def _title(state: State, one: Variant) -> str:
    """Return the name of the session of a variant, else its source."""
    shown = _session_of(state, one)
    return shown.session.name if shown is not None else PurePath(one.recipe.job.source.path).stem


def typical_ms(measured: Measurement, number: int) -> float | None:
    """Return the time of a program beside the first one; None if it was not measured."""
    from inspector.compare.statistics import judge  # loads numpy

    here, there = measured.common(0, number)
    if not number or not here:
        return measured.programs[number].fastest_ms
    return judge(here, there).new


def _session_of(state: State, one: Variant | None) -> OpenSession | None:
    """Return the open session of a variant, None if it is closed or unknown."""
    return next((each for each in state.sessions if one and each.id == one.session), None)


def _recipe(found: RecompileJob) -> Recipe:
    """Return the recipe written with the program, else the requested one."""
    from inspector.recipes.recipe import RECIPE, Recipe, RecipeError
    from inspector.recipes.recipe_file import read_recipe

    try:
        return read_recipe(str(Path(found.folder) / RECIPE)).recipe
    except (RecipeError, OSError):
        return Recipe(found.job)
