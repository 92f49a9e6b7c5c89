"""Functions of a Python file that can be compiled, found without running it."""

from __future__ import annotations

import ast
from pathlib import Path

_LARGEST = 4_000_000  # bytes


def functions_of(path: str) -> tuple[str, ...]:
    """Return the top-level functions of a file that can be called without arguments.

    A file that cannot be read or parsed has none; the compile will report why.
    """
    try:
        if Path(path).stat().st_size > _LARGEST:
            return ()
        tree = ast.parse(Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(
        node.name for node in tree.body if isinstance(node, ast.FunctionDef) and _callable(node)
    )


def _callable(node: ast.FunctionDef) -> bool:
    given = node.args
    needed = len(given.posonlyargs) + len(given.args) - len(given.defaults)
    return needed <= 0 and all(default is not None for default in given.kw_defaults)
