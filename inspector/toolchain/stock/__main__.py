"""Serves requests to this interpreter's ``executorch``: ``python …/stock/__main__.py``.

A request is a line of JSON on standard input, which stays open for as long as the parent waits.
Progress is reported in lines of JSON on the original standard output; prints go to standard error.
"""

from __future__ import annotations

import faulthandler
import importlib.util
import json
import os
import platform
import queue
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
NEEDED = ("torch", "executorch")
_OURS = ("compiler", "inspector", "schema")


def channel() -> Callable[..., None]:
    """Return a function that sends messages; redirect prints to standard error."""
    out, own = os.dup(1), os.getpid()
    os.dup2(2, 1)
    lock = threading.Lock()
    if hasattr(os, "register_at_fork"):  # forked processes must not keep the channel open
        os.register_at_fork(after_in_child=lambda: os.close(out))

    def notify(kind: str, **content: object) -> None:
        if os.getpid() != own:  # a copy may warn, but exits instead of answering
            if kind not in ("warning", "log"):
                os._exit(1)
            os.write(2, f"{content.get('text', '')}\n".encode("utf-8", "replace"))
            return
        data = json.dumps({"type": kind, **content}, default=str).encode() + b"\n"
        with lock:
            while data:
                data = data[os.write(out, data) :]

    return notify


def questions() -> queue.Queue[bytes]:
    """Return the stream of requests; this process exits when the parent exits."""
    own = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    found: queue.Queue[bytes] = queue.Queue()

    def watch() -> None:
        with os.fdopen(own, "rb") as stream:
            for line in stream:
                found.put(line)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
    return found


def let_parts_be_found() -> None:
    """Make the files of this folder importable without running their parent packages."""
    root = HERE.parents[2]
    for name in ("inspector", "inspector.toolchain", "inspector.worker", "compiler", "schema"):
        module = types.ModuleType(name)
        module.__path__ = [str(root.joinpath(*name.split(".")))]
        sys.modules[name] = module


def forget_names() -> None:
    """Remove our packages from the module table; the user's modules may have these names."""
    for name in [name for name in sys.modules if name.split(".")[0] in _OURS]:
        del sys.modules[name]


def main() -> int:
    """Handle requests until the input ends."""
    notify = channel()
    notify("hello", python=platform.python_version(), executable=sys.executable)
    faulthandler.enable(file=2)
    if sys.path and Path(sys.path[0] or ".").resolve() == HERE:
        del sys.path[0]  # the files in this folder are not modules of the user
    asked = questions()
    first = asked.get()
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        notify("missing", packages=missing)
        return 1
    let_parts_be_found()
    from inspector.toolchain.stock import answering
    from schema.vendors.needs import use_own_commands

    use_own_commands()  # vendors' compilers start programs that were installed beside them
    forget_names()
    while True:
        answering.answer(json.loads(first), notify)
        first = asked.get()


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # threads of the user's code may never end
