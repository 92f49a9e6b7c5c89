"""Operators that the compilers of device-only vendors list, read from their sources.

These import the vendor's SDK, which only few machines have; what they take is written in tables.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from schema.vendors.table import Vendor

_NAME = re.compile(r"(?:torch\.ops\.|exir_ops\.edge\.)?([a-z_]\w*\.\w+\.\w+)")


def listed_operators(vendor: Vendor) -> list[tuple[str, str]]:
    """Return the operators in the sources of a vendor, with ``any``, as these name no dtypes.

    Empty if it has no such table, or if the package is not here.
    """
    pattern, variable = vendor.listed or ("", "")
    folders = (Path(one or ".") / "executorch/backends" for one in sys.path)
    home = next((one for one in folders if one.is_dir()), None)
    sources = sorted(home.glob(pattern)) if home is not None and pattern else []
    trees = (ast.parse(one.read_bytes()) for one in sources)
    names = {name for tree in trees for name in _names(tree.body, variable)}
    return [(name, "any") for name in sorted(names)]


def _names(body: list[ast.stmt], variable: str) -> Iterator[str]:
    """Yield the operators that statements name, but for those in bodies of functions."""
    for one in body:
        if isinstance(one, ast.ClassDef):
            yield from _names(one.body, variable)
        elif isinstance(one, ast.FunctionDef):
            yield from _named(one.decorator_list) if not variable else ()
        elif isinstance(one, (ast.Assign, ast.AnnAssign)):
            targets = one.targets if isinstance(one, ast.Assign) else [one.target]
            if not variable or any(isinstance(t, ast.Name) and t.id == variable for t in targets):
                yield from _named([one.value] if one.value is not None else [])


def _named(expressions: list[ast.expr]) -> Iterator[str]:
    for expression in expressions:
        for one in ast.walk(expression):
            text = one.value if isinstance(one, ast.Constant) else ""
            if isinstance(one, ast.Attribute):
                text = ast.unparse(one)
            found = _NAME.fullmatch(text) if isinstance(text, str) else None
            if found is not None and (isinstance(one, ast.Constant) or text != found[1]):
                yield found[1]
