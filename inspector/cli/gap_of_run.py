"""A run with all values, compared with the recorded program as soon as it has ended."""

from __future__ import annotations

import sys
import tempfile
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from inspector.cli.answer import FAILED, CommandError
from inspector.cli.job_runs import finished, refused
from inspector.cli.progress import Progress
from inspector.jobs.executing import BUFFER, INPUTS, VALUES, RunJob
from inspector.jobs.gap import GapJob
from inspector.jobs.output_folder import HIDDEN, FolderError
from inspector.jobs.run import JobRun
from inspector.numerics.report import GapReport


def gap_of(job: GapJob, options: Namespace) -> GapReport:
    """Compare in a worker process, since recorded graphs are run by torch.

    Raises: CommandError
    """
    running = JobRun(job, timeout=options.timeout)
    progress = Progress(sys.stderr, ", ".join(job.libraries), verbose=options.verbose)
    finished(running, progress, verbose=options.verbose)
    return running.state or GapReport()


def gap_of_run(
    job: RunJob,
    comparison: GapJob,
    options: Namespace,
    parent: Path | None = None,
    kept: Path | None = None,
) -> GapReport:
    """Run with values into a folder; return the comparison.

    Args:
        job: what is run; recording and times are ignored
        comparison: how it is compared; files, inputs and libraries are those of the run
        options: of the verb
        parent: for a folder that is removed afterwards; None for that of temporary files
        kept: the folder, if it is to stay

    Raises: CommandError
    """
    with tempfile.TemporaryDirectory(prefix=HIDDEN, dir=parent) as built:
        folder = kept or Path(built) / "run"
        recording = replace(job, debug_level="intermediate", timed=False, traced=True)
        try:
            force = kept is not None and options.force
            running = JobRun(recording, folder, force=force, timeout=options.timeout)
        except FolderError as error:
            raise refused(error) from error
        progress = Progress(sys.stderr, ", ".join(job.libraries), verbose=options.verbose)
        outcome = finished(running, progress, verbose=options.verbose)
        failure = outcome.result["trace"]["failure"]
        if failure:
            raise CommandError(failure, FAILED)
        traced = (str(folder / VALUES), str(folder / BUFFER))
        files = (job.program, *filter(None, [job.record]), *job.data_files, *traced)
        inputs = "" if job.sequence else str(folder / INPUTS)  # each call has its own
        return gap_of(
            replace(comparison, files=files, inputs=inputs, libraries=job.libraries), options
        )
