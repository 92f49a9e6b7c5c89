"""JSON as flatc prints it: strict, or with bare names, nan and inf, and escaped bytes."""

from __future__ import annotations

import json
import re
from typing import Any

from schema.errors import FormatError

# Limit of JSON input; the parsed objects need about ten times as much memory.
MOST_BYTES = 64 << 20
_TOKEN = re.compile(
    r'(?P<text>"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z))'  # to the end of the file if it is not closed
    r"|(?P<number>-?[0-9][0-9.eE+-]*)"
    r"|(?P<word>-?[A-Za-z_][A-Za-z0-9_]*)",
    re.DOTALL,
)
_BYTE = re.compile(r"(?<!\\)((?:\\\\)*)\\x([0-9A-Fa-f]{2})")
_WORDS = {
    "true": "true",
    "false": "false",
    "null": "null",
    "nan": "NaN",
    "-nan": "NaN",
    "inf": "Infinity",
    "-inf": "-Infinity",
}


def read_json(data: memoryview) -> Any:  # noqa: ANN401 - any JSON
    """Return the parsed JSON.

    Raises: FormatError if it is not JSON, is nested deeper than Python follows, or too large
    """
    if len(data) > MOST_BYTES:
        found = f"{len(data):,} bytes; convert it with flatc --binary"
        raise FormatError(f"JSON of at most {MOST_BYTES:,} bytes", found, offset=MOST_BYTES)
    try:
        return json.loads(_TOKEN.sub(_strict, bytes(data).decode("utf-8-sig")))
    except UnicodeDecodeError as error:
        raise FormatError("JSON in UTF-8", str(error.reason), offset=error.start) from None
    except RecursionError:
        raise FormatError("JSON of moderate depth", "deeper nesting", offset=0) from None
    except ValueError as error:
        raise FormatError("JSON as flatc prints it", str(error), offset=0) from None


def _strict(token: re.Match[str]) -> str:
    text = token.group()
    if token.lastgroup == "word":
        return _WORDS.get(text, f'"{text}"')
    if token.lastgroup == "text" and "\\x" in text:
        return _BYTE.sub(r"\1\\u00\2", text)
    return text


_PRINTED = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}


def flatc_text(tree: object) -> str:
    """Return a tree as JSON that flatc reads, with its spelling of nan and inf."""

    def word(token: re.Match[str]) -> str:
        return _PRINTED.get(token.group(), token.group())

    return _TOKEN.sub(word, json.dumps(tree, indent=1, ensure_ascii=False)) + "\n"
