"""One job at a time on a device, so that jobs do not disturb each other's times."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Generator
from typing import IO

from inspector.devices.device import Device, devices_folder
from inspector.devices.errors import DeviceError

_STEP = 0.2  # seconds between two attempts


@contextlib.contextmanager
def locked(device: Device, waiting: Callable[[str], object]) -> Generator[None, None, None]:
    """Hold the lock of a device; the system releases it when the process ends.

    Args:
        device: of this machine's user
        waiting: called once with a sentence if another job holds the lock

    Raises: DeviceError if the lock cannot be created
    """
    path = devices_folder() / f"{device.name}.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("a+b")
    except OSError as error:
        raise DeviceError(f"{path}: {error.strerror}") from error
    with stream:
        if not _try(stream):
            waiting(f"another job uses {device.name}{_holder(stream)}: waiting until it ends")
            while not _try(stream):
                time.sleep(_STEP)
        with contextlib.suppress(OSError):
            stream.truncate(0)
            stream.write(str(os.getpid()).encode())
            stream.flush()
        yield


def _holder(stream: IO[bytes]) -> str:
    with contextlib.suppress(OSError):
        stream.seek(0)
        text = stream.read(20).decode("ascii", "replace").strip()
        return f" (process {text})" if text.isdigit() else ""
    return ""


if os.name == "posix":
    import fcntl

    def _try(stream: IO[bytes]) -> bool:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

else:
    import msvcrt

    def _try(stream: IO[bytes]) -> bool:
        stream.seek(1 << 20)  # beyond the text, which others may read
        try:
            msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True
