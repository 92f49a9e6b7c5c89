"""The user's rules on a stock partitioner: they veto nodes, and split its partitions again.

In partitioners with a rule for each operator these rules reject vetoed nodes, so that related nodes
stay out as well. From other partitioners' tags the nodes are removed afterwards.
"""

from __future__ import annotations

import contextlib
import fnmatch
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from typing import Any

from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from compiler.partition.quantized_regions import CONVERTS, only_converts
from inspector.toolchain.stock.nodes import (
    Node,
    calls_in,
    dtypes_at,
    modules_around,
    names_behind,
    operator_name,
    operator_of,
    operators_behind,
    unit_of,
)
from schema.objects.plural import plural

TAG = "delegation_tag"
_KINDS = ("ops", "nodes", "modules")


class StockRules:
    """The rules of the recipe.

    Attributes:
        content: of the recipe
    """

    def __init__(self, content: Mapping[str, Any], exported: Collection[int]) -> None:
        """Store rules.

        Args:
            content: members of the recipe's rules
            exported: ids of the exported graphs
        """
        self.content = content
        self._exported = exported
        self._any = any(
            content.get(f"{way}_{kind}") for way in ("deny", "allow") for kind in _KINDS
        )
        self._any |= bool(content.get("deny_dtypes"))
        self.least = int(content.get("min_nodes") or 1)
        self.most: int | None = content.get("max_partitions")

    @property
    def apply(self) -> bool:
        """Return whether there is any rule."""
        return self._any or self.least > 1 or self.most is not None

    def veto(self, node: Node) -> tuple[str, str] | None:
        """Return the rule that excludes a node and why, None if it may be taken."""
        if not self._any:
            return None
        names = {
            "ops": operators_behind(node),
            "nodes": names_behind(node, self._exported),
            "modules": modules_around(node),
        }
        for kind, found in names.items():
            reported = self._veto_by_name(kind, found)
            if reported is not None:
                return reported
        denied = self.content.get("deny_dtypes") or ()
        for where, dtype in dtypes_at(node).items():
            if dtype in denied:
                return "deny_dtypes", f"{where} is {dtype}, which is denied"
        return None

    def origin(self, node: Node) -> str:
        """Return the name that excludes a node in every graph: that of its exported node."""
        return [node.name, *names_behind(node, self._exported)[1:]][-1]

    def veto_of_operator(self, target: Any) -> bool:  # noqa: ANN401 - an operator
        """Return whether an operator must not be preserved for a partitioner."""
        return self._veto_by_name("ops", [operator_name(target)]) is not None

    def _veto_by_name(self, kind: str, names: list[str]) -> tuple[str, str] | None:
        deny: list[str] = list(self.content.get(f"deny_{kind}") or ())
        allow: list[str] = list(self.content.get(f"allow_{kind}") or ())
        if kind == "ops":
            deny, allow = [_pattern(one) for one in deny], [_pattern(one) for one in allow]
        found = _first(names, deny)
        if found:
            return f"deny_{kind}", f"{kind[:-1]} {found[0]} is denied by {found[1]}"
        if allow and not _first(names, allow):
            there = ", ".join(names) or "none"
            return f"allow_{kind}", f"{kind[:-1]} {there} is not among the allowed {kind}"
        return None


def _pattern(name: str) -> str:
    return f"{name}.*" if name.count(".") == 1 and not name.endswith("*") else name


def _first(names: Iterable[str], patterns: list[str]) -> tuple[str, str] | None:
    for name in names:
        for pattern in patterns:
            if name == pattern or fnmatch.fnmatchcase(name, pattern):
                return name, pattern
    return None


def by_operator(partitioner: Any) -> Mapping[str, Any] | None:  # noqa: ANN401
    """Return the rules of a partitioner with one per operator, None for others."""
    found: dict[str, Any] | None = getattr(partitioner, "target_partitioner_configs", None)
    return found


