"""What is left of a name that does not fit: the part by which it differs from its neighbours."""

from __future__ import annotations

import re
from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics, QFontMetricsF

_DOTS = "…"
_SUFFIXES = "debug|etdp|etdump|etrecord|etscope|json|mlpackage|pt|pt2|ptd|pte|py"
# a number, the module that something is in, a part behind a colon, the kind of a file, or the
# file in a folder
_TAIL = re.compile(
    r"(?:\w*?(?P<number>_\d+)|[^:,;]*\w(?P<count> \d+)|.*(?P<place> in [\w.]+)"
    r"|[^:]*\S(?P<part>: \S+)"
    rf"|[^\s/]+(?P<suffix>\.(?:{_SUFFIXES}))|\S*[^\s/](?P<file>/[^\s/]+))"
)
_PATH = re.compile(r"[^\s.:]+(\.[^\s.:]+)+")
# of operators the name tells the most, the overload, which is last, the least
_OPERATOR = re.compile(
    r"(?:native_call_)?(?:(?:aten|dim_order_ops|quantized_decomposed)(?:::|\.)"
    r"|(?<=native_call_))(?P<name>\w+)(?:\.\w+)?"
)
# the same in tables that leave out the library: told from a module by its overload
_BARE_OPERATOR = re.compile(r"(?P<name>\w+)\.(?:\w+_out|Tensor\w*|Scalar\w*|vec|values|dims?|int)")
# what is added in parentheses; what every name of a node of this dialect begins with
_ASIDE = re.compile(r"(?P<name>.+\S) \((?P<aside>[^()]*)\)")
_CLOSED = " ▸"  # of boxes of the graph that hold others
_UNNAMED = "cluster"  # boxes that are told apart by what is in parentheses
_INSIDE = re.compile(r"delegate \d+ (?P<name>\w+_\d+ \w+)")  # a weight of a node in a delegate
# a part of a payload: its delegate and it, without the method and the name of the backend
_PAYLOAD = re.compile(r"(?:.* )?delegate (?P<number>\d+) \([^()]*\): (?P<name>.+)")
_NODE_PREFIX = re.compile(r"(?:aten|dim_order_ops|quantized_decomposed)__?(?=\w)")
_LEAST_LETTERS = 5  # of a name behind the number of its layer
_LEAST_HEAD = 3  # letters of the beginning of a path, by which modules of one layout differ
_EVERYWHERE = ("weight", "bias")  # the last part of the names of most weights


def elided(text: str, metrics: QFontMetrics | QFontMetricsF, room: float) -> str:
    """Return a name within a width.

    An operator keeps its name, a dotted path its last parts and what fits of its beginning, a
    numbered name its number, what is in a module its module, a file its beginning and suffix, or
    its name behind a folder, other names beginning and end. What is in parentheses, and the
    dialect of a node, goes first.
    """
    if metrics.horizontalAdvance(text) <= room:
        return text
    if text.endswith(_CLOSED):
        return elided(text.removesuffix(_CLOSED), metrics, room)
    return _cut(text, metrics, room)


def _cut(text: str, metrics: QFontMetrics | QFontMetricsF, room: float) -> str:
    """Return what is left of a name that does not fit."""
    if aside := _ASIDE.fullmatch(text):
        return _without_aside(aside["name"], aside["aside"], metrics, room)
    if payload := _PAYLOAD.fullmatch(text):
        return _payload_part(payload["number"], payload["name"], metrics, room)
    if inside := _INSIDE.fullmatch(text):
        name = inside["name"]
        cut = min(room, metrics.horizontalAdvance(name) - 1)  # whole, it would look like all
        return _with_tail(text, name, metrics, room) or elided(name, metrics, cut)
    if indent := text[: len(text) - len(text.lstrip(" "))]:
        rest = elided(text[len(indent) :], metrics, room - metrics.horizontalAdvance(indent))
        return f"{indent}{rest}"
    if dialect := _NODE_PREFIX.match(text):
        rest = text[dialect.end() :]
        shown = f"{_DOTS}{rest}"
        fits = metrics.horizontalAdvance(shown) <= room
        # a rest that is whole would look like the name of another node
        cut = min(room, metrics.horizontalAdvance(rest) - 1)
        return shown if fits else elided(rest, metrics, cut)
    if operator := _OPERATOR.fullmatch(text) or _BARE_OPERATOR.fullmatch(text):
        return _operator(text, operator, metrics, room)
    tail = _TAIL.fullmatch(text)
    if tail is None and _PATH.fullmatch(text):
        return _last_parts(text, metrics, room)
    shown = (
        "" if tail is None else _with_tail(text, next(filter(None, tail.groups())), metrics, room)
    )
    if shown:
        return shown
    end = " " in text or text.endswith("_default")  # the name of a node by its overload
    mode = Qt.TextElideMode.ElideRight if end else Qt.TextElideMode.ElideMiddle
    return metrics.elidedText(text, mode, int(room))


def _without_aside(
    name: str, aside: str, metrics: QFontMetrics | QFontMetricsF, room: float
) -> str:
    """Return a name without what is in parentheses behind it, or that alone if it is the name."""
    if name == _UNNAMED:
        return elided(f"{_DOTS}{aside}", metrics, room)
    shown = f"{name}{_DOTS}"
    return shown if metrics.horizontalAdvance(shown) <= room else elided(name, metrics, room)


