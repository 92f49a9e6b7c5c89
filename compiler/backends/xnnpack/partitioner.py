"""The partitioners of XNNPACK: which nodes are delegated, and why others are not."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Sequence
from typing import Any, final

import torch
from torch.export import ExportedProgram
from torch.fx.passes.infra.partitioner import Partition

from compiler.backends.xnnpack.backend import XnnpackBackend
from compiler.backends.xnnpack.checks import common, layer_with_given_weight, linear_layer
from compiler.backends.xnnpack.configs import (
    ALL_PARTITIONER_CONFIGS,
    FLOAT_TYPES,
    XNNPartitionerConfig,
)
from compiler.backends.xnnpack.facts import Facts, is_transposition, op_of
from compiler.backends.xnnpack.patterns import WEIGHT_AT, bias_at, pattern_of
from compiler.backends.xnnpack.precision import ConfigPrecisionType
from compiler.backends.xnnpack.quantization import (
    affine_of,
    dequantized_weight,
    quantizing_name,
    require_valid_scales,
)
from compiler.backends.xnnpack.views import views_around
from compiler.dialect.delegate_call import executorch_call_delegate
from compiler.interface.partitioner import (
    TAG,
    DelegationSpec,
    NodeFilter,
    Partitioner,
    PartitionResult,
)
from compiler.memory.lifetimes import SAME_BYTES
from compiler.partition.patterns import generate_grouped_partitions_from_list_of_nodes
from compiler.partition.reasons import belong_together, note, operator_of
from compiler.partition.regions import follows_source
from compiler.partition.steering import is_off, keeps_out
from compiler.partition.tags import tag_constant_data
from compiler.passes.standard.quant_embedding import table_steps
from compiler.untyped import aten
from schema.etrecord.parts.verdicts import NodeOutcome

Node = torch.fx.Node
Precisions = ConfigPrecisionType | Sequence[ConfigPrecisionType] | None
_EMBEDDING = aten.embedding.default
_OF_TABLE = "it dequantizes the table of an embedding, which looks up quantized rows"
_ACTIVATIONS = frozenset((aten.relu.default, aten.hardtanh.default))


class XnnpackPartitioner(Partitioner):
    """Delegates to XNNPACK the nodes that its rules accept, in the largest possible partitions."""

    def __init__(
        self,
        configs: Sequence[XNNPartitionerConfig] | None = None,
        config_precisions: Precisions = None,
        per_op_mode: bool = False,
        verbose: bool = False,
        *,
        force_non_static_weights_for_f32_linear: bool = False,
        enable_bf16: bool = False,
        **unknown: Any,  # noqa: ANN401 - the documented partitioner takes any name
    ) -> None:
        """Choose rules.

        Args:
            configs: rules to use, None for all
            config_precisions: precisions to use, None for all; a rule without any of them is
                disabled
            per_op_mode: one partition for each operator with the nodes fused into it
            verbose: accepted as documented; reasons are always recorded as verdicts
            force_non_static_weights_for_f32_linear: keep weights of linear layers out of partitions
            enable_bf16: delegate bfloat16 linear layers too
            unknown: options of other releases; each is named in a warning and has no effect
        """
        super().__init__()
        if unknown:
            names = ", ".join(sorted(unknown))
            text = f"{type(self).__name__} has no option {names}, which has no effect"
            warnings.warn(text, stacklevel=2)
        del verbose
        self.per_op_mode = per_op_mode
        self.force_non_static_weights = force_non_static_weights_for_f32_linear
        self.enable_bf16 = enable_bf16
        self.delegation_spec = DelegationSpec(XnnpackBackend.__name__, [])
        self.configs = tuple(ALL_PARTITIONER_CONFIGS if configs is None else configs)
        self._by_op = {op: rule for rule in self.configs for op in rule.ops}
        self.precisions = _listed(config_precisions)

    def operators(self) -> list[tuple[str, str]]:
        """Return the operators that have a rule, each with the kinds of numbers it is taken in."""
        kinds = {
            op: ", ".join(sorted(one.name for one in rule.precisions))
            for op, rule in self._by_op.items()
        }
        return sorted((str(op), kinds[op]) for op in kinds)

    def ops_to_not_decompose(self, ep: ExportedProgram) -> tuple[list[Any], NodeFilter | None]:
        """Return the operators to preserve where a rule accepts them."""
        facts = Facts(ep)
        kept = [op for op in (_operator(rule.keep) for rule in self.configs) if op is not None]
        along = self._quantizing_of_layers(ep, facts)

        def requested(node: Node) -> bool:
            return node in along or self._taken_whole(node, facts)

        return kept, requested

    def _quantizing_of_layers(self, program: ExportedProgram, facts: Facts) -> set[Node]:
        """Return the quantize nodes of layers that a rule accepts."""
        found: set[Node] = set()
        for node in program.graph.nodes:
            rule = self._by_op.get(node.target)
            if (
                rule is not None
                and rule.weight is not None
                and not is_off(rule.name)
                and not self._refusal(rule, node, facts)
            ):
                found.update(n for n in pattern_of(node, facts).along if n.op == "call_function")
        return found

    def _taken_whole(self, node: Node, facts: Facts) -> bool:
        rule = self._by_op.get(node.target)
        if rule is None:
            return False
        known = all(
            n.op == "placeholder" or n.meta.get("val") is not None
            for n in node.args
            if isinstance(n, Node)
        )
        if not known or is_off(rule.name):
            return False
        refusal = self._refusal(rule, node, facts)
        if refusal:
            note(node, rule.name, NodeOutcome.REJECTED, refusal)
        return not refusal

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag the nodes that rules accept, and the constants they read.

        Raises: ValueError for a scale or zero point that no kernel loads
        """
        tags: dict[str, DelegationSpec] = {}
        groups = self._groups(exported_program)
        belong_together(groups)
        for partition in self._partitions(exported_program, groups):
            tag = f"tag{partition.id}"
            tags[tag] = self.delegation_spec
            for node in partition.nodes:
                node.meta[TAG] = tag
        if not self.force_non_static_weights:
            tag_constant_data(exported_program)
        else:
            _tag_all_but_weights(exported_program)
        return PartitionResult(exported_program, tags)

    def _partitions(
        self, program: ExportedProgram, groups: list[list[Node]]
    ) -> Iterable[Partition]:
        if self.per_op_mode:
            return [Partition(id=i, nodes=nodes) for i, nodes in enumerate(groups)]
        return generate_grouped_partitions_from_list_of_nodes(program.graph_module, groups)

    def _groups(self, program: ExportedProgram) -> list[list[Node]]:
        """Return disjoint sets of nodes that must be in one partition."""
        facts, groups = Facts(program), list[list[Node]]()
        home: dict[Node, list[Node]] = {}
        calls = [node for node in program.graph.nodes if node.op == "call_function"]
        self._require_valid_scales(calls, facts)
        tables = {step for node in calls if op_of(node) is _EMBEDDING for step in table_steps(node)}
        # Quantize nodes join the partition of the operator they belong to; the others are examined
        # afterwards.
        for node in sorted(calls, key=lambda node: bool(quantizing_name(node))):
            if follows_source(node) or node in home or node.target is executorch_call_delegate:
                continue
            rule = self._rule_of(node)
            refusal = "" if rule is None else self._refusal(rule, node, facts)
            if rule is None:
                text = f"no rule for {operator_of(node)} in {type(self).__name__}"
                note(node, type(self).__name__, NodeOutcome.NO_RULE, text)
            elif refusal or node in tables:
                why = refusal or _OF_TABLE
                note(node, rule.name, NodeOutcome.REJECTED, f"{operator_of(node)}: {why}")
            elif is_off(rule.name):
                text = f"vetoed by the user: {rule.name} is disabled"
                note(node, rule.name, NodeOutcome.VETOED, text)
            elif not keeps_out(node):
                along = self._allowed_along(rule, node, facts)
                if along is not None:
                    _join(along, home, groups)
                    self._note_taken(rule, node, along, facts)
        found = [group for group in groups if group]
        return [group for group in found if not _is_for_others(group, home, facts)]

    def _require_valid_scales(self, calls: Sequence[Node], facts: Facts) -> None:
        """Check the scales of nodes that can be delegated.

        Raises: ValueError with the node and the value
        """
        for node in calls:
            rule = self._rule_of(node)
            if rule is None or is_off(rule.name) or not rule.precisions & self.precisions:
                continue
            quantizing = node if rule.quantizing and affine_of(node) is not None else None
            if rule.weight is not None:
                quantizing = dequantized_weight(node.args[rule.weight])
            if quantizing is not None and not keeps_out(node):
                require_valid_scales(quantizing, facts)

    def _allowed_along(
        self, rule: XNNPartitionerConfig, node: Node, facts: Facts
    ) -> dict[Node, None] | None:
        """Return a node with the nodes delegated together with it, as far as user rules allow.

        None if it requires a node that is excluded; the reason is noted.
        """
        along = self._along(rule, node, facts)
        missing = [n for n in along if not self._may_go_along(n)]
        weights = [n for n in missing if facts.is_constant(n.args[0])]
        if weights:
            text = f"{operator_of(node)} needs {weights[0].name} as its weight, which is excluded"
            note(node, rule.name, NodeOutcome.VETOED, f"vetoed by the user: {text}")
            return None
        views = views_around(node) or ()
        if any(view in missing for view in views):
            missing += views  # one without the other is a view like any
        if missing and pattern_of(node, facts).precision is ConfigPrecisionType.DYNAMIC_QUANT:
            chain = pattern_of(node, facts).along  # is meaningless in parts
            missing += [n for n in chain if not facts.is_constant(n.args[0])]
        return dict.fromkeys((node, *(n for n in along if n not in missing)))

    def _rule_of(self, node: Node) -> XNNPartitionerConfig | None:
        return self._by_op.get(op_of(node)) or self._by_op.get(quantizing_name(node))

    def _may_go_along(self, node: Node) -> bool:
        rule = self._rule_of(node)
        return not (rule is not None and is_off(rule.name)) and not keeps_out(node)

    def _note_taken(
        self, rule: XNNPartitionerConfig, node: Node, along: Iterable[Node], facts: Facts
    ) -> None:
        precision = ConfigPrecisionType.STATIC_QUANT
        if not rule.quantizing:
            precision = self._precision(rule, node, facts) or ConfigPrecisionType.FP32
        for each in along:
            text = f"{rule.name} accepts it in {precision.name}"
            if each is not node:
                text = f"it is delegated with {node.name}"
            note(each, rule.name, NodeOutcome.DELEGATED, text)

    def _refusal(self, rule: XNNPartitionerConfig, node: Node, facts: Facts) -> str:
        if not rule.precisions & self.precisions:
            names = ", ".join(one.name for one in rule.supported_precision_types())
            return f"{rule.name} needs {names}, which is disabled"
        if not rule.quantizing and self._precision(rule, node, facts) is None:
            precision = pattern_of(node, facts).precision.name
            return f"it runs in {precision}, which is disabled"
        found = "" if rule.quantizing else common(node, self._types(rule))
        for check in rule.checks:
            if found:
                break
            given = self.force_non_static_weights and check is linear_layer
            found = (layer_with_given_weight if given else check)(node, facts)
        return found

    def _types(self, rule: XNNPartitionerConfig) -> frozenset[torch.dtype]:
        wide = self.enable_bf16 and _is_linear(rule)
        return FLOAT_TYPES | {torch.bfloat16} if wide else FLOAT_TYPES

    def _precision(
        self, rule: XNNPartitionerConfig, node: Node, facts: Facts
    ) -> ConfigPrecisionType | None:
        """Return the pattern of a node, float if quantization is off; None if unsupported."""
        found = pattern_of(node, facts).precision
        on = rule.precisions & self.precisions
        plain = ConfigPrecisionType.FP32
        return found if found in on else plain if plain in on else None

    def _along(self, rule: XNNPartitionerConfig, node: Node, facts: Facts) -> list[Node]:
        """Return the nodes delegated with a node: its quantize nodes, a layer's activation."""
        pattern = pattern_of(node, facts)
        along = [n for n in pattern.along if n.op == "call_function"]
        if pattern.precision is not self._precision(rule, node, facts):
            along = []
        if rule.weight is None:
            return along
        views = views_around(node)
        along += [view for view in views or () if view not in along]
        weight: Any = node.args[rule.weight]
        if is_transposition(weight) and len(weight.users) == 1:
            along.append(weight)
        given = dequantized_weight(weight)
        if given is not None and given not in along and not self.force_non_static_weights:
            along.append(given)
        users = list((node if views is None else views[1]).users)
        if len(users) == 1 and op_of(users[0]) in _ACTIVATIONS:
            activation = self._by_op.get(op_of(users[0]))
            if activation is None or not self._refusal(activation, users[0], facts):
                along.append(users[0])
        return along


