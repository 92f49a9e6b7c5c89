"""The search: the program as it is, without delegates, and in between."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from inspector.experiments.bisect.minimise import minimise
from inspector.jobs.bisect_trials import Trial, ranges_of

Ranges = tuple[tuple[int, int], ...]
Oracle = Callable[[Ranges], Trial]


class Result(str, Enum):
    """How a search ended."""

    FOUND = "found"
    FINE = "nothing to do"
    ELSEWHERE = "not due to delegation"


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of the search.

    Attributes:
        result: kind of end
        removed: the nodes to remove, empty unless found
        before: with everything delegated
        after: without those nodes; without any when they were not found
        trials: programs that were made for it, those known before among them
    """

    result: Result
    removed: tuple[int, ...]
    before: Trial
    after: Trial
    trials: int


@dataclass
class Search:
    """Searches the smallest set of nodes to remove from the delegates.

    The order of trials only depends on results, so it resumes from known trials without repeating
    any.

    Args:
        count: number of nodes
        oracle: runs a trial
        known: earlier trials
        preferred: nodes to choose among if they are enough; all of them otherwise
    """

    count: int
    oracle: Oracle
    known: Iterable[Trial] = ()
    preferred: Sequence[int] = ()
    _made: dict[Ranges, Trial] = field(default_factory=dict[Ranges, Trial])

    def __post_init__(self) -> None:
        self._made = {trial.removed: trial for trial in self.known}

    def run(self) -> SearchResult:
        """Return the result.

        Raises: errors of the oracle
        """
        everything = tuple(range(self.count))
        before = self._trial(())
        if before.holds:
            return self._answer(Result.FINE, (), before, before)
        if not self.count:
            return self._answer(Result.ELSEWHERE, (), before, before)
        bare = self._trial(everything)
        if not bare.holds:
            return self._answer(Result.ELSEWHERE, (), before, bare)
        chosen = tuple(self.preferred)
        enough = 0 < len(chosen) < self.count and self._trial(chosen).holds
        found = minimise(chosen if enough else everything, lambda part: self._trial(part).holds)
        return self._answer(Result.FOUND, found, before, self._trial(found))

    def _trial(self, part: tuple[int, ...]) -> Trial:
        removed = ranges_of(part)
        if removed not in self._made:
            self._made[removed] = self.oracle(removed)
        return self._made[removed]

    def _answer(
        self, result: Result, removed: tuple[int, ...], before: Trial, after: Trial
    ) -> SearchResult:
        return SearchResult(result, removed, before, after, len(self._made))
