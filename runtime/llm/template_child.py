"""Renders a chat template: run in a process of its own, whose memory and time are bounded.

A template comes with a model from anywhere, and short ones ask for any amount of either: filling a
string to a width, replacing its letters, copying lists.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any

SENTENCE = 3  # exit code where the output is an error in words
MOST_LETTERS = 16_000_000  # of a text
_MOST_WORDS = 300  # letters of an error that a template makes


class _RefusedError(Exception):
    """A message of the template itself, or a text that is too long."""


def _short(words: str) -> str:
    """Return words of a template as part of a sentence: in one line, and not long."""
    return " ".join(words[: 2 * _MOST_WORDS].split())[:_MOST_WORDS]


def _refuse(words: object) -> None:
    sentence = f"the chat template refuses: {_short(str(words))}"
    raise _RefusedError(sentence)


def _now(form: str) -> str:
    return datetime.now().strftime(form)


def _json(
    value: Any,  # noqa: ANN401 - of a template
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Return JSON without the escapes for HTML that a template engine would add."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def _rendered(template: str, given: Mapping[str, Any]) -> str:
    from jinja2.ext import Extension
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """The tag around the answers of a model in training; it changes nothing."""

        tags = {"generation"}  # noqa: RUF012 - as the library declares it

        def parse(self, parser: Any) -> Any:  # noqa: ANN401 - as the library declares it
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    environment: Any = ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.loopcontrols", Generation],
    )
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = _now
    environment.filters["tojson"] = _json
    pieces: list[str] = []
    letters = 0
    for piece in environment.from_string(template).generate(**given):
        pieces.append(piece)
        letters += len(piece)
        if letters > MOST_LETTERS:
            sentence = f"the chat template makes more than {MOST_LETTERS:,} letters"
            raise _RefusedError(sentence)
    return "".join(pieces)


def _bound_memory(size: int) -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (size, size))
    except (ImportError, OSError, ValueError):
        return  # not on every system; the parent watches, too


def _answer(template: str, given: Mapping[str, Any]) -> str:
    """Return the text of a template.

    Raises: _RefusedError, MemoryError
    """
    try:
        return _rendered(template, given)
    except (_RefusedError, MemoryError):
        raise
    except Exception as error:  # of any expression in it
        short = _short(str(error))
        of_jinja = type(error).__module__.startswith("jinja2.")
        words = ": ".join(one for one in ("" if of_jinja else type(error).__name__, short) if one)
        sentence = f"the chat template fails: {words}"
        raise _RefusedError(sentence) from error


def main() -> int:
    """Answer the request on standard input by a text, or a refusal, on standard output."""
    request = json.load(sys.stdin.buffer)
    _bound_memory(request["memory"])
    sys.path[:] = request["path"]
    try:
        found, code = _answer(request["template"], request["given"]), 0
    except _RefusedError as error:
        found, code = str(error), SENTENCE
    except MemoryError:
        return SENTENCE
    sys.stdout.buffer.write(found.encode("utf-8", "surrogatepass"))
    return code


if __name__ == "__main__":
    sys.exit(main())
