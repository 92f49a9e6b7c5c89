"""Rows of the tokens of a text, one a line of a file, so that a comparison can be resumed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from inspector.jobs.resuming import restart_words
from inspector.worker.exporter import AnswerError

MOST_ROWS = 10_000  # that a report has; a file has all
_KIND, _VERSION = "llm gap", 1

Row = Mapping[str, Any]


class TokenSums:
    """Adds rows up in bounded memory.

    Attributes:
        rows: the first ones
        count: of all
    """

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.count = 0
        self._agreeing = 0
        self._kl = self._worst = self._loss = self._reference_loss = 0.0
        self._read = 0
        self._difference: int | None = None
        self._unexplained: int | None = None

    def add(self, row: Row) -> None:
        """Add the row of one token."""
        self.count += 1
        if len(self.rows) < MOST_ROWS:
            self.rows.append(row)
        self._agreeing += row["top1"]
        self._kl += row["kl"]
        self._worst = max(self._worst, row["max_abs"])
        if row["loss"] is not None:
            self._read += 1
            self._loss += row["loss"]
            self._reference_loss += row["reference_loss"]
        if not row["top1"]:
            self._note_difference(row)

    def _note_difference(self, row: Row) -> None:
        if self._difference is None:
            self._difference = row["position"]
        if self._unexplained is None and row["margin"] > 2 * row["max_abs"]:
            self._unexplained = row["position"]

    def summary(self) -> dict[str, Any]:
        """Return agreement and perplexities; the first call whose choice is beyond its error."""
        return {
            "rows": self.rows,
            "row_count": self.count,
            "top1_agreement": self._agreeing / self.count,
            "mean_kl": self._kl / self.count,
            "max_abs": self._worst,
            "perplexity": math.exp(self._loss / self._read),
            "reference_perplexity": math.exp(self._reference_loss / self._read),
            "first_difference": self._difference,
            "first_unexplained": self._unexplained,
        }


class TokenRows:
    """The rows of a comparison: their sums, and a file of all where one is given.

    Attributes:
        sums: of the rows so far
        known: number of parts of the text that an earlier call has read
        restart: why the rows of an earlier call are not used, a sentence or empty
    """

    def __init__(self) -> None:
        self.sums, self.known, self.restart = TokenSums(), 0, ""
        self._file: IO[bytes] | None = None

    def add(self, row: Row) -> None:
        """Add the row of one token; it is in the file at once."""
        self.sums.add(row)
        if self._file is not None:
            self._file.write(_line(row))
            self._file.flush()

    @contextmanager
    def stored(
        self, path: str, key: Mapping[str, str], parts: Sequence[Sequence[int]]
    ) -> Generator[None]:
        """Begin a file of the rows, or go on behind the whole parts in it.

        Args:
            path: of the file, empty for none
            key: what is compared, by its name; rows of something else are not used
            parts: the tokens of the text, each part read with an empty cache

        Raises: AnswerError if the file is of another kind, OSError
        """
        if not path:
            yield
            return
        Path(path).touch()
        with Path(path).open("r+b") as self._file:
            self._resume(self._file, path, key, parts)
            yield

    def _resume(
        self,
        file: IO[bytes],
        path: str,
        key: Mapping[str, str],
        parts: Sequence[Sequence[int]],
    ) -> None:
        before = _key(file, path)
        changed = restart_words(before, key)
        if changed:
            self.restart = changed if before else ""
            file.seek(0)
            file.write(_line({_KIND: _VERSION, "key": key}))
        begin = end = file.tell()
        while not changed and self.known < len(parts) and _is_whole(file, parts[self.known]):
            self.known += 1
            end = file.tell()
        file.truncate(end)
        file.seek(begin)
        for line in file:
            self.sums.add(json.loads(line))


def _key(file: IO[bytes], path: str) -> Mapping[str, str]:
    """Return what the rows of a file are of; nothing for an empty file or one that was cut."""
    first = file.readline()
    if not first.endswith(b"\n"):
        return {}
    try:
        found = json.loads(first)
        if found[_KIND] == _VERSION:
            return dict(found["key"])
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise AnswerError(f"{path} has no tokens of this comparison; --force starts over")


def _is_whole(file: IO[bytes], part: Sequence[int]) -> bool:
    """Return whether the next rows are those of a part that was read to its end."""
    last = len(part) - 1
    return all(_is_row(file.readline(), token, place == last) for place, token in enumerate(part))


def _is_row(line: bytes, token: int, is_last: bool) -> bool:
    if not line.endswith(b"\n"):
        return False
    try:
        row = json.loads(line)
        return row["token"] == token and (row["loss"] is None) is is_last
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


def _line(content: Row) -> bytes:
    return (json.dumps(content) + "\n").encode("ascii")


def tokens_left(
    parts: Sequence[list[int]], known: int, read: Callable[[list[int]], Iterator[Any]]
) -> Iterator[tuple[int, list[int], Any]]:
    """Return each token's place in its part, the part, and what is read behind it."""
    for part in parts[known:]:
        for place, wanted in enumerate(read(part)):
            yield place, part, wanted
