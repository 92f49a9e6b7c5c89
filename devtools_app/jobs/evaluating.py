"""Evaluations of open programs: prepared off the GUI thread, their code trusted, and started."""

from __future__ import annotations

from dataclasses import dataclass

from devtools_app.jobs.follower import JobFollower
from devtools_app.state.run_form import evaluation_folder
from devtools_app.state.state import OpenSession, State
from devtools_app.state.trusted_code import agree, untrusted_source
from inspector.experiments.evaluate.request import (
    EvalRequest,
    EvalRequestError,
    evaluation_job,
    has_program,
    workspace_name,
)
from inspector.jobs.evaluate import EvalJob, key_of
from inspector.jobs.executing import RunJob
from inspector.recipes.emission import file_of, in_file
from inspector.recipes.source import SourceKind


@dataclass(frozen=True, slots=True, eq=False)
class PreparedEvaluation:
    """A job that was prepared, and the sessions it is of."""

    job: EvalJob
    sessions: tuple[OpenSession, ...]

    @property
    def untrusted(self) -> str:
        """Return the source of the float program if its code is not trusted yet, or empty."""
        return untrusted_source(self.job.reference.source)

    def start(self, runner: JobFollower) -> str:
        """Trust the code of the job and start it; return one sentence if it cannot be started."""
        agree(_code_of(self.job))
        folder = evaluation_folder(self.job.variants[0].program)
        return runner.start(self.job, folder, about=self.sessions)


def programs(state: State) -> tuple[OpenSession, ...]:
    """Return the open sessions with a program, the current one first."""
    found = [one for one in state.sessions if has_program(one.session)]
    return tuple(sorted(found, key=lambda one: one is not state.open_session))


def prepared(
    request: EvalRequest, sessions: tuple[OpenSession, ...], options: tuple[str, ...] = ()
) -> PreparedEvaluation | str:
    """Return the job, or why it cannot be made; files are hashed here, not by the window.

    Args:
        request: data set, metric and reference
        sessions: the variants
        options: of backends, each ``NAME:OPTION=VALUE``
    """
    try:
        names = [workspace_name(one.id, one.session) for one in sessions]
        how = RunJob("", backend_options=options)
        job = evaluation_job([one.session for one in sessions], request, how, names)
        key_of(job)
    except (EvalRequestError, OSError) as error:
        return str(error)
    return PreparedEvaluation(job, sessions)


def _code_of(job: EvalJob) -> tuple[str, ...]:
    source = job.reference.source
    own = (source.path,) if source is not None and source.kind is SourceKind.PYTHON else ()
    return (*own, *(file_of(text) for text in (job.data, job.metric) if in_file(text)))
