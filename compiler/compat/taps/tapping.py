"""Inserts taps into an exported program, and replaces them by reducers after delegation.

A tap is a call of an operator that no partitioner supports: its input becomes an output of the
delegate,
its result an output of the program.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind, OutputSpec, TensorArgument
from torch.utils import _pytree as pytree

from compiler.compat.taps.reducers import STATS, StatReducer, get_reducer
from compiler.compat.taps.selectors import NodeSelector, module_stack, select_all_call_function
from compiler.dialect.ops import EdgeOp

Node = torch.fx.Node
TapRule = tuple[NodeSelector, "str | StatReducer"]

NAMESPACE = "etscope_devtools"
_library: Any = torch.library.Library(NAMESPACE, "DEF")
_library.define("tap.Tensor(Tensor x, str reducer_name) -> Tensor")
_tapped_with: dict[str, StatReducer] = {}  # reducers of users, by the name a tap holds


def _tapped(x: torch.Tensor, reducer_name: str) -> torch.Tensor:
    # A result may not share memory with an input.
    return _reducer(reducer_name).eager(x).clone()


_library.impl("tap.Tensor", _tapped, "CompositeExplicitAutograd")


@dataclass(frozen=True)
class TapSpec:
    """One tap.

    Attributes:
        node_name: of the tapped node
        op_target: its operator
        output_index: index of its value among the flat outputs of the program
        reducer_name: name of its reducer
        fields: names of the values in its result, empty for a whole tensor
        stack_trace: of the node, None if unknown
        module_path: of the innermost enclosing module, None if unknown
        module_class: class of that module, None if unknown
    """

    node_name: str
    op_target: str
    output_index: int
    reducer_name: str
    fields: tuple[str, ...]
    stack_trace: str | None = None
    module_path: str | None = None
    module_class: str | None = None


def tap_operator() -> Any:  # noqa: ANN401 - an operator overload of torch
    """Return the operator that marks a tap."""
    namespace: Any = getattr(torch.ops, NAMESPACE)
    return namespace.tap.Tensor


def is_tap_node(node: Node) -> bool:
    """Return whether a node of an exported or an edge program is a tap."""
    target = node.target.op if isinstance(node.target, EdgeOp) else node.target
    return node.op == "call_function" and target is tap_operator()


def find_tap_nodes(graph_module: torch.fx.GraphModule) -> list[Node]:
    """Return the taps of a graph in order."""
    return [node for node in graph_module.graph.nodes if is_tap_node(node)]


def tap_intermediate_outputs_(
    ep: ExportedProgram,
    rules: Sequence[TapRule] | TapRule | None = None,
    *,
    max_taps: int | None = None,
    error_on_empty: bool = True,
) -> tuple[ExportedProgram, list[TapSpec]]:
    """Append the values of chosen nodes to the outputs of a program, in place.

    Args:
        ep: as ``torch.export.export`` returned it
        rules: (selector, reducer) pairs, the first match applies; by default statistics of every
            call
        max_taps: largest number of taps
        error_on_empty: raise an error instead of a warning if no node is selected

    Returns: the program, and its taps
    Raises: ValueError if no node is selected, or rules are empty
    """
    chosen = _chosen(ep.graph_module.graph, _pairs(rules))
    if max_taps is not None:
        chosen = chosen[:max_taps]
    if not chosen:
        words = "no rule selects a node of the program"
        if error_on_empty:
            raise ValueError(words)
        warnings.warn(words, UserWarning, stacklevel=2)
        return ep, []
    graph = ep.graph_module.graph
    output = graph.output_node()
    outputs = list(cast("tuple[Any, ...]", output.args[0]))
    specs: list[TapSpec] = []
    for node, reducer in chosen:
        specs.append(_spec(node, reducer, len(outputs)))
        outputs.append(_tap(graph, node, reducer))
        ep.graph_signature.output_specs.append(
            OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(outputs[-1].name), None)
        )
    output.args = (tuple(outputs),)
    output.meta["val"] = tuple(getattr(one, "meta", {}).get("val") for one in outputs)
    _extend_output_tree(ep, len(specs))
    ep.graph_module.recompile()
    return ep, specs


def _pairs(rules: Sequence[TapRule] | TapRule | None) -> list[tuple[NodeSelector, StatReducer]]:
    if rules is None:
        rules = [(select_all_call_function(), STATS)]
    elif isinstance(rules, tuple) and len(rules) == 2 and callable(rules[0]):
        rules = [cast("TapRule", rules)]
    listed = cast("Sequence[TapRule]", rules)
    if not listed:
        raise ValueError("rules is empty: expected (selector, reducer) pairs")
    return [(selector, get_reducer(reducer)) for selector, reducer in listed]


def _chosen(
    graph: torch.fx.Graph, rules: Sequence[tuple[NodeSelector, StatReducer]]
) -> list[tuple[Node, StatReducer]]:
    found: list[tuple[Node, StatReducer]] = []
    for node in graph.nodes:
        if node.op != "call_function" or is_tap_node(node):
            continue
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or "0" in map(str, value.shape):
            # several results are tapped at their getitems; a tensor without elements has no values
            continue
        reducer = next((one for selector, one in rules if selector(node)), None)
        if reducer is not None:
            found.append((node, reducer))
    return found


def _tap(graph: torch.fx.Graph, node: Node, reducer: StatReducer) -> Node:
    name = reducer.name
    _tapped_with[name] = reducer
    with graph.inserting_after(node):
        built = graph.call_function(tap_operator(), (node, name))
    value = node.meta["val"]
    with value.fake_mode:
        built.meta["val"] = _tapped(value, name)
    for key in ("from_node", "stack_trace", "nn_module_stack"):
        if key in node.meta:
            built.meta[key] = node.meta[key]
    return built


def _reducer(name: str) -> StatReducer:
    return _tapped_with.get(name) or get_reducer(name)


def _spec(node: Node, reducer: StatReducer, index: int) -> TapSpec:
    stack = module_stack(node)
    return TapSpec(
        node.name,
        str(node.target),
        index,
        reducer.name,
        reducer.fields,
        node.meta.get("stack_trace"),
        stack[-1][1] if stack else None,
        stack[-1][2] if stack else None,
    )


def _extend_output_tree(ep: ExportedProgram, count: int) -> None:
    """Append further leaves to the outputs of the program."""
    owner: Any = ep
    tree: Any = pytree
    for entry in owner._module_call_graph:
        if entry.fqn or entry.signature is None:
            continue
        known = entry.signature.out_spec
        held: Any = tree.tree_unflatten([0] * known.num_leaves, known)
        own = cast("tuple[Any, ...]", held if type(held) is tuple else (held,))
        entry.signature.out_spec = tree.tree_structure((*own, *[0] * count))
        # torch skips empty names when it checks them: lowering renames the taps
        entry.signature.outputs.extend(TensorArgument("") for _ in range(count))


def strip_taps_(edge_manager: Any) -> None:  # noqa: ANN401 - an EdgeProgramManager
    """Replace each tap of all methods by its reducer's operators, in place.

    It is called between ``to_edge_transform_and_lower`` and ``to_executorch``.

    Args:
        edge_manager: an ``EdgeProgramManager``
    """
    for method in edge_manager.methods:
        _strip(edge_manager.exported_program(method))


def _strip(ep: ExportedProgram) -> None:
    graph = ep.graph_module.graph
    for tap in find_tap_nodes(ep.graph_module):
        source, name = cast("tuple[Node, str]", tap.args)
        with graph.inserting_before(tap):
            built = _reducer(name).insert(graph, source)
        for node in _between(source, tap, built):
            node.meta.setdefault("debug_handle", tap.meta.get("debug_handle"))
        tap.replace_all_uses_with(built)
        graph.erase_node(tap)
    ep.graph_module.recompile()
    specs = ep.graph_signature.output_specs
    results = cast("tuple[Any, ...]", graph.output_node().args[0])
    for index, (spec, node) in enumerate(zip(specs, results, strict=True)):
        if isinstance(node, Node) and isinstance(spec.arg, TensorArgument):
            specs[index] = OutputSpec(spec.kind, TensorArgument(node.name), spec.target)


def _between(source: Node, tap: Node, last: Node) -> Iterator[Node]:
    """Yield the nodes that a reducer has added, back from the last one."""
    node = tap.prev
    while last is not source and node is not source and node.op == "call_function":
        if "debug_handle" in node.meta:
            return
        yield node
        node = node.prev
