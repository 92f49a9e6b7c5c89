"""Computes parts of an edge program in another floating-point type.

Casts are inserted around the selected nodes, not between two of them; weights that only they read
are stored in that type, which saves or costs their size.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx.node import map_arg

from compiler.dialect.dim_order import TO_DIM_ORDER_COPY, dim_order_of
from compiler.dialect.ops import EdgeOp, edge_op
from compiler.errors import CompileError, at
from compiler.partition.reasons import operator_of
from compiler.partition.regions import follows_source, results_taken
from compiler.partition.rules import fits_any, modules_around, names_behind, op_pattern
from compiler.passes.base import (
    ExportedProgramPassBase,
    ExportedProgramPassResult,
    PassBase,
    PassResult,
)
from compiler.passes.fake import fake_mode_of, fake_run, value_of
from compiler.passes.lineage import inherit
from compiler.passes.standard.constant_prop import constant_prop_pass

Node = torch.fx.Node
TYPES: Mapping[str, torch.dtype] = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float64": torch.float64,
}
_CAST = edge_op(TO_DIM_ORDER_COPY)


class PrecisionError(CompileError, ValueError):
    """A type that is not known, or that an operator cannot be computed in."""


@dataclass(frozen=True)
class Precisions:
    """Floating-point dtypes by node, module and operator, in this order of precedence.

    Names may be patterns, types are ``float16``, ``bfloat16``, ``float32`` and ``float64``.

    Attributes:
        modules: type by path or class of a module; the innermost that is named decides
        operators: type by edge operator
        nodes: type by node, of the edge program or of the exported one
    """

    modules: Mapping[str, str] = field(default_factory=dict[str, str])
    operators: Mapping[str, str] = field(default_factory=dict[str, str])
    nodes: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        """Check the types.

        Raises: PrecisionError naming one that is unknown
        """
        for table in (self.modules, self.operators, self.nodes):
            for name, word in table.items():
                if word not in TYPES:
                    there = ", ".join(TYPES)
                    raise PrecisionError(f"unknown dtype {word!r} for {name}; available: {there}")

    def of(self, node: Node) -> torch.dtype | None:
        """Return the dtype to compute a node in, None to keep its dtype."""
        found = _fitting(names_behind(node), self.nodes)
        for name in reversed(modules_around(node) if self.modules else []):
            found = found or _fitting([name], self.modules)
        operators = {op_pattern(name): word for name, word in self.operators.items()}
        found = found or _fitting([operator_of(node)], operators)
        return None if found is None else TYPES[found]

    def passes(self) -> list[Any]:
        """Return the passes over edge programs that insert the casts, before delegation."""
        return [PrecisionPass(self), FoldCastsPass()]

    def unmatched(self, programs: Sequence[ExportedProgram]) -> list[tuple[str, str]]:
        """Return kind and name of the entries that match no call of any edge program."""
        nodes = [n for p in programs for g in _graphs(p.graph_module) for n in g.nodes]
        nodes = [node for node in nodes if node.op == "call_function"]
        kinds: tuple[tuple[str, Mapping[str, str], Callable[[Node], list[str]]], ...] = (
            ("modules", self.modules, modules_around),
            ("operators", self.operators, _operators),
            ("nodes", self.nodes, names_behind),
        )
        found: list[tuple[str, str]] = []
        for kind, table, names_of in kinds:
            names = {name for node in nodes for name in names_of(node)} if table else set[str]()
            patterns = [(n, op_pattern(n) if kind == "operators" else n) for n in table]
            found += [(kind, name) for name, fits in patterns if not fits_any(names, fits)]
        return found


def _operators(node: Node) -> list[str]:
    return [operator_of(node)]


def _fitting(names: Sequence[str], table: Mapping[str, str]) -> str | None:
    return next((word for pattern, word in table.items() if fits_any(names, pattern)), None)


def _graphs(module: torch.fx.GraphModule) -> list[torch.fx.Graph]:
    return [m.graph for m in module.modules() if isinstance(m, torch.fx.GraphModule)]


class PrecisionPass(PassBase):
    """Inserts casts around the nodes to compute in another dtype."""

    def __init__(self, precisions: Precisions) -> None:
        """Store the dtypes by name."""
        self.precisions = precisions

    def call(self, graph_module: torch.fx.GraphModule) -> Any:  # noqa: ANN401
        """Change a graph module in place, bodies of control flow too."""
        changed = [
            _Casting(graph).run(self.precisions) for graph in reversed(_graphs(graph_module))
        ]
        return PassResult(graph_module, any(changed))


class _Casting:
    """Inserts the casts of one graph, each created once."""

    def __init__(self, graph: torch.fx.Graph) -> None:
        self._graph = graph
        self._casts: dict[tuple[Node, torch.dtype], Node] = {}

    def run(self, precisions: Precisions) -> bool:
        nodes = [node for node in self._graph.nodes if _may_change(node)]
        requested = [(node, dtype) for node in nodes for dtype in [precisions.of(node)] if dtype]
        if not requested:
            return False
        with fake_run(fake_mode_of(self._graph.nodes)):
            for node, dtype in requested:
                self._change(node, dtype)
        for built in reversed(list(self._casts.values())):
            if not built.users:
                self._graph.erase_node(built)
        return True

    def _change(self, node: Node, dtype: torch.dtype) -> None:
        def cast(given: Node) -> Node:
            return self._in_type(given, dtype) if _is_float(given) else given

        results = results_taken(node) or [node]
        before = {each: each.meta.get("val") for each in results}
        node.args = map_arg(node.args, cast)
        node.kwargs = map_arg(node.kwargs, cast)
        try:
            for each in (node, *results_taken(node)):
                each.meta["val"] = value_of(each)
        except Exception as error:
            raise PrecisionError(
                f"{operator_of(node)} cannot be computed in {_name(dtype)} ({error}): {at(node)}"
            ) from error
        for each, value in before.items():
            if isinstance(value, torch.Tensor) and each.meta["val"].dtype != value.dtype:
                self._cast_back(each, value.dtype)

    def _in_type(self, given: Node, dtype: torch.dtype) -> Node:
        """Return a node with the value of another in a type."""
        if given.meta["val"].dtype == dtype:
            return given
        source = given.args[0] if given in self._casts.values() else None
        if isinstance(source, Node) and source.meta["val"].dtype == dtype:
            return source  # its source has this type
        if (given, dtype) not in self._casts:
            after = given if given.op != "placeholder" else _last_placeholder(self._graph)
            self._casts[given, dtype] = self._new(given, dtype, after)
        return self._casts[given, dtype]

    def _cast_back(self, node: Node, dtype: torch.dtype) -> None:
        built = self._new(node, dtype, node)
        self._casts[node, dtype] = built
        node.replace_all_uses_with(built, delete_user_cb=lambda user: user is not built)

    def _new(self, given: Node, dtype: torch.dtype, after: Node) -> Node:
        order = [*dim_order_of(given.meta["val"])]
        with self._graph.inserting_after(after):
            built = self._graph.call_function(_CAST, (given,), {"dtype": dtype, "dim_order": order})
        inherit(built, given.meta if given.op == "call_function" else {})
        built.meta["val"] = value_of(built)
        return built


def _last_placeholder(graph: torch.fx.Graph) -> Node:
    return [node for node in graph.nodes if node.op == "placeholder"][-1]


def _may_change(node: Node) -> bool:
    """Return whether a node computes in the floating-point dtype of its inputs."""
    target: Any = node.target
    if node.op != "call_function" or follows_source(node) or not isinstance(target, EdgeOp):
        return False
    if target is _CAST or target.namespace not in ("aten", "dim_order_ops"):
        return False
    return node.kwargs.get("dtype") is None and any(map(_is_float, node.all_input_nodes))


def _is_float(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype in TYPES.values()


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


class FoldCastsPass(ExportedProgramPassBase):
    """Folds casts of weights that have no other user."""

    def call(self, exported_program: ExportedProgram) -> ExportedProgramPassResult:
        """Return a program with casts of weights evaluated."""
        nodes = exported_program.graph.nodes
        others: Collection[Any] = {node.target for node in nodes} - {_CAST}
        built = constant_prop_pass(exported_program, others)
        return ExportedProgramPassResult(built, built is not exported_program)
