"""Metadata that passes omit: the old node of each new node, and its fake result.

A pass that edits a graph node by node, torch's own pattern rewriter among them, creates nodes
without metadata. A new node inherits from the node it replaces, one further upstream from
the new node that reads it, and any other from its first input.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from compiler.dialect.templates import nodes_in
from compiler.errors import at
from compiler.passes.base import PassError
from compiler.passes.fake import fake_mode_of, fake_run, same_kind, value_of

Node = torch.fx.Node
_INHERITED = (
    "stack_trace",
    "nn_module_stack",
    "source_fn_stack",
    "torch_fn",
    "custom",
    "from_node",
    "debug_handle",
    "delegation_tag",
)


@dataclass(frozen=True, slots=True)
class _Old:
    """A node before a pass: operator, argument names, metadata."""

    target: Any
    inputs: tuple[str, ...]
    literals: str
    meta: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The graphs of a module before a pass, by path."""

    graphs: Mapping[str, Mapping[str, _Old]]


def snapshot(module: torch.fx.GraphModule) -> Snapshot:
    """Record the graphs before a pass."""
    return Snapshot({path: _facts(inner.graph.nodes) for path, inner in _graphs(module)})


def _graphs(module: torch.fx.GraphModule) -> list[tuple[str, torch.fx.GraphModule]]:
    """Return a module's graph and those of its control flow, without delegates."""
    found = [("", module)]
    for name, child in module.named_children():
        if isinstance(child, torch.fx.GraphModule):
            found += [(f"{name}.{path}", inner) for path, inner in _graphs(child)]
    return found


def _facts(nodes: Iterable[Node]) -> dict[str, _Old]:
    return {n.name: _Old(n.target, _names(n), _literals(n), dict(n.meta)) for n in nodes}


def _names(node: Node) -> tuple[str, ...]:
    return tuple(i.name for i in nodes_in((node.args, node.kwargs)))


def _literals(node: Node) -> str:
    return f"{node.args}{node.kwargs}"


def restore_metadata(before: Snapshot, module: torch.fx.GraphModule, name: str) -> None:
    """Fill in missing metadata of new nodes, and recompute the values that changed.

    Args:
        before: input of the pass
        module: output of the pass; changed here
        name: of the pass

    Raises: PassError naming a node whose operator rejects its new arguments
    """
    for path, inner in _graphs(module):
        nodes = list(inner.graph.nodes)
        old = before.graphs.get(path, {})
        _restore_lineage(old, nodes)
        _restore_values(old, nodes, name)


def _restore_lineage(old: Mapping[str, _Old], nodes: list[Node]) -> None:
    new = {n for n in nodes if n.op == "call_function" and _lacks(old, n)}
    if not new:
        return
    heirs: dict[Node, Mapping[str, Any]] = {}
    for node in reversed(nodes):
        for reads, meta in _replaced(old, node, heirs):
            if reads in new:
                heirs.setdefault(reads, meta)
    for node in nodes:
        if node in new:
            inherit(node, heirs.get(node) or _of_an_input(node))


def _replaced(
    old: Mapping[str, _Old], node: Node, heirs: Mapping[Node, Mapping[str, Any]]
) -> list[tuple[Node, Mapping[str, Any]]]:
    """Return the inputs of a node, each with the metadata of its old node."""
    was = old.get(node.name)
    if was is None or was.target is not node.target:
        return [(reads, heirs[node]) for reads in node.all_input_nodes] if node in heirs else []
    pairs = zip(nodes_in((node.args, node.kwargs)), was.inputs, strict=False)
    return [
        (reads, old[read].meta)
        for reads, read in pairs
        if reads.name != read and "debug_handle" in old[read].meta
    ]


def _lacks(old: Mapping[str, _Old], node: Node) -> bool:
    return node.name not in old and "debug_handle" not in node.meta


def _of_an_input(node: Node) -> Mapping[str, Any]:
    inputs = node.all_input_nodes
    known = [i.meta for i in inputs if i.meta.get("debug_handle")]
    return known[0] if known else {}


def inherit(node: Node, meta: Mapping[str, Any]) -> None:
    """Copy missing metadata of another node: source lines, origins, debug handle, tag."""
    for key in _INHERITED:
        if key in meta:
            node.meta.setdefault(key, meta[key])


def _restore_values(old: Mapping[str, _Old], nodes: list[Node], name: str) -> None:
    stale = [n for n in nodes if _is_call(n) and _is_stale(old.get(n.name), n)]
    if not stale:
        return
    waiting = set(stale)
    with fake_run(fake_mode_of(nodes)):
        for node in nodes:
            if node not in waiting:
                continue
            value = _computed(node, name)
            known = node.meta.get("val")
            if known is not None and same_kind(known, value):
                continue
            node.meta["val"] = value
            waiting.update(user for user in node.users if _is_call(user))


def _is_call(node: Node) -> bool:
    # Calls with bodies and delegates define their results themselves.
    return node.op == "call_function" and not any(i.op == "get_attr" for i in node.all_input_nodes)


def _is_stale(was: _Old | None, node: Node) -> bool:
    if "val" not in node.meta:
        return True
    if was is None:
        return False
    return was.target is not node.target or was.literals != _literals(node)


def _computed(node: Node, name: str) -> Any:  # noqa: ANN401
    try:
        return value_of(node)
    except Exception as error:
        shown = getattr(node.target, "__name__", node.target)
        raise PassError(
            name,
            f"after the pass {name}, {shown} does not accept its arguments ({error}): {at(node)}",
        ) from error
