"""The stock partitioner's decision on every node of a partitioned graph, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compiler.partition.logged_reasons import LoggedReason
from compiler.partition.quantized_regions import converted_outside
from inspector.toolchain.stock.nodes import Node, calls_in, operator_of, source_line, unit_of
from inspector.toolchain.stock.rules import TAG, by_operator
from schema.backends import backend_of
from schema.objects.plural import plural

Verdict = dict[str, Any]  # members as in the record


@dataclass(frozen=True)
class PartitionerLog:
    """Facts about one partitioning.

    Attributes:
        logged: reasons by name of a node
        answered: decisions of its rules by node
        vetoed: by node, the user's rule that excluded it and why
    """

    logged: Mapping[str, Sequence[LoggedReason]]
    answered: Mapping[Node, bool]
    vetoed: Mapping[Node, tuple[str, str]]


def judge(
    module: Any,  # noqa: ANN401 - a graph module
    partitioner: Any,  # noqa: ANN401
    tags: Mapping[str, Any],
    listener: PartitionerLog,
) -> list[Verdict]:
    """Return the verdict of a partitioner on every call of a graph it has tagged."""
    calls = [(node, path) for node, path in calls_in(module) if not _is_of_delegate(node)]
    kinds = Counter(operator_of(node) for node, _ in calls)
    taken = Counter(operator_of(node) for node, _ in calls if node.meta.get(TAG) in tags)
    sizes = Counter(node.meta.get(TAG) for node, _ in calls)
    who = type(partitioner).__name__
    found: list[Verdict] = []
    for node, path in calls:
        tag = node.meta.get(TAG)
        unit = unit_of(node)
        if tag in tags:
            backend = str(tags[tag].backend_id)
            words = (
                f"one of {plural(sizes[tag], 'node')} of partition {tag}, which goes to {backend}"
            )
            noted = node.meta.get(backend_of(backend).rule_meta) or ()
            rule = ", ".join(dict.fromkeys(noted)) or who
            found.append(_made(node, path, who, (rule, "delegated", words), backend, str(tag)))
            continue
        why = _why_not(unit, partitioner, listener) or _converting(unit, tags)
        why = why or _counted(unit, who, kinds, taken)
        found.append(_made(node, path, who, why))
    return found


def claimed(earlier: Sequence[Verdict], who: str) -> list[Verdict]:
    """Return verdicts on nodes that an earlier partitioner took."""
    return [
        {
            **one,
            "partitioner": who,
            "rule": "order of partitioners",
            "outcome": "claimed_earlier",
            "reason": f"claimed earlier by {one['partitioner']}, in partition {one['partition']}",
            "backend": "",
            "partition": "",
        }
        for one in earlier
        if one["outcome"] == "delegated"
    ]


def _is_of_delegate(node: Node) -> bool:
    return "executorch_call_delegate" in str(getattr(unit_of(node).target, "__name__", ""))


def _why_not(unit: Node, partitioner: Any, listener: PartitionerLog) -> tuple[str, str, str] | None:  # noqa: ANN401
    """Return rule, outcome and reason for a rejected node, if known."""
    vetoed = listener.vetoed.get(unit)
    if vetoed is not None:
        small = vetoed[0] in ("min_nodes", "max_partitions")
        return vetoed[0], "dropped_as_too_small" if small else "vetoed_by_user", vetoed[1]
    own = listener.logged.get(unit.name)
    logged = own or listener.logged.get(operator_of(unit))
    if logged:
        words = "; ".join(one.text for one in logged)
        of = "" if own else f" of {operator_of(unit)}"
        rule = logged[0].logger.removeprefix("executorch.")
        return rule, "rejected_by_rule", f"as the stock tool logged it{of}: {words}"
    configs = by_operator(partitioner)
    if configs is None:
        return None
    rule = next((one for name, one in configs.items() if _is_for(name, unit)), None)
    if rule is None:
        words = f"no rule for {operator_of(unit)} in {type(partitioner).__name__}"
        return type(partitioner).__name__, "no_rule_for_operator", words
    message = listener.answered.get(unit)
    words = (
        "its rule refused it"
        if message is False
        else "its rule accepted it, but it is in no partition"
    )
    return type(rule).__name__, "rejected_by_rule", f"{words}; the stock tool logged no reason"


def _is_for(name: str, unit: Node) -> bool:
    full = operator_of(unit)
    return name in (full, full.partition(".")[2])


def _converting(unit: Node, tags: Mapping[str, Any]) -> tuple[str, str, str] | None:
    beside = converted_outside(unit, operator_of, lambda one: unit_of(one).meta.get(TAG) in tags)
    return ("quantization", "rejected_by_rule", beside) if beside else None


def _counted(
    unit: Node, who: str, kinds: Counter[str], taken: Counter[str]
) -> tuple[str, str, str]:
    name = operator_of(unit)
    if taken[name]:
        words = (
            f"{who} took {taken[name]} of {kinds[name]} {name}, not this one; it logged no reason"
        )
        return who, "rejected_by_rule", words
    words = f"{who} took none of {kinds[name]} {name}, and logged no reason"
    return who, "no_rule_for_operator", words


def _made(
    node: Node, path: str, who: str, why: tuple[str, str, str], backend: str = "", tag: str = ""
) -> Verdict:
    rule, outcome, reason = why
    handle = unit_of(node).meta.get("debug_handle")
    return {
        "node": path,
        "operator": operator_of(node),
        "debug_handle": handle if isinstance(handle, int) else None,
        "partitioner": who,
        "rule": rule,
        "outcome": outcome,
        "reason": reason,
        "source": source_line(unit_of(node)),
        "backend": backend,
        "partition": tag,
    }
