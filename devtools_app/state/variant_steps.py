"""State transitions for recipe edits and undo, and for opened and closed sessions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from devtools_app.state.state import OpenSession, State
from devtools_app.state.transitions import show_session
from devtools_app.state.variants import (
    Draft,
    Variant,
    found,
    opened,
    recompiled,
    reopened,
    with_open,
    with_variant,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from devtools_app.state.leftover_variants import LeftVariant
    from inspector.files.session import Session
    from inspector.recipes.compile_job import CompileJob
    from inspector.recipes.recipe_file import FoundRecipe


def shown_variant(state: State) -> Variant | None:
    """Return the variant of the session shown, None if its recipe is unknown."""
    return state.history.of_session(state.current)


def compared_sessions(state: State) -> tuple[OpenSession, ...]:
    """Return the compared sessions, the baseline first; empty without two sessions.

    These are the chosen ones, while open and shown; else the current session with its parent
    variant, or with another variant of its program, or with its neighbour. Of two variants that
    were opened the baseline is the first.
    """
    by_id = {one.id: one for one in state.sessions}
    chosen = tuple(by_id[key] for key in state.compared if key in by_id)
    if len(chosen) > 1:
        return chosen
    shown = state.open_session
    if shown is None or len(by_id) < 2:
        return ()
    other = by_id[_other(state, shown.id)]
    one, two = shown_variant(state), state.history.of_session(other.id)
    return (shown, other) if _is_older(one, two) else (other, shown)


def _is_older(one: Variant | None, two: Variant | None) -> bool:
    """Return whether a variant was opened before another of its program, both without a parent."""
    if one is None or two is None or one.program != two.program:
        return False
    return one.parent is None and two.parent is None and one.id < two.id


def _other(state: State, shown: str) -> str:
    """Return the best baseline for the session shown."""
    one = shown_variant(state)
    ids = [each.id for each in state.sessions if each.id != shown]
    if one is not None:
        parent = state.history.find(one.parent)
        if parent is not None and parent.session:
            return parent.session
        for each in state.history.variants:
            if each.program == one.program and each.session in ids:
                return each.session
    return ids[-1]


def edit_recipe(state: State, job: CompileJob) -> State:
    """Return the state with another recipe for the current variant."""
    one = shown_variant(state)
    return state if one is None else _at(state, one, one.draft.edited(job))


def undo(state: State) -> State:
    """Return the state before the last edit; the variant with that recipe is shown again."""
    one = shown_variant(state)
    return state if one is None else _at(state, one, one.draft.undone())


def redo(state: State) -> State:
    """Return the state after the edit that was undone last."""
    one = shown_variant(state)
    return state if one is None else _at(state, one, one.draft.redone())


def _at(state: State, one: Variant, draft: Draft) -> State:
    """Return the state with a draft; it belongs to the open variant with the same recipe."""
    if draft == one.draft:
        return state
    result = state.history.like(one.program, draft.present)
    if (
        result is None
        or result.id == one.id
        or not result.session
        or draft.present == one.recipe.job
    ):
        return replace(state, history=with_variant(state.history, replace(one, draft=draft)))
    history = with_variant(state.history, replace(result, draft=draft))
    if one.changed:
        history = with_variant(history, replace(one, draft=Draft(one.recipe.job)))
    return show_session(replace(state, history=history), result.session)


def with_left(
    state: State, sessions: Iterable[str], left: Callable[[str], Sequence[LeftVariant]]
) -> State:
    """Return the state with closed variants found next to these sessions in its history.

    Args:
        state: whose history contains the sessions
        sessions: new ones
        left: returns the variants beside a program, by the path of one of its files
    """
    history = state.history
    for session in sessions:
        one = history.of_session(session)
        for each in left(_program(one.files)) if one is not None and one.files else ():
            assert one is not None
            history = found(
                history, one, each.files, each.recipe, parent=not _beside(one.files, each.files)
            )
    return state if history == state.history else replace(state, history=history)


def _program(files: tuple[str, ...]) -> str:
    """Return the file after which variants derived from a variant are named."""
    return next((path for path in files if path.endswith((".pte", ".bpte"))), files[0])


def _beside(files: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Return whether two variants are in one folder of variants, so neither is the original."""
    one, other = (PurePath(paths[0]).parent.parent for paths in (files, others))
    return one == other


def known_sessions(
    state: State,
    find: Callable[[Session], FoundRecipe | None],
    read_again: Collection[str] = (),
) -> State:
    """Return the state with a history of exactly the open sessions.

    A variant already in the history is identified by its files, even if unreadable.

    Args:
        state: after sessions were opened, read again or closed
        find: returns the recipe of a session, None if unknown
        read_again: sessions whose files were read again: another program may replace each
    """
    history = with_open(state.history, frozenset(one.id for one in state.sessions))
    for one in state.sessions:
        known = history.of_session(one.id)
        if known is None:
            files = tuple(file.path for file in one.session.files)
            again = reopened(history, one.id, files)
            recipe = find(one.session) if again is None else None
            if again is not None:
                history = again
            elif recipe is not None:
                history = opened(history, one.id, recipe.recipe, files, recipe.unknown)
        elif one.id in read_again:
            recipe = find(one.session)
            history = history if recipe is None else recompiled(history, known, recipe)
    return state if history == state.history else replace(state, history=history)
