"""The older way to an edge program: `capture(f, inputs).to_edge().to_executorch()`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram, export

from compiler.compat.programs import WrapperModule
from compiler.edge.config import EdgeCompileConfig
from compiler.emit.config import ExecutorchBackendConfig
from compiler.pipeline.edge_manager import EdgeProgramManager, to_edge
from compiler.pipeline.program_manager import ExecutorchProgramManager


@dataclass
class CaptureConfig:
    """Options of the older capture, accepted and ignored: `torch.export` needs none of them."""

    pt2_mode: bool = True
    enable_functionalization: bool = True
    enable_dynamic_shape: bool = False
    enable_aot: bool = False
    _unlift: bool = False
    _use_old_decomp_table: bool = False


@dataclass(frozen=True)
class CapturedProgram:
    """A program as exported, or its edge program.

    Attributes:
        exported_program: the program itself
    """

    exported_program: ExportedProgram

    def __call__(self, *args: Any) -> Any:  # noqa: ANN401
        """Run the program."""
        return self.exported_program.module()(*args)

    def to_edge(self, config: EdgeCompileConfig | None = None) -> CapturedProgram:
        """Return the edge program.

        Raises: UnsupportedError for what no edge program can express
        """
        edge = to_edge(self.exported_program, compile_config=config)
        return CapturedProgram(edge.exported_program())

    def to_executorch(
        self, config: ExecutorchBackendConfig | None = None
    ) -> ExecutorchProgramManager:
        """Return the program file of an edge program.

        Raises: CompileError naming the node that cannot be written
        """
        return EdgeProgramManager(self.exported_program).to_executorch(config)


def capture(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    config: CaptureConfig | None = None,
    dynamic_shapes: Any = None,  # noqa: ANN401 - as torch.export takes them
) -> CapturedProgram:
    """Export a module or a function; `torch.export.export` and `to_edge` replace it.

    Args:
        f: module or function
        args: its example inputs
        config: accepted as documented
        dynamic_shapes: dynamic sizes
    """
    del config
    warnings.warn(
        "capture is deprecated: use torch.export.export and to_edge",
        DeprecationWarning,
        stacklevel=2,
    )
    module = f if isinstance(f, torch.nn.Module) else WrapperModule(f)
    return CapturedProgram(export(module, args, dynamic_shapes=dynamic_shapes, strict=True))
