"""Verdicts from the tags of a partitioner and the reasons collected while it ran."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, cast

import torch
from torch.export import ExportedProgram

from compiler.dialect.delegate_call import executorch_call_delegate
from compiler.errors import source_line
from compiler.interface.partitioner import DelegationSpec, name_of
from compiler.partition.quantized_regions import converted_outside
from compiler.partition.reasons import Reason, Reasons, operator_of
from compiler.partition.regions import unit_of
from compiler.partition.tags import tag_of
from schema.etrecord.parts.verdicts import NodeOutcome, Verdict
from schema.objects.plural import plural

Node = torch.fx.Node
META = "etscope_verdicts"  # where a graph module holds those of its program


def verdicts_of(program: ExportedProgram) -> tuple[Verdict, ...]:
    """Return the verdicts that led to a program, in the order of the partitioners."""
    meta: dict[str, Any] = cast("Any", program).graph_module.meta
    return meta.get(META, ())


def attach_verdicts(program: ExportedProgram, verdicts: tuple[Verdict, ...]) -> None:
    """Attach verdicts to a new program."""
    cast("Any", program).graph_module.meta[META] = verdicts


def judge(
    program: ExportedProgram,
    partitioner: object,
    tags: Mapping[str, DelegationSpec],
    reasons: Reasons,
) -> tuple[Verdict, ...]:
    """Return the verdict of a partitioner on every call of the program it has tagged.

    Nodes that an earlier partitioner took get one too, delegate calls do not. Nodes that are not
    delegated are logged at DEBUG by the `logger_of` the partitioner.
    """
    paths = {n: path for n, path in calls_in(program.graph_module) if not _is_of_delegate(n)}
    nodes = list(paths)
    judging = _Judging(name_of(partitioner), tags, reasons, paths)
    taken = {v.node: v for v in verdicts_of(program) if v.outcome is NodeOutcome.DELEGATED}
    claimed = [judging.claimed(verdict) for verdict in taken.values()]
    verdicts = (*(judging.verdict(node) for node in nodes), *claimed)
    _log(logger_of(partitioner), verdicts)
    return verdicts


def logger_of(partitioner: object) -> logging.Logger:
    """Return the logger `partition` of the backend's package; of the compiler for others."""
    packages = (kind.__module__.rpartition(".")[0] for kind in type(partitioner).__mro__)
    own = (name for name in packages if name.startswith("compiler.backends."))
    return logging.getLogger(f"{next(own, 'compiler')}.partition")


def _log(logger: logging.Logger, verdicts: tuple[Verdict, ...]) -> None:
    if not logger.isEnabledFor(logging.DEBUG):
        return
    for one in verdicts:
        if one.outcome is not NodeOutcome.DELEGATED:
            where = f" at {one.source}" if one.source else ""
            words = (one.node, one.operator, where, one.reason)
            logger.debug("node %s (%s)%s is not partitioned: %s", *words)


def calls_in(module: torch.fx.GraphModule, path: str = "") -> Iterator[tuple[Node, str]]:
    """Yield the calls of a graph and of its branches and bodies, with their names.

    The name of a node inside a body follows that of the body, as in ``true_graph_0/aten_add``.
    """
    for node in module.graph.nodes:
        if node.op == "call_function":
            yield node, f"{path}{node.name}"
        elif node.op == "get_attr":
            inner = getattr(module, str(node.target), None)
            if isinstance(inner, torch.fx.GraphModule):
                yield from calls_in(inner, f"{path}{node.target}/")


def _is_of_delegate(node: Node) -> bool:
    return unit_of(node).target is executorch_call_delegate


class _Judging:
    def __init__(
        self,
        partitioner: str,
        tags: Mapping[str, DelegationSpec],
        reasons: Reasons,
        paths: Mapping[Node, str],
    ) -> None:
        nodes = list(paths)
        self._paths = paths
        self._partitioner = partitioner
        self._tags = tags
        self._reasons = reasons.by_node
        self._sizes = Counter((node.graph, tag_of(node)) for node in nodes)
        self._kinds = Counter(operator_of(node) for node in nodes)
        self._taken = Counter(operator_of(node) for node in nodes if tag_of(node) in tags)

    def verdict(self, node: Node) -> Verdict:
        tag = tag_of(node)
        if tag is not None and tag in self._tags:
            return self._delegated(node, tag, str(self._tags[tag].backend_id))
        reason = self._reasons.get(unit_of(node))
        if reason is None or reason.outcome is NodeOutcome.DELEGATED:
            reason = self._untold(node, tag)
        return self._verdict(node, reason)

    def _delegated(self, node: Node, tag: str, backend: str) -> Verdict:
        size = self._sizes[node.graph, tag]
        text = f"one of {plural(size, 'node')} of partition {tag}, delegated to {backend}"
        reported = self._reasons.get(unit_of(node))
        rule = self._partitioner
        if reported is not None and reported.outcome is NodeOutcome.DELEGATED:
            rule, text = reported.rule, f"{reported.text}; {text}"
        reason = Reason(rule, NodeOutcome.DELEGATED, text)
        return self._verdict(node, reason, backend, tag)

    def _untold(self, node: Node, tag: str | None) -> Reason:
        """Return the verdict of a node without a noted reason."""
        name, who = operator_of(node), self._partitioner
        if tag is not None:
            text = f"{who} tagged it {tag} but returned no delegation spec for that tag"
            return Reason("partition_tags", NodeOutcome.REJECTED, text)
        if beside := converted_outside(node, operator_of, lambda one: tag_of(one) in self._tags):
            return Reason("quantization", NodeOutcome.REJECTED, beside)
        if self._taken[name]:
            text = f"{who} took {self._taken[name]} of {self._kinds[name]} {name}, not this one"
            return Reason(who, NodeOutcome.REJECTED, f"{text}; without a reason")
        text = f"no rule for {name} in {who}: it took none of {self._kinds[name]}, without a reason"
        return Reason(who, NodeOutcome.NO_RULE, text)

    def _verdict(self, node: Node, reason: Reason, backend: str = "", tag: str = "") -> Verdict:
        handle = unit_of(node).meta.get("debug_handle")
        return Verdict(
            node=self._paths[node],
            operator=operator_of(node),
            debug_handle=handle if isinstance(handle, int) else None,
            partitioner=self._partitioner,
            rule=reason.rule,
            outcome=reason.outcome,
            reason=reason.text,
            source=source_line(unit_of(node)),
            backend=backend,
            partition=tag,
        )

    def claimed(self, earlier: Verdict) -> Verdict:
        who = earlier.partitioner
        return Verdict(
            node=earlier.node,
            operator=earlier.operator,
            debug_handle=earlier.debug_handle,
            partitioner=self._partitioner,
            rule="order of partitioners",
            outcome=NodeOutcome.CLAIMED,
            reason=f"claimed earlier by {who}, in its partition {earlier.partition}",
            source=earlier.source,
        )
