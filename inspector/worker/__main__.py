"""The worker: ``python …/inspector/worker/__main__.py KIND``; does one job and ends.

It is started by its path, not with ``-m``, so that nothing in the folder it is started from can be
taken for one of our packages.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

sys.path[0] = str(Path(__file__).resolve().parents[2])

from inspector.jobs.bisect import bisect_from  # noqa: E402
from inspector.jobs.executing import executing_from  # noqa: E402
from inspector.jobs.gap import gap_from  # noqa: E402
from inspector.jobs.process import BISECTS, COMPARES, EXECUTES, SERVER  # noqa: E402
from inspector.recipes.compile_job import EXECUTORCH, job_from  # noqa: E402
from inspector.worker.channel import Channel  # noqa: E402


def main() -> int:
    """Say what is known, take a job, do it."""
    channel = Channel()
    faulthandler.enable(file=2)
    kind = sys.argv[1] if sys.argv[1:] else ""
    try:
        known = _load(kind)
    except Exception as error:  # noqa: BLE001 - torch that is not there, or is broken
        what = _WORDS.get(kind, "compiling")
        sentence = f"{what} needs torch 2.6 or newer: {type(error).__name__}: {error}"
        channel.send("failed", sentence=sentence, details=traceback.format_exc())
        return 1
    channel.send("ready", **known)
    if kind == SERVER:
        from inspector.worker.compile_server import Loop

        return Loop(channel).run()
    request = channel.receive()
    if request.get("live"):
        from inspector.worker.live_steps import step_live

        return step_live(channel, request)
    channel.leave_with_parent(request["folder"])
    return _WORK.get(kind, _compile)(channel, request)


def _load(kind: str) -> dict[str, list[str]]:
    """Import what the job needs and return the names it may use."""
    if kind == EXECUTES:
        from inspector.worker import executing

        return executing.known_names()
    if kind == COMPARES:
        from inspector.worker import gap_job as _

        return {}
    if kind == BISECTS:
        from inspector.worker import bisect_job as _  # noqa: F401 - loads torch
    from inspector.worker import lowering

    return lowering.known_names()


def _compile(channel: Channel, request: dict[str, Any]) -> int:
    if request["job"].get("toolchain") == EXECUTORCH:
        from inspector.worker.toolchain_answers import compile_elsewhere

        return compile_elsewhere(channel.send, request)
    from inspector.worker import compile_job, exporter, lowering
    from schema.errors import FormatError

    try:
        job = job_from(request["job"])
        lowering.check_words(job)
        way, stages = request.get("guard", "off"), bool(request.get("stages"))
        folder = Path(request["folder"])
        result = compile_job.compile_into(job, folder, channel.send, way, stages=stages)
    except compile_job.ReportedError:
        return 1  # by the other interpreter
    except (compile_job.UnreadableError, FormatError) as error:
        channel.send("failed", **{**exporter.failure(error), "blame": "unreadable"})
        return 1
    except BaseException as error:  # noqa: BLE001 - whatever the user's code raises
        channel.send("failed", **exporter.failure(error))
        return 1
    channel.send("finished", result=result)
    return 0


def _execute(channel: Channel, request: dict[str, Any]) -> int:
    if request["job"].get("toolchain") == EXECUTORCH:
        from inspector.worker.toolchain_answers import run_elsewhere

        return run_elsewhere(channel.send, request)
    from inspector.worker import executing

    try:
        job = executing_from(request["job"])
        result = executing.execute(job, Path(request["folder"]), channel.send)
    except BaseException as error:  # noqa: BLE001 - whatever kernels and the user's code raise
        channel.send("failed", **executing.failure(error))
        return 1
    channel.send("finished", result=result)
    return 0


def _compare(channel: Channel, request: dict[str, Any]) -> int:
    from inspector.worker import gap_job

    try:
        job = gap_from(request["job"])
        result = gap_job.compare(job, Path(request["folder"]), channel.send)
    except BaseException as error:  # noqa: BLE001 - whatever kernels raise
        channel.send("failed", **gap_job.failure(error))
        return 1
    channel.send("finished", result=result)
    return 0


def _bisect(channel: Channel, request: dict[str, Any]) -> int:
    if request["job"]["compile"].get("toolchain") == EXECUTORCH:
        from inspector.worker.toolchain_answers import bisect_elsewhere

        return bisect_elsewhere(channel.send, request)
    from inspector.worker import bisect_job, compile_job, executing, lowering

    try:
        job = bisect_from(request["job"])
        lowering.check_words(job.compile)
        result = bisect_job.bisect(job, Path(request["folder"]), channel.send, request)
    except compile_job.ReportedError:
        return 1  # by the other interpreter
    except compile_job.UnreadableError as error:
        channel.send("failed", **{**executing.failure(error), "blame": "unreadable"})
        return 1
    except BaseException as error:  # noqa: BLE001 - whatever the user's code raises
        channel.send("failed", **executing.failure(error))
        return 1
    channel.send("finished", result=result)
    return 0


_WORDS = {EXECUTES: "running", COMPARES: "comparing", BISECTS: "bisecting"}
_WORK = {EXECUTES: _execute, COMPARES: _compare, BISECTS: _bisect}


def end(code: int) -> NoReturn:
    """End the process at once: threads of the user's code may never end."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


if __name__ == "__main__":
    end(main())
