"""The jobs that worker processes do: one line each.

A job is a file with the dataclass of its request and the function that does it, and a line here.
The parent, the worker and the window use only this line; a name with a colon is
imported on demand, since the function of a worker imports torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Any

from inspector.jobs.executing import TRACES
from inspector.jobs.supervisor import Supervisor
from schema.objects.codec import from_json

COMPILES, EXECUTES, COMPARES, BISECTS = "compile", "execute", "compare", "bisect"
SERVER = "server"  # answers one request after the other


class Writes(str, Enum):
    """Destination of the files of a job."""

    NOTHING = "nothing"
    FOLDER = "folder"
    FILE = "file"
    SCRATCH = "scratch"  # a temporary folder that is removed when the job is closed
    WORK = "work"  # a temporary folder that is removed as soon as the job has ended


@dataclass(frozen=True, slots=True)
class JobKind:
    """A job.

    Attributes:
        name: in messages
        label: activity, for the status line
        request: its dataclass, as ``module:Name``
        entry: the function of the worker: called with the request and a ``Task``, returns the
            result
        worker: kind of worker
        writes: destination of its files
        result: type of the result, as ``module:Name``; empty for a JSON object
        supervisor: a ``Supervisor`` as ``module:Name``; empty for the default
        owned: names of files that are removed from the folder unless rewritten
    """

    name: str
    label: str
    request: str
    entry: str
    worker: str
    writes: Writes = Writes.NOTHING
    result: str = ""
    supervisor: str = ""
    owned: tuple[str, ...] = ()

    def read(self, content: object) -> Any:  # noqa: ANN401 - each kind has its own
        """Return the request in a JSON object.

        Raises: ContentError
        """
        return from_json(content, resolved(self.request), self.name)

    def read_result(self, content: Mapping[str, Any]) -> Any:  # noqa: ANN401
        """Return the typed result of a worker.

        Raises: ContentError
        """
        if not self.result:
            return content
        return from_json(content, resolved(self.result), f"the result of {self.name}")

    def supervise(self, *args: Any, **options: Any) -> Supervisor[Any]:  # noqa: ANN401
        """Return a supervisor for one job of this kind; see ``Supervisor``."""
        found: type[Supervisor[Any]] = resolved(self.supervisor) if self.supervisor else Supervisor
        return found(*args, **options)


@cache
def resolved(name: str) -> Any:  # noqa: ANN401 - a class or a function
    """Return the object named by ``module:Name``."""
    module, _, member = name.partition(":")
    return getattr(import_module(module), member)


_EXECUTING, _COMPILE = "inspector.jobs.executing", "inspector.recipes.compile_job:CompileJob"
_PREVIEW, _SUGGEST = "inspector.jobs.preview:PreviewJob", "inspector.jobs.preview:SuggestJob"
_BISECT, _GAP = "inspector.jobs.bisect", "inspector.jobs.gap"
_EXECUTE = "inspector.worker.executing:work"
_FILES, _FILE, _SCRATCH = Writes.FOLDER, Writes.FILE, Writes.SCRATCH

JOBS: tuple[JobKind, ...] = (
    JobKind(
        "compile", "compiling", _COMPILE, "inspector.worker.compile_job:work", COMPILES, _FILES
    ),
    JobKind(
        "run",
        "running",
        f"{_EXECUTING}:RunJob",
        _EXECUTE,
        EXECUTES,
        _FILES,
        supervisor="inspector.jobs.supervisor:RunSupervisor",
        owned=TRACES,
    ),
    JobKind(
        "generate",
        "generating",
        "inspector.jobs.generating:GenerateJob",
        "inspector.worker.generating:work",
        EXECUTES,
        supervisor="inspector.jobs.generating:GenerateSupervisor",
    ),
    JobKind(
        "llm gap",
        "comparing tokens",
        "inspector.jobs.generating:LlmGapJob",
        "inspector.worker.llm_gap:work",
        EXECUTES,
        supervisor="inspector.jobs.supervisor:RunSupervisor",
    ),
    JobKind("verify", "verifying", f"{_EXECUTING}:VerifyJob", _EXECUTE, EXECUTES),
    JobKind("bundle", "bundling", f"{_EXECUTING}:BundleJob", _EXECUTE, EXECUTES, _FILE),
    JobKind(
        "step",
        "stepping",
        f"{_EXECUTING}:StepJob",
        _EXECUTE,
        EXECUTES,
        _FILE,
        supervisor="inspector.jobs.live_steps:StepSupervisor",
    ),
    JobKind(
        "measure",
        "measuring",
        f"{_EXECUTING}:MeasureJob",
        _EXECUTE,
        EXECUTES,
        supervisor="inspector.jobs.measure:MeasureSupervisor",
    ),
    JobKind(
        "calibrate",
        "calibrating",
        "inspector.jobs.calibrate:CalibrateJob",
        "inspector.worker.calibrating:work",
        EXECUTES,
        result="inspector.roofline.calibration:Calibration",
    ),
    JobKind(
        "calibrate_calls",
        "measuring calls",
        "inspector.jobs.calibrate:CallCostsJob",
        "inspector.worker.calibrating_calls:work",
        EXECUTES,
        result="inspector.roofline.call_costs:CallCosts",
    ),
    JobKind(
        "plan",
        "planning memory",
        "inspector.jobs.planning:PlanJob",
        "inspector.worker.planning:work",
        EXECUTES,
        result="inspector.jobs.planning:PlannerResult",
    ),
    JobKind(
        "gap",
        "comparing values",
        f"{_GAP}:GapJob",
        "inspector.worker.gap_job:work",
        COMPARES,
        _SCRATCH,
        supervisor=f"{_GAP}:GapSupervisor",
    ),
    JobKind(
        "bisect",
        "bisecting",
        f"{_BISECT}:BisectJob",
        "inspector.worker.bisect_job:work",
        BISECTS,
        Writes.WORK,
        supervisor=f"{_BISECT}:BisectSupervisor",
    ),
    JobKind(
        "evaluate",
        "evaluating",
        "inspector.jobs.evaluate:EvalJob",
        "inspector.worker.eval_job:work",
        EXECUTES,
        Writes.WORK,
        supervisor="inspector.jobs.evaluate:EvalSupervisor",
    ),
    JobKind(
        "preview",
        "previewing",
        _PREVIEW,
        "inspector.worker.previewing:preview",
        SERVER,
        result="inspector.jobs.preview:Preview",
    ),
    JobKind(
        "backend_plan",
        "planning backends",
        "inspector.jobs.backend_plan:BackendPlanJob",
        "inspector.worker.backend_plan:work",
        COMPILES,
        result="inspector.jobs.backend_plan:BackendPlan",
    ),
    JobKind(
        "llm_recipe",
        "reading a configuration",
        "inspector.jobs.llm_recipe:LlmRecipeJob",
        "inspector.worker.llm_recipe:work",
        COMPILES,
        result="inspector.recipes.compile_job:CompileJob",
    ),
    JobKind(
        "backend_card",
        "reading the tables of a backend",
        "inspector.jobs.backend_plan:BackendCardJob",
        "inspector.worker.backend_plan:card",
        COMPILES,
        result="inspector.jobs.backend_plan:BackendFacts",
    ),
    JobKind(
        "suggest",
        "looking for suggestions",
        _SUGGEST,
        "inspector.worker.previewing:suggest",
        SERVER,
        result="inspector.jobs.suggestions:Suggestions",
    ),
)


def kind_named(name: str) -> JobKind:
    """Return the job of a name.

    Raises: KeyError for an unknown one
    """
    return next((one for one in JOBS if one.name == name), None) or _unknown(name)


def kind_of(request: object) -> JobKind:
    """Return the kind of job of a request.

    Raises: KeyError for any other object
    """
    own = f"{type(request).__module__}:{type(request).__qualname__}"
    return next((one for one in JOBS if one.request == own), None) or _unknown(own)


def _unknown(name: str) -> JobKind:
    raise KeyError(f"unknown job {name}; available: {', '.join(one.name for one in JOBS)}")
