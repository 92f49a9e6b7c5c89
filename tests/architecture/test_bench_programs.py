"""The programs that benchmarks run in processes of their own import names that exist."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from pathlib import Path

import pytest

from tests.bench import __file__ as package

PROJECT = ("compiler", "devtools_app", "inspector", "runtime", "schema", "tests")
FILES = sorted(Path(package).parent.glob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_imports_of_a_program_in_a_string_resolve(file: Path) -> None:
    imports = [line for program in _programs(file) for line in _imports(program)]
    assert [each for each in imports if not _exists(*each)] == []


def test_some_benchmarks_hold_programs() -> None:
    assert sum(len(_programs(file)) for file in FILES) > 5


def _programs(file: Path) -> list[ast.Module]:
    strings = (node.value for node in ast.walk(ast.parse(file.read_text())) if _is_string(node))
    return [tree for text in strings if "\nfrom " in text and (tree := _parsed(text))]


def _is_string(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except SyntaxError:
        return None


def _imports(tree: ast.Module) -> list[tuple[str, str]]:
    found = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module)
    return [
        (str(node.module), alias.name)
        for node in found
        for alias in node.names
        if str(node.module).partition(".")[0] in PROJECT
    ]


def _exists(module: str, name: str) -> bool:
    loaded = importlib.import_module(module)
    return hasattr(loaded, name) or importlib.util.find_spec(f"{module}.{name}") is not None
