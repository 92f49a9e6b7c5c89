"""Files that are there whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import IO

import pytest

from schema.objects.atomic_file import write_atomically


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_write_that_ends_early_leaves_what_was_there(tmp_path: Path, error: BaseException) -> None:
    def write(stream: IO[bytes]) -> None:
        stream.write(b"begun")
        raise error

    path = tmp_path / "file"
    path.write_bytes(b"former")
    with pytest.raises((KeyboardInterrupt, OSError)):
        write_atomically(path, write)
    assert path.read_bytes() == b"former"
    assert list(tmp_path.iterdir()) == [path]
