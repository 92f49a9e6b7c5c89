"""The operators of a recorded graph by debug handle, named as the stock tool names them.

Only calls of the outer graph count: results taken apart, allocations and nested graphs do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from schema.etrecord import ListedNode, node_list
from schema.etrecord.graph.names import callable_name
from schema.etrecord.graph.node_list import GETITEM
from schema.etrecord.graph.source_meta import split_outside_brackets
from schema.graph import Graph, GraphNode
from schema.objects.identity_cache import identity_cache

ModuleStack = dict[str, tuple[str, str]]
_ALLOCATION = "memory.alloc"


@dataclass(frozen=True, slots=True)
class Symbol:
    """One operator of the recorded graph.

    Attributes:
        name: node name with the stock tool's trailing underscore
        op: operator type
        stack_trace: traceback, None when it was not recorded
        module_stack: key -> (module path, module type), outermost first
    """

    name: str
    op: str
    stack_trace: str | None
    module_stack: ModuleStack


Symbols = Mapping[int, tuple[Symbol, ...]]


@identity_cache
def symbols_by_handle(graph: Graph, group_by_module: bool = False) -> Symbols:
    """Return the operators of a graph by debug handle.

    Args:
        graph: a recorded graph
        group_by_module: put operators with a recorded source function behind the others, together
            with those of the same function, as the stock tool does with module hierarchy enabled
    """
    nodes = {node.name: node for node in graph.nodes}
    plain: list[tuple[int, Symbol]] = []
    grouped: dict[str, list[tuple[int, Symbol]]] = {}
    for listed in node_list(graph):
        if not _is_operator(listed) or listed.debug_handle is None:
            continue
        node = nodes[listed.source]
        symbol = symbol_of(node, listed)
        function = _source_function(node) if group_by_module else ""
        into = grouped.setdefault(function, []) if function else plain
        into.append((listed.debug_handle, symbol))
    found: dict[int, list[Symbol]] = {}
    for handle, symbol in (*plain, *(pair for pairs in grouped.values() for pair in pairs)):
        found.setdefault(handle, []).append(symbol)
    return {handle: tuple(symbols) for handle, symbols in found.items()}


def _is_operator(listed: ListedNode) -> bool:
    return listed.op == "call_function" and listed.target not in (GETITEM, _ALLOCATION)


def symbol_of(node: GraphNode, listed: ListedNode | None = None) -> Symbol:
    """Return the symbol of a recorded node, named as listed where the stock tool lists it."""
    operator = callable_name(str(node.attributes.get("raw_target", node.target)))
    stack = module_stack(str(node.attributes.get("nn_module_stack", "")))
    name = listed.name if listed is not None else node.name
    return Symbol(f"{name}_", operator, node.stack_trace or None, stack)


def _source_function(node: GraphNode) -> str:
    return str(node.attributes.get("source_fn_stack", "")).rpartition(";")[2]


@lru_cache(maxsize=4096)
def module_stack(text: str) -> ModuleStack:
    """Return the module stack of its recorded string, ``key,path,type`` joined by semicolons.

    Entries of another form are left out.
    """
    entries = (split_outside_brackets(entry) for entry in text.split(";") if entry)
    return {entry[0]: (entry[1], entry[2]) for entry in entries if len(entry) == 3}