def _payload_part(
    number: str, name: str, metrics: QFontMetrics | QFontMetricsF, room: float
) -> str:
    shown = f"{_DOTS}{number}: {name}"
    if metrics.horizontalAdvance(shown) <= room:
        return shown
    return elided(name, metrics, min(room, metrics.horizontalAdvance(name) - 1))


def without_library(text: str) -> str:
    """Return an operator without its library and overload, other strings as they are."""
    name = text.lstrip(" ")
    found = _OPERATOR.fullmatch(name) or _BARE_OPERATOR.fullmatch(name)
    return text[: len(text) - len(name)] + _bare(name, found) if found else text


def _with_tail(text: str, tail: str, metrics: QFontMetrics | QFontMetricsF, room: float) -> str:
    """Return as much of the beginning as fits before a tail, empty if not even that does."""
    head, left = text[: -len(tail)], room - metrics.horizontalAdvance(_DOTS + tail)
    if left < 0:
        return ""
    while head and metrics.horizontalAdvance(head) > left:
        head = head[:-1]
    shown = f"{head}{_DOTS}{tail}"
    if head and metrics.horizontalAdvance(shown) > room:  # advances are rounded
        shown = f"{head[:-1]}{_DOTS}{tail}"
    return shown if metrics.horizontalAdvance(shown) <= room else ""


def _operator(
    text: str, found: re.Match[str], metrics: QFontMetrics | QFontMetricsF, room: float
) -> str:
    """Return an operator without its overload, then without its library, then cut at its end."""
    name = found["name"]
    overload = "" if text.endswith(name) else _DOTS
    for shown in (f"{text[: found.end('name')]}{overload}", _bare(text, found)):
        if metrics.horizontalAdvance(shown) <= room:
            return shown
    return metrics.elidedText(name, Qt.TextElideMode.ElideRight, int(room))


def _bare(text: str, found: re.Match[str]) -> str:
    name = found["name"]
    return f"{_DOTS}{name}" if text.endswith(name) else f"{name}{_DOTS}"


def _last_parts(text: str, metrics: QFontMetrics | QFontMetricsF, room: float) -> str:
    """Return as many of the last parts of a path as fit, at least some of the last one.

    The number of the layer stays, by which equal layers differ, and what fits of the beginning,
    by which equal layers of two modules do: ``dec…3.…kv_cache.keys``.
    """
    parts = text.split(".")
    common = parts[-1] in _EVERYWHERE
    cuts = range(1, len(parts) - common)
    for shown in (_cut_behind_number(parts, first) for first in cuts):
        if shown and metrics.horizontalAdvance(shown) <= room:
            return _with_head(text, shown, metrics, room)
    first = len(parts) - 1 - common
    name, before = ".".join(parts[first:]), _number_before(parts, first)
    left = room - metrics.horizontalAdvance(before)
    if before and left >= _LEAST_LETTERS * metrics.horizontalAdvance("n"):
        return before + _cut_name(name, metrics, left, common=common)
    for shown in (f"{_DOTS}{'.'.join(parts[first:])}" for first in cuts):
        if metrics.horizontalAdvance(shown) <= room:
            return _with_head(text, shown, metrics, room)
    return _cut_name(name, metrics, room, common=common)


def _with_head(text: str, shown: str, metrics: QFontMetrics | QFontMetricsF, room: float) -> str:
    """Return last parts of a path behind as much of its beginning as fits."""
    first, _, tail = shown[len(_DOTS) :].partition(_DOTS)
    start = text.rfind(f".{first}", 0, len(text) - len(tail)) + 1
    whole = text[:start] + shown[len(_DOTS) :]
    if whole != text and metrics.horizontalAdvance(whole) <= room:
        return whole
    left = room - metrics.horizontalAdvance(shown)
    letters = min(start - 2, int(left / metrics.averageCharWidth()))
    while letters >= _LEAST_HEAD and metrics.horizontalAdvance(text[:letters] + shown) > room:
        letters -= 1
    return text[:letters] + shown if letters >= _LEAST_HEAD else shown


def _cut_name(
    name: str, metrics: QFontMetrics | QFontMetricsF, room: float, *, common: bool
) -> str:
    """Return the last part of a path within a width; what most paths end with goes first.

    It is cut even where it fits: whole, it would look like all of the path.
    """
    cut = min(room, metrics.horizontalAdvance(name) - 1)
    if common:
        return metrics.elidedText(name, Qt.TextElideMode.ElideRight, int(cut))
    return elided(name, metrics, cut)


def _cut_behind_number(parts: Sequence[str], first: int) -> str:
    """Return the last parts behind the last number that is before them, empty without one."""
    before = _number_before(parts, first)
    return before and before + ".".join(parts[first:])


def _number_before(parts: Sequence[str], first: int) -> str:
    """Return the last number before a part of a path, as ``…3.…``; empty without one."""
    number = next((at for at in range(first - 1, 0, -1) if parts[at].isdecimal()), 0)
    if not number:
        return ""
    between = "." if number == first - 1 else f".{_DOTS}"
    return f"{_DOTS}{parts[number]}{between}"
