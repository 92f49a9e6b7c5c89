"""The script that an interpreter chosen by the user runs: exports a ``.pt2`` file per method.

That interpreter may have none of our packages and another torch; ``exporter`` is loaded by its
path, so that no file in this folder hides a module of the user.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib.util
import json
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inspector.worker.exporter import Say


def _exporter() -> Any:  # noqa: ANN401 - a module
    """Return the module ``exporter``; report an interpreter without torch."""
    folder = Path(__file__).resolve().with_name("exporter")
    if sys.path[0] == str(folder.parent):
        del sys.path[0]  # the files in this folder are not modules of the user
    spec = importlib.util.spec_from_file_location(
        "etscope_exporter", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ImportError as missing:
        failed = {"sentence": f"{sys.executable} has no torch: {missing}", "blame": "usage"}
        sys.stdout.write(json.dumps({"type": "failed", **failed}) + "\n")
        sys.exit(1)
    return module


def _channel() -> Say:
    """Return a function that sends messages; redirect prints to standard error."""
    out, own = os.dup(1), os.getpid()
    os.dup2(2, 1)
    if hasattr(os, "register_at_fork"):  # forked processes must not keep the channel open
        os.register_at_fork(after_in_child=lambda: os.close(out))

    def notify(kind: str, **content: object) -> None:
        if os.getpid() != own:  # a copy may warn, but exits instead of answering
            if kind not in ("warning", "log"):
                os._exit(1)
            os.write(2, f"{content.get('text', '')}\n".encode("utf-8", "replace"))
            return
        data = json.dumps({"type": kind, **content}).encode() + b"\n"
        try:
            while data:
                data = data[os.write(out, data) :]
        except OSError:  # the user's code has closed it: no message can be sent
            os._exit(1)

    return notify


def _leave_with_parent() -> None:
    """Exit when standard input ends: the worker has exited."""
    own = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)

    def watch() -> None:
        with contextlib.suppress(OSError):
            while os.read(own, 4096):
                pass
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main(path: str, function: str, folder: str, methods: tuple[str, ...]) -> int:
    """Export a function into a folder; progress is reported in JSON lines on standard output."""
    exporter = _exporter()
    notify = _channel()
    faulthandler.enable(file=2)
    _leave_with_parent()
    exporter.redirect_logs(notify)
    try:
        found = exporter.exported(path, function, methods, notify)
        exporter.save_exported(found, Path(folder))
    except BaseException as error:  # noqa: BLE001 - whatever the user's code raises
        notify("failed", **exporter.failure(error))
        return 1
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1], sys.argv[2], sys.argv[3], tuple(sys.argv[4:]))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # threads of the user's code may never end
