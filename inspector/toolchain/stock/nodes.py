"""Properties of a node for rules and verdicts: operator, names, modules, types, line."""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import torch

Node = Any  # torch.fx.Node, whose own annotations differ between releases
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_TORCH = tuple(
    str(path)
    for path in (
        Path(str(torch.__file__)).parent,
        *(sysconfig.get_paths()[key] for key in ("purelib", "platlib", "stdlib")),
    )
)


def operator_of(node: Node) -> str:
    """Return the operator of a call as in ``aten.add.Tensor``."""
    return operator_name(node.target)


def operator_name(target: Any) -> str:  # noqa: ANN401
    """Return the name of an operator, edge or ATen."""
    if isinstance(target, str):
        return target
    inner = getattr(target, "_op", None)  # of an operator of the edge dialect, or a function
    schema = getattr(inner, "_schema", None) or getattr(target, "_schema", None)
    name = str(getattr(target, "__name__", target))
    if schema is None or name.count(".") > 1:
        return name
    return f"{str(schema.name).split('::')[0]}.{name}"


def ancestors(node: Node) -> Iterator[Any]:
    """Yield the nodes of earlier graphs that a node originates from, nearest first."""
    left = list(node.meta.get("from_node") or ())
    while left:
        source = left.pop(0)
        if not hasattr(source, "name"):
            continue
        yield source
        left += list(getattr(source, "from_node", ()) or ())


def operators_behind(node: Node) -> list[str]:
    """Return the operator of a node and those of its ancestors."""
    found = [operator_of(node)]
    for source in ancestors(node):
        text = str(getattr(source, "target", "")).removeprefix("torch.ops.")
        found.append(text.removeprefix("<EdgeOp: ").split(">")[0])
    return list(dict.fromkeys(found))


def names_behind(node: Node, exported: Collection[int]) -> list[str]:
    """Return the name of a node and of its exported nodes.

    Args:
        node: of an edge graph, or of an exported one
        exported: ids of the exported graphs
    """
    sources = [source.name for source in ancestors(node) if _graph(source) in exported]
    return list(dict.fromkeys([node.name, *sources]))


def _graph(source: Any) -> int:  # noqa: ANN401
    found = getattr(source, "graph_id", -1)
    return found if isinstance(found, int) else -1


def modules_around(node: Node) -> list[str]:
    """Return the paths and class names of the modules a node is in, outermost first."""
    found: list[str] = []
    stack: dict[str, tuple[str, Any]] = node.meta.get("nn_module_stack") or {}
    for path, kind in stack.values():
        name = kind if isinstance(kind, str) else kind.__name__
        inside = path.removeprefix("L['self'].").removeprefix("L['self']")
        found += [inside, name.rpartition(".")[2]]
    return [text for text in dict.fromkeys(found) if text]


def dtypes_at(node: Node) -> dict[str, str]:
    """Return the dtypes of a node's result and inputs, by position."""
    found: dict[str, str] = {}
    for each, where in ((node, "its result"), *((one, one.name) for one in node.all_input_nodes)):
        value = each.meta.get("val")
        if isinstance(value, torch.Tensor):
            found[where] = str(value.dtype).removeprefix("torch.")
    return found


def source_line(node: Node) -> str:
    """Return ``file:line`` of the user's code a node comes from, empty if unknown."""
    frames = _FRAME.findall(str(node.meta.get("stack_trace") or ""))
    own = [frame for frame in frames if not frame[0].startswith(_TORCH)]
    return ":".join((own or frames)[-1]) if frames else ""


def calls_in(module: Any, path: str = "") -> Iterator[tuple[Node, str]]:  # noqa: ANN401
    """Yield the calls of a graph and of the bodies inside it, with their names.

    The name of a node inside a body follows that of the body, as in ``true_graph_0/aten_add``.
    """
    for node in module.graph.nodes:
        if node.op == "call_function":
            yield node, f"{path}{node.name}"
        elif node.op == "get_attr":
            inner = getattr(module, str(node.target), None)
            if isinstance(inner, torch.fx.GraphModule):
                yield from calls_in(inner, f"{path}{node.target}/")


def unit_of(node: Node) -> Node:
    """Return the node that computes: the source of a ``getitem``, or the node itself."""
    while operator_of(node) == "getitem" and hasattr(node.args[0], "meta"):
        node = node.args[0]
    return node
