"""Any partitioner under rules of the user: it tags, the rules take away, the rest is cut anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.edge.parts import operators_inside
from compiler.partition.interface import (
    TAG,
    DelegationSpec,
    NodeFilter,
    Partitioner,
    PartitionResult,
    name_of,
)
from compiler.partition.reasons import note, operator_of
from compiler.partition.regions import find_cycle, regions, unit_of
from compiler.partition.rules import (
    Granularity,
    PartitionRules,
    ancestors,
    innermost_module,
    op_pattern,
    operators_behind,
)
from compiler.partition.tags import Data, data_of, set_tag, tag_of
from schema.etrecord.verdicts import Outcome

Node = torch.fx.Node
_IDLE = ("getitem", "aten.view_copy.default", "aten.alias_copy.default")


class SteeredPartitioner(Partitioner):
    """Lets another partitioner tag, and then applies rules; linear in the nodes."""

    def __init__(self, inner: Any, rules: PartitionRules) -> None:  # noqa: ANN401
        """Wrap a partitioner.

        Args:
            inner: ours or anyone's
            rules: what it may take
        """
        super().__init__(getattr(inner, "spec", {}))
        self.inner = inner
        self.rules = rules
        self.verdict_name = name_of(inner)
        self._refused: set[tuple[str, int]] = set()

    def transform_for_pre_decomposition(self, exported_program: ExportedProgram) -> ExportedProgram:
        """Return what the wrapped partitioner returns."""
        return self.inner.transform_for_pre_decomposition(exported_program)

    def ops_to_not_decompose(self, ep: ExportedProgram) -> tuple[list[Any], NodeFilter | None]:
        """Return the wrapped partitioner's operators without those the rules keep out."""
        ops, wanted = self.inner.ops_to_not_decompose(ep)
        kept = [op for op in ops if self.rules.veto_of_operators([op_pattern(op)]) is None]
        inside = operators_inside(ep)

        def may_stay(node: Node) -> bool:
            if wanted is not None and not wanted(node):
                return False
            return self.rules.veto_of_operators((operator_of(node), *inside(node))) is None

        return kept, may_stay

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag what the wrapped partitioner tags and the rules allow."""
        result = self.inner(exported_program)
        tagged: ExportedProgram = result.tagged_exported_program
        tags: dict[str, DelegationSpec] = {}
        self._steer(tagged.graph_module, result.partition_tags, tags)
        _retag_data(tagged, data_of(tagged))
        return PartitionResult(tagged, tags)

    def _steer(
        self,
        module: torch.fx.GraphModule,
        specs: Mapping[str, DelegationSpec],
        tags: dict[str, DelegationSpec],
    ) -> None:
        changed = self._take_out(module.graph)
        groups = self._cut(module.graph, specs, changed)
        kept = self._counted([group for group in groups if self._is_large_enough(group)])
        names = _names(kept)
        for group in groups:
            name = names.get(id(group))
            spec = specs.get(tag_of(group[0]) or "")
            for node in group:
                set_tag(node, None)
            if name is not None and spec is not None:
                name = _free(name, tags)
                tags[name] = spec
                for node in group:
                    node.meta[TAG] = name
        for _, child in module.named_children():
            if isinstance(child, torch.fx.GraphModule):
                self._steer(child, specs, tags)

    def _take_out(self, graph: torch.fx.Graph) -> set[str]:
        """Take the tags off nodes the rules keep out; return the tags that lost some."""
        changed: set[str] = set()
        for node in graph.nodes:
            tag = tag_of(node)
            if node.op != "call_function" or unit_of(node) is not node or tag is None:
                continue
            veto = self.rules.veto(node) or self._earlier_veto(node)
            if veto is not None:
                note(node, veto[0], Outcome.VETOED, f"vetoed by the user: {veto[1]}")
                if veto[0] == "deny_nodes" and operator_of(node) in operators_behind(node)[1:]:
                    self._refused.update(_sources(node))
                set_tag(node, None)
                changed.add(tag)
        return changed

    def _earlier_veto(self, node: Node) -> tuple[str, str] | None:
        # An operator that was kept whole and then vetoed by name comes back in parts.
        for key in _sources(node):
            if key in self._refused:
                return "deny_nodes", f"it is a part of {key[0]}, which was denied"
        return None

    def _cut(
        self, graph: torch.fx.Graph, specs: Mapping[str, DelegationSpec], changed: set[str]
    ) -> list[list[Node]]:
        """Return acyclic regions; partitions that nothing happened to stay as they are."""
        calls = [n for n in graph.nodes if n.op == "call_function" and tag_of(n) in specs]
        whole: dict[Node, str] = {}
        if self.rules.granularity is Granularity.MAXIMAL and not self.rules.cut_edges:
            kept = {node: str(tag_of(node)) for node in calls}
            whole = {node: tag for node, tag in kept.items() if tag not in changed}
            if find_cycle(graph, whole):
                whole = {}
        taken = set(calls)
        named = {node.name: node for node in graph.nodes}
        cuts = {
            (unit_of(named[a]), unit_of(named[b]))
            for a, b in self.rules.cut_edges
            if a in named and b in named
        }
        label: Callable[[Node], Any] = lambda n: self._label(n) if n in taken else None  # noqa: E731
        units = {node: tag for node, tag in whole.items() if unit_of(node) is node}
        return regions(graph, label, units, cuts)

    def _label(self, node: Node) -> Any:  # noqa: ANN401
        if self.rules.granularity is Granularity.OPERATOR:
            return node
        if self.rules.granularity is Granularity.MODULE:
            return tag_of(node), innermost_module(node)
        return tag_of(node)

    def _is_large_enough(self, group: Sequence[Node]) -> bool:
        size = _size(group)
        if size >= self.rules.min_nodes:
            return True
        text = f"its partition has {size} computing node(s), fewer than {self.rules.min_nodes}"
        for node in group:
            note(node, "min_nodes", Outcome.TOO_SMALL, text)
        return False

    def _counted(self, groups: Sequence[list[Node]]) -> list[list[Node]]:
        most = self.rules.max_partitions
        if most is None or len(groups) <= most:
            return list(groups)
        kept = {id(group) for group in sorted(groups, key=_size, reverse=True)[:most]}
        for group in groups:
            if id(group) not in kept:
                text = f"vetoed by the user: {most} partition(s) at most, others are larger"
                for node in group:
                    note(node, "max_partitions", Outcome.VETOED, text)
        return [group for group in groups if id(group) in kept]


def _size(group: Sequence[Node]) -> int:
    return sum(operator_of(node) not in _IDLE for node in group)


def _names(groups: Sequence[list[Node]]) -> dict[int, str]:
    """Return the names of partitions: that of the tag, numbered where it was cut."""
    of_tag: dict[str, list[list[Node]]] = {}
    for group in groups:
        of_tag.setdefault(tag_of(group[0]) or "", []).append(group)
    return {
        id(group): tag if len(found) == 1 else f"{tag}_{place}"
        for tag, found in of_tag.items()
        for place, group in enumerate(found)
    }


def _free(name: str, taken: Mapping[str, Any]) -> str:
    free, count = name, 0
    while free in taken:
        count += 1
        free = f"{name}_{count}"
    return free


def _sources(node: Node) -> list[tuple[str, int]]:
    return [(source.name, source.graph_id) for source in list(ancestors(node))[:1]]


def _retag_data(program: ExportedProgram, data: Data) -> None:
    """Give tagged weights and state the tag of a reader that is left, or none."""
    updates = {
        spec.target: spec.arg.name
        for spec in program.graph_signature.output_specs
        if spec.target is not None
    }
    named = {node.name: node for node in program.graph.nodes}
    for node in program.graph.nodes:
        if node.op != "placeholder" or not node.meta.get(TAG):
            continue
        tags: set[str | None] = {tag_of(user) for user in node.users if user.op != "output"}
        if node.name in data.written:
            value = named.get(updates.get(data.specs[node.name].target, ""))
            tags |= {tag_of(value)} if value is not None else {None}
            tags = tags if len(tags) == 1 else {None}
        found = sorted(tag for tag in tags if tag)
        node.meta.pop(TAG)
        if found:
            node.meta[TAG] = found[0]
