"""Export of PyTorch modules, with errors at the user's own line."""

from __future__ import annotations

import inspect
import linecache
import os
import re
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Mapping
from types import MethodType
from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.errors import CompileError
from compiler.exported_modules import method_as_forward, trained_layers

_LIBRARIES = tuple(
    os.path.dirname(path) + os.sep for path in (torch.__file__, __file__, inspect.__file__)
)
_INSTALLED = sysconfig.get_paths()["purelib"] + os.sep
_QUOTED = re.compile(r'File "(?P<file>[^"<][^"]*)", line (?P<line>\d+)')
# Lines of torch's messages that give debugging hints, not the reason.
_ADVICE = re.compile(
    r"^(For (more|extended|C\+\+)|If you suspect|The error above|Caused by|\(Size)"
)


class ExportError(CompileError):
    """A module cannot be exported.

    Attributes:
        line: ``file:line`` of the user's code, empty when unknown
    """

    def __init__(self, message: str, line: str = "") -> None:
        self.line = line
        super().__init__(message)


class TrainingModeWarning(UserWarning):
    """A module is exported in training mode."""


def export(
    mod: torch.nn.Module | ExportedProgram | MethodType,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,  # noqa: ANN401 - nested as the inputs are
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
) -> ExportedProgram:
    """Export a module as a graph of ATen operators; the module is not changed.

    Args:
        mod: the module, a method of it such as ``module.decode``, or an exported program
        args: positional example inputs, nested as the module expects them
        kwargs: example inputs by name
        dynamic_shapes: by name or by position of the inputs, dynamic dimensions and their ranges;
            all others are fixed to the examples
        strict: trace bytecode instead of running the module
        preserve_module_call_signature: paths of submodules whose calls stay visible

    Raises: ExportError with the reason and the line of the user's code
    """
    module: Any = (
        mod.module() if isinstance(mod, ExportedProgram) else _with_method(mod, strict=strict)
    )
    if not isinstance(module, torch.nn.Module):
        raise ExportError(f"expected a torch.nn.Module, found {type(mod).__name__}")
    if not isinstance(args, tuple):  # pyright: ignore[reportUnnecessaryIsInstance]
        found = type(args).__name__
        raise ExportError(f"expected a tuple of example inputs, found {found}; pass (x,) for one")
    if dynamic_shapes is not None:
        forget_traces()
    run: Any = torch.export.export
    try:
        with warnings.catch_warnings():  # torch copies one of its own deprecated classes
            warnings.filterwarnings("ignore", ".*LeafSpec", FutureWarning)
            program = run(
                module,
                args,
                dict(kwargs or {}),
                dynamic_shapes=dynamic_shapes,
                strict=strict,
                preserve_module_call_signature=preserve_module_call_signature,
            )
    except Exception as error:
        raise _explained(module, error) from error
    if module.training and not isinstance(module, torch.fx.GraphModule):
        _warn_of_training(module, trained_layers(program))
    return program


def forget_traces() -> None:
    """Reset Dynamo's cache of traced branches and loops before an export with symbolic sizes.

    torch 2.13 looks for an earlier matching trace of a ``torch.cond``, and compares its sizes with
    the symbolic ones, which specializes them: after two exports of a module with
    different sizes, an export with a dynamic size failed or was static.
    """
    tracer: Any = sys.modules.get("torch._dynamo")
    if tracer is not None:
        tracer.reset()


def _with_method(mod: Any, *, strict: bool = False) -> Any:  # noqa: ANN401 - whatever was given
    """Return a module with the same weights whose ``forward`` is a bound method of a module.

    Args:
        mod: the method; anything else is returned as it is
        strict: the bytecode of the method is traced
    """
    if not isinstance(mod, MethodType) or not isinstance(mod.__self__, torch.nn.Module):
        return mod
    return method_as_forward(mod, strict=strict)


def _warn_of_training(module: torch.nn.Module, layers: list[str]) -> None:
    if not layers:
        return
    shown = ", ".join(layers[:3]) + (f" and {len(layers) - 3} more" if len(layers) > 3 else "")
    warnings.warn(
        f"{type(module).__name__} is in training mode; it changes what {shown} computes."
        " Call eval() on it before export, unless it is to be trained on the device",
        TrainingModeWarning,
        stacklevel=3,
    )


def _explained(module: torch.nn.Module, error: Exception) -> ExportError:
    reason = _reason(error)
    line = _line_of(module, error)
    source = linecache.getline(*_parts(line)).strip() if line else ""
    where = f" at {line}" + (f": {source}" if source else "") if line else ""
    name = type(module).__name__
    return ExportError(f"{name} cannot be exported: {type(error).__name__}: {reason}{where}", line)


def _reason(error: Exception) -> str:
    kept: list[str] = []
    for line in str(error).strip().splitlines():
        if _ADVICE.match(line.strip()) or line.startswith("from user code"):
            break
        if line.strip():
            kept.append(line.strip())
    return " ".join(kept) or type(error).__name__


def _line_of(module: torch.nn.Module, error: Exception) -> str:
    """Return the innermost line outside of libraries, else where ``forward`` begins."""
    frames = [(f.filename, f.lineno or 0) for f in traceback.extract_tb(error.__traceback__)]
    quoted = [(m["file"], int(m["line"])) for m in _QUOTED.finditer(str(error))]
    for known in (quoted, frames):
        own = [frame for frame in known if _is_own(frame[0])]
        if own:
            return f"{own[-1][0]}:{own[-1][1]}"
    try:
        code: Any = inspect.unwrap(type(module).forward).__code__
    except (AttributeError, ValueError):
        return ""
    return f"{code.co_filename}:{code.co_firstlineno}" if _is_own(code.co_filename) else ""


def _is_own(file: str) -> bool:
    return not file.startswith((*_LIBRARIES, "<")) and not _is_installed(file)


def _is_installed(file: str) -> bool:
    return file.startswith(_INSTALLED)


def _parts(line: str) -> tuple[str, int]:
    file, number = line.rsplit(":", 1)
    return file, int(number)
