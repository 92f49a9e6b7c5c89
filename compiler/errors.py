"""Errors of the compiler; messages are one sentence with the line of the user's code."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_FRAME = re.compile(r'File "(?P<file>[^"<][^"]*)", line (?P<line>\d+)')  # none created at run time


class CompileError(RuntimeError):
    """A program cannot be compiled; the message has the reason and place in the user's code."""


class UnsupportedError(CompileError):
    """The program uses a feature that an edge program cannot express."""


class HardWriteError(CompileError):
    """An operator mutates through a view inside its decomposition; torch has to functionalize it.

    Attributes:
        op: the operator of the program
    """

    def __init__(self, op: Any) -> None:  # noqa: ANN401 - an operator overload of torch
        self.op = op
        super().__init__(f"{op} writes through a view")


class UnboundedShapeError(CompileError):
    """A size has no finite upper bound, so that no memory can be planned for it."""


class MissingOutVariantsError(CompileError):
    """Operators without an out variant, reported together.

    Attributes:
        operators: qualified names of the operators
    """

    def __init__(self, operators: Sequence[str], lines: Sequence[str] = ()) -> None:
        self.operators = tuple(operators)
        used = f", used at {', '.join(lines)}" if lines else ""
        super().__init__(f"Missing out variants: {{{', '.join(self.operators)}}}{used}")


class PlanError(CompileError):
    """A memory plan in which two values overlap in time and in space."""


class CancelledError(CompileError):
    """The compile was cancelled between two stages."""


def source_line(node: torch.fx.Node) -> str:
    """Return ``file:line`` of the user's code a node comes from, empty if unknown.

    Lines of torch itself, such as those of its layers, are only used as a last resort. An
    input has no source line; the line of its first reader is used.
    """
    trace = node.meta.get("stack_trace")
    if not trace and node.op == "placeholder":
        trace = next(filter(None, (user.meta.get("stack_trace") for user in node.users)), "")
    frames = _FRAME.findall(str(trace or ""))
    own = [frame for frame in frames if not frame[0].startswith(_torch_folder())]
    return ":".join((own or frames)[-1]) if frames else ""


def at(node: torch.fx.Node) -> str:
    """Return ``node NAME (file:line)`` for a message."""
    line = source_line(node)
    return f"node {node.name} ({line})" if line else f"node {node.name}"


@cache
def _torch_folder() -> str:
    found = importlib.util.find_spec("torch")
    return os.path.dirname(str(found.origin)) + os.sep if found is not None else ""
