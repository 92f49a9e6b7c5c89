"""The demo: a packaged module is compiled, run and opened, or pictured without a display."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from devtools_app.__main__ import main as etscope
from devtools_app.__main__ import why_no_window
from inspector.jobs.description import PROGRAM, RECORD, CompileJob, Source
from inspector.jobs.executing import BUFFER, TRACE, RunJob
from inspector.jobs.messages import Ended, Stage
from inspector.jobs.process import EXECUTES, Worker
from inspector.jobs.run import CompileRun, ExecutingRun, JobRun

SAMPLE = Path(__file__).parent / "sample_data" / "keyword_net"
MODULE = Path(__file__).parent / "sample_data" / "demo" / "keyword_spotter.py"
FUNCTION = "build"
_RUNS, _WARMUP = 8, 2
_PATIENCE = 300.0  # seconds


class DemoError(Exception):
    """Why the module could not be compiled or run, as one sentence."""


def main() -> int:
    """Compile, run and open; without a display write screenshots and the summary and say where."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", default="demo-output", help="folder for all that is made")
    options = parser.parse_args()
    folder = Path(options.output)
    files = _files(folder)
    if not why_no_window() and os.environ.get("QT_QPA_PLATFORM") != "offscreen":
        return etscope(["open", *files])
    folder.mkdir(parents=True, exist_ok=True)
    text = _summary(files)
    (folder / "summary.txt").write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    pictures = _pictures(folder, files)
    sys.stdout.write(
        f"There is no display: {pictures} pictures of the window and summary.txt"
        f" are in {folder.resolve()}\n"
    )
    return 0


def _files(folder: Path) -> list[str]:
    """Return what is to be opened: what was made now, else the packaged session."""
    try:
        return _made(folder / MODULE.stem)
    except (DemoError, OSError) as error:  # FolderError is one
        sys.stdout.write(f"{error}; opening the packaged session {SAMPLE.name} instead\n")
        return [str(SAMPLE)]


def _made(folder: Path) -> list[str]:
    """Compile and run the module; return program, record, trace and debug buffer.

    Raises: DemoError, OSError
    """
    sys.stdout.write(f"compiling {MODULE.name}:{FUNCTION} and running it, into {folder}\n")
    ahead = Worker(EXECUTES)  # loads torch while the other worker compiles
    try:
        job = CompileJob(Source(str(MODULE), FUNCTION), partitioners=("xnnpack",))
        _finish(CompileRun(job, folder, force=True, timeout=_PATIENCE))
        program, record, run = folder / PROGRAM, folder / RECORD, folder / "run"
        wanted = RunJob(
            str(program),
            runs=_RUNS,
            warmup=_WARMUP,
            debug_level="intermediate",
            record=str(record),
        )
        _finish(ExecutingRun(wanted, run, force=True, worker=ahead, timeout=_PATIENCE))
    finally:
        ahead.close()
    return [str(path) for path in (program, record, run / TRACE, run / BUFFER)]


def _finish(running: JobRun) -> None:
    """Follow a job to its end, a line a stage.

    Raises: DemoError if it did not finish
    """
    try:
        while running.outcome is None:
            for message in running.take(0.1):
                if isinstance(message, Stage) and message.seconds is not None:
                    name = f"{message.stage} {message.method}".rstrip()
                    sys.stdout.write(f"  {name:<20} {message.seconds:7.3f} s\n")
                    sys.stdout.flush()
        outcome = running.outcome
    finally:
        running.close()
    if outcome.ended is not Ended.FINISHED:
        raise DemoError(f"the module could not be compiled and run: {outcome.sentence}")


def _summary(files: Sequence[str]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        etscope(["summary", *files])
    return out.getvalue()


def _pictures(folder: Path, files: Sequence[str]) -> int:
    from devtools_app import shots

    shots.use_no_screen()
    count = 0
    with shots.open_window(files) as window:
        for view in shots.view_names():
            for dark in (False, True):
                name = f"{view}_{'dark' if dark else 'light'}.png"
                shots.write(window, shots.Shot(view, dark=dark), folder / name)
                count += 1
    return count


if __name__ == "__main__":
    sys.exit(main())
