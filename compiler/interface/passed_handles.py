"""Nodes through passes over whole programs: which of them a call replaced, and whose value it has.

A call has the value of the node that it replaced last. Where a pass computes its graph again, that
is the call it returns for a node; others that it adds for it have the node's metadata and compute
parts. Of several candidates dtype and shape decide: quantization becomes part of other calls.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch

from compiler.interface.inherited_handles import HANDLE

_REPLACED, _VALUES = "replaced_nodes", "nodes_of_value"  # names in metadata
_NODE = "node_of_value"
_Form = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class NodesBefore:
    """The calls of a graph before passes, each of which is marked with its name.

    Attributes:
        handles: debug handle by name
        forms: dtypes and sizes of its results by name
        sources: node with several results by the name of the call that takes its first one
    """

    handles: Mapping[str, Any] = field(default_factory=dict[str, Any])
    forms: Mapping[str, _Form] = field(default_factory=dict[str, _Form])
    sources: Mapping[str, str] = field(default_factory=dict[str, str])


def marked(module: Any) -> NodesBefore:  # noqa: ANN401 - a graph module
    """Mark the calls of a graph; passes hand the marks on as metadata."""
    calls = [node for node in module.graph.nodes if node.op == "call_function"]
    for node in calls:
        node.meta[_REPLACED] = node.meta[_VALUES] = (node.name,)
    handles = {node.name: node.meta.get(HANDLE) for node in calls}
    firsts = [one for one in calls if one.target is operator.getitem and one.args[1] == 0]
    sources = {
        one.name: one.args[0].name for one in firsts if isinstance(one.args[0], torch.fx.Node)
    }
    return NodesBefore(handles, {node.name: _form(node) for node in calls}, sources)


def _form(node: Any) -> _Form:  # noqa: ANN401
    value: Any = node.meta.get("val")
    listed = isinstance(value, (tuple, list))
    several = cast("Sequence[Any]", value) if listed else (value,)
    return tuple(
        (one.dtype, *map(str, one.shape)) for one in several if isinstance(one, torch.Tensor)
    )


@contextlib.contextmanager
def following(interpreter: Any = None) -> Generator[None, None, None]:  # noqa: ANN401
    """Let calls take over the marks of those that they replace.

    Args:
        interpreter: class by which passes compute a graph again, None for none
    """
    node_class: Any = torch.fx.Node
    replace = node_class.replace_all_uses_with

    def replacing(node: Any, by: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        others = [*by.graph.nodes] if isinstance(by, torch.fx.Node) else []
        _without_shared_metadata(node, [one for one in others if one is not node])
        _hand_on(node, by)
        for other in others:
            if other is not node and other is not by:
                _is_part(other, _values(node))
        return replace(node, by, *args, **kwargs)

    node_class.replace_all_uses_with = replacing
    try:
        with _computing_again(interpreter):
            yield
    finally:
        node_class.replace_all_uses_with = replace


@contextlib.contextmanager
def _computing_again(interpreter: Any) -> Generator[None, None, None]:  # noqa: ANN401
    if interpreter is None:
        yield
        return
    call = interpreter.call_function

    def calling(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        graph = self.callback.tracer.graph
        last = next(iter(reversed(graph.nodes)), None)
        found = call(self, *args, **kwargs)
        result = getattr(found, "node", None)
        for added in _after(graph, last):
            if added is not result:
                _is_part(added, _values(self.node))
        _hand_on(self.node, result)
        return found

    interpreter.call_function = calling
    try:
        yield
    finally:
        interpreter.call_function = call


def _after(graph: Any, last: Any) -> Iterator[Any]:  # noqa: ANN401
    """Yield the nodes of a graph behind one, the last first."""
    for node in reversed(graph.nodes):
        if node is last:
            return
        yield node


def _without_shared_metadata(node: Any, others: Sequence[Any]) -> None:  # noqa: ANN401
    """Give nodes that a pass added with the metadata of another one a copy of it."""
    for other in others:
        if other.meta is node.meta:
            other.meta = dict(other.meta)


def _values(node: Any) -> tuple[str, ...]:  # noqa: ANN401
    return node.meta.get(_VALUES) or ()


def _is_part(node: Any, values: tuple[str, ...]) -> None:  # noqa: ANN401
    """Note that a call does not have these values, whose node's metadata it has."""
    own = _values(node)
    if own and not set(values).isdisjoint(own):
        node.meta[_VALUES] = tuple(one for one in own if one not in values)


def _hand_on(node: Any, by: Any) -> None:  # noqa: ANN401
    if by is node or getattr(by, "op", "") != "call_function":
        return
    for key in (_REPLACED, _VALUES):
        own, more = by.meta.get(key) or (), node.meta.get(key) or ()
        by.meta[key] = (*(one for one in own if one not in more), *more)


def settle(module: Any, before: NodesBefore) -> list[tuple[Any, tuple[int, ...]]]:  # noqa: ANN401
    """Give each call the handles of all nodes that it replaced, and the one whose value it has.

    Returns: the calls with these handles
    """
    found: list[tuple[Any, tuple[int, ...]]] = []
    claimed = set[str]()
    for node in module.graph.nodes:
        if node.op != "call_function":
            continue
        named = (before.handles.get(name) for name in node.meta.pop(_REPLACED, ()))
        handles = tuple(dict.fromkeys(one for one in named if isinstance(one, int)))
        name = _value_of(node, before)
        node.meta.pop(_VALUES, None)
        if name and name not in claimed:  # one that follows it, as a permutation, is another value
            claimed.add(name)
            node.meta[_NODE] = name
        if handles:
            node.meta[HANDLE] = handles[0] if len(handles) == 1 else handles
        found.append((node, handles))
    return found


def represented(node: Any, before: NodesBefore) -> tuple[str, ...]:  # noqa: ANN401
    """Return the nodes that a call stands for, in graph order, the last of which has its value.

    A record has no node that takes the first result of another: that one has the value then.

    Returns: names as in a record, empty where no node is known to have its value
    """
    name = _value_of(node, before)
    if not name:
        return ()
    replaced = {*(node.meta.get(_REPLACED) or ()), name}
    ordered = [one for one in before.forms if one in replaced]
    names = [before.sources.get(one, one) for one in ordered[: ordered.index(name) + 1]]
    return tuple(dict.fromkeys((*(one for one in names if one != names[-1]), names[-1])))


def _value_of(node: Any, before: NodesBefore) -> str:  # noqa: ANN401
    """Return the node whose value a call has, empty if none is known."""
    form = _form(node)
    return next((one for one in reversed(_values(node)) if before.forms.get(one) == form), "")


def recorded_nodes(module: Any) -> dict[int, str]:  # noqa: ANN401 - a graph module
    """Return instruction -> the node whose value it has, of a graph that was emitted.

    The emission has replaced debug handles by instructions.
    """
    nodes = (node for node in module.graph.nodes if node.op == "call_function")
    return {
        node.meta[HANDLE]: node.meta[_NODE]
        for node in nodes
        if _NODE in node.meta and isinstance(node.meta.get(HANDLE), int)
    }
