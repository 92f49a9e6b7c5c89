"""What a Python file of the user defines and imports, found without running it."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_LARGEST = 4_000_000  # bytes
_BLOCKS = (ast.If, ast.Try, ast.With, ast.For, ast.While)


@dataclass(frozen=True, slots=True)
class FileNames:
    """The names that a file defines at its top level.

    Attributes:
        classes: its classes
        functions: its functions
        others: all other names, imported ones included
        may_define_more: it imports all names of a module, or computes names
        imports: packages it cannot do without, and the line of each
        needing: functions that cannot be called without arguments
    """

    classes: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    others: frozenset[str] = frozenset()
    may_define_more: bool = False
    imports: tuple[tuple[str, int], ...] = ()
    needing: frozenset[str] = frozenset()

    def defines(self, name: str) -> bool:
        """Return whether it has a name, as far as can be known without running it."""
        known = (*self.classes, *self.functions, *self.others)
        return self.may_define_more or name in known


def functions_of(path: str) -> tuple[str, ...]:
    """Return the top-level functions of a file that can be called without arguments.

    Those whose name begins with an underscore come last: they are for the file itself. A file
    that cannot be read or parsed has none; the compile will report why.
    """
    try:
        if Path(path).stat().st_size > _LARGEST:
            return ()
        tree = _tree(path)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    found = (
        node.name for node in tree.body if isinstance(node, ast.FunctionDef) and _callable(node)
    )
    return tuple(sorted(found, key=lambda name: name.startswith("_")))


def names_in(path: str) -> FileNames:
    """Return the names that a file defines; any name may be in one that is too large to parse.

    Raises: OSError; SyntaxError, with its line; ValueError if it is not Python
    """
    if Path(path).stat().st_size > _LARGEST:
        return FileNames(may_define_more=True)
    try:
        tree = _tree(path)
    except (RecursionError, MemoryError):
        return FileNames(may_define_more=True)
    classes: list[str] = []
    functions: list[str] = []
    others: set[str] = set()
    needing: set[str] = set()
    more = False
    for node in _statements(tree.body):
        if isinstance(node, ast.ClassDef):
            classes.append(node.name)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions.append(node.name)
            if not node.decorator_list and not _callable(node):  # a decorator may give them
                needing.add(node.name)
            more = more or node.name == "__getattr__"
        else:
            others.update(_bound(node))
            more = more or _may_bind_any(node)
    return FileNames(
        tuple(classes),
        tuple(functions),
        frozenset(others),
        more,
        tuple(_imports(tree)),
        frozenset(needing),
    )


def missing_import(path: str, names: FileNames) -> tuple[str, int] | None:
    """Return the first package that a file needs and this interpreter does not have, and its line.

    None where files may add folders to search in.
    """
    folder = Path(path).absolute().parent
    if "sys.path" in Path(path).read_text("utf-8", "replace"):
        return None
    for package, line in names.imports:
        if (folder / package).is_dir() or any(folder.glob(f"{package}.*")):
            continue
        try:
            found = importlib.util.find_spec(package)
        except (ImportError, ValueError):
            continue  # a module without a spec is there
        if found is None:
            return package, line
    return None


def _tree(path: str) -> ast.Module:
    return ast.parse(Path(path).read_bytes(), path)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a body and of its blocks, but not of its functions and classes."""
    for node in body:
        yield node
        if isinstance(node, _BLOCKS):
            for part in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(node, part, []))
            for handler in getattr(node, "handlers", []):
                yield from _statements(handler.body)


def _bound(node: ast.stmt) -> set[str]:
    """Return the names that a statement assigns or imports."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(one.asname or one.name).partition(".")[0] for one in node.names}
    heads: list[ast.AST] = [node]
    if isinstance(node, _BLOCKS):  # its statements are looked at by themselves
        items = [item.optional_vars for item in getattr(node, "items", [])]
        heads = [one for one in (getattr(node, "target", None), *items) if one is not None]
    return {
        one.id
        for head in heads
        for one in ast.walk(head)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }


def _may_bind_any(node: ast.stmt) -> bool:
    """Return whether a statement may define names that it does not spell."""
    if isinstance(node, ast.ImportFrom):
        return any(one.name == "*" for one in node.names)
    return not isinstance(node, _BLOCKS) and any(
        isinstance(one, ast.Name) and one.id in ("globals", "vars", "setattr", "exec")
        for one in ast.walk(node)
    )


def _imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the packages that are imported whatever happens."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            for one in node.names:
                yield one.name.partition(".")[0], node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0], node.lineno


def _callable(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    given = node.args
    needed = len(given.posonlyargs) + len(given.args) - len(given.defaults)
    return needed <= 0 and all(default is not None for default in given.kw_defaults)
