"""The variants of a program: recipe, parent and draft of each.

Everything is a frozen value, and transitions are pure functions: the history is
part of the state of the window and is saved in the workspace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.recipes.compile_job import CompileJob
    from inspector.recipes.recipe import Recipe
    from inspector.recipes.recipe_file import FoundRecipe

MOST_STEPS = 200  # of undo; more is rarely undone
MOST_VARIANTS = 256  # each keeps its draft and undo history


@dataclass(frozen=True, slots=True)
class Draft:
    """The recipe for the next compile, with undo history.

    Attributes:
        present: current recipe
        past: undo steps, oldest first
        future: redo steps, nearest last
    """

    present: CompileJob
    past: tuple[CompileJob, ...] = ()
    future: tuple[CompileJob, ...] = ()

    def edited(self, job: CompileJob) -> Draft:
        """Return the draft after an edit; unchanged if the edit changes nothing."""
        if job == self.present:
            return self
        return Draft(job, (*self.past, self.present)[-MOST_STEPS:])

    def undone(self) -> Draft:
        """Return the draft before the last edit."""
        if not self.past:
            return self
        return Draft(self.past[-1], self.past[:-1], (*self.future, self.present))

    def redone(self) -> Draft:
        """Return the draft after the edit that was undone last."""
        if not self.future:
            return self
        return Draft(self.future[-1], (*self.past, self.present), self.future[:-1])


@dataclass(frozen=True, slots=True)
class Variant:
    """One variant of a program, compiled or failed.

    Attributes:
        id: number, unique in a history
        program: the source shared by all variants of a program
        recipe: its recipe
        draft: its next recipe
        parent: the parent variant, None for one that was opened
        files: its files; empty if compiling failed
        session: its session, empty if closed
        failure: why compiling or running failed, one sentence; empty without an error
        unknown: description of unrecorded parts of its recipe
        facts: its metrics as strings, as ``1.504 ms``
    """

    id: int
    program: str
    recipe: Recipe
    draft: Draft
    parent: int | None = None
    files: tuple[str, ...] = ()
    session: str = ""
    failure: str = ""
    unknown: str = ""
    facts: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Return whether its draft differs from its recipe."""
        return self.draft.present != self.recipe.job


@dataclass(frozen=True, slots=True)
class History:
    """All variants of all programs, in the order of creation.

    Attributes:
        variants: the variants
        created: number of variants so far
    """

    variants: tuple[Variant, ...] = field(default=())
    created: int = 0

    def __getitem__(self, number: int) -> Variant:
        return next(one for one in self.variants if one.id == number)

    def find(self, number: int | None) -> Variant | None:
        """Return a variant by its number, or None."""
        return next((one for one in self.variants if one.id == number), None)

    def of_session(self, session: str) -> Variant | None:
        """Return the variant that is open in a session, or None."""
        if not session:
            return None
        return next((one for one in self.variants if one.session == session), None)

    def like(self, program: str, job: CompileJob) -> Variant | None:
        """Return the newest variant of a program with a recipe, or None."""
        found = (one for one in reversed(self.variants) if one.program == program)
        return next((one for one in found if one.recipe.job == job and one.files), None)


def opened(
    history: History, session: str, recipe: Recipe, files: tuple[str, ...], unknown: str = ""
) -> History:
    """Return the history with the variant that a session shows.

    A variant of the same files that was closed is open again.
    """
    again = reopened(history, session, files)
    if again is not None:
        return again
    program = str(recipe.job.source)
    one = Variant(
        history.created,
        program,
        recipe,
        Draft(recipe.job),
        files=files,
        session=session,
        unknown=unknown,
    )
    return _added(history, one)


def reopened(history: History, session: str, files: tuple[str, ...]) -> History | None:
    """Return the history with a closed variant of these files reopened, or None."""
    known = next((one for one in history.variants if _same_files(one.files, files)), None)
    if known is None or known.session:
        return None
    return with_variant(history, replace(known, session=session, files=files))


def recompiled(history: History, one: Variant, read: FoundRecipe) -> History:
    """Return the history with a variant whose files were compiled again elsewhere.

    Edits that are not compiled yet stay. A recipe of which less is known than before, because its
    source is away, replaces none.
    """
    same = (read.recipe.job, read.recipe.source_sha256) == (
        one.recipe.job,
        one.recipe.source_sha256,
    )
    if same or (read.unknown and not one.unknown):
        return history
    draft = one.draft if one.changed else Draft(read.recipe.job)
    new = replace(one, recipe=read.recipe, draft=draft, unknown=read.unknown, facts=())
    if read.recipe.job.source != one.recipe.job.source:
        new = replace(new, program=str(read.recipe.job.source), parent=None)
    return with_variant(history, new)


