"""Named data that stays in a file until the program is written."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import IO, Any

from typing_extensions import Self

_CHUNK = 8 << 20  # bytes read at once


class FileBackedData:
    """A file whose content is a named blob.

    Args:
        path: of the file; it must not change while this is used
        cleanup: delete the file when this is closed or no longer referenced
        sha256: the digest of the content, if it is known already

    Raises: FileNotFoundError
    """

    def __init__(
        self, path: str | os.PathLike[str], cleanup: bool = False, sha256: bytes | None = None
    ) -> None:
        self._path = Path(path)
        self._size = self._path.stat().st_size
        self._sha256 = sha256
        remove = weakref.finalize(self, self._path.unlink, missing_ok=True) if cleanup else None
        self._remove = remove

    @classmethod
    def move_from(cls, path: str | os.PathLike[str], sha256: bytes | None = None) -> Self:
        """Rename a file within its folder and return its content; the file is deleted on close."""
        descriptor, own = tempfile.mkstemp(".data", ".etscope_", Path(path).parent)
        os.close(descriptor)
        Path(path).replace(own)
        return cls(own, cleanup=True, sha256=sha256)

    def __len__(self) -> int:
        """Return the size in bytes."""
        return self._size

    def prefix(self, size: int) -> bytes:
        """Return the first bytes."""
        with self._path.open("rb") as file:
            return file.read(size)

    def sha256(self) -> bytes:
        """Return the digest of the content."""
        if self._sha256 is None:
            digest = hashlib.sha256()
            with self._path.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
            self._sha256 = digest.digest()
        return self._sha256

    def to_bytes(self) -> bytes:
        """Return the content."""
        return self._path.read_bytes()

    def write_to_file(self, outfile: IO[bytes]) -> None:
        """Write the content to a stream."""
        with self._path.open("rb") as file:
            shutil.copyfileobj(file, outfile, _CHUNK)

    def close(self) -> None:
        """Delete the file if this object created it."""
        if self._remove is not None:
            self._remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def in_memory(data: Any) -> Any:  # noqa: ANN401 - bytes, or an object with a file
    """Return the bytes of a blob."""
    return data.to_bytes() if isinstance(data, FileBackedData) else data
