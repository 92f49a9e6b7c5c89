"""Edits of a script by the positions of its syntax tree; the rest is not changed."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass, field

_LINE_END = re.compile(rb"\r\n|\r|\n")
_TRAILING = re.compile(rb"[ \t]*(#[^\r\n]*)?(?=[\r\n]|$)")
_FOR_EVERY_LINE = ("noqa", "type:", "pylint:", "pyright:", "fmt:", "isort:")
_INDENT, _WIDTH = "    ", 100


@dataclass(frozen=True, slots=True)
class ImportedItem:
    """One name of a `from` import.

    Attributes:
        module: source module
        name: in that module
        local: name in the script
        alias: of the statement it replaces; None if it is new
    """

    module: str
    name: str
    local: str
    alias: ast.alias | None = None

    @property
    def text(self) -> str:
        """Return it in the form of an import statement."""
        return self.name if self.name == self.local else f"{self.name} as {self.local}"


class Edits:
    """The source of a script and its edits."""

    def __init__(self, source: str) -> None:
        self._data = source.encode("utf-8", "surrogatepass")
        starts = [found.end() for found in _LINE_END.finditer(self._data)]
        self._starts = [0, *starts]
        self._edits: dict[tuple[int, int], bytes] = {}
        ends = {found.group() for found in _LINE_END.finditer(self._data)}
        self._newline = b"\r\n" if ends == {b"\r\n"} else b"\n"

    def result(self) -> str:
        """Return the source with all edits applied."""
        data = self._data
        for (start, end), new in sorted(self._edits.items(), reverse=True):
            data = data[:start] + new + data[end:]
        return data.decode("utf-8", "surrogatepass")

    def span(self, node: ast.stmt | ast.expr | ast.alias) -> tuple[int, int]:
        """Return the first byte of a node and the one after its last."""
        end_line, end_column = node.end_lineno, node.end_col_offset
        assert end_line is not None
        assert end_column is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[end_line - 1] + end_column

    def replace_chain(self, node: ast.expr, parts: tuple[str, ...], new: str) -> bool:
        """Replace `a.b.c`; return False if the source differs, as inside f-strings."""
        start, end = self.span(node)
        found = re.sub(rb"[\s\\]", b"", self._data[start:end])
        if found != ".".join(parts).encode():
            return False
        self._edits[start, end] = new.encode()
        return True

    def replace_string(self, node: ast.Constant, new: str) -> bool:
        """Replace the content of a plain string literal; return whether it is plain."""
        start, end = self.span(node)
        old = str(node.value).encode()
        if self._data[start + 1 : end - 1] != old:
            return False
        self._edits[start + 1, end - 1] = new.encode()
        return True

    def rename_from(self, node: ast.ImportFrom, items: list[ImportedItem]) -> bool:
        """Change the module of a `from` import and the names that differ, nothing else.

        Returns: False if the module is written in an unusual form
        """
        start, end = self.span(node)
        found = re.match(rb"from(?:\s|\\\r?\n)+([^\s\\]+)(?=[\s\\])", self._data[start:end])
        if found is None or found.group(1).decode() != node.module:
            return False
        self._edits[start + found.start(1), start + found.end(1)] = items[0].module.encode()
        for item in items:
            assert item.alias is not None
            if item.alias.name != item.name:
                self._edits[self.span(item.alias)] = item.text.encode()
        return True

    def replace_statement(
        self, node: ast.Import | ast.ImportFrom, pieces: Sequence[str | list[ImportedItem]]
    ) -> None:
        """Replace a statement by import statements; comments are kept with their names.

        Args:
            node: the statement
            pieces: each a complete statement, or the names from one module
        """
        start, end = self.span(node)
        line = self._starts[node.lineno - 1]
        before = self._data[line:start]
        trailing = _TRAILING.match(self._data, end)
        lonely = not before.strip() and trailing is not None
        comments = _comments(self._data[start:end], node)
        indent = before.decode() if lonely else ""
        texts = [
            piece if isinstance(piece, str) else _from_import(piece, comments, indent)
            for piece in pieces
        ]
        note = (trailing.group(1) or b"").decode() if trailing else ""
        if lonely and any(word in note for word in _FOR_EVERY_LINE):
            texts = [f"{text}  {note}" for text in texts[:-1]] + texts[-1:]
        joint = f"\n{indent}" if lonely else "; "
        new = joint.join(texts).encode().replace(b"\n", self._newline)
        self._edits[start, end] = new

    def remove_statement(self, node: ast.stmt, *, alone: bool) -> None:
        """Remove a statement with its line; replace it by `pass` if its block would be empty."""
        start, end = self.span(node)
        line = self._starts[node.lineno - 1]
        trailing = _TRAILING.match(self._data, end)
        if alone or trailing is None or self._data[line:start].strip():
            self._edits[start, end] = b"pass"
            return
        following = _LINE_END.match(self._data, trailing.end())
        self._edits[line, following.end() if following else trailing.end()] = b""


@dataclass(slots=True)
class _Comments:
    """The comments at a name of an import: on lines before it, behind it, on lines after it."""

    before: list[str] = field(default_factory=list[str])
    behind: str = ""
    after: list[str] = field(default_factory=list[str])

    def __bool__(self) -> bool:
        return bool(self.before or self.behind or self.after)


def _from_import(
    items: list[ImportedItem], comments: dict[ast.alias, _Comments], indent: str
) -> str:
    """Return `from module import names`, on one line if it fits and contains no comment."""
    message = [
        comments.get(item.alias, _Comments()) if item.alias else _Comments() for item in items
    ]
    line = f"from {items[0].module} import {', '.join(item.text for item in items)}"
    if not any(message) and len(indent) + len(line) <= _WIDTH:
        return line
    lines: list[str] = []
    for item, words in zip(items, message, strict=True):
        behind = f"  {words.behind}" if words.behind else ""
        lines += [*words.before, f"{item.text},{behind}", *words.after]
    inner = [f"{indent}{_INDENT}{text}" for text in lines]
    return "\n".join([f"from {items[0].module} import (", *inner, f"{indent})"])


def _comments(statement: bytes, node: ast.Import | ast.ImportFrom) -> dict[ast.alias, _Comments]:
    """Return the comments inside a statement by the adjacent name."""
    found = {alias: _Comments() for alias in node.names}
    for token in tokenize.tokenize(io.BytesIO(statement + b"\n").readline):
        if token.type != tokenize.COMMENT:
            continue
        line = node.lineno + token.start[0] - 1
        same = [alias for alias in node.names if alias.end_lineno == line]
        later = [alias for alias in node.names if alias.lineno > line]
        if same:
            found[same[-1]].behind = token.string
        elif later:
            found[later[0]].before.append(token.string)
        else:
            found[node.names[-1]].after.append(token.string)
    return found
