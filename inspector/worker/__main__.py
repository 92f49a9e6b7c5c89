"""The worker: ``python …/inspector/worker/__main__.py KIND``; runs one job and exits.

It is started by its path, not with ``-m``, so that nothing in the current folder can shadow one of
our packages.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import queue
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

sys.path[0] = str(Path(__file__).resolve().parents[2])

from inspector.jobs.messages import STOP  # noqa: E402
from inspector.jobs.table import (  # noqa: E402
    BISECTS,
    COMPARES,
    COMPILES,
    EXECUTES,
    SERVER,
    resolved,
)
from inspector.worker.channel import Channel, remove_folder  # noqa: E402
from inspector.worker.tasks import Task, perform  # noqa: E402
from schema.vendors.needs import use_own_commands  # noqa: E402

# Kinds of workers: the modules to import ahead, and the function that lists the names a job may
# use.
_AHEAD: dict[str, tuple[str, str, str]] = {
    COMPILES: ("compiling", "compile_job:work", "lowering:known_names"),
    SERVER: ("compiling", "compile_server:Loop", "lowering:known_names"),
    BISECTS: ("bisecting", "bisect_job:work", "lowering:known_names"),
    EXECUTES: ("running", "executing:work", "executing:known_names"),
    COMPARES: ("comparing", "gap_job:work", "gap_job:known_names"),
}


def main() -> int:
    """Import the libraries of the kind of worker, report available names, receive and run a job."""
    channel = Channel()
    faulthandler.enable(file=2)
    use_own_commands()  # vendors' compilers start programs that were installed beside them
    label, work, names = _AHEAD[sys.argv[1] if sys.argv[1:] else COMPILES]
    try:
        found = resolved(f"inspector.worker.{work}")
        known: Mapping[str, list[str]] = resolved(f"inspector.worker.{names}")()
    except Exception as error:  # noqa: BLE001 - torch that is not there, or is broken
        sentence = f"{label} needs torch 2.6 or newer: {type(error).__name__}: {error}"
        channel.send("failed", sentence=sentence, details=traceback.format_exc())
        return 1
    gc.freeze()  # the 340,000 objects of the imports: 0.2 s of each full collection of a job
    channel.send("ready", **known)
    if sys.argv[1:] == [SERVER]:
        return found(channel).run()
    return 0 if perform(*_taken(channel)) else 1


def _taken(channel: Channel) -> tuple[Mapping[str, Any], Task]:
    """Return the request of the parent, whose end is ours from now on."""
    request = channel.receive()
    folder, options = Path(request["folder"]), request["options"]
    if not options.get("live"):
        channel.leave_with_parent(request["folder"])
        return request, Task(folder, channel.send, options)
    commands: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    task = Task(folder, channel.send, options, command=commands.get)

    def take(command: dict[str, Any]) -> None:
        if command == STOP:
            task.stop.ask()
        else:
            commands.put(command)

    channel.follow(take, lambda: remove_folder(request))
    return request, task


def end(code: int) -> NoReturn:
    """Exit immediately: threads of the user's code may never end."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


if __name__ == "__main__":
    end(main())
