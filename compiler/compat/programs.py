"""Helpers of export and saving, and a switch without effect."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import torch

from compiler.pipeline.program_manager import ExecutorchProgramManager


def save_pte_program(prog: ExecutorchProgramManager, model_name: str, output_dir: str = "") -> str:
    """Write a program and its external files, and return the program's path.

    Args:
        prog: the program
        model_name: of the file in `output_dir`, or a path that ends in .pte
        output_dir: for the program and its external files

    Raises: OSError if a file cannot be written
    """
    if model_name.endswith(".pte"):
        path = model_name
    else:
        path = os.path.join(output_dir, f"{model_name}.pte")
    prog.save(path)
    prog.write_tensor_data_to_file(output_dir or Path.cwd())
    return path


@contextlib.contextmanager
def validation_disabled() -> Generator[None]:
    """Do nothing: partitioners are checked by a comparison of graphs, which is cheap."""
    yield


@contextlib.contextmanager
def patch_forward(obj: torch.nn.Module, new_method: Callable[..., Any]) -> Generator[None]:
    """Replace `forward` of a module inside the context, so that another function is exported.

    Args:
        obj: the module
        new_method: a method of it, or a function whose first argument is the module
    """
    before: Any = obj.forward
    bound: Any = new_method
    obj.forward = bound.__get__(obj, type(obj))
    try:
        yield
    finally:
        obj.forward = before


class WrapperModule(torch.nn.Module):
    """A module whose `forward` is a given function."""

    def __init__(self, f: Callable[..., Any]) -> None:
        super().__init__()
        self.forward = f
