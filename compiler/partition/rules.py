"""Rules of the user about the nodes that may be delegated, and the granularity of partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch

from compiler.partition.quantized_regions import is_quantization
from compiler.partition.reasons import operator_of, value_of
from schema.recipe.assignments import split_pair
from schema.recipe.patterns import name_fits, operator_pattern

Node = torch.fx.Node


class Granularity(str, Enum):
    """How large partitions are."""

    MAXIMAL = "maximal"
    MODULE = "module"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class TensorRule:
    """Matches a node by its result, or by any of the tensors it reads.

    Attributes:
        dtypes: names such as ``float16``; empty matches all
        min_rank: fewest dimensions
        max_rank: most dimensions, None for any
        min_elements: fewest elements; a symbolic size matches no bound
        max_elements: most elements, None for any
    """

    dtypes: tuple[str, ...] = ()
    min_rank: int = 0
    max_rank: int | None = None
    min_elements: int = 0
    max_elements: int | None = None

    def __str__(self) -> str:
        parts = [" or ".join(self.dtypes)] if self.dtypes else []
        parts += _bounds(self.min_rank, self.max_rank, "dimensions")
        parts += _bounds(self.min_elements, self.max_elements, "elements")
        return f"the rule for {', '.join(parts) or 'any tensor'}"

    def fits(self, tensor: torch.Tensor) -> bool:
        """Return whether the rule matches a tensor."""
        if self.dtypes and str(tensor.dtype).removeprefix("torch.") not in self.dtypes:
            return False
        if not self.min_rank <= tensor.dim() <= _or_any(self.max_rank):
            return False
        if self.min_elements == 0 and self.max_elements is None:
            return True
        sizes: tuple[Any, ...] = tuple(tensor.shape)
        if not all(isinstance(size, int) for size in sizes):
            return False
        return self.min_elements <= tensor.numel() <= _or_any(self.max_elements)

    def finding(self, node: Node) -> str:
        """Return a description of the first tensor that matches; empty if none does."""
        for each, where in ((node, "its result"), *((n, n.name) for n in node.all_input_nodes)):
            value = each.meta.get("val")
            if isinstance(value, torch.Tensor) and self.fits(value):
                return f"{where} is {value_of(each)}"
        return ""


def _bounds(least: int, most: int | None, what: str) -> list[str]:
    found = [f"at least {least} {what}"] if least else []
    return found if most is None else [*found, f"at most {most} {what}"]


def _or_any(most: int | None) -> float:
    return float("inf") if most is None else most


@dataclass(frozen=True)
class PartitionRules:
    """Rules about the nodes a partitioner may take; empty rules allow everything.

    A node that matches a deny rule is excluded. If allow rules of a kind are given, only nodes that
    match one of them may be taken. Names of operators, nodes and modules may be patterns such as
    ``aten.conv*`` or ``encoder.*``.

    Attributes:
        deny_ops: operators, edge or ATen; including operators decomposed into it, and the nodes it
            was decomposed into
        allow_ops: likewise
        deny_nodes: names of nodes, in the edge or in the exported program
        allow_nodes: likewise
        deny_handles: debug handles
        allow_handles: likewise
        deny_modules: paths of modules, or names of their classes, including everything inside
        allow_modules: likewise
        deny_tensors: by dtype and shape
        allow_tensors: likewise, of results
        min_nodes: fewest computing nodes of a partition; with ``min_work`` those that move data
            count too, since they are instructions outside
        min_work: FLOPs from which a partition may have fewer; None for no such exception
        max_partitions: most partitions, the largest ones are kept; None for no limit
        granularity: size of partitions
        cut_edges: pairs of node names, reader and read, that must not be in one partition
        priority: partitioners with larger values run first
        force_nodes: names of nodes that are taken regardless of the other rules, if the
            partitioner has a rule for them; ``NODE=PARTITIONER`` if only one may take them
        cut_before: names of nodes that are separated from their inputs
        cut_after: names of nodes that are separated from their readers
        alone_nodes: names of nodes that get a separate partition
        alone_ops: operators each node of which gets a separate partition
        deny_rules: disabled rules of the partitioner, by their names in verdicts
    """

    deny_ops: tuple[Any, ...] = ()
    allow_ops: tuple[Any, ...] = ()
    deny_nodes: tuple[str, ...] = ()
    allow_nodes: tuple[str, ...] = ()
    deny_handles: tuple[int, ...] = ()
    allow_handles: tuple[int, ...] = ()
    deny_modules: tuple[str, ...] = ()
    allow_modules: tuple[str, ...] = ()
    deny_tensors: tuple[TensorRule, ...] = ()
    allow_tensors: tuple[TensorRule, ...] = ()
    min_nodes: int = 1
    min_work: int | None = None
    max_partitions: int | None = None
    granularity: Granularity = Granularity.MAXIMAL
    cut_edges: tuple[tuple[str, str], ...] = ()
    priority: int = 0
    force_nodes: tuple[str, ...] = ()
    cut_before: tuple[str, ...] = ()
    cut_after: tuple[str, ...] = ()
    alone_nodes: tuple[str, ...] = ()
    alone_ops: tuple[Any, ...] = ()
    deny_rules: tuple[str, ...] = ()

    def veto(self, node: Node) -> tuple[str, str] | None:
        """Return the rule that excludes a node and why, None if it may be taken."""
        return self.veto_of_operators(operators_behind(node)) or self._veto_of_place(node)

    def veto_of_operators(self, operators: Iterable[str]) -> tuple[str, str] | None:
        """Return the rule that excludes a node of, or decomposed from, these operators.

        What a quantizer inserted is kept out by its own name only: it originates from the operator
        before it, and goes where its neighbours do.
        """
        names = list(operators)
        inserted = bool(names) and is_quantization(names[0])
        if inserted:
            names = [name for name in names if is_quantization(name)]
        denied = _first(names, map(op_pattern, self.deny_ops))
        if denied:
            return "deny_ops", f"{denied[0]} is denied by {denied[1]}"
        if self.allow_ops and not inserted and not _first(names, map(op_pattern, self.allow_ops)):
            return "allow_ops", f"{names[0]} is not among the allowed operators"
        return None

    def forced(self, node: Node) -> tuple[str, str] | None:
        """Return the forced node and its partitioner, empty for any; None if not forced."""
        names = names_behind(node)
        for text in self.force_nodes:
            requested, partitioner = split_pair(text)
            if fits_any(names, requested):
                return requested, partitioner
        return None

    def cuts(self, node: Node) -> tuple[bool, bool]:
        """Return whether partitions end before a node, and after it."""
        names = names_behind(node) if self.cut_before or self.cut_after else []
        return _first(names, self.cut_before) is not None, _first(names, self.cut_after) is not None

    def stands_alone(self, node: Node) -> bool:
        """Return whether a node gets a separate partition."""
        if self.granularity is Granularity.OPERATOR:
            return True
        if self.alone_nodes and _first(names_behind(node), self.alone_nodes):
            return True
        patterns = map(op_pattern, self.alone_ops)
        return bool(self.alone_ops) and _first(operators_behind(node), patterns) is not None

    def turns_off(self, rule: str) -> bool:
        """Return whether a rule of the partitioner is disabled."""
        return bool(self.deny_rules) and _first([rule], self.deny_rules) is not None

    def _veto_of_place(self, node: Node) -> tuple[str, str] | None:
        kinds: tuple[tuple[str, list[str], tuple[str, ...], tuple[str, ...]], ...] = (
            ("nodes", names_behind(node), self.deny_nodes, self.allow_nodes),
            ("modules", modules_around(node), self.deny_modules, self.allow_modules),
            (
                "handles",
                [str(node.meta.get("debug_handle"))],
                tuple(map(str, self.deny_handles)),
                tuple(map(str, self.allow_handles)),
            ),
        )
        for kind, names, deny, allow in kinds:
            denied = _first(names, deny)
            if denied:
                return f"deny_{kind}", f"{kind[:-1]} {denied[0]} is denied by {denied[1]}"
            if allow and not _first(names, allow):
                found = ", ".join(names) or "none"
                return f"allow_{kind}", f"{kind[:-1]} {found} is not among the allowed {kind}"
        return self._veto_of_tensors(node)

    def _veto_of_tensors(self, node: Node) -> tuple[str, str] | None:
        for rule in self.deny_tensors:
            found = rule.finding(node)
            if found:
                return "deny_tensors", f"{found}, which {rule} denies"
        value = node.meta.get("val")
        allowed = self.allow_tensors
        if not allowed or not isinstance(value, torch.Tensor):
            return None
        if any(rule.fits(value) for rule in allowed):
            return None
        return "allow_tensors", f"its result is {value_of(node)}, which no rule allows"


def op_pattern(op: Any) -> str:  # noqa: ANN401 - an operator or its name
    """Return the name, or pattern of names, of an operator; a bare packet means its overloads."""
    qualified = getattr(op, "_qualified_op_name", op)  # that of a packet of overloads
    if isinstance(qualified, str):
        name = qualified
    else:
        name = getattr(op, "__name__", str(op))
        namespace = getattr(op, "namespace", "")
        if namespace and not name.startswith(f"{namespace}."):
            name = f"{namespace}.{name}"
    return operator_pattern(name)


def _first(names: Iterable[str], patterns: Iterable[str]) -> tuple[str, str] | None:
    listed = list(patterns)
    for name in names:
        for pattern in listed:
            if name_fits(name, pattern):
                return name, pattern
    return None


def fits_any(names: Iterable[str], pattern: str) -> bool:
    """Return whether a pattern matches any of some names."""
    return _first(names, [pattern]) is not None


def ancestors(node: Node) -> Iterator[Any]:
    """Yield the nodes of earlier graphs that a node originates from, nearest first."""
    left = list(node.meta.get("from_node") or ())
    while left:
        source = left.pop(0)
        yield source
        left += source.from_node


def operators_behind(node: Node) -> list[str]:
    """Return the operator of a node and those of its ancestors."""
    found = [operator_of(node)]
    for source in ancestors(node):
        text = str(source.target).removeprefix("torch.ops.").removeprefix("<EdgeOp: ").rstrip(">")
        found.append(text)
    return found


def names_behind(node: Node) -> list[str]:
    """Return the name of a node and, if known, of its exported node."""
    return list(dict.fromkeys([node.name, *(s.name for s in list(ancestors(node))[:1])]))


def modules_around(node: Node) -> list[str]:
    """Return the paths and class names of the modules a node is in, outermost first."""
    found: list[str] = []
    stack: dict[str, tuple[str, Any]] = node.meta.get("nn_module_stack") or {}
    for path, kind in stack.values():
        name = kind if isinstance(kind, str) else kind.__name__
        found += [
            path.removeprefix("L['self'].").removeprefix("L['self']"),
            name.rpartition(".")[2],
        ]
    return [text for text in dict.fromkeys(found) if text]


def innermost_module(node: Node) -> str:
    """Return the path of the module a node is in, empty for the outermost."""
    stack: dict[str, tuple[str, Any]] = node.meta.get("nn_module_stack") or {}
    return next(reversed([path for path, _ in stack.values()]), "")
