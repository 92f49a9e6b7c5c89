"""Errors of a user's code: where in it they are, and one line about each."""

from __future__ import annotations

import os
import re
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

_LONGEST = 600  # characters of a message
_CHECKED = re.compile("Check '|Exception (from|happened)")  # C++: a line a caller, the cause last
# attribute of an error: the user's function, if no closer location is known
_ASKED = "etscope_asked"
HERE = Path(__file__).parents[3]
_NOT_USERS = tuple(
    f"{path}{os.sep}"
    for path in {
        str(Path(str(torch.__file__)).parent),
        *(str(HERE / name) for name in ("compiler", "inspector", "runtime", "schema")),
        *(sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")),
    }
)
_SAID = re.compile(r'File "(?P<file>[^"<][^"]*)", line (?P<line>\d+)')
_NAMED = re.compile(r"\((?P<file>[^():\s][^():]*):(?P<line>\d+)\)")
# suffix of a violation in the verifier's message
_NODE = re.compile(r"node \S+ \([^()]*\)$|node \S+$")
_IN_A_PASS = "An error occurred when running the '"  # of torch and of executorch
_VIOLATIONS = "SpecViolationError"  # each of its lines is one
_DATA_DEPENDENT = "GuardOnDataDependentSymNode"
_ONLY_A_RUN_KNOWS = (
    "a branch, a loop or a size here depends on values of a tensor, known only at run time;"
    " torch.cond and torch.where choose by values, torch._check bounds a size"
)


class AnswerError(Exception):
    """A missing function, or one whose result cannot be exported."""


def is_users(file: str) -> bool:
    """Return whether a file is neither ours nor torch's nor Python's."""
    return not file.startswith(("<", *_NOT_USERS))


def place_of(error: BaseException) -> tuple[str, int]:
    """Return file and line of the innermost user's frame of an error, else of its message."""
    for one in _chain(error):
        if isinstance(one, SyntaxError) and one.filename and is_users(one.filename):
            return one.filename, one.lineno or 0
        for frame in reversed(traceback.extract_tb(one.__traceback__)):
            if is_users(frame.filename) and frame.lineno:
                return frame.filename, frame.lineno
    asked: tuple[str, int] = getattr(error, _ASKED, ("", 0))
    text = _text_of(error)
    output_text = _places_in(text.strip().partition("\n")[0]) or _places_in(text)
    return next((one for one in reversed(output_text) if is_users(one[0])), asked)


def _places_in(text: str) -> list[tuple[str, int]]:
    found = (*_NAMED.finditer(text), *_SAID.finditer(text))
    return [(match["file"], int(match["line"])) for match in found]


def _text_of(error: BaseException) -> str:
    """Return the message of an error; empty if that fails as well."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - whatever the user's code raises
        return ""


def sentence_of(error: BaseException) -> str:
    """Return an error as one line: its type, unless it is one of ours, and its message.

    Of one that a pass manager raised for a pass, that is its cause: the message lists passes only.
    """
    error = _raised_inside(error)
    if isinstance(error, SystemExit):
        return f"the code called sys.exit({'' if error.code is None else error.code!r})"
    lines = [line.strip() for line in _text_of(error).splitlines() if line.strip()]
    text = lines[0] if lines else ""
    name = type(error).__name__
    if text.endswith((":", "!")) or text.startswith("Constraints violated"):
        text = " ".join(lines if any(map(_CHECKED.match, lines)) else lines[:4])
    text = _shortened(text)
    if name == _DATA_DEPENDENT:
        text = f"{_ONLY_A_RUN_KNOWS} ({text})"
    if name == _VIOLATIONS and lines[1:]:
        others = ", ".join(found[0] for line in lines[1:] if (found := _NODE.search(line)))
        text = f"{text}; and {len(lines) - 1} more{f': {others}' if others else ''}"
    home = type(error).__module__.split(".")[0]
    ours = home in ("compiler", "inspector", "schema") or isinstance(error, AnswerError)
    if (ours or name == _VIOLATIONS) and text:
        return text
    return f"{name}: {text}" if text else name


def _raised_inside(error: BaseException) -> BaseException:
    """Return what a pass raised, of the error that a pass manager raised from it."""
    for one in _chain(error):
        if one.__cause__ is None or not _text_of(one).startswith(_IN_A_PASS):
            return one
    return error


def _shortened(text: str) -> str:
    """Return a long message without its middle: it begins with what failed, and ends with why."""
    if len(text) <= _LONGEST:
        return text
    head = _LONGEST // 3
    return f"{text[:head]} … {text[head - _LONGEST :]}"


def failure(error: BaseException) -> dict[str, Any]:
    """Return an error as the content of a message."""
    file, line = place_of(error)
    sentence = sentence_of(error)
    place = f"{file}:{line}" if line else file
    if place and place not in sentence and place not in _text_of(error):
        sentence = f"{place}: {sentence}"
    blame = "usage" if isinstance(error, AnswerError) else "failed"
    details = "".join(_traceback_of(error))
    return {"sentence": sentence, "blame": blame, "file": file, "line": line, "details": details}


def _traceback_of(error: BaseException) -> list[str]:
    try:
        return traceback.format_exception(type(error), error, error.__traceback__)
    except Exception:  # noqa: BLE001 - an error of the user's code that cannot be shown
        return traceback.format_tb(error.__traceback__)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or at.__context__


def point_to(error: BaseException, asked: tuple[str, int]) -> None:
    """Attach the user's function to an error, as its location if it has no closer one."""
    setattr(error, _ASKED, asked)
