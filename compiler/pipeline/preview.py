"""Previews of partitioning, without running a backend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch.export import ExportedProgram

from compiler.delegate.rounds import partitioners_by_method
from compiler.delegate.to_backend import DryRun, Tagged
from compiler.edge.cache import EdgeCache
from compiler.edge.config import EdgeCompileConfig
from compiler.partition.verdicts import verdicts_of
from compiler.pipeline.lowering import lower_for, transforming
from compiler.stages import Observer, Stages
from schema.etrecord.parts.verdicts import Verdict


@dataclass(frozen=True)
class Previewed:
    """The partitions that partitioners would take in a method.

    Attributes:
        program: the edge program before partitioning
        rounds: their results, in order
    """

    program: ExportedProgram
    rounds: tuple[Tagged, ...]

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Return all verdicts, in the order of the partitioners."""
        return self.rounds[-1].verdicts if self.rounds else verdicts_of(self.program)


def previewed(
    programs: Mapping[str, ExportedProgram],
    passes: Any = None,  # noqa: ANN401 - as for to_edge_transform_and_lower
    partitioner: Any = None,  # noqa: ANN401 - likewise
    compile_config: EdgeCompileConfig | None = None,
    *,
    kept: EdgeCache | None = None,
    observer: Observer | None = None,
) -> dict[str, Previewed]:
    """Return by method the partitions that ``to_edge_transform_and_lower`` would delegate.

    Args:
        programs: exported, by method
        passes: run over the edge programs before
        partitioner: one for all methods, several in order, or a dictionary by method
        compile_config: dim order, verifier, operators to keep
        kept: edge programs of earlier calls
        observer: called with the events of stages that are not cached

    Raises: CompileError as ``to_edge_transform_and_lower`` does, except errors of backends
    """
    stages, config = Stages(observer), compile_config or EdgeCompileConfig()
    requested = partitioners_by_method(partitioner, programs)
    transform = transforming(passes, programs, stages)
    lowered = lower_for(programs, requested, config, transform, stages, kept)
    return {
        name: Previewed(program, tuple(_rounds(lowered.rounds.get(name), program, requested, name)))
        for name, program in lowered.programs.items()
    }


def _rounds(
    known: list[Tagged] | None, program: ExportedProgram, requested: Mapping[str, Any], name: str
) -> list[Tagged]:
    return known if known is not None else DryRun(program).rounds(requested.get(name, ()))
