"""Text of tokens one by one, as it is decoded whole."""

from __future__ import annotations

from runtime.llm.tokenizers import Tokenizer

_INVALID = "\ufffd"
_MOST_HELD = 32  # tokens without a certain end, as of random bytes: decoding stays linear


class TextStream:
    """Text of tokens one by one: characters appear when all of their bytes are there."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._tokens: list[int] = []
        # Spaces depend on the tokens before: those from `begin` to `shown` are decoded again.
        self._begin = self._shown = 0
        self._given = 0  # characters behind `shown` that were returned

    def add(self, token: int) -> str:
        """Return the text that is certain by now, empty while a character is incomplete."""
        self._tokens.append(token)
        new = self._new()
        # Some decoders show bytes before an incomplete character as invalid too.
        certain = new.rstrip(_INVALID)
        if len(self._tokens) - self._shown >= _MOST_HELD:
            certain = new
        found, self._given = certain[self._given :], max(self._given, len(certain))
        if new and certain == new:
            if self._anchors():
                self._begin = self._shown
            self._shown, self._given = len(self._tokens), 0
        return found

    def _anchors(self) -> bool:
        """Return whether what was shown last may begin what is decoded again.

        Decoders take spaces from the start of a text: more than one after a start of spaces alone.
        """
        if len(self._tokens) - self._begin >= _MOST_HELD:
            return True
        return bool(self._tokenizer.decode(self._tokens[self._shown :]).strip())

    def rest(self) -> str:
        """Return what is left at the end: U+FFFD for a character that stays incomplete."""
        found = self._new()[self._given :]
        self._begin = self._shown = len(self._tokens)
        self._given = 0
        return found

    def _new(self) -> str:
        """Return the text of the tokens behind ``shown``."""
        before = self._tokenizer.decode(self._tokens[self._begin : self._shown])
        whole = self._tokenizer.decode(self._tokens[self._begin :])
        if whole.startswith(before):
            return whole[len(before) :]
        return self._tokenizer.decode(self._tokens[self._shown :])
