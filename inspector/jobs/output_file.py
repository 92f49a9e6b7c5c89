"""The file a job writes: it appears when the job has finished, or not at all."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from inspector.jobs.output_folder import HIDDEN, FolderError, JobOutput, refused

MADE = "made"  # name of the file in the working folder


@dataclass(frozen=True, slots=True)
class OutputFile(JobOutput):
    """A file; its name in the working folder is ``MADE``."""

    def commit(self) -> None:
        """Move the file to its target.

        Raises: FolderError for a disk error; the previous file is kept
        """
        try:
            self.target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(self.working / MADE, self.target)
        except OSError as error:
            raise refused(self.target, error) from error
        finally:
            self.discard()

    def where(self) -> dict[str, str]:
        """Return the path as an entry of the job's result."""
        return {"file": str(self.target)}


def check_file(target: Path, *, force: bool) -> None:
    """Raise FolderError if a file may not be written."""
    try:
        there, folder = target.exists() or target.is_symlink(), target.is_dir()
    except OSError as error:
        raise refused(target, error) from error
    if folder:
        raise FolderError(f"{target} is a folder, not a file", usage=True)
    if there and not force:
        raise FolderError(f"{target} exists; --force replaces it", usage=True)


def prepare_file(target: Path, *, force: bool) -> OutputFile:
    """Return a working folder for a file, without changing the file yet.

    Args:
        target: the file
        force: whether it may be replaced

    Raises: FolderError if it exists without force, or for a disk error
    """
    check_file(target, force=force)
    try:
        place = target.absolute().parent
        while not place.is_dir():
            place = place.parent
        working = Path(tempfile.mkdtemp(dir=place, prefix=HIDDEN))
    except OSError as error:
        raise refused(target, error) from error
    return OutputFile(target, working)
