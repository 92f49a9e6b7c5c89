"""The XNNPACK backend of the compiler."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import final

from torch.export import ExportedProgram

from compiler.backends.xnnpack.emission import written
from compiler.backends.xnnpack.shared_constants import agree_on_layouts
from compiler.interface.backend import BackendDetails, CompileSpec, PreprocessResult


@final
class XnnpackBackend(BackendDetails):
    """Writes XNNPACK payloads; weights are named by the hash of their bytes."""

    concurrent = True

    @classmethod
    def copy_exported_program_for_preprocess(
        cls, edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> ExportedProgram:
        """Return the program itself: lowering does not modify it, so weights need no copy."""
        del compile_specs
        return edge_program

    @classmethod
    def prepare(cls, edge_programs: Sequence[ExportedProgram], outside: Collection[str]) -> None:
        """Let partitions store a constant that several of them read in one layout."""
        agree_on_layouts(edge_programs, outside)

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        """Return the payload of a graph; no settings are supported.

        Raises: UnsupportedError naming an operator without a payload node
        """
        del compile_specs
        return written(edge_program)
