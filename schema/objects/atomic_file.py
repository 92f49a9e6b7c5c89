"""Files are replaced atomically: readers see the old or the complete new content, never a part."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

_LONGEST = 40  # characters of the name that the temporary file repeats; file systems allow 255


def write_atomically(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a temporary file next to the target through a callback, then rename it.

    Args:
        path: file to write or replace; its folder must exist
        write: called with the open file; if it raises, the target is not changed

    Raises: OSError naming the file
    """
    import tempfile  # takes as long to import as the rest of the command line

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
