"""Lines of a worker: a result of many rows arrives whole, output without an end in pieces."""

from __future__ import annotations

import json
import os
import threading

from inspector.jobs.process import LONGEST_MESSAGE, lines_of


def _read(data: bytes, longest: int) -> list[str]:
    read, write = os.pipe()

    def fill() -> None:
        with os.fdopen(write, "wb") as stream:
            stream.write(data)

    writer = threading.Thread(target=fill)
    writer.start()
    with os.fdopen(read, "rb") as stream:
        found = list(lines_of(stream, longest))
    writer.join()
    return found


def test_a_result_with_a_row_for_each_token_is_one_message() -> None:
    rows = [{"position": at, "text": "ä" * 40, "loss": at / 7} for at in range(20_000)]
    message = json.dumps({"kind": "finished", "rows": rows}, ensure_ascii=False)
    assert len(message) > 1 << 20
    found = _read(f"before\n{message}\nafter".encode(), LONGEST_MESSAGE)
    assert found == ["before", message, "after"]


def test_output_without_an_end_comes_in_pieces() -> None:
    found = _read(b"x" * 1_000_000 + b"\nlast\n", 100_000)
    assert "".join(found) == "x" * 1_000_000 + "last"
    assert max(map(len, found)) < 300_000
    assert found[-1] == "last"