def ask_less(
    partitioner: Any,  # noqa: ANN401
    rules: StockRules,
    answered: dict[Node, bool],
    dropped: Collection[str],
) -> None:
    """Patch a partitioner's own rules to reject vetoed nodes, and record their decisions.

    Args:
        partitioner: changed
        rules: of the user
        answered: decisions of its rules by node, filled while it partitions
        dropped: names of nodes removed after tagging
    """
    for config in (by_operator(partitioner) or {}).values():
        config.check_constraints = _checked(config, rules, answered)
    ops_of = getattr(partitioner, "ops_to_not_decompose", None)
    if ops_of is None or not rules.apply:
        return

    def fewer(program: Any) -> Any:  # noqa: ANN401
        ops, requested = ops_of(program)

        def may_stay(node: Node) -> bool:
            if node.name in dropped or rules.veto(node) is not None:
                return False
            return requested is None or bool(requested(node))

        return [one for one in ops if not rules.veto_of_operator(one)], may_stay

    partitioner.ops_to_not_decompose = fewer


def _checked(
    config: Any,  # noqa: ANN401
    rules: StockRules,
    answered: dict[Node, bool],
) -> Callable[[Node, Any], bool]:
    check = config.check_constraints

    def checked(node: Node, program: Any) -> bool:  # noqa: ANN401
        if rules.veto(node) is not None:
            return False
        found = bool(check(node, program))
        if found and rules.apply:
            along = _along(config, node, program)
            found = not any(rules.veto(one) for one in along if one.op == "call_function")
        answered[node] = found
        return found

    return checked


@contextlib.contextmanager
def asking(vetoed: Collection[Node]) -> Generator[None, None, None]:
    """Let torch's partitioner take vetoed nodes as not supported, whoever uses it.

    What belongs to such a node, as its quantization, the vendor then treats as around an operator
    that it does not support.
    """
    home: Any = CapabilityBasedPartitioner
    propose = home.propose_partitions

    def proposing(partitioner: Any) -> Any:  # noqa: ANN401
        support = partitioner.operator_support
        partitioner.operator_support = _Vetoing(support, vetoed)
        try:
            return propose(partitioner)
        finally:
            partitioner.operator_support = support

    home.propose_partitions = proposing
    try:
        yield
    finally:
        home.propose_partitions = propose


class _Vetoing(OperatorSupportBase):
    """The support object of a vendor without vetoed nodes."""

    def __init__(self, support: Any, vetoed: Collection[Node]) -> None:  # noqa: ANN401
        self._support, self._vetoed = support, vetoed

    def is_node_supported(self, submodules: Any, node: Any) -> bool:  # noqa: ANN401
        """Return whether the vendor supports a node that no rule vetoes."""
        if node.op == "call_function" and unit_of(node) in self._vetoed:
            return False
        return bool(self._support.is_node_supported(submodules, node))


def _along(config: Any, node: Node, program: Any) -> Iterable[Node]:  # noqa: ANN401
    """Return the nodes that would be taken together with one, after removing their labels."""
    take = getattr(config, "get_node_and_deps", None)
    try:
        return take(node, program) if take is not None else ()
    except Exception:  # noqa: BLE001 - in an exported graph its patterns need not be there
        return ()


# -- after the partitioner -------------------------------------------------------------------


def cut_anew(
    module: Any,  # noqa: ANN401
    rules: StockRules,
    tags: dict[str, Any],
    kept_out: Collection[Node] = (),
) -> dict[Node, tuple[str, str]]:
    """Remove vetoed nodes and split the remaining partitions, so that no cycle arises.

    Args:
        module: tagged
        rules: of the user
        tags: delegation spec of each tag; updated
        kept_out: nodes that were never offered to the partitioner

    Returns: by node, the rule that removed it and why
    """
    nodes = [node for node, _ in calls_in(module) if node.meta.get(TAG) in tags]
    out = {node: reported for node in nodes if (reported := rules.veto(unit_of(node))) is not None}
    if out:
        _split(module, out, tags)
    if out or kept_out:
        out.update(_only_converting(module, tags))
    out.update(_too_few(module, rules, tags))
    out.update(_too_many(module, rules, tags))
    if out:
        _retag_data(module, tags)
    return out


