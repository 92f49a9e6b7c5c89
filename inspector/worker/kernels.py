"""Operators that a compiled program calls and no runtime has a kernel for."""

from __future__ import annotations

from compiler.program_manager import ExecutorchProgramManager
from runtime.registry import KernelRegistry


def kernels_missing(program: ExecutorchProgramManager) -> str:
    """Return a sentence that names those operators, empty when there is a kernel for each.

    The built-in kernels are those of the stock runtime's portable, optimised and quantised
    libraries, so that a program without this sentence loads there, too.
    """
    plans = program.executorch_program.plans
    names = {operator.full_name for plan in plans for operator in plan.operators}
    missing = KernelRegistry().missing(names)
    if not missing:
        return ""
    return (
        f"there is no kernel for {', '.join(missing)} in ExecuTorch's own libraries:"
        " the program loads only where one is registered"
    )
