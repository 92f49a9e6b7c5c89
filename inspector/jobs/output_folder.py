"""The folder of a job: its files appear together after success, otherwise none of them."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from schema.objects.atomic_file import usual_mode

HIDDEN = ".etscope-"  # prefix of working folders
_FULL = (errno.ENOSPC, errno.EDQUOT)


class FolderError(OSError):
    """A folder that cannot be written to, as one sentence.

    Attributes:
        usage: whether the folder is wrong, as opposed to a disk error
    """

    def __init__(self, sentence: str, *, usage: bool = False) -> None:
        self.usage = usage
        super().__init__(sentence)


@dataclass(frozen=True, slots=True)
class JobOutput:
    """A target and the hidden folder on the same disk in which it is written first.

    Attributes:
        target: final path
        working: temporary path
    """

    target: Path
    working: Path

    def discard(self) -> None:
        """Remove the working folder."""
        shutil.rmtree(self.working, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class OutputFolder(JobOutput):
    """A folder of files.

    Attributes:
        owned: names that are removed from the target unless rewritten
    """

    owned: tuple[str, ...] = ()

    def commit(self) -> None:
        """Move the files to the target.

        Raises: FolderError for a disk error, after restoring the previous files
        """
        try:
            if self.target.exists():
                _move_files(self.working, self.target, self.owned)
            else:
                self.target.parent.mkdir(parents=True, exist_ok=True)
                self.working.chmod(usual_mode(0o777))
                os.replace(self.working, self.target)
        except OSError as error:
            raise refused(self.target, error) from error
        finally:
            self.discard()

    def where(self) -> dict[str, str]:
        """Return the place as a member of the job's result."""
        return {"folder": str(self.target)}


class Scratch:
    """A temporary folder, deleted on close."""

    def __init__(self) -> None:
        """Create the folder.

        Raises: OSError if the disk is full
        """
        self._folder = Path(tempfile.mkdtemp(prefix=HIDDEN))

    @property
    def working(self) -> Path:
        """Return the folder."""
        return self._folder

    def commit(self) -> None:
        """Do nothing: files stay in the folder."""

    def discard(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def where(self) -> dict[str, str]:
        """Return the place as a member of the job's result."""
        return {"folder": str(self._folder)}


def check_folder(target: Path, *, force: bool) -> None:
    """Raise FolderError if a folder may not be written into."""
    try:
        there, folder = target.exists(), target.is_dir()
        full = folder and any(target.iterdir())
    except OSError as error:
        raise refused(target, error) from error
    if there and not folder:
        raise FolderError(f"{target} is a file, not a folder", usage=True)
    if not there and target.is_symlink():
        raise FolderError(
            f"{target} is a link to {target.readlink()}, which is not there", usage=True
        )
    if full and not force:
        raise FolderError(f"{target} exists and is not empty; --force writes into it", usage=True)


def prepare_folder(target: Path, *, force: bool, owned: tuple[str, ...] = ()) -> OutputFolder:
    """Return a working folder next to or below a target, without changing the target yet.

    Args:
        target: may exist; otherwise created on commit
        force: whether files in it may be replaced; others are kept
        owned: names of the job's files: stale ones of a former job are removed

    Raises: FolderError if it exists and is not empty without force, or for a disk error
    """
    check_folder(target, force=force)
    try:
        place = target.absolute()
        while not place.is_dir():
            place = place.parent
        working = Path(tempfile.mkdtemp(dir=place, prefix=HIDDEN))
    except OSError as error:
        raise refused(target, error) from error
    return OutputFolder(target, working, owned)


def refused(target: Path, error: OSError) -> FolderError:
    """Return the error of a disk that refuses, as one sentence."""
    return FolderError(f"{target} cannot be written: {error.strerror or error}")


def unwritten(path: Path, error: OSError, nbytes: int | None = None) -> str:
    """Return why a file of a job could not be written: its name, its folder and what is lacking.

    Args:
        path: of the file, perhaps in a hidden folder
        error: of the system
        nbytes: size of the file, None where it is unknown
    """
    hidden = path.parent.name.startswith(HIDDEN)
    place = path.parent.parent if hidden else path.parent
    return f"{path.name} cannot be written in {place}: {disk_reason(error, nbytes)}"


def disk_reason(error: OSError, nbytes: int | None = None) -> str:
    """Return the message of the system, of a full disk with the bytes that it had no room for."""
    words = error.strerror or str(error)
    return words if error.errno not in _FULL or not nbytes else f"{words} for {nbytes:,} bytes"


def _check_places(working: Path, target: Path) -> None:
    """Raise OSError if a folder has the name of a file to write."""
    for path in working.iterdir():
        place = target / path.name
        if place.is_dir() and not place.is_symlink() and not path.is_dir():
            raise IsADirectoryError(errno.EISDIR, f"{path.name} in it is a folder")


def _move_files(working: Path, target: Path, owned: tuple[str, ...]) -> None:
    """Move files into a folder; replaced files are restored if a move fails."""
    _check_places(working, target)
    kept = Path(tempfile.mkdtemp(dir=target, prefix=HIDDEN))
    moved: list[Path] = []
    written = sorted(working.iterdir())
    old = {target / name for name in owned} - {target / path.name for path in written}
    try:
        for place in sorted(path for path in old if path.is_file()):
            moved.append(place)
            os.replace(place, kept / place.name)
        for path in written:
            place = target / path.name
            if place.exists() or place.is_symlink():
                os.replace(place, kept / path.name)
            moved.append(place)
            os.replace(path, place)
    except BaseException:
        for place in moved:
            with contextlib.suppress(OSError):
                place.unlink(missing_ok=True)
            if (kept / place.name).exists():
                os.replace(kept / place.name, place)
        raise
    finally:
        shutil.rmtree(kept, ignore_errors=True)