def _split(module: Any, out: Collection[Node], tags: dict[str, Any]) -> None:  # noqa: ANN401
    """Split the partitions that lost nodes, so that no path leaves and re-enters.

    A node's depth is how often paths to it inside the former partition alternate between remaining
    and removed nodes; each depth becomes a partition.
    """
    former: dict[Node, str | None] = {node: node.meta.get(TAG) for node, _ in calls_in(module)}
    affected = {str(former[node]) for node in out}
    for graph in {node.graph for node in out}:
        depth: dict[Node, int] = {}
        for node in graph.nodes:
            tag = former.get(node)
            if tag is None or tag not in affected:
                continue
            inside = [one for one in node.all_input_nodes if former.get(one) == tag]
            depth[node] = max(
                (depth[one] + ((one in out) != (node in out)) for one in inside), default=0
            )
            del node.meta[TAG]
            if node not in out:
                node.meta[TAG] = f"{tag}_{depth[node]}"
                tags[node.meta[TAG]] = tags[tag]
    for tag in affected:
        del tags[tag]


def _sizes(module: Any) -> Counter[str]:  # noqa: ANN401
    return Counter(
        node.meta[TAG] for node, _ in calls_in(module) if TAG in node.meta and unit_of(node) is node
    )


def _only_converting(module: Any, tags: dict[str, Any]) -> dict[Node, tuple[str, str]]:  # noqa: ANN401
    inside: dict[str, list[str]] = {}
    for node, _ in calls_in(module):
        inside.setdefault(node.meta.get(TAG, ""), []).append(operator_of(node))
    words = {tag: CONVERTS for tag, names in inside.items() if tag in tags and only_converts(names)}
    return _dropped(module, "quantization", words, tags)


def _too_few(module: Any, rules: StockRules, tags: dict[str, Any]) -> dict[Node, tuple[str, str]]:  # noqa: ANN401
    small = {tag: size for tag, size in _sizes(module).items() if size < rules.least}
    words = {
        tag: f"its partition has {plural(size, 'node')}, fewer than {rules.least}"
        for tag, size in small.items()
    }
    return _dropped(module, "min_nodes", words, tags)


def _too_many(module: Any, rules: StockRules, tags: dict[str, Any]) -> dict[Node, tuple[str, str]]:  # noqa: ANN401
    if rules.most is None:
        return {}
    left = _sizes(module).most_common()[rules.most :]
    words = f"its partition is not one of the {rules.most} largest"
    return _dropped(module, "max_partitions", {tag: words for tag, _ in left}, tags)


def _dropped(
    module: Any,  # noqa: ANN401
    rule: str,
    words: Mapping[str, str],
    tags: dict[str, Any],
) -> dict[Node, tuple[str, str]]:
    out: dict[Node, tuple[str, str]] = {}
    for node, _ in calls_in(module):
        tag = node.meta.get(TAG)
        if tag in words:
            out[node] = (rule, words[tag])
            del node.meta[TAG]
    for tag in words:
        tags.pop(tag, None)
    return out


def _retag_data(module: Any, tags: Mapping[str, Any]) -> None:  # noqa: ANN401
    """Tag constants like the nodes that read them; the package copies them for other readers."""
    for node in module.graph.nodes:
        if node.op == "call_function" or TAG not in node.meta:
            continue
        readers = [one.meta[TAG] for one in node.users if one.meta.get(TAG) in tags]
        if not readers:
            del node.meta[TAG]
        elif node.meta[TAG] not in readers:
            node.meta[TAG] = readers[0]
