"""The XNNPACK backend of the compiler."""

from __future__ import annotations

from typing import final

from torch.export import ExportedProgram

from compiler.backends.xnnpack.emission import written
from compiler.interface.backend import BackendDetails, CompileSpec, PreprocessResult


@final
class XnnpackBackend(BackendDetails):
    """Writes XNNPACK payloads; weights are named by the hash of their bytes."""

    @classmethod
    def copy_exported_program_for_preprocess(
        cls, edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> ExportedProgram:
        """Return the program itself: nothing in it is changed, so weights are not copied."""
        del compile_specs
        return edge_program

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        """Return the payload of a graph; it takes no settings.

        Raises: UnsupportedError naming an operator the payload has no node for
        """
        del compile_specs
        return written(edge_program)
