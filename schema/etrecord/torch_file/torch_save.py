"""Reads torch.save files as trees of plain data and tensor views, executing nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from schema.errors import FormatError, Issue, Severity
from schema.etrecord.archive.container import Archive, open_archive, starts_like_zip
from schema.etrecord.budget import Budget
from schema.etrecord.torch_file.pickle_machine import MAX_OPCODES, Global, PickleMachine
from schema.etrecord.torch_file.tensor_data import Opaque, TensorData
from schema.etrecord.torch_file.torch_objects import TorchObjects

Tree: TypeAlias = Any
_PROTOCOL = b"\x80"  # how every pickle of torch.save begins
_PICKLE = "/data.pkl"
_MAX_DEPTH = 100  # readers of the tree are recursive
_MAX_ITEMS = 300_000
_BYTES_AN_OPCODE = 60


@dataclass(frozen=True, slots=True)
class SavedTree:
    """The content of a torch.save file.

    Attributes:
        value: lists, tuples, dicts, scalars, strings, TensorData and Opaque; None if not loaded
        issues: missing or unsupported parts
        loaded: whether ``value`` is the content
    """

    value: Tree
    issues: tuple[Issue, ...] = ()
    loaded: bool = True


def read_torch_save(data: memoryview, where: str, budget: Budget | None = None) -> SavedTree:
    """Return the content of a torch.save file; tensor bytes stay views into it.

    The stock tool writes an empty file for absent data, and legacy pickles are
    reported, not loaded.

    Raises: FormatError if it is neither, or cannot be read
    """
    if not len(data):
        return SavedTree(None, loaded=False)
    if not starts_like_zip(bytes(data[:4])):
        if bytes(data[:1]) != _PROTOCOL:
            raise FormatError(
                "a file of torch.save", f"bytes {bytes(data[:8]).hex(' ')}", field=where
            )
        text = "legacy pickle, not loaded: save the record again with ExecuTorch 1.3 or later"
        return SavedTree(None, (Issue(Severity.WARNING, where, text),), loaded=False)
    try:
        archive = open_archive(data, budget or Budget(len(data)))
        value, issues = _load(archive)
    except FormatError as error:
        raise error.inside(where) from None
    placed = (Issue(i.severity, f"{where}: {i.where}", i.message) for i in issues)
    return SavedTree(value, tuple(placed))


def tensors(tree: Tree) -> Iterable[TensorData]:
    """Yield the tensors of a tree in order."""
    stack: list[Tree] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, TensorData):
            yield node
        elif _is_container(node):
            stack.extend(reversed(_children(node)))


def _load(archive: Archive) -> tuple[Tree, list[Issue]]:
    names = [name for name in archive.names if name.endswith(_PICKLE)]
    if not names:
        raise FormatError("a member named data.pkl", "none")
    name = min(names, key=len)
    prefix = name[: -len(_PICKLE)]
    order = f"{prefix}/byteorder"
    big_endian = order in archive and bytes(archive.read(order)) == b"big"
    objects = TorchObjects(archive, prefix, big_endian=big_endian)
    data = bytes(archive.read(name))
    archive.budget.tree(min(len(data), MAX_OPCODES) * _BYTES_AN_OPCODE, name)
    value = _checked(PickleMachine(data, objects.construct, objects.persistent).run())
    return value, [*archive.issues, *objects.issues]


def _checked(tree: Tree) -> Tree:
    """Return the tree without bare globals, refused if walking it would not end soon.

    A few bytes of pickle can refer to the same list a million times over, or to itself.
    """
    sizes: dict[int, int] = {}
    path: set[int] = set()
    stack: list[Tree] = [tree]
    while stack:
        node = stack[-1]
        if id(node) in sizes or not _is_container(node):
            path.discard(id(node))
            stack.pop()
            continue
        children = [c for c in _children(node) if _is_container(c)]
        if id(node) in path:
            total = len(_children(node)) + sum(sizes[id(child)] for child in children)
            if total > _MAX_ITEMS:
                raise FormatError(f"at most {_MAX_ITEMS} items", f"{total}", field="pickle")
            sizes[id(node)] = total + 1
            continue
        path.add(id(node))
        if len(path) > _MAX_DEPTH or any(id(child) in path for child in children):
            raise FormatError("a tree", "a cycle or too many levels", field="pickle")
        stack.extend(child for child in children if id(child) not in sizes)
    return _plain(tree)


def _is_container(node: Tree) -> bool:
    return isinstance(node, (list, tuple, dict))


def _children(node: Tree) -> list[Tree]:
    if isinstance(node, dict):
        return list(cast("dict[Tree, Tree]", node).values())
    return list(cast("list[Tree]", node))


def _plain(node: Tree) -> Tree:
    """Return the tree with leftover globals and storages as Opaque leaves."""
    if isinstance(node, dict):
        return {key: _plain(value) for key, value in cast("dict[Tree, Tree]", node).items()}
    if isinstance(node, list):
        return [_plain(item) for item in cast("list[Tree]", node)]
    if isinstance(node, tuple):
        return tuple(_plain(item) for item in cast("tuple[Tree, ...]", node))
    if isinstance(node, Global):
        return Opaque(node.dotted)
    known = node is None or isinstance(node, (str, bytes, int, float, complex, TensorData, Opaque))
    return node if known else Opaque(type(node).__name__)
