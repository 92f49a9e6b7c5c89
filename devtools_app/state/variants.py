"""The variants of a program: recipe, parent and draft of each.

Everything is a frozen value, and how one follows from another is a pure function: the history is
part of the state of the window and is saved in the workspace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.recipes.compile_job import CompileJob
    from inspector.recipes.recipe import Recipe

MOST_STEPS = 200  # of undo; more is rarely undone
MOST_VARIANTS = 256


@dataclass(frozen=True, slots=True)
class Draft:
    """The recipe that is compiled next, with the way that led there.

    Attributes:
        present: as it is now
        past: what undo goes back to, oldest first
        future: what redo goes on to, nearest last
    """

    present: CompileJob
    past: tuple[CompileJob, ...] = ()
    future: tuple[CompileJob, ...] = ()

    def edited(self, job: CompileJob) -> Draft:
        """Return the draft after an edit; nothing changes when the edit changes nothing."""
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
        id: number, never used twice in a history
        program: what all variants of one program share: their source
        recipe: its recipe
        draft: its next recipe
        parent: the variant it was changed from, None for one that was opened
        files: its files; none if compiling failed
        session: the session it is open in, empty when it is closed
        failure: why compiling or running failed, one sentence; empty without an error
        unknown: what its files do not record of its recipe, in words
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
        """Return whether its draft is another recipe than its own."""
        return self.draft.present != self.recipe.job


@dataclass(frozen=True, slots=True)
class History:
    """All variants of all programs, in the order in which they came.

    Attributes:
        variants: the variants
        created: how many were created so far; numbers the next one
    """

    variants: tuple[Variant, ...] = field(default=())
    created: int = 0

    def __getitem__(self, number: int) -> Variant:
        return next(one for one in self.variants if one.id == number)

    def find(self, number: int | None) -> Variant | None:
        """Return a variant by its number, None when there is none."""
        return next((one for one in self.variants if one.id == number), None)

    def of_session(self, session: str) -> Variant | None:
        """Return the variant that is open in a session, None when it is none."""
        if not session:
            return None
        return next((one for one in self.variants if one.session == session), None)

    def like(self, program: str, job: CompileJob) -> Variant | None:
        """Return the newest variant of a program with a recipe, None without one."""
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
    """Return the history in which a closed variant of these files is open, None without one."""
    known = next((one for one in history.variants if _same_files(one.files, files)), None)
    if known is None or known.session:
        return None
    return with_variant(history, replace(known, session=session, files=files))


def found(
    history: History, beside: Variant, files: tuple[str, ...], recipe: Recipe, *, parent: bool
) -> History:
    """Return the history with a variant that lies on the disk, closed; the same if it is known.

    Args:
        history: so far
        beside: the variant it was found by
        files: what it consists of
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

    The way to the draft becomes that of the new variant; the draft of the parent is its own recipe
    again, with the edits to be redone, unless compiling the new one failed: then nothing is lost
    and the draft of the parent stays.

    Args:
        history: so far
        parent: number of the variant it was changed from
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
    """Return the draft of a variant gone back to its own recipe."""
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
    """Return the history without a variant; its children then belong to its parent."""
    gone = history.find(number)
    if gone is None:
        return history
    kept = (one for one in history.variants if one.id != number)
    variants = (replace(one, parent=gone.parent) if one.parent == number else one for one in kept)
    return replace(history, variants=tuple(variants))


def joined(history: History, other: History, names: dict[str, str]) -> History:
    """Return a history merged with another, whose sessions have other names.

    Args:
        history: the one that stays
        other: the one that comes
        names: session of the one that comes -> its name here; those not named are closed
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
    """Return a history that forgets the oldest closed variants when there are too many."""
    while len(history.variants) > MOST_VARIANTS:
        closed = next((one for one in history.variants if not one.session), None)
        if closed is None:
            break
        history = without(history, closed.id)
    return history


def _same_files(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return whether both have the same program and record, whatever traces there are."""
    kinds = (".pte", ".bpte", ".etrecord")
    first, second = ({path for path in paths if path.endswith(kinds)} for paths in (one, other))
    return bool(first) and first == second
