"""Finds OpenVINO's runtime: the package of this interpreter, or of one that ETScope made."""

from __future__ import annotations

import importlib.util
import sys
from typing import TypeAlias

from runtime.backends.openvino.host import LocalHost, OpenvinoError
from runtime.backends.openvino.process import ProcessHost
from schema.vendors.environments import python_with

Host: TypeAlias = "LocalHost | ProcessHost"
NAME = "openvino"
_INSTALL = "`etscope backends install openvino`, or `pip install openvino`, runs the payload itself"


class HostPool:
    """The host of this process.

    Attributes:
        here: whether the package may be imported into this process, which it may end
        apart: whether it runs in a process of its own all the same
    """

    here = apart = False
    host: Host | None = None


def is_installed() -> bool:
    """Return whether this interpreter has the package; nothing is imported."""
    return importlib.util.find_spec(NAME) is not None


def host() -> Host:
    """Return the host of this process, started on first use.

    Raises: OpenvinoError with the reason and a remedy
    """
    if HostPool.host is not None and HostPool.host.alive:
        return HostPool.host
    HostPool.host = _new()
    return HostPool.host


def _new() -> Host:
    if is_installed():
        return LocalHost() if HostPool.here and not HostPool.apart else ProcessHost(sys.executable)
    python = python_with(NAME)
    if python:
        return ProcessHost(python)
    raise OpenvinoError(f"the package openvino is not installed: {_INSTALL}")
