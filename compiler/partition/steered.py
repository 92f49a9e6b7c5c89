"""A partitioner under rules of the user: vetoed tags are removed, the rest is split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.edge.operator_parts import operators_inside
from compiler.interface.partitioner import (
    TAG,
    DelegationSpec,
    NodeFilter,
    Partitioner,
    PartitionResult,
    name_of,
)
from compiler.memory.lifetimes import SAME_BYTES
from compiler.partition.forced_nodes import with_forced
from compiler.partition.named_partitioners import is_called
from compiler.partition.quantized_regions import CONVERTS, only_converts, whole_regions
from compiler.partition.reasons import note, noted, operator_of
from compiler.partition.regions import unit_of
from compiler.partition.rules import PartitionRules, ancestors, op_pattern, operators_behind
from compiler.partition.run_partitioner import answer_of, ops_to_preserve
from compiler.partition.splitting import cut
from compiler.partition.steering import Steering, steered_by
from compiler.partition.tags import Data, check_tagged_kinds, data_of, set_tag, tag_of
from compiler.partition.verdicts import calls_in
from compiler.partition.work import flops_of
from schema.etrecord.parts.verdicts import NodeOutcome
from schema.graph import is_compute
from schema.objects.plural import plural
from schema.vendors.table import takes_whole_regions

Node = torch.fx.Node
DENIED_AS = "which was denied as "
_IDLE = ("getitem", "aten.view_copy.default", "aten.alias_copy.default")


class SteeredPartitioner(Partitioner):
    """Runs another partitioner and applies rules to its tags; linear in the nodes."""

    def __init__(self, inner: Any, rules: PartitionRules) -> None:  # noqa: ANN401
        """Wrap a partitioner.

        Args:
            inner: any partitioner
            rules: applied to its tags
        """
        super().__init__(getattr(inner, "spec", {}))
        self.inner = inner
        self.rules = rules
        self.verdict_name = name_of(inner)
        self._refused: dict[tuple[str, int], str] = {}
        self._together: dict[Node, tuple[str, str]] = {}
        self._vetoes = False  # whether a node was kept out of the program in hand

    def transform_for_pre_decomposition(self, exported_program: ExportedProgram) -> ExportedProgram:
        """Return the result of the wrapped partitioner."""
        change = getattr(self.inner, "transform_for_pre_decomposition", None)
        return exported_program if change is None else change(exported_program)

    def ops_to_not_decompose(self, ep: ExportedProgram) -> tuple[list[Any], NodeFilter | None]:
        """Return the wrapped partitioner's operators without those excluded by the rules."""
        steering = Steering(lambda _: False, self.rules.turns_off)
        with steered_by(steering):
            ops, requested = ops_to_preserve(self.inner, ep)
        kept = [op for op in ops if self._may_keep(op)]
        inside = operators_inside(ep)

        def may_stay(node: Node) -> bool:
            with steered_by(steering):
                if requested is not None and not requested(node):
                    return False
            if self._is_forced(node):
                return True
            veto = self.rules.veto_of_operators((operator_of(node), *inside(node)))
            if veto is not None:
                note(node, veto[0], NodeOutcome.VETOED, f"vetoed by the user: {veto[1]}")
            return veto is None

        return kept, may_stay

    def _may_keep(self, op: Any) -> bool:  # noqa: ANN401 - an operator
        # A node of it may be forced: then the filter decides, which sees nodes.
        vetoed = self.rules.veto_of_operators([op_pattern(op)]) is not None
        return not vetoed or bool(self.rules.force_nodes)

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag the nodes that the wrapped partitioner tags and the rules allow.

        Raises: PartitionError if it tagged nodes that cannot be delegated
        """
        self._vetoes = False
        self._together = self._quantized_together(exported_program)
        with self._steering():
            result = answer_of(self.inner, exported_program)
        tagged: ExportedProgram = result.tagged_exported_program
        data = data_of(tagged)
        check_tagged_kinds(tagged.graph, data)  # new tags would hide it
        tags: dict[str, DelegationSpec] = {}
        self._steer(tagged.graph_module, self._forced_in(result), tags)
        _retag_data(tagged, data)
        return PartitionResult(tagged, tags)

    def _quantized_together(self, program: ExportedProgram) -> dict[Node, tuple[str, str]]:
        """Return the nodes that stay out because they are quantized together with a vetoed one."""
        spec = getattr(self.inner, "delegation_spec", None)
        self._together = {}
        if not takes_whole_regions(str(getattr(spec, "backend_id", ""))):
            return {}
        nodes = [node for node, _ in calls_in(program.graph_module)]
        vetoed = {node: veto for node in nodes if (veto := self._veto(node)) is not None}
        return whole_regions(vetoed, nodes, operator_of)

    def _steering(self) -> AbstractContextManager[None]:
        return steered_by(Steering(self._keeps_out, self.rules.turns_off))

    def _forced_in(self, result: Any) -> Mapping[str, DelegationSpec]:  # noqa: ANN401
        specs: Mapping[str, DelegationSpec] = result.partition_tags
        if not self.rules.force_nodes:
            return specs
        default = getattr(self.inner, "delegation_spec", None)
        return with_forced(result.tagged_exported_program, specs, self._is_forced, default)

    def _steer(
        self,
        module: torch.fx.GraphModule,
        specs: Mapping[str, DelegationSpec],
        tags: dict[str, DelegationSpec],
    ) -> None:
        changed = self._take_out(module.graph)
        groups = cut(module.graph, specs, self.rules, changed)
        kept = self._counted([group for group in groups if self._is_worth_it(group)])
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
        """Remove the tags of vetoed nodes; return the tags that lost nodes."""
        changed: set[str] = set()
        for node in graph.nodes:
            tag = tag_of(node)
            if node.op != "call_function" or unit_of(node) is not node or tag is None:
                continue
            if self._keeps_out(node) or self._is_by_a_rule_turned_off(node):
                set_tag(node, None)
                changed.add(tag)
        return changed

    def _keeps_out(self, node: Node) -> bool:
        """Return whether a rule excludes a node, and note which."""
        veto = self._veto(node)
        if veto is None:
            return False
        self._vetoes = True
        note(node, veto[0], NodeOutcome.VETOED, f"vetoed by the user: {veto[1]}")
        if veto[0] == "deny_nodes" and operator_of(node) in operators_behind(node)[1:]:
            self._refused.update(dict.fromkeys(_sources(node), node.name))
        return True

    def _veto(self, node: Node) -> tuple[str, str] | None:
        forced = self.rules.forced(node) if self.rules.force_nodes else None
        if forced is None:
            veto = self.rules.veto(node) or self._earlier_veto(node)
            return veto or self._together.get(node)
        name, partitioner = forced
        if is_called(partitioner, self.verdict_name):
            return None
        return "force_nodes", f"{name} is reserved for {partitioner}"

    def _is_forced(self, node: Node) -> bool:
        forced = self.rules.forced(node) if self.rules.force_nodes else None
        return forced is not None and is_called(forced[1], self.verdict_name)

    def _is_by_a_rule_turned_off(self, node: Node) -> bool:
        if not self.rules.deny_rules:
            return False
        reason = noted(node)
        reported = reason is not None and reason.outcome is NodeOutcome.DELEGATED
        rule = reason.rule if reason is not None and reported else self.verdict_name
        if not self.rules.turns_off(rule):
            return False
        note(node, rule, NodeOutcome.VETOED, f"vetoed by the user: {rule} is disabled")
        return True

    def _earlier_veto(self, node: Node) -> tuple[str, str] | None:
        # An operator that was preserved and then vetoed by name is decomposed afterwards.
        for key in _sources(node):
            if key in self._refused:
                return "deny_nodes", f"it is a part of {key[0]}, {DENIED_AS}{self._refused[key]}"
        return None

    def _is_worth_it(self, group: Sequence[Node]) -> bool:
        if self._vetoes and only_converts(map(operator_of, group)):
            for node in group:
                note(node, "quantization", NodeOutcome.TOO_SMALL, CONVERTS)
            return False
        return self._is_large_enough(group)

    def _is_large_enough(self, group: Sequence[Node]) -> bool:
        fewest, least = self.rules.min_nodes, self.rules.min_work
        size = _size(group) if least is None else _instructions(group)
        # unless the user asks for more, what only moves data is delegated as the package does
        enough = size >= fewest if fewest > 1 else any(operator_of(n) not in _IDLE for n in group)
        if enough or any(map(self._is_forced, group)):
            return True
        if least is not None and sum(map(flops_of, group)) >= least:
            return True
        if least is None:
            text = f"its partition has {plural(size, 'computing node')}, fewer than {fewest}"
        else:
            text = f"its partition saves {plural(size, 'instruction')}, fewer than {fewest}"
            text += f", and has less work than {least:,} FLOPs"
        for node in group:
            note(node, "min_nodes", NodeOutcome.TOO_SMALL, text)
        return False

    def _counted(self, groups: Sequence[list[Node]]) -> list[list[Node]]:
        most = self.rules.max_partitions
        if most is None or len(groups) <= most:
            return list(groups)
        by_size = sorted(groups, key=_size, reverse=True)
        requested = [group for group in by_size if any(map(self._is_forced, group))]
        others = [group for group in by_size if group not in requested]
        kept = {id(group) for group in (*requested, *others[: max(0, most - len(requested))])}
        for group in groups:
            if id(group) not in kept:
                parts = plural(most, "partition")
                text = f"vetoed by the user: {parts} at most, others are larger"
                for node in group:
                    note(node, "max_partitions", NodeOutcome.VETOED, text)
        return [group for group in groups if id(group) in kept]


def _size(group: Sequence[Node]) -> int:
    return sum(is_compute(operator_of(node)) for node in group)


def _instructions(group: Sequence[Node]) -> int:
    """Return how many instructions nodes are outside of a delegate."""
    return sum(node.target not in SAME_BYTES and operator_of(node) not in _IDLE for node in group)


def _names(groups: Sequence[list[Node]]) -> dict[int, str]:
    """Return the names of partitions: that of the tag, numbered if it was split."""
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
    """Retag weights and state with the tag of a remaining user, or none."""
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
