"""The files of a finished job that are opened together."""

from __future__ import annotations

from pathlib import Path

from inspector.files.run_report import REPORT as RUN_REPORT
from inspector.files.written_folders import RESULTS
from inspector.jobs.executing import RunJob, trace_files
from inspector.jobs.gap import GapJob
from inspector.jobs.history import SWEEP, JobEntry, request_of
from inspector.jobs.messages import Ended
from inspector.recipes.compile_job import PROGRAM, RECORD, CompileJob
from schema.errors import FormatError
from schema.objects.codec import ContentError, read_object

_LARGEST = 64 << 20  # bytes of a report


def result_paths(entry: JobEntry) -> tuple[str, ...]:
    """Return the files to open for a job that still exist; empty for one that is only looked at.

    What is in the folder of a job that has not finished is of a former one, but for a sweep.
    """
    if entry.kind == SWEEP:
        return _there((str(Path(entry.target) / RESULTS),))
    if entry.ended is not Ended.FINISHED:
        return ()
    try:
        job = request_of(entry)
    except (ContentError, KeyError):  # of another version
        return ()
    folder = Path(entry.target)
    if isinstance(job, CompileJob):
        data = sorted(map(str, folder.glob("*.ptd")))
        return _there((str(folder / PROGRAM), str(folder / RECORD), *data))
    if isinstance(job, RunJob):
        try:
            report = read_object(folder / RUN_REPORT, "the report of a run", _LARGEST)
            traces = trace_files(folder, report)
        except (FormatError, OSError, LookupError, TypeError):
            return ()
        return _there((job.program, job.record, *job.data_files, *traces))
    if isinstance(job, GapJob):
        return _there(job.files)
    return _there((entry.target,)) if folder.is_file() else ()


def _there(paths: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(path for path in paths if path and Path(path).is_file())
