"""Kernels of operators that no runtime has built in: those of a user, or none at all."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.program_manager import ExecutorchProgramManager
from inspector.worker.libraries import load_libraries
from runtime import Runtime
from runtime.registry import KernelRegistry
from runtime.torch_operators import adopt, operator_names


def kernels_missing(program: ExecutorchProgramManager) -> str:
    """Return a sentence that names those operators, empty when there is a kernel for each.

    The built-in kernels are those of the stock runtime's portable, optimised and quantised
    libraries, so that a program without this sentence loads there, too.
    """
    missing = KernelRegistry().missing(_called(program))
    if not missing:
        return ""
    return (
        f"there is no kernel for {', '.join(missing)} in ExecuTorch's own libraries:"
        " the program loads only where one is registered"
    )


def with_libraries(paths: Sequence[str]) -> None:
    """Load libraries of operators, which programs can call from now on.

    Raises: AnswerError, OSError, whatever the code of a library raises
    """
    if paths:
        before = operator_names()
        load_libraries(paths)
        adopt(Runtime.get().operator_registry, operator_names() - before)


def adopt_called(program: ExecutorchProgramManager) -> None:
    """Give the runtime what the source of a program has registered and the program calls."""
    registry = Runtime.get().operator_registry
    names = registry.missing(_called(program))
    if names:
        adopt(registry, operator_names().intersection(names))


def _called(program: ExecutorchProgramManager) -> set[str]:
    plans = program.executorch_program.plans
    return {operator.full_name for plan in plans for operator in plan.operators}
