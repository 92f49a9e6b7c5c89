"""Runs a partitioner and validates its result."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, cast

import torch
from torch.export import ExportedProgram

from compiler.interface.backend import why_no_settings
from compiler.interface.partitioner import (
    TAG,
    DelegationSpec,
    NodeFilter,
    PartitionResult,
    name_of,
)
from compiler.interface.stock_objects import in_foreign_terms, is_foreign, is_foreign_spec, own_spec
from compiler.partition.check_unchanged import check_unchanged
from compiler.partition.logged_reasons import Harvest, harvesting
from compiler.partition.real_results import keep_integers_inside
from compiler.partition.reasons import note, noted, operator_of
from compiler.partition.regions import unit_of
from compiler.partition.stock_reasons import node_pairs, noting_stock_reasons
from compiler.partition.tags import PartitionContractError, PartitionError
from schema.etrecord.parts.verdicts import NodeOutcome

_LOGGER = logging.getLogger("compiler.partition")


def is_of_package(partitioner: Any) -> bool:  # noqa: ANN401
    """Return whether a partitioner is one of the package's, also under rules or elsewhere."""
    inner = getattr(partitioner, "inner", partitioner)
    return is_foreign(inner) or bool(getattr(inner, "is_of_package", False))


def answer_of(partitioner: Any, program: ExportedProgram) -> PartitionResult:  # noqa: ANN401
    """Return the validated result of a partitioner for a program.

    Raises:
        PartitionError: it returned no PartitionResult, or an invalid tag
        PartitionContractError: the result does not define its tags
    """
    answers = partitioner if callable(partitioner) else partitioner.partition
    shown = in_foreign_terms(program) if is_foreign(partitioner) else program
    result: Any = _partition(answers, shown, program)
    tags: Any = getattr(result, "partition_tags", None)
    if not isinstance(getattr(result, "tagged_exported_program", None), ExportedProgram):
        raise PartitionError(f"{name_of(partitioner)} returned {result!r}, not a PartitionResult")
    if not isinstance(tags, Mapping):
        raise PartitionContractError(
            f"Partitioner {name_of(partitioner)} needs a `partition_tags` field containing a "
            "mapping of tags to delegate spec"
        )
    given: dict[Any, Any] = {**tags}
    tags = {tag: _own(spec) for tag, spec in given.items()}
    for tag, spec in tags.items():
        if not isinstance(tag, str) or not isinstance(spec, DelegationSpec):
            raise PartitionError(
                f"partition_tags of {name_of(partitioner)} has {tag!r}: {spec!r}, not a tag and a "
                "DelegationSpec"
            )
        why = why_no_settings(spec.compile_specs)
        if why:
            raise PartitionError(f"tag {tag} of {name_of(partitioner)}: {why}")
    tagged = result.tagged_exported_program
    if shown is not program:
        check_unchanged(partitioner, in_foreign_terms(program), tagged)
        _take_tags(tagged.graph_module, program.graph_module)
        tagged = program
    keep_integers_inside(tagged.graph_module, tags)
    return PartitionResult(tagged, tags)


def _partition(answers: Any, shown: ExportedProgram, program: ExportedProgram) -> Any:  # noqa: ANN401
    if shown is program:
        with noting_stock_reasons():
            return answers(shown)
    pairs = node_pairs(shown.graph_module, program.graph_module)
    calls = [node for node in pairs if node.op == "call_function"]
    names = {name for node in calls for name in (node.name, operator_of(pairs[node]))}
    with noting_stock_reasons(pairs), harvesting(names, _passed_on, prints=True) as harvest:
        result = answers(shown)
    _note_logged({node: pairs[node] for node in calls}, harvest)
    return result


def _passed_on(_kind: str, *, text: str) -> None:
    """Write a warning of a partitioner to the log of the job."""
    _LOGGER.warning("%s", text)


def _note_logged(pairs: Mapping[torch.fx.Node, torch.fx.Node], harvest: Harvest) -> None:
    """Note the reasons that a partitioner only logged or printed."""
    for theirs, mine in pairs.items():
        if TAG in theirs.meta or unit_of(mine) is not mine:
            continue
        own = harvest.found.get(theirs.name)
        logged = own or harvest.found.get(operator_of(mine))
        if not logged:
            continue
        words = "; ".join(one.text for one in logged)
        rule = logged[0].logger.removeprefix("executorch.")
        earlier = noted(mine)
        if earlier is None or earlier.text.endswith(f"refuses this {operator_of(mine)}"):
            note(mine, rule, NodeOutcome.REJECTED, f"as the partitioner logged it: {words}")


def _own(spec: Any) -> Any:  # noqa: ANN401
    return DelegationSpec(*own_spec(spec)) if is_foreign_spec(spec) else spec


def _take_tags(shown: torch.fx.GraphModule, module: torch.fx.GraphModule) -> None:
    """Copy the tags of another program's nodes to the corresponding nodes, bodies included.

    Further metadata that a partitioner left for its backend is copied too.
    """
    for theirs, ours in zip(shown.graph.nodes, module.graph.nodes, strict=True):
        ours.meta.update({key: theirs.meta[key] for key in theirs.meta if key not in ours.meta})
        if TAG in theirs.meta:
            ours.meta[TAG] = theirs.meta[TAG]
        else:
            ours.meta.pop(TAG, None)
    bodies = dict(shown.named_children())
    for name, child in module.named_children():
        if isinstance(child, torch.fx.GraphModule):
            _take_tags(cast("Any", bodies[name]), child)


def ops_to_preserve(
    partitioner: Any,  # noqa: ANN401
    program: ExportedProgram,
) -> tuple[list[Any], NodeFilter | None]:
    """Return the operators that a partitioner wants preserved, and a filter of their nodes.

    Raises: PartitionError if it returned something else
    """
    ask = getattr(partitioner, "ops_to_not_decompose", None)
    answer: Any = ask(program) if ask is not None else ([], None)
    try:
        ops, requested = answer
        kept = list(ops)
    except (TypeError, ValueError) as error:
        raise PartitionError(
            f"ops_to_not_decompose of {name_of(partitioner)} returned {answer!r}, not a list "
            "of operators and a filter"
        ) from error
    return kept, _listened_to(requested) if requested is not None and is_foreign(
        partitioner
    ) else requested


def _listened_to(requested: NodeFilter) -> NodeFilter:
    def listened(node: torch.fx.Node) -> bool:
        with noting_stock_reasons():
            return requested(node)

    return listened
