"""Ctrl+R and what belongs to it: a recipe becomes a variant that opens beside the former one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint

from devtools_app.jobs.follower import Progress
from devtools_app.jobs.recompile import Compare, Failed, Measure, Open, Phase, RecompileJob, Step
from devtools_app.sessions.session_controller import Notice
from devtools_app.state.run_form import Runnable, runnable
from devtools_app.state.state import State
from devtools_app.state.trusted_code import agree, is_agreed
from devtools_app.state.variant_places import variant_folder
from devtools_app.state.variant_steps import compared_sessions, shown_variant
from devtools_app.state.variants import Variant, derived, with_variant

if TYPE_CHECKING:
    from devtools_app.actions.host import WindowHost
    from devtools_app.actions.requests import OfferEdits
    from devtools_app.viewmodels.edit_targets import Offer
    from inspector.recipes.compile_job import CompileJob
    from inspector.recipes.recipe import Recipe

COMPARE, PANEL = "compare", "recipe"
_OFFER_BELOW = 60  # pixels below the tabs of the views
_NOTHING = (
    "The recipe of this program is unknown: open its ETRecord with it, or a program compiled by "
    "ETScope."
)


class RecipeCommand:
    """Makes variants of the program shown, and edits its recipe."""

    def __init__(self, window: WindowHost) -> None:
        self._window = window
        self._awaited: int | None = None  # the variant that is being opened
        self._steps: dict[type[Step], Callable[[RecompileJob], object]] = {
            Failed: self._failed,
            Open: self._open,
            Compare: self._compare,
            Measure: self._measure,
        }
        recompiling = window.jobs.recompiling
        recompiling.changed.connect(self._tell)
        recompiling.wanted.connect(lambda step: self._steps[type(step)](step.of))
        window.store.changed.connect(self._arrived)
        window.jobs["measure"].finished.connect(self._measured)
        window.status.recompile.cancelled.connect(recompiling.cancel)
        window.jobs.previews.refusal = self._refusal

    def recompile(self) -> None:
        """Recompile, run and compare; confirm before running code that is not trusted yet."""
        one = self._window.recipe_store.variant
        if one is None:
            self._window.notice(Notice(_NOTHING, "warning"))
            return
        self.when_agreed(one, "Recompiling", lambda: self._start(one.id))

    def when_agreed(self, one: Variant, what: str, then: Callable[[], object]) -> None:
        """Run an action that executes code named by a recipe; confirm if it is not trusted yet.

        Args:
            one: whose draft it is
            what: it is, as the first word of a sentence
            then: does it
        """
        code = list(self._unknown_code(one.draft.present))
        if not code:
            then()
            return

        def agreed() -> None:
            agree(code)
            self._window.jobs.previews.ask(one.draft.present, one.recipe.job)
            then()

        text = f"{what} runs the code in {' and '.join(code)}, with your rights."
        self._window.strip.show_message(text, "warning", "", [("Run it", agreed)])

    def offer(self, request: OfferEdits) -> None:
        """Tell the edits that can be made on something."""
        from devtools_app.actions.requests import EditOffers
        from devtools_app.viewmodels.edit_targets import edit_targets, offers

        state, one = self._window.store.state, self._window.recipe_store.variant
        if one is None or state.session is None:
            return
        method = request.selection.method or state.method
        targets = edit_targets(state.session, method, request.selection)
        groups = offers(one.draft.present, targets)
        if groups:
            base, previews = one.draft.present, self._window.jobs.previews
            previews.ask(base, base)  # the worker gets warm while the edits are read
            request.take(EditOffers(groups, base, previews, self._take))

    def _take(self, offer: Offer) -> None:
        self._window.recipe_store.edit(offer.job)
        self._window.status.say(f"{offer.edit.describe(offer.target)}: press Ctrl+R to recompile")

    def copy_python(self) -> None:
        """Copy a script that builds the program."""
        self._copy(as_python=True)

    def copy_command(self) -> None:
        """Copy commands that build the program."""
        self._copy(as_python=False)

    def _copy(self, *, as_python: bool) -> None:
        from PySide6.QtGui import QGuiApplication

        from devtools_app.viewmodels.recipe_texts import commands, recipe_texts

        one = self._window.recipe_store.variant
        if one is None:
            self._window.notice(Notice(_NOTHING, "warning"))
            return
        text = recipe_texts(one).script if as_python else commands(one)
        QGuiApplication.clipboard().setText(text)
        what = "a Python script that builds" if as_python else "commands that build"
        self._window.status.say(f"Copied {what} this program")

    def show_offer(self) -> None:
        """Show the available edits of the selection, by keyboard."""
        window = self._window
        selection = window.store.state.selection
        if not selection:
            window.status.say("Choose a node, an operator or a partition first: Ctrl+P finds one")
            return
        from devtools_app.views.editing import show_edits

        at = QPoint(window.centre.width() // 3, _OFFER_BELOW)
        show_edits(window.centre, at, selection, window.router)

    def _refusal(self, job: CompileJob) -> str:
        """Return why a recipe cannot be previewed: it would run code that is not trusted yet."""
        from inspector.toolchain.table import toolchain_named

        if not toolchain_named(job.toolchain).is_warm:
            return "Partitioners of the other toolchain run in a compile only"
        code = self._unknown_code(job)
        names = " and ".join(PurePath(path).name for path in code)
        return (
            f"A preview would run the code in {names}: recompile once to allow it" if code else ""
        )

    def _unknown_code(self, job: CompileJob) -> tuple[str, ...]:
        """Return the files whose code a compile would run and which are not trusted yet.

        The recipe itself does not make its source trusted: both may come from anywhere.
        """
        from inspector.recipes.compile_job import code_files

        return tuple(path for path in code_files(job) if not is_agreed(path))

    def _start(self, number: int) -> None:
        window = self._window
        one = window.store.state.history.find(number)
        if one is None:
            return
        base = self._base(one)
        first = base.program or (one.files[0] if one.files else one.recipe.job.source.path)
        window.jobs.recompiling.give_up()  # the newer wish takes the number of the one at work
        folder = variant_folder(first, _title(window.store.state, one))
        wish = RecompileJob(one.id, one.draft.present, folder, window.jobs.run_form, base)
        sentence = window.jobs.recompiling.start(wish)
        if sentence:
            window.notice(Notice(sentence, "error"))
            return
        window.strip.hide()
        window.jobs["measure"].cancel()  # what is compared now is about to be another pair
        window.status.recompile.start(f"Recompiling {_name(wish.job)}")

    def _base(self, one: Variant) -> Runnable:
        sessions = self._window.store.state.sessions
        shown = next((each for each in sessions if each.id == one.session), None)
        found = runnable(shown.id, shown.session) if shown is not None else None
        return found or Runnable(one.session, "")

    # -- what comes of it ------------------------------------------------------------------

    def _tell(self) -> None:
        busy, recompiling = self._window.status.recompile, self._window.jobs.recompiling
        one, found = recompiling.current, recompiling.progress
        if not recompiling.busy or one is None:
            busy.stop()
        elif found is not None:
            verb = "Running" if one.phase is Phase.RUN else "Recompiling"
            word = "Cancelling" if found.cancelling else verb
            busy.progress(f"{word} {_name(one.job)} · {found.stage}", -1.0)

    def _open(self, found: RecompileJob) -> None:
        window = self._window
        parent = window.store.state.history.find(found.parent)
        outcome = found.outcome
        failure = f"not run: {outcome.sentence}" if outcome is not None else ""
        if parent is not None:
            history = derived(window.store.state.history, found.parent, _recipe(found))
            made = replace(history.variants[-1], files=found.files, failure=failure)
            self._awaited = made.id
            window.store.update(history=with_variant(history, made))
        if outcome is not None:
            text = f"The new variant was compiled but did not run: {outcome.sentence.rstrip('.')}."
            window.notice(Notice(text, "warning", outcome.details))
        window.controller.open(found.files)

    def _failed(self, found: RecompileJob) -> None:
        from inspector.jobs.messages import Ended

        window, outcome = self._window, found.outcome
        assert outcome is not None
        if outcome.ended is Ended.CANCELLED:
            window.status.say("Recompiling was cancelled")
            return
        history = window.store.state.history
        parent = history.find(found.parent)
        if parent is not None:
            recipe = replace(parent.recipe, job=found.job)
            window.store.update(
                history=derived(history, parent.id, recipe, failure=outcome.sentence)
            )
        window.notice(Notice(f"Not recompiled: {outcome.sentence}.", "error", outcome.details))

    def _arrived(self, _old: State, new: State) -> None:
        """Go on as soon as a variant is open."""
        if not new.sessions:
            self._window.jobs.previews.rest()
        one = shown_variant(new)
        if self._awaited is None or one is None or one.id != self._awaited:
            return
        self._awaited = None
        self._window.jobs.recompiling.answer()

    def _compare(self, found: RecompileJob) -> None:
        """Show the variant beside the one it came from."""
        store = self._window.store
        one, parent = shown_variant(store.state), store.state.history.find(found.parent)
        if one is not None and parent is not None and parent.session:
            store.update(compared=(parent.session, one.session))
        self._window.show_view(COMPARE)
        self._window.jobs.previews.forget()
        self._window.jobs.recompiling.answer()

    def _measure(self, _found: RecompileJob) -> None:
        """Measure what is compared; what is measured now is another pair, or an older one."""
        jobs = self._window.jobs
        jobs.measurements.measure(compared_sessions(self._window.store.state), jobs.run_form)
        jobs.recompiling.answer()

    def _measured(self, found: Progress) -> None:
        """Note the times in the history of variants."""
        from inspector.units import format_time

        store = self._window.store
        history = store.state.history
        if found.state is None:
            return
        for (session, _), program in zip(found.about, found.state.programs, strict=True):
            one, median = history.of_session(session), program.median_ms
            if one is not None and median is not None:
                history = with_variant(history, replace(one, facts=(format_time(median * 1e6),)))
        store.update(history=history)


def _title(state: State, one: Variant) -> str:
    """Return the name of the session of a variant, else its source."""
    shown = next((each for each in state.sessions if each.id == one.session), None)
    return shown.session.name if shown is not None else PurePath(one.recipe.job.source.path).stem


def _recipe(found: RecompileJob) -> Recipe:
    """Return the recipe written with the program, else the requested one."""
    from inspector.recipes.recipe import RECIPE, Recipe, RecipeError
    from inspector.recipes.recipe_file import read_recipe

    try:
        return read_recipe(str(Path(found.folder) / RECIPE)).recipe
    except (RecipeError, OSError):
        return Recipe(found.job)


def _name(job: CompileJob) -> str:
    name = PurePath(job.source.path).name
    return f"{name}:{job.source.function}" if job.source.function else name
