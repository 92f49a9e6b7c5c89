"""Strings and class names of the product's modules, each module parsed once for all tests."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache

from tests.architecture.tree import PACKAGES, ROOT, tracked_files

_SCOPES = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Module:
    """A module of the product.

    Attributes:
        name: its path below the root
        docstrings: line and content of each
        strings: line and content of each other string
        classes: names of the classes at its top level
    """

    name: str
    docstrings: tuple[tuple[int, str], ...]
    strings: tuple[tuple[int, str], ...]
    classes: tuple[str, ...]


@cache
def modules() -> tuple[Module, ...]:
    """Return the modules of all packages, but for the samples, which are recorded."""
    found = []
    for path in tracked_files():
        name = path.relative_to(ROOT).as_posix()
        if path.suffix == ".py" and name.split("/")[0] in PACKAGES and "/sample_data/" not in name:
            found.append(_read(name, ast.parse(path.read_bytes())))
    return tuple(found)


def _read(name: str, tree: ast.Module) -> Module:
    nodes = [one for one in ast.walk(tree) if isinstance(one, (*_SCOPES, ast.Constant))]
    scopes = [one for one in nodes if isinstance(one, _SCOPES)]
    documented = {id(one.body[0].value) for one in scopes if _has_docstring(one)}  # type: ignore[attr-defined]
    texts: tuple[list[tuple[int, str]], list[tuple[int, str]]] = ([], [])
    for one in nodes:
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            texts[id(one) in documented].append((one.lineno, one.value))
    classes = tuple(one.name for one in tree.body if isinstance(one, ast.ClassDef))
    return Module(name, tuple(texts[True]), tuple(texts[False]), classes)


def _has_docstring(scope: ast.AST) -> bool:
    return ast.get_docstring(scope, clean=False) is not None  # type: ignore[arg-type]
