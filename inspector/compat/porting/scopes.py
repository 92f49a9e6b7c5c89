"""The import statements of a script, and every use of a name with the scope that binds it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Comprehension: TypeAlias = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPES = (*_FUNCTIONS, *_COMPREHENSIONS, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class Use:
    """A name and the attributes read from it: `exir.capture.to_edge`.

    Attributes:
        scope: index of the scope that binds the name
        chain: the expression after each attribute; the first is the name alone
        parts: the name and the attributes
        stored: whether it is assigned to or deleted
    """

    scope: int
    chain: tuple[ast.expr, ...]
    parts: tuple[str, ...]
    stored: bool

    @property
    def line(self) -> int:
        """Return the line of the name, from 1."""
        return self.chain[0].lineno


@dataclass(frozen=True, slots=True)
class ImportStatement:
    """An import statement.

    Attributes:
        node: the statement
        scope: index of its scope
        alone: whether it is the only statement of its block
    """

    node: ast.Import | ast.ImportFrom
    scope: int
    alone: bool


@dataclass(slots=True)
class Script:
    """Imports and uses of a script.

    Attributes:
        imports: in source order
        uses: names that are read, written or deleted; import statements are not among them
        bound: all names bound by anything but a star import, in any scope
        strings: string constants and the function they are the first argument of, else ""
    """

    imports: list[ImportStatement] = field(default_factory=list[ImportStatement])
    uses: list[Use] = field(default_factory=list[Use])
    bound: set[str] = field(default_factory=set[str])
    strings: list[tuple[ast.Constant, str]] = field(default_factory=list[tuple[ast.Constant, str]])


@dataclass(frozen=True, slots=True)
class _NameScope:
    number: int
    names: frozenset[str]
    is_class: bool


def read_script(tree: ast.Module) -> Script:
    """Return the imports and uses of a parsed script."""
    reader = _ScopeReader()
    reader.read_block(tree.body, [reader.scope(tree.body, (), is_class=False)])
    return reader.script


class _ScopeReader:
    """Walks a tree with the stack of scopes around each node, the module's first."""

    def __init__(self) -> None:
        self.script = Script()
        self._scopes = 0

    def scope(
        self, inner: list[ast.stmt] | list[ast.AST], given: tuple[str, ...], *, is_class: bool
    ) -> _NameScope:
        """Return a new scope that binds the given names and those its body binds."""
        names, outside = set(given), set[str]()
        for node in _within(inner):
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                outside.update(node.names)
            else:
                names.update(_binds(node))
        self.script.bound |= names
        self._scopes += 1
        return _NameScope(self._scopes - 1, frozenset(names - outside), is_class)

    def read_block(self, block: list[ast.stmt], stack: list[_NameScope]) -> None:
        """Read the statements of one block."""
        for node in block:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                number = stack[-1].number
                self.script.imports.append(ImportStatement(node, number, len(block) == 1))
            else:
                self._read(node, stack)

    def _read(self, node: ast.AST, stack: list[_NameScope]) -> None:
        if isinstance(node, _SCOPES):
            self._enter(node, stack)
        elif isinstance(node, (ast.Attribute, ast.Name)):
            self._read_name(node, stack)
        elif not _asks_for_none(node):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                self.script.strings.append((node, ""))
            for name, value in ast.iter_fields(node):
                self._read_field(node, name, value, stack)

    def _read_field(self, node: ast.AST, name: str, value: object, stack: list[_NameScope]) -> None:
        if isinstance(value, ast.AST):
            self._read(value, stack)
        elif isinstance(value, list):
            nodes = [item for item in value if isinstance(item, ast.AST)]  # pyright: ignore[reportUnknownVariableType]
            statements = [item for item in nodes if isinstance(item, ast.stmt)]
            self.read_block(statements, stack)
            for item in nodes:
                if not isinstance(item, ast.stmt):
                    first = isinstance(node, ast.Call) and name == "args" and item is value[0]
                    self._read_item(item, _called(node) if first else "", stack)

    def _read_item(self, item: ast.AST, called: str, stack: list[_NameScope]) -> None:
        if called and isinstance(item, ast.Constant) and isinstance(item.value, str):
            self.script.strings.append((item, called))
        else:
            self._read(item, stack)

    def _enter(
        self, node: _Function | _Comprehension | ast.ClassDef, stack: list[_NameScope]
    ) -> None:
        outer, inner = _parts(node)
        for part in outer:
            self._read(part, stack)
        given = _arguments(node.args) if isinstance(node, _FUNCTIONS) else ()
        is_class = isinstance(node, ast.ClassDef)
        below = [*stack, self.scope(inner, given, is_class=is_class)]
        self.read_block([part for part in inner if isinstance(part, ast.stmt)], below)
        for part in inner:
            if not isinstance(part, ast.stmt):
                self._read(part, below)

    def _read_name(self, node: ast.Attribute | ast.Name, stack: list[_NameScope]) -> None:
        chain: list[ast.expr] = [node]
        while isinstance(chain[0], ast.Attribute):
            chain.insert(0, chain[0].value)
        if not isinstance(chain[0], ast.Name):
            self._read(chain[0], stack)
            return
        attributes = [part.attr for part in chain if isinstance(part, ast.Attribute)]
        name = chain[0].id
        stored = not isinstance(node.ctx, ast.Load)
        use = Use(_binding(name, stack), tuple(chain), (name, *attributes), stored)
        self.script.uses.append(use)


