"""Which paths are sweeps: detected by the first bytes, before the readers are loaded."""

from __future__ import annotations

import os
import re

RESULTS, POINTS = "results.json", "points"
_HEAD = 64  # bytes that show the kind of file, without reading the rest
_BEGIN = re.compile(rb'\s*\{\s*"sweep"\s*:')


def sweep_path(path: str) -> str:
    """Return the results file of a sweep at a path, or empty.

    Args:
        path: a results file, or the folder of a sweep
    """
    if os.path.isdir(path):
        inner = os.path.join(path, RESULTS)
        return inner if os.path.isdir(os.path.join(path, POINTS)) and _is_results(inner) else ""
    return path if path.endswith(".json") and _is_results(path) else ""


def _is_results(path: str) -> bool:
    if not os.path.isfile(path):  # not a pipe, which would be waited for
        return False
    try:
        with open(path, "rb") as stream:
            return _BEGIN.match(stream.read(_HEAD)) is not None
    except OSError:
        return False
