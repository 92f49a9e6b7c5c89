"""Operator support: which nodes a backend supports, with the rule that rejected the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
from torch.fx.passes.operator_support import OperatorSupportBase

from compiler.dialect.ops import EdgeOp
from compiler.partition.pattern_matching import matches_of
from compiler.partition.reasons import operator_of, value_of

Node = torch.fx.Node
Modules = Mapping[str, torch.nn.Module]
Dtypes: TypeAlias = Sequence[torch.dtype]
SupportDict: TypeAlias = Mapping[Any, "tuple[Sequence[Dtypes | None], Mapping[str, Dtypes]] | None"]


class SupportAnswer(NamedTuple):
    """Whether a node is supported, by which rule, and why not.

    Attributes:
        has_rule: False if no rule covers the operator; None if unknown
    """

    supported: bool
    rule: str
    text: str
    has_rule: bool | None = None


class ExplainedSupport(OperatorSupportBase):
    """Operator support with reasons; subclasses implement ``explain``."""

    def explain(self, submodules: Modules, node: Node) -> SupportAnswer:
        """Return whether a node is supported, and why not."""
        raise NotImplementedError

    def is_node_supported(self, submodules: Modules, node: Node) -> bool:
        """Return whether a node is supported."""
        return self.explain(submodules, node).supported


def explain(support: Any, submodules: Modules, node: Node) -> SupportAnswer:  # noqa: ANN401
    """Return the answer of any support object for a node."""
    if isinstance(support, ExplainedSupport):
        return support.explain(submodules, node)
    rule = type(support).__name__
    if support.is_node_supported(submodules, node):
        return SupportAnswer(True, rule, "", True)
    return SupportAnswer(False, rule, f"{rule}.is_node_supported refuses this {operator_of(node)}")


class OperatorSupport(ExplainedSupport):
    """Support by a table of operators and, for each, the dtypes its arguments may have."""

    def __init__(self, support_dict: SupportDict | None = None) -> None:
        """Create the support from a table.

        Args:
            support_dict: dtypes by operator (edge, ATen, or a name such as ``aten.add.Tensor``):
                None
                for any dtype, else the dtypes of each positional and each keyword argument;
                None in place of dtypes allows all of them
        """
        self._support_dict = support_dict or {}
        self._by_name = {_operator_name(key): value for key, value in self._support_dict.items()}

    def explain(self, submodules: Modules, node: Node) -> SupportAnswer:
        """Return whether the operator is in the table and its arguments have listed dtypes."""
        name, rule = operator_of(node), type(self).__name__
        if node.op != "call_function" or name not in self._by_name:
            return SupportAnswer(False, rule, f"{name} is not in the table of {rule}", False)
        allowed = self._by_name[name]
        if allowed is None:
            return SupportAnswer(True, rule, "", True)
        by_place, by_name = allowed
        pairs = [*zip(map(str, range(len(node.args))), node.args, by_place, strict=False)]
        pairs += [
            (key, node.kwargs[key], given) for key, given in by_name.items() if key in node.kwargs
        ]
        for key, argument, dtypes in pairs:
            found = _dtype(argument)
            if dtypes is not None and found is not None and found not in dtypes:
                listed = ", ".join(_short(dtype) for dtype in dtypes)
                text = f"argument {key} of {name} is {_shown(argument)}, allowed: {listed}"
                return SupportAnswer(False, f"{rule}.dtypes", text, True)
        return SupportAnswer(True, rule, "", True)


class _Function(ExplainedSupport):
    def __init__(self, check: Callable[[Modules, Node], bool]) -> None:
        self._check = check
        self._rule = getattr(check, "__name__", type(check).__name__)

    def explain(self, submodules: Modules, node: Node) -> SupportAnswer:
        supported = bool(self._check(submodules, node))
        return SupportAnswer(supported, self._rule, "" if supported else f"{self._rule} refuses it")


class _All(ExplainedSupport):
    def __init__(self, supports: Sequence[Any]) -> None:
        self._supports = supports

    def explain(self, submodules: Modules, node: Node) -> SupportAnswer:
        for support in self._supports:
            answer = explain(support, submodules, node)
            if not answer.supported:
                return answer
        return SupportAnswer(True, "chain", "", True)


class _Any(ExplainedSupport):
    def __init__(self, supports: Sequence[Any]) -> None:
        self._supports = supports

    def explain(self, submodules: Modules, node: Node) -> SupportAnswer:
        answers: list[SupportAnswer] = []
        for support in self._supports:
            answers.append(explain(support, submodules, node))
            if answers[-1].supported:
                return answers[-1]
        reported = [a for a in answers if a.has_rule] or [a for a in answers if a.has_rule is None]
        reported = reported or answers
        knows = (
            True
            if any(a.has_rule for a in reported)
            else reported[0].has_rule
            if reported
            else False
        )
        rule = " | ".join(dict.fromkeys(answer.rule for answer in reported))
        text = "; ".join(dict.fromkeys(answer.text for answer in reported))
        return SupportAnswer(False, rule or "any_chain", text or "no support objects", knows)


class _Patterns(ExplainedSupport):
    def __init__(self, patterns: Sequence[torch.fx.Graph], *, ignore_literals: bool) -> None:
        self._patterns = patterns
        self._ignore_literals = ignore_literals
        self._matched: dict[int, tuple[torch.fx.Graph, set[Node]]] = {}

    def explain(self, submodules: Modules, node: Node) -> SupportAnswer:
        graph = node.graph
        if id(graph) not in self._matched:
            found = matches_of(graph, self._patterns, ignore_literals=self._ignore_literals)
            self._matched[id(graph)] = (graph, {n for nodes in found for n in nodes})
        matched = node in self._matched[id(graph)][1]
        return SupportAnswer(
            matched, "patterns", "" if matched else "it is part of no pattern's match"
        )


def create_op_support(is_node_supported: Callable[[Modules, Node], bool]) -> OperatorSupportBase:
    """Return support by a function of the submodules and a node."""
    return _Function(is_node_supported)


def create_pattern_support(
    patterns: Sequence[torch.fx.Graph], ignore_literals: bool = False
) -> OperatorSupportBase:
    """Return support for all nodes that are part of a match of a pattern."""
    return _Patterns(patterns, ignore_literals=ignore_literals)


def chain(*op_support: Any) -> OperatorSupportBase:  # noqa: ANN401
    """Return support for nodes that all of these support."""
    return _All(op_support)


def any_chain(*op_support: Any) -> OperatorSupportBase:  # noqa: ANN401
    """Return support for nodes that any of these supports."""
    return _Any(op_support)


def _operator_name(key: Any) -> str:  # noqa: ANN401
    if isinstance(key, str):
        return key.removeprefix("torch.ops.")
    if isinstance(key, EdgeOp):
        return key.__name__
    return f"{key.namespace}.{key.__name__}" if hasattr(key, "namespace") else key.__name__


def _dtype(argument: Any) -> torch.dtype | None:  # noqa: ANN401
    value = argument.meta.get("val") if isinstance(argument, Node) else None
    return value.dtype if isinstance(value, torch.Tensor) else None


def _shown(argument: Any) -> str:  # noqa: ANN401
    return value_of(argument) if isinstance(argument, Node) else repr(argument)


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
