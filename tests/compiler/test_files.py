"""Files that are written while their content is made."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from compiler.files import write_behind, write_whole


class _Full(io.BytesIO):
    """A disk that takes ten writes."""

    taken = 0

    def write(self, data: object, /) -> int:
        self.taken += 1
        if self.taken > 10:
            raise OSError(28, "No space left on device")
        return super().write(data)  # pyright: ignore[reportArgumentType]


def test_chunks_are_written_in_their_order_by_another_thread() -> None:
    writers: set[int] = set()

    class Stream(io.BytesIO):
        def write(self, data: object, /) -> int:
            writers.add(threading.get_ident())
            return super().write(data)  # pyright: ignore[reportArgumentType]

    stream = Stream()
    write_behind(stream, (bytes([number % 256]) * number for number in range(500)))
    assert stream.getvalue() == b"".join(bytes([n % 256]) * n for n in range(500))
    assert threading.get_ident() not in writers


@pytest.mark.parametrize("count", [11, 200])
def test_write_that_fails_is_raised_however_much_is_to_come(count: int) -> None:
    with pytest.raises(OSError, match="No space left"):
        write_behind(_Full(), (b"x" for _ in range(count)))


def test_chunk_that_cannot_be_made_leaves_what_was_there(tmp_path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"begun"
        raise KeyboardInterrupt

    def write(stream: IO[bytes]) -> None:
        write_behind(stream, chunks())

    path = tmp_path / "file"
    path.write_bytes(b"former")
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        write_whole(path, write)
    assert path.read_bytes() == b"former"
    assert list(tmp_path.iterdir()) == [path]
    assert threading.active_count() == before
