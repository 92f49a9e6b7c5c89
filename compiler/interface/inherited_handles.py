"""Debug handles through a vendor's passes: nodes that replace others inherit theirs.

The map of a vendor then names the nodes of the program; a handle that no identifier claims belongs
to what reads its node, as the first of two fused ones does.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Generator, Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram

HANDLE = "debug_handle"
Handles = Mapping[Any, Sequence[int]]
_VIEWS = frozenset(
    ("view_copy", "squeeze_copy", "unsqueeze_copy", "view", "squeeze", "unsqueeze", "reshape")
)
_PERMUTES = frozenset(("permute_copy", "permute"))
_IMAGES, _SEQUENCE = (4, 5), 3  # dimensions
_LOGGER = logging.getLogger("compiler.delegate")


@contextlib.contextmanager
def inheriting(program: ExportedProgram | None = None) -> Generator[None, None, None]:
    """Let a call that stands in for another one take over its debug handle.

    Args:
        program: before the passes; its own permutations are steps, those that passes add are
            layouts of the layer whose handle they have
    """
    nodes: Any = program.graph.nodes if program is not None else ()
    own = {node.meta.get(HANDLE) for node in nodes if _is_one_of(node, _PERMUTES)}
    node_class: Any = torch.fx.Node
    replace = node_class.replace_all_uses_with

    def replacing(node: Any, by: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        called = HANDLE in node.meta and getattr(by, "op", "") == "call_function"
        added = program is not None and node.meta.get(HANDLE) not in own
        if called and not (HANDLE in by.meta and _only_shows(node, by, added=added)):
            by.meta[HANDLE] = node.meta[HANDLE]  # its value is what stands there now
        return replace(node, by, *args, **kwargs)

    node_class.replace_all_uses_with = replacing
    try:
        yield
    finally:
        node_class.replace_all_uses_with = replace


def _only_shows(node: Any, read: Any, *, added: bool) -> bool:  # noqa: ANN401
    """Return whether a node is another view of what it reads: that keeps the handle of its value.

    A vendor's pass that drops the view of a fused layer's input leaves the value of the one before.
    So does one that drops the layouts around an activation: the layer behind added the second.

    Args:
        node: that is replaced
        read: by which
        added: whether a vendor's pass added the node
    """
    shows = _is_one_of(node, _VIEWS)
    if _is_one_of(node, _PERMUTES):
        shows = _in_order(node) or (added and _moves_channels(node))
    return shows and read in node.all_input_nodes


def _is_one_of(node: Any, names: frozenset[str]) -> bool:  # noqa: ANN401
    return not names.isdisjoint(str(getattr(node.target, "__name__", node.target)).split("."))


def _dims(node: Any) -> list[int]:  # noqa: ANN401
    return list(node.args[1]) if len(node.args) > 1 else []


def _in_order(node: Any) -> bool:  # noqa: ANN401
    """Return whether a permutation leaves the dimensions in their order."""
    dims = _dims(node)
    return bool(dims) and dims == list(range(len(dims)))


def _moves_channels(node: Any) -> bool:  # noqa: ANN401
    """Return whether a permutation moves the channels last, or back, in a way that a value shows.

    Those of images are looked for in both layouts; of sequences the sizes have to tell them apart.
    """
    dims = _dims(node)
    last = [0, *range(2, len(dims)), 1]
    if len(dims) in _IMAGES:
        return dims in (last, [0, len(dims) - 1, *range(1, len(dims) - 1)])
    shape: Any = getattr(node.meta.get("val"), "shape", ())
    return dims == last and len(shape) == _SEQUENCE and shape[1] != shape[2]


class HandlesBefore:
    """The debug handles of a program before a vendor's passes change it."""

    def __init__(self, program: ExportedProgram) -> None:
        """Store each call's handle, and those of its readers."""
        calls = [node for node in program.graph.nodes if node.op == "call_function"]
        self._order = [id(node) for node in calls]
        self._handles: dict[int, Any] = {id(node): node.meta.get(HANDLE) for node in calls}
        self._users = {id(node): [id(user) for user in node.users] for node in calls}

    def completed(self, found: Handles | None, who: str) -> Handles | None:
        """Return a vendor's map with the handles that no identifier claimed.

        Args:
            found: handles by identifier
            who: the backend, for the message about a map that is not of this program

        Returns: None for a map with handles that the program has not
        """
        if not found:
            return found
        known = {one for one in self._handles.values() if isinstance(one, int)}
        claimed = {handle for handles in found.values() for handle in _each(handles)}
        beyond = sorted(claimed - known)
        if beyond:
            words = "the map of %s names debug handle %s, which the program has not: it is dropped"
            _LOGGER.warning(words, who, beyond[0])
            return None
        extra = self._unclaimed(claimed)
        return {
            key: tuple(
                sorted(
                    {*_each(handles), *(h for one in _each(handles) for h in extra.get(one, ()))}
                )
            )
            for key, handles in found.items()
        }

    def _unclaimed(self, claimed: set[int]) -> dict[int, set[int]]:
        """Return unclaimed handles by the claimed one downstream that they belong to."""
        ends: dict[int, int | None] = {}
        extra: dict[int, set[int]] = {}
        for node in reversed(self._order):
            own = self._handles[node]
            if own in claimed:
                ends[node] = own
                continue
            ends[node] = next(
                (end for user in self._users[node] if (end := ends.get(user)) is not None), None
            )
            end = ends[node]
            if isinstance(own, int) and end is not None:
                extra.setdefault(end, set()).add(own)
        return extra


def _each(handles: Any) -> Sequence[int]:  # noqa: ANN401
    return handles if isinstance(handles, (tuple, list)) else (handles,)  # pyright: ignore[reportUnknownVariableType]


def handle_of(node: Any) -> int | None:  # noqa: ANN401
    """Return the handle of a node, of an inserted one that of what it reads."""
    left, seen = [node], set[int]()
    while left:
        one = left.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        if one.op == "call_function" and isinstance(one.meta.get(HANDLE), int):
            return one.meta[HANDLE]
        left += one.all_input_nodes
    return None
