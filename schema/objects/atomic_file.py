"""Files are replaced atomically: there is the former one or the whole new one, never a part."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

_LONGEST = 40  # characters of the name that the temporary file repeats; file systems allow 255


def write_atomically(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Let a function write a file beside its place, and move it there at the end.

    Args:
        path: file to write or replace; its folder must exist
        write: gets the open file; an exception in it leaves what was there before

    Raises: OSError naming the file
    """
    import tempfile  # takes as long to load as the rest of the command line

    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:_LONGEST]}.")
        with os.fdopen(handle, "wb") as stream:
            write(stream)
        os.chmod(temporary, usual_mode(0o666))
        os.replace(temporary, path)
        temporary = ""
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def usual_mode(mode: int) -> int:
    """Return the permissions of files that a user creates; temporary ones are the owner's only."""
    mask = os.umask(0)
    os.umask(mask)
    return mode & ~mask