def found(
    history: History, beside: Variant, files: tuple[str, ...], recipe: Recipe, *, parent: bool
) -> History:
    """Return the history with a closed variant found on disk; unchanged if known.

    Args:
        history: so far
        beside: the variant it was found next to
        files: of the variant
        recipe: its recipe
        parent: whether it was derived from that variant, according to the folders
    """
    if any(_same_files(one.files, files) for one in history.variants):
        return history
    one = Variant(
        history.created,
        beside.program,
        recipe,
        Draft(recipe.job),
        parent=beside.id if parent else None,
        files=files,
    )
    return _added(history, one)


def derived(history: History, parent: int, recipe: Recipe, *, failure: str = "") -> History:
    """Return the history with a variant compiled from the draft of another one.

    The undo history of the draft moves to the new variant; the draft of the parent is reset to its
    recipe, with the edits as redo steps. If compiling failed the draft of the parent is kept.

    Args:
        history: so far
        parent: id of the parent variant
        recipe: of the new one
        failure: why compiling failed, empty if it succeeded
    """
    old = history[parent]
    one = Variant(
        history.created,
        old.program,
        recipe,
        Draft(recipe.job, old.draft.past) if not failure else Draft(recipe.job),
        parent=parent,
        failure=failure,
    )
    if not failure:
        history = with_variant(history, replace(old, draft=_rewound(old)))
    return _added(history, one)


def _rewound(old: Variant) -> Draft:
    """Return the draft of a variant reset to its recipe."""
    draft = old.draft
    while draft.present != old.recipe.job and draft.past:
        draft = draft.undone()
    if draft.present != old.recipe.job:
        return Draft(old.recipe.job)
    return draft


def with_variant(history: History, one: Variant) -> History:
    """Return the history with a variant replaced."""
    variants = tuple(one if other.id == one.id else other for other in history.variants)
    return replace(history, variants=variants)


def with_open(history: History, sessions: frozenset[str]) -> History:
    """Return the history in which only the variants of open sessions are open.

    A variant without files, such as one being compiled, is removed when no variant needs it.
    """
    variants = tuple(
        one if one.session in sessions or not one.session else replace(one, session="")
        for one in history.variants
    )
    return history if variants == history.variants else replace(history, variants=variants)


def without(history: History, number: int) -> History:
    """Return the history without a variant; its children are attached to its parent."""
    gone = history.find(number)
    if gone is None:
        return history
    kept = (one for one in history.variants if one.id != number)
    variants = (replace(one, parent=gone.parent) if one.parent == number else one for one in kept)
    return replace(history, variants=tuple(variants))


def joined(history: History, other: History, names: dict[str, str]) -> History:
    """Return a history merged with another, whose sessions have other ids.

    Args:
        history: the base
        other: the one to merge
        names: session id in the other -> id here; missing ones are closed
    """
    start = history.created
    come = tuple(
        replace(
            one,
            id=one.id + start,
            parent=None if one.parent is None else one.parent + start,
            session=names.get(one.session, ""),
        )
        for one in other.variants
    )
    return _bounded(History((*history.variants, *come), start + other.created))


def walked(history: History, program: str) -> Iterator[tuple[int, Variant]]:
    """Yield the variants of a program with their depth, parents before children."""
    own = [one for one in history.variants if one.program == program]
    numbers = {one.id for one in own}

    def below(parent: int | None, depth: int) -> Iterator[tuple[int, Variant]]:
        for one in own:
            at = one.parent if one.parent in numbers else None
            if at == parent:
                yield depth, one
                yield from below(one.id, depth + 1)

    yield from below(None, 0)


def _added(history: History, one: Variant) -> History:
    return _bounded(History((*history.variants, one), history.created + 1))


def _bounded(history: History) -> History:
    """Return a history without the oldest closed variants beyond the limit."""
    while len(history.variants) > MOST_VARIANTS:
        closed = next((one for one in history.variants if not one.session), None)
        if closed is None:
            break
        history = without(history, closed.id)
    return history


def _same_files(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return whether both have the same program and record, ignoring traces."""
    kinds = (".pte", ".bpte", ".etrecord")
    first, second = ({path for path in paths if path.endswith(kinds)} for paths in (one, other))
    return bool(first) and first == second