def _is_for_others(group: list[Node], home: Collection[Node], facts: Facts) -> bool:
    """Return whether a group only gives a constant other dimensions, for nodes left outside.

    A call of the delegate would copy the constant in each run.
    """
    (node, *others) = group
    given: Any = node
    while isinstance(given, Node) and given.target in SAME_BYTES:
        given = given.args[0]
    if others or given is node or not facts.is_constant(given):
        return False
    if any(user in home for user in node.users):
        return False
    text = "it gives a constant other dimensions for nodes that are not delegated"
    note(node, XnnpackPartitioner.__name__, NodeOutcome.REJECTED, text)
    return True


def _operator(given: Any) -> Any:  # noqa: ANN401
    """Return an operator to preserve, None if its library is not loaded."""
    if not isinstance(given, str):
        return given
    home, _, name = given.partition("::")
    packet = getattr(getattr(torch.ops, home), name, None)
    return None if packet is None else packet.default


def _listed(given: Precisions) -> frozenset[ConfigPrecisionType]:
    if isinstance(given, ConfigPrecisionType):
        return frozenset((given,))
    return frozenset(given or ConfigPrecisionType)


def _is_linear(rule: XNNPartitionerConfig) -> bool:
    return rule.name in ("LinearConfig", "AddmmConfig", "MMConfig")


