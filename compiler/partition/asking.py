"""Asks a partitioner, and refuses what is no answer of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch.export import ExportedProgram

from compiler.partition.interface import DelegationSpec, NodeFilter, PartitionResult, name_of
from compiler.partition.tags import PartitionContractError, PartitionError


def answer_of(partitioner: Any, program: ExportedProgram) -> PartitionResult:  # noqa: ANN401
    """Return what a partitioner says about a program.

    Raises:
        PartitionError: it returned no PartitionResult, or a tag that is none
        PartitionContractError: the result does not say what tags mean
    """
    answers = partitioner if callable(partitioner) else partitioner.partition
    result: Any = answers(program)
    tags: Any = getattr(result, "partition_tags", None)
    if not isinstance(getattr(result, "tagged_exported_program", None), ExportedProgram):
        raise PartitionError(f"{name_of(partitioner)} returned {result!r}, not a PartitionResult")
    if not isinstance(tags, Mapping):
        raise PartitionContractError(
            f"Partitioner {name_of(partitioner)} needs a `partition_tags` field containing a "
            "mapping of tags to delegate spec"
        )
    for tag, spec in tags.items():  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(tag, str) or not isinstance(spec, DelegationSpec):
            raise PartitionError(
                f"partition_tags of {name_of(partitioner)} has {tag!r}: {spec!r}, not a tag and a "
                "DelegationSpec"
            )
    return result


def wishes_as_said(
    partitioner: Any,  # noqa: ANN401
    program: ExportedProgram,
) -> tuple[list[Any], NodeFilter | None]:
    """Return the operators a partitioner wants whole, and which of their nodes; None for all.

    Raises: PartitionError if it returned something else
    """
    ask = getattr(partitioner, "ops_to_not_decompose", None)
    answer: Any = ask(program) if ask is not None else ([], None)
    try:
        ops, wanted = answer
        return list(ops), wanted
    except (TypeError, ValueError) as error:
        raise PartitionError(
            f"ops_to_not_decompose of {name_of(partitioner)} returned {answer!r}, not a list "
            "of operators and a filter"
        ) from error
