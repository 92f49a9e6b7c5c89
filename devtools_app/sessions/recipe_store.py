"""The recipes of the programs that are open: found, edited, undone; stored in the state."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from devtools_app.state.state import State
from devtools_app.state.store import Store
from devtools_app.state.variant_steps import (
    edit_recipe,
    known_sessions,
    redo,
    shown_variant,
    undo,
    with_left,
)
from devtools_app.state.variants import Variant

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from devtools_app.state.leftover_variants import LeftVariant
    from inspector.files.session import Session
    from inspector.recipes.compile_job import CompileJob
    from inspector.recipes.recipe_file import FoundRecipe

_LOG = logging.getLogger(__name__)


class RecipeStore(QObject):
    """Keeps the history of the state in step with its sessions, and applies the edits."""

    def __init__(
        self, store: Store, parent: QObject | None = None, at_work: Callable[[], str] = str
    ) -> None:
        """Follow a store.

        Args:
            store: with the history
            parent: owner
            at_work: returns the folder of the variant being compiled, or empty
        """
        super().__init__(parent)
        self._store = store
        self._at_work = at_work
        store.changed.connect(self._state_changed)

    @property
    def variant(self) -> Variant | None:
        """Return the variant of the session shown, None if its recipe is unknown."""
        return shown_variant(self._store.state)

    @property
    def job(self) -> CompileJob | None:
        """Return the recipe that is compiled next, None if it is unknown."""
        one = self.variant
        return None if one is None else one.draft.present

    def edit(self, job: CompileJob) -> None:
        """Set the recipe of the next compile."""
        self._store.put(edit_recipe(self._store.state, job))

    def undo(self) -> None:
        """Undo the last edit."""
        self._store.put(undo(self._store.state))

    def redo(self) -> None:
        """Redo the last undone edit."""
        self._store.put(redo(self._store.state))

    def _state_changed(self, old: State, new: State) -> None:
        if old.sessions != new.sessions:
            known = {one.id: one.session for one in old.sessions}
            came = [one.id for one in new.sessions if one.id not in known]
            again = [
                one.id for one in new.sessions if known.get(one.id, one.session) is not one.session
            ]
            state = known_sessions(new, self._find, again)
            self._store.put(with_left(state, came, self._left))

    def _left(self, program: str) -> Sequence[LeftVariant]:
        from devtools_app.state.leftover_variants import left_variants

        return left_variants(program, self._at_work())

    def _find(self, session: Session) -> FoundRecipe | None:
        from inspector.recipes.recipe import RecipeError
        from inspector.recipes.session_recipe import session_recipe

        try:
            return session_recipe(session)
        except (RecipeError, OSError) as error:
            _LOG.info("%s", error)
            return None
