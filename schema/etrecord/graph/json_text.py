"""JSON whose depth and size are bounded before it is parsed.

The parser of the standard library recurses in C and creates up to eighty bytes of objects from
three bytes of JSON, so the structure is counted first, in numpy, over blocks of the JSON.
"""

from __future__ import annotations

import json
import re
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from schema.errors import FormatError
from schema.etrecord.budget import Budget

Json: TypeAlias = Any
MAX_DEPTH = 200  # a graph in a branch in a branch … adds seven levels each time
_BLOCK = 1 << 20
_SHORT = 1 << 14  # not worth measuring
_QUOTE, _SLASH = 34, 92
_COMMA = 2  # marked like a bracket, without changing the level
_STEP = np.zeros(256, np.int8)
_STEP[[ord("["), ord("{")]] = 1
_STEP[[ord("]"), ord("}")]] = -1
_STEP[ord(",")] = _COMMA
_LONE_SURROGATE = re.compile(r"\\ud[89a-f]", re.IGNORECASE)
# bytes of memory: a small dict or list, a short string, a scalar or the slot of an item
_CONTAINER, _TEXT, _ITEM = 240, 56, 32


def parse_json(data: bytes | memoryview, budget: Budget, field: str) -> Json:
    """Return the parsed JSON; Infinity and NaN are accepted as floats.

    Raises: FormatError if it is not JSON, nested too deeply, or too large for the file
    """
    depth, cost = measure(np.frombuffer(data, np.uint8))
    if depth > MAX_DEPTH:
        raise FormatError(f"nesting of at most {MAX_DEPTH} levels", f"{depth}", field=field)
    budget.tree(cost, field)
    try:
        text = str(data, "utf-8")
        tree = json.loads(text)
    except json.JSONDecodeError as error:
        raise FormatError("JSON", f"{error.msg} at character {error.pos}", field=field) from None
    except (ValueError, RecursionError) as error:
        raise FormatError("JSON in UTF-8", _short(error), field=field) from None
    return _without_surrogates(tree) if _LONE_SURROGATE.search(text) else tree


def parse_json_text(text: str, budget: Budget, field: str) -> Json:
    """Return the parsed JSON of a string inside other JSON."""
    if len(text) < _SHORT and text.count("[") + text.count("{") < MAX_DEPTH:
        try:
            return json.loads(text)
        except ValueError as error:
            raise FormatError("JSON", _short(error), field=field) from None
    return parse_json(text.encode("utf-8", "replace"), budget, field)


def measure(raw: npt.NDArray[np.uint8]) -> tuple[int, int]:
    """Return the nesting depth and an upper bound of the parsed size in bytes.

    Shapes: raw uint8[bytes of the JSON]
    """
    at, depth, deepest, inside, cost = 0, 0, 0, False, len(raw)
    while at < len(raw):
        stop = _block_end(raw, at)
        block = raw[at:stop]
        quotes = _real_quotes(block)
        steps = _STEP[block]
        marks = np.flatnonzero(steps)
        outside = (np.searchsorted(quotes, marks) + inside) % 2 == 0
        kinds = steps[marks[outside]]
        levels = kinds[kinds != _COMMA].astype(np.int32)
        if len(levels):
            deepest = max(deepest, depth + int(np.cumsum(levels).max()))
            depth += int(levels.sum())
        cost += int((levels > 0).sum()) * _CONTAINER + len(quotes) * _TEXT // 2
        cost += (len(kinds) - len(levels)) * _ITEM
        inside = bool((len(quotes) + inside) % 2)
        at = stop
    return deepest, cost


def _block_end(raw: npt.NDArray[np.uint8], at: int) -> int:
    """Return the end of a block that does not split an escape."""
    stop = at + _BLOCK
    while stop < len(raw) and raw[stop - 1] == _SLASH:
        stop += 1
    return min(stop, len(raw))


def _real_quotes(block: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Return the positions of quotes that are not escaped by an odd run of backslashes."""
    quotes = np.flatnonzero(block == _QUOTE)
    before = quotes > 0
    before[before] = block[quotes[before] - 1] == _SLASH
    slashes = np.flatnonzero(block == _SLASH)
    if not before.any():
        return quotes
    starts = slashes[np.concatenate(([True], np.diff(slashes) != 1))]
    doubtful = quotes[before]
    first = starts[np.searchsorted(starts, doubtful - 1, side="right") - 1]
    before[before] = (doubtful - first) % 2 == 1
    return quotes[~before]


def _without_surrogates(tree: Json) -> Json:
    """Return the tree with unpaired surrogates replaced, which no encoding accepts."""
    if isinstance(tree, str):
        return tree.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(tree, list):
        items = cast("list[Json]", tree)
        return [_without_surrogates(item) for item in items]
    if isinstance(tree, dict):
        pairs = cast("dict[str, Json]", tree).items()
        return {_without_surrogates(key): _without_surrogates(value) for key, value in pairs}
    return tree


def _short(error: Exception) -> str:
    text = str(error)
    return text if len(text) < 120 else f"{text[:117]}..."
