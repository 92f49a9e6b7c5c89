"""Kernels of operators without a built-in kernel: custom or missing ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from inspector.worker.libraries import load_libraries
from runtime import Runtime
from runtime.kernels import BEYOND_STOCK, OF_VENDORS
from runtime.kernels.registry import KernelRegistry
from runtime.kernels.torch_operators import of_libraries, operator_names

if TYPE_CHECKING:
    from compiler.pipeline.program_manager import ExecutorchProgramManager


def kernels_missing(program: ExecutorchProgramManager) -> str:
    """Return a sentence with called operators that ExecuTorch has no kernel for, or empty.

    A program without it loads on the stock runtime.
    """
    called = program.called_operators
    ours_only = sorted(called & (BEYOND_STOCK | OF_VENDORS))
    sentences: list[str] = []
    if nowhere := KernelRegistry().missing(called):
        sentences.append(
            f"no kernel for {', '.join(nowhere)} in ExecuTorch's own libraries:"
            " the program loads only where one is registered"
        )
    if ours_only:
        sentences.append(
            f"the stock runtime has no kernel for {', '.join(ours_only)}: this runtime runs the"
            " program, ExecuTorch's loads it only where one is registered"
        )
    return "; ".join(sentences)


def with_libraries(paths: Sequence[str]) -> None:
    """Load libraries of operators, which programs can call from now on.

    Raises: AnswerError, OSError, any error of a library's code
    """
    if paths:
        before = operator_names()
        load_libraries(paths)
        Runtime.get().operator_registry.adopt(of_libraries(operator_names() - before))


def adopt_called(program: ExecutorchProgramManager) -> None:
    """Register the custom operators of a program with the runtime."""
    registry = Runtime.get().operator_registry
    names = registry.missing(program.called_operators)
    if names:
        registry.adopt(of_libraries(operator_names().intersection(names)))
