"""Export sessions that also run their programs, above compiler and runtime.

This is the complete documented module ``executorch.export``. It imports torch, so the
window and the rest of this package do not import it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch.utils import _pytree as pytree

from compiler.compat.session import (
    AOQuantizationConfig,
    BackendRecipeProvider,
    ExportRecipe,
    LoweringRecipe,
    QuantizationRecipe,
    RecipeType,
    StageType,
    recipe_registry,
)
from compiler.compat.session import ExportSession as _Session
from runtime import Runtime

__all__ = [
    "AOQuantizationConfig",
    "BackendRecipeProvider",
    "ExportRecipe",
    "ExportSession",
    "LoweringRecipe",
    "QuantizationRecipe",
    "RecipeType",
    "StageType",
    "export",
    "recipe_registry",
]

FORWARD = "forward"


class ExportSession(_Session):
    """A session of the compiler whose program can be run in this process."""

    def run_method(
        self, method_name: str = FORWARD, example_inputs: Sequence[Any] | None = None
    ) -> list[Any]:
        """Return the results of a method of the program, run by this project's runtime.

        Args:
            method_name: of the method
            example_inputs: arguments; None for its first example input

        Raises:
            RuntimeError: the program was not emitted
            KeyError: unknown method, or it has no example inputs
            ExecutionError: the program cannot be loaded or fails
        """
        program = self.get_executorch_program_manager()
        there = program.methods | program.config_methods
        if method_name not in there:
            names = ", ".join(sorted(there))
            raise KeyError(f"Method name '{method_name}' not found; available: {names}")
        if example_inputs is None and method_name in program.config_methods:
            example_inputs = ()
        given = self.get_example_input(method_name) if example_inputs is None else example_inputs
        with tempfile.TemporaryDirectory() as folder:
            program.write_tensor_data_to_file(folder)
            data = [Path(folder, name) for name in program.tensor_data_files]
            loaded = Runtime.get().load_program(program.buffer, data_path=data)
            return loaded.load_method(method_name).execute(pytree.tree_leaves(given))


def export(*given: Any, **named: Any) -> ExportSession:  # noqa: ANN401 - of ExportSession
    """Run all stages of a recipe and return the session; arguments as for ``ExportSession``.

    Raises: errors of the stages
    """
    session = ExportSession(*given, **named)
    session.export()
    return session
