"""Detects whether the real kernels can be used, once, in a separate process."""

from __future__ import annotations

import socket
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch

from runtime.backends.xnnpack.native.process import KernelProcess, library_folder
from runtime.backends.xnnpack.native.self_test import probe
from runtime.errors import ExecutionError

# Build identifiers of the kernels whose enum values and signatures were verified.
KNOWN_BUILDS = {
    "78e8776e742aaec2e0f3c3ef26613bab845df743a5047533d6900dea608b1385": "executorch 1.5.1",
}


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether the real kernels can be used.

    Attributes:
        folder: of the library, None where it cannot be used
        reason: why it cannot be used, one sentence; empty when it can
        release: of the kernels
    """

    folder: Path | None
    reason: str = ""
    release: str = ""


@lru_cache(maxsize=1)
def availability() -> Availability:
    """Return whether the kernels of the installed wheel can be used; the result is cached."""
    return examine(library_folder())


def examine(folder: Path | None) -> Availability:
    """Return whether the kernels of a folder can be used.

    The library is opened, identified and compared with torch's kernels in a child process, so that
    a crash stays there.
    """
    if sys.platform == "win32" or not hasattr(socket, "send_fds"):
        return Availability(None, "The real kernels are not supported on this system.")
    if folder is None:
        return Availability(None, "No installed executorch wheel has the XNNPACK library.")
    try:
        process = KernelProcess(folder, 1)
    except ExecutionError as error:
        return Availability(None, f"The XNNPACK library cannot be opened: {error.reason}.")
    try:
        if process.build not in KNOWN_BUILDS:
            found = f"{process.build[:12]}…" if process.build else "none"
            return Availability(None, f"The XNNPACK library is an unknown build ({found}).")
        wrong = probe(process)
    except ExecutionError as error:
        wrong = error.reason
    finally:
        process.close()
    if wrong:
        return Availability(None, f"The XNNPACK library failed its self-test: {wrong}.")
    return Availability(folder, release=KNOWN_BUILDS[process.build])


def threads() -> int:
    """Return how many threads the kernels use: as many as torch."""
    return torch.get_num_threads()