def _binding(name: str, stack: list[_NameScope]) -> int:
    """Return the scope that a name belongs to; names of a class body are seen only there."""
    for depth, scope in reversed(list(enumerate(stack))):
        visible = not scope.is_class or depth == len(stack) - 1
        if visible and name in scope.names:
            return scope.number
    return stack[0].number


def _asks_for_none(node: ast.AST) -> bool:
    """Return whether a node is `name is None`, as scripts check after an import that may fail."""
    return (
        isinstance(node, ast.Compare)
        and isinstance(node.left, ast.Name)
        and all(isinstance(one, (ast.Is, ast.IsNot)) for one in node.ops)
        and all(isinstance(one, ast.Constant) and one.value is None for one in node.comparators)
    )


def _called(node: ast.AST) -> str:
    function = node.func if isinstance(node, ast.Call) else node
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _parts(node: ast.AST) -> tuple[list[ast.AST], list[ast.AST]]:
    """Return the parts of a scope evaluated outside of it, and inside."""
    if isinstance(node, ast.Lambda):
        return [*_defaults(node.args)], [node.body]
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        annotations = [one.annotation for one in _all_arguments(node.args) if one.annotation]
        returns = [node.returns] if node.returns else []
        outer = [*node.decorator_list, *_defaults(node.args), *annotations, *returns]
        return [*outer], [*node.body]
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases, *node.keywords], [*node.body]
    inner = list(ast.iter_child_nodes(node))
    return [], inner


def _defaults(arguments: ast.arguments) -> list[ast.expr]:
    return [*arguments.defaults, *(one for one in arguments.kw_defaults if one is not None)]


def _all_arguments(arguments: ast.arguments) -> list[ast.arg]:
    found = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [*found, *(one for one in (arguments.vararg, arguments.kwarg) if one is not None)]


def _arguments(arguments: ast.arguments) -> tuple[str, ...]:
    return tuple(one.arg for one in _all_arguments(arguments))


def _within(block: list[ast.stmt] | list[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes of a scope, the heads of the scopes inside it, not their bodies."""
    waiting: list[ast.AST] = list(reversed(block))
    while waiting:
        node = waiting.pop()
        yield node
        inside = _parts(node)[0] if isinstance(node, _SCOPES) else ast.iter_child_nodes(node)
        waiting += reversed(list(inside))


def _binds(node: ast.AST) -> tuple[str, ...]:
    """Return the names that a node binds in its scope."""
    if isinstance(node, ast.Name):
        return () if isinstance(node.ctx, ast.Load) else (node.id,)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return (node.name,)
    if isinstance(node, ast.Import):
        return tuple(one.asname or one.name.partition(".")[0] for one in node.names)
    if isinstance(node, ast.ImportFrom):
        return tuple(one.asname or one.name for one in node.names if one.name != "*")
    if isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        return (node.name,) if node.name else ()
    if isinstance(node, ast.MatchMapping):
        return (node.rest,) if node.rest else ()
    return ()