def _join(nodes: Iterable[Node], home: dict[Node, list[Node]], groups: list[list[Node]]) -> None:
    """Merge the groups of some nodes."""
    group: list[Node] = []
    groups.append(group)
    for node in nodes:
        held = home.get(node)
        if held is group:
            continue
        moved = [node] if held is None else [*held]
        if held is not None:
            held.clear()
        group += moved
        home.update(dict.fromkeys(moved, group))


def _tag_all_but_weights(program: ExportedProgram) -> None:
    """Tag constants that are not weight or bias of a floating-point linear layer."""
    tag_constant_data(program)
    for node in program.graph.nodes:
        place = WEIGHT_AT.get(op_of(node))
        if place is None or op_of(node) is aten.convolution.default:
            continue
        weight = node.args[place]
        if dequantized_weight(weight) is not None:
            continue
        bias = [node.args[at] for at in (bias_at(node),) if at is not None and at < len(node.args)]
        for given in (weight.args[0] if is_transposition(weight) else weight, *bias):
            if isinstance(given, Node) and given.op == "placeholder":
                given.meta.pop(TAG, None)


@final
class XnnpackDynamicallyQuantizedPartitioner(XnnpackPartitioner):
    """Delegates dynamically quantized operators."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - those of the base
        """Accept the options of ``XnnpackPartitioner`` except for precisions.

        Raises: ValueError if precisions are given
        """
        if "config_precisions" in options:
            raise ValueError(
                "XnnpackDynamicallyQuantizedPartitioner supports DYNAMIC_QUANT only, without "
                f"config_precisions: {options['config_precisions']}"
            )
        super().__init__(config_precisions=ConfigPrecisionType.DYNAMIC_QUANT, **options)


@final
class XnnpackFloatingPointPartitioner(XnnpackPartitioner):
    """Delegates floating-point operators."""

    def __init__(self) -> None:
        super().__init__(config_precisions=ConfigPrecisionType.FP32)


@final
class XnnpackQuantizedPartitioner(XnnpackPartitioner):
    """Delegates statically quantized operators."""

    def __init__(self) -> None:
        super().__init__(config_precisions=ConfigPrecisionType.STATIC_QUANT)
