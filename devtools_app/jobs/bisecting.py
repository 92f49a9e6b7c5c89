"""The bisection of the window: started or gone on with, watched, cancelled; every trial is kept."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from typing_extensions import override

from devtools_app.jobs.follower import Follower, Progress

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.experiments.bisect.trials import State
    from inspector.jobs.bisect import BisectJob
    from inspector.jobs.messages import Message, Trying
    from inspector.jobs.run import JobRun

_DIGITS = 12  # of the hash in the name of a folder


@dataclass(frozen=True, slots=True)
class Bisection(Progress):
    """A bisection as it stands.

    Attributes:
        job: what is bisected
        program: what all variants of the program share, as the history calls it
        folder: where the trials are kept
        state: the trials so far
        trying: the program that is being made, None between two
    """

    job: BisectJob
    program: str
    folder: str
    state: State
    trying: Trying | None = None


class Bisecting(Follower[Bisection]):
    """Does one bisection at a time; the trials of one that ended early are not lost."""

    def start(self, job: BisectJob, program: str, folder: str, *, fresh: bool = False) -> str:
        """Begin, or go on where the state in the folder ends; return one sentence if it cannot.

        Args:
            job: what to bisect
            program: whose variants it is about
            folder: for its state
            fresh: begin anew whatever is there
        """
        from inspector.experiments.bisect.trials import StateError
        from inspector.jobs.output_folder import FolderError
        from inspector.jobs.run import JobRun

        if self.running:
            return "A bisection is at work already; cancel it first."
        try:
            run = JobRun(job, Path(folder), force=fresh)
        except StateError as error:
            return f"{error}; Begin anew replaces it."
        except (FolderError, OSError) as error:
            return f"{error}."
        self._follow(run, Bisection(job, program, folder, run.state))
        return ""

    @override
    def _heard(self, current: Bisection, messages: list[Message]) -> Bisection:
        from inspector.jobs.messages import Tried, Trying

        current = super()._heard(current, messages)
        for message in messages:
            if isinstance(message, Trying):
                current = replace(current, trying=message)
            elif isinstance(message, Tried):
                current = replace(current, trying=None)
        return replace(current, state=cast("JobRun", self._run).state)


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
    from inspector.experiments.bisect.trials import STATE

    return os.path.isfile(os.path.join(folder, STATE))
