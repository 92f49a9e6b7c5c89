"""Strings that end a generation: a possible prefix of one is held back."""

from __future__ import annotations

from collections.abc import Sequence


class StopStrings:
    """Text piece by piece, up to the first of some strings.

    Attributes:
        found: whether one of them has come
    """

    def __init__(self, strings: Sequence[str]) -> None:
        self._strings = [one for one in strings if one]
        self._held = ""
        self.found = False

    def add(self, piece: str) -> str:
        """Return the text that is certainly before the end."""
        if self.found:
            return ""
        text = self._held + piece
        places = [at for one in self._strings if (at := text.find(one)) >= 0]
        if places:
            self.found, self._held = True, ""
            return text[: min(places)]
        kept = max((_overlap(text, one) for one in self._strings), default=0)
        self._held = text[len(text) - kept :]
        return text[: len(text) - kept]

    def rest(self) -> str:
        """Return held back text that belongs to the output after all."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """Return how much of the end of a text is the start of another one."""
    sizes = range(min(len(text), len(stop) - 1), 0, -1)
    return next((size for size in sizes if text.endswith(stop[:size])), 0)
