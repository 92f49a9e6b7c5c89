"""The demo: runs the loop once with a packaged module: compile, change, run, compare, open."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from devtools_app.__main__ import main as etscope
from devtools_app.__main__ import why_no_window
from devtools_app.sample_data import LOOP, MODULE
from inspector.files.session_groups import split_sessions
from inspector.jobs.executing import RunJob
from inspector.jobs.messages import Ended, StageProgress
from inspector.jobs.process import Worker
from inspector.jobs.run import JobRun
from inspector.jobs.table import EXECUTES
from inspector.recipes.compile_job import EXECUTORCH, PROGRAM, RECORD, CompileJob, Rules
from inspector.recipes.source import Source
from schema.backends import DEFAULT

FUNCTION = "build"
VETO = ("aten.mul.Tensor",)
_BLOCKS = 6
_NOT_MADE = ("sweep",)  # views whose results the demo has none of
_PATIENCE = 300.0  # seconds


class DemoError(Exception):
    """Why the module could not be compiled or run, as one sentence."""


def main() -> int:
    """Run the loop and open its results; without a display write screenshots and reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", default="demo-output", help="output folder")
    parser.add_argument(
        "--built-in-only", action="store_true", help="skip the compile by executorch"
    )
    options = parser.parse_args()
    folder = Path(options.output)
    stock = not options.built_in_only and find_spec(EXECUTORCH) is not None
    files = _files(folder, stock=stock)
    if not why_no_window() and os.environ.get("QT_QPA_PLATFORM") != "offscreen":
        return etscope(["open", *files])
    folder.mkdir(parents=True, exist_ok=True)
    text = _output_of(["summary", *split_sessions(files)[0]])
    (folder / "summary.txt").write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    count = _screenshots(folder, files)
    sys.stdout.write(
        f"No display: {count} screenshots of the window, summary.txt, comparison.txt and"
        f" comparison.html are in {folder.resolve()}\n"
    )
    return 0


def _files(folder: Path, *, stock: bool) -> list[str]:
    """Return the files to open: those compiled now, else the packaged session."""
    try:
        return _loop(folder, stock=stock)
    except (DemoError, OSError) as error:  # FolderError is one
        sys.stdout.write(f"{error}; opening the packaged sample instead\n")
        return [*LOOP]


def _loop(folder: Path, *, stock: bool) -> list[str]:
    """Compile and run, change one rule, compile and run again, and report the effect of the change.

    Args:
        folder: for all output
        stock: whether ``executorch`` compiles the program as well, meanwhile

    Returns: folders of the original program and of the variant, each with that of its run

    Raises: DemoError, OSError
    """
    jobs = variants()
    names = [*jobs]
    text = f"compiling {MODULE.name}:{FUNCTION}, then with {', '.join(VETO)} kept off the delegate"
    sys.stdout.write(f"{text}, and running both, into {folder}\n")
    other: JobRun | None = None
    if stock:
        names.append(f"{MODULE.stem}_executorch")
        elsewhere = replace(jobs[names[0]], toolchain=EXECUTORCH)
        other = JobRun(elsewhere, folder / names[-1], force=True, timeout=_PATIENCE)
    try:
        files = [file for name, job in jobs.items() for file in compile_and_run(folder / name, job)]
        if other is not None:
            sys.stdout.write(f"{names[-1]}, meanwhile\n")
            _finish(other)
    finally:
        if other is not None:
            other.close()
    _compare(folder, [folder / name for name in names])
    return files


def variants() -> dict[str, CompileJob]:
    """Return name -> recipe of the module and of a variant of it."""
    job = CompileJob(Source(str(MODULE), FUNCTION), partitioners=(DEFAULT.partitioners[0].alias,))
    changed = replace(job, rules=Rules(deny_ops=VETO))
    return {MODULE.stem: job, f"{MODULE.stem}_changed": changed}


def compile_and_run(folder: Path, job: CompileJob, runs: int | None = None) -> list[str]:
    """Compile and run; return the folders of program and record, and of trace and values.

    Args:
        folder: for all output
        job: what to compile
        runs: how often to run, by default until the times are steady

    Raises: DemoError, OSError
    """
    sys.stdout.write(f"{folder.name}\n")
    ahead = Worker(EXECUTES)  # loads torch while the other worker compiles
    try:
        _finish(JobRun(job, folder, force=True, timeout=_PATIENCE, stages=True))
        program, record, run = folder / PROGRAM, folder / RECORD, folder / "run"
        requested = RunJob(
            str(program),
            debug_level="intermediate",
            record=str(record),
            runs=runs,
        )
        _finish(JobRun(requested, run, force=True, worker=ahead, timeout=_PATIENCE))
    finally:
        ahead.close()
    return [str(folder), str(run)]


def _compare(folder: Path, variants: Sequence[Path]) -> None:
    """Write a comparison, with all programs measured side by side on our runtime."""
    page, sides = (
        folder / "comparison.html",
        [f"{one / PROGRAM},{one / RECORD}" for one in variants],
    )
    options = ["--measure", str(_BLOCKS), "--no-gap", "--html", str(page), "--force", "--top", "5"]
    text = _output_of(["compare", *sides, *options])
    (folder / "comparison.txt").write_text(text, encoding="utf-8")
    sys.stdout.write(text)


def _finish(running: JobRun) -> None:
    """Wait for a job and print one line per stage.

    Raises: DemoError if it did not finish
    """
    try:
        while running.outcome is None:
            for message in running.take(0.1):
                if isinstance(message, StageProgress) and message.seconds is not None:
                    name = f"{message.stage} {message.method}".rstrip()
                    sys.stdout.write(f"  {name:<20} {message.seconds:7.3f} s\n")
                    sys.stdout.flush()
        outcome = running.outcome
    finally:
        running.close()
    if outcome.ended is not Ended.FINISHED:
        raise DemoError(f"the module could not be compiled and run: {outcome.sentence}")


def _output_of(arguments: list[str]) -> str:
    """Return the output of a verb."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        etscope(arguments)
    return out.getvalue()


def _screenshots(folder: Path, files: Sequence[str]) -> int:
    from devtools_app.screenshots import window as shots
    from devtools_app.screenshots.job_panels import compare_and_measure

    shots.use_no_screen()
    count = 0
    with shots.open_window(files) as window:
        compare_and_measure(window)
        views = [view for view in shots.view_names() if view not in _NOT_MADE]
        for dark in (False, True):  # another theme styles every view anew, which takes seconds
            for view in views:
                name = f"{view}_{'dark' if dark else 'light'}.png"
                shots.write(window, shots.Shot(view, dark=dark), folder / name)
                count += 1
    return count


if __name__ == "__main__":
    sys.exit(main())
