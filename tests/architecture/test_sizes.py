"""Files stay below 600 lines and functions below 60, so that each can be read in one go."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.architecture.tree import ROOT, sources

pytestmark = pytest.mark.slow

LONGEST_FILE = 600
LONGEST_FUNCTION = 60


def test_sources_every_file_is_short() -> None:
    lengths = {_name(path): len(path.read_text("utf-8").splitlines()) for path in sources()}
    assert len(lengths) > 50
    assert {name: length for name, length in lengths.items() if length > LONGEST_FILE} == {}


def test_sources_every_function_is_short() -> None:
    long = {
        f"{_name(path)}:{name}": length
        for path in sources()
        for name, length in _read(path).functions.items()
        if length > LONGEST_FUNCTION
    }
    assert long == {}


def test_sources_every_module_says_what_it_is() -> None:
    silent = [
        _name(path)
        for path in sources()
        if "data" not in path.parts and not _read(path).says_what_it_is
    ]
    assert silent == []


def test_sources_no_module_is_called_utils() -> None:
    names = {"utils.py", "helpers.py", "misc.py", "common.py"}
    assert [_name(path) for path in sources() if path.name in names] == []


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


class _Facts(NamedTuple):
    says_what_it_is: bool
    functions: dict[str, int]


@functools.cache
def _read(path: Path) -> _Facts:
    """Return what a file holds; parsing all of them takes seconds, and the trees fill memory."""
    tree = ast.parse(path.read_text("utf-8"))
    functions = {f"{one.lineno} {one.name}": _length(one) for one in _functions(tree)}
    return _Facts(bool(ast.get_docstring(tree)), functions)


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def _length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1
