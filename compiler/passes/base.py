"""The pass interface: a callable from a graph module or a program to a result.

``PassBase`` and ``PassResult`` are torch's own, so that passes written against them run here too.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.fx.passes.infra.pass_base as _infra
from torch.export import ExportedProgram

from compiler.errors import CompileError

PassBase: Any = cast("Any", _infra).PassBase
PassResult: Any = cast("Any", _infra).PassResult
PassType = Callable[[Any], Any]  # of a graph module, or an ExportedProgramPassBase


class PassError(CompileError):
    """A pass failed, or returned an invalid result.

    Attributes:
        pass_name: which one
    """

    def __init__(self, pass_name: str, message: str) -> None:
        self.pass_name = pass_name
        super().__init__(message)


@dataclass(frozen=True)
class ExportedProgramPassResult:
    """The result of a pass over a program.

    Attributes:
        exported_program: the resulting program
        modified: whether the pass changed it
    """

    exported_program: ExportedProgram
    modified: bool


class ExportedProgramPassBase(ABC):
    """Base of passes over a program with its weights and signature."""

    def __call__(self, exported_program: ExportedProgram) -> ExportedProgramPassResult:
        """Check the preconditions, run the pass, and check the postconditions."""
        self.requires(exported_program)
        result = self.call(exported_program)
        self.ensures(result.exported_program)
        return result

    @abstractmethod
    def call(self, exported_program: ExportedProgram) -> ExportedProgramPassResult:
        """Return the transformed program; the given one may be changed."""

    def requires(self, exported_program: ExportedProgram) -> None:  # noqa: B027 - may be left out
        """Raise if the pass cannot handle the program."""

    def ensures(self, exported_program: ExportedProgram) -> None:  # noqa: B027 - may be left out
        """Raise if the result violates a postcondition."""


def pass_name(given: object) -> str:
    """Return the name of a pass in stages and errors: that of its function or class."""
    if inspect.isfunction(given) or inspect.ismethod(given):
        return given.__name__
    name = getattr(given, "__name__", "")
    return name if isinstance(name, str) and name else type(given).__name__


def takes_program(given: object) -> bool:
    """Return whether a pass expects programs; all others expect graph modules."""
    if isinstance(given, ExportedProgramPassBase):
        return True
    if not inspect.isfunction(given):
        return False
    annotations = [p.annotation for p in inspect.signature(given).parameters.values()]
    return bool(annotations) and annotations[0] in (ExportedProgram, "ExportedProgram")


def graph_result(given: object, module: torch.fx.GraphModule, found: object) -> Any:  # noqa: ANN401
    """Return the result of a pass over a graph module as a PassResult.

    A pass may return None after changing the module in place, or only the new module.

    Raises: PassError for anything else
    """
    if found is None:
        return PassResult(module, True)
    if isinstance(found, torch.fx.GraphModule):
        return PassResult(found, True)
    if isinstance(getattr(found, "graph_module", None), torch.fx.GraphModule):
        return found
    name = pass_name(given)
    raise PassError(name, f"the pass {name} returned {found!r}, not a PassResult")


def program_result(given: object, found: object) -> ExportedProgramPassResult:
    """Return the result of a pass over a program as an ExportedProgramPassResult.

    Raises: PassError if it is neither a program nor such a result
    """
    if isinstance(found, ExportedProgram):
        return ExportedProgramPassResult(found, True)
    if isinstance(getattr(found, "exported_program", None), ExportedProgram):
        return cast("ExportedProgramPassResult", found)
    name = pass_name(given)
    raise PassError(name, f"the pass {name} returned {found!r}, not an ExportedProgram")


def flat_passes(given: Any) -> list[PassType]:  # noqa: ANN401 - nested lists of passes
    """Return passes in order of execution, nested lists flattened.

    Raises: TypeError if one is not callable
    """
    passes = list(_leaves(given))
    for one in passes:
        if not callable(one) or inspect.isclass(one):
            hint = f"; pass an instance: {one.__name__}()" if inspect.isclass(one) else ""
            raise TypeError(f"expected a pass, found {one!r}{hint}")
    return passes


def _leaves(given: Any) -> Iterator[Any]:  # noqa: ANN401
    if isinstance(given, (list, tuple)):
        for item in given:  # pyright: ignore[reportUnknownVariableType]
            yield from _leaves(item)
    elif given is not None:
        yield given
