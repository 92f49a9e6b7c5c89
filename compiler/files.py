"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO

_AHEAD = 16  # chunks that may wait to be written


def write_whole(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Write a file beside its place and move it there; a failure leaves what was there before.

    Raises: OSError naming the folder that is not there, or what went wrong
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder", str(path.parent))
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            write(stream)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def write_behind(stream: IO[bytes], chunks: Iterable[bytes | memoryview]) -> None:
    """Write what is made, each chunk while the next ones are being made.

    Raises: OSError; whatever the chunks raise
    """
    with ThreadPoolExecutor(1, "write behind") as pool:
        waiting: deque[Future[int]] = deque()
        try:
            for chunk in chunks:
                waiting.append(pool.submit(stream.write, chunk))
                if len(waiting) > _AHEAD:
                    waiting.popleft().result()
            for written in waiting:
                written.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
