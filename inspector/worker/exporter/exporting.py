"""Calls a user's function and exports what it returns."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import logging
import sys
import time
import types
import warnings
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram

from .answers import entries_of
from .compiler_file import trained_layers
from .errors import HERE, AnswerError, is_users, point_to

MANIFEST, CONSTANTS = "programs.json", "constants.pt"
Say = Callable[..., None]
_MOST_NAMES, _MOST_PARTS = 20, 3  # functions and modules that a message lists


@dataclass(frozen=True)
class Exported:
    """Exported programs.

    Attributes:
        programs: by method
        constants: values by the name of the method that returns them
        asked: file and line of the user's function, empty and 0 without one
    """

    programs: Mapping[str, ExportedProgram]
    constants: Mapping[str, Any]
    asked: tuple[str, int] = ("", 0)


# -- progress --------------------------------------------------------------------------------


@contextlib.contextmanager
def timed_stage(notify: Say, stage: str, method: str = "") -> Generator[dict[str, Any], None, None]:
    """Report the start and end of a stage; ``nodes`` may be set in the yielded mapping."""
    notify("stage", stage=stage, method=method)
    start, more = time.perf_counter(), {}
    yield more
    notify("stage", stage=stage, method=method, seconds=time.perf_counter() - start, **more)


def redirect_logs(notify: Say) -> None:
    """Turn warnings about the user's lines into messages, other warnings into a log."""
    handler = _ExportLogHandler(notify)
    for name in list(logging.root.manager.loggerDict):
        logger = logging.getLogger(name)
        if logger.handlers and name.split(".")[0] == "torch":
            logger.handlers[:] = [handler]

    def show(message: Any, category: Any, filename: str, lineno: int, *_more: Any) -> None:  # noqa: ANN401
        if is_users(filename):
            notify("warning", text=f"{category.__name__}: {message}", file=filename, line=lineno)
        else:
            notify("log", text=f"{filename}:{lineno}: {category.__name__}: {message}")

    warnings.showwarning = show


class _ExportLogHandler(logging.Handler):
    def __init__(self, notify: Say) -> None:
        super().__init__(logging.WARNING)  # torch traces itself on lower levels
        self._notify = notify

    def emit(self, record: logging.LogRecord) -> None:
        self._notify("log", text=self.format(record))


# -- the user's function ---------------------------------------------------------------------


def answer_of(path: str, function: str, notify: Say) -> tuple[Any, tuple[str, int]]:
    """Run a file and call a function of it without arguments.

    Returns: its result, file and line

    Raises: AnswerError for a missing function; errors of the user's code
    """
    return _called(member_of(path, function, notify), path)


def _called(found: Any, path: str) -> tuple[Any, tuple[str, int]]:  # noqa: ANN401
    file = str(Path(path).absolute())
    if isinstance(found, torch.nn.Module) or not callable(found):
        return found, (file, 0)  # a model or a tuple with a name needs no call
    code = getattr(found, "__code__", None)
    return found(), (file, code.co_firstlineno if code is not None else 0)


def member_of(path: str, name: str, notify: Say) -> Any:  # noqa: ANN401 - what it is in the file
    """Run a file and return what it calls a name.

    Raises: AnswerError for a missing name; errors of the user's code
    """
    file = Path(path).absolute()
    _warn_of_hidden(file, notify)
    sys.argv = [str(file)]
    module = module_of(file)
    found = getattr(module, name, None)
    if found is None:
        there = [
            key for key, value in vars(module).items() if isinstance(value, types.FunctionType)
        ]
        more = f" and {len(there) - _MOST_NAMES:,} more" if len(there) > _MOST_NAMES else ""
        named = f"{', '.join(there[:_MOST_NAMES])}{more}" if there else "none"
        raise AnswerError(f"{path} has no function {name!r}; available: {named}")
    return found


def module_of(file: Path) -> types.ModuleType:
    """Run a file as a module that can import from its folder.

    Raises: errors of the user's code
    """
    sys.path.insert(0, str(file.parent))
    name = file.stem if file.stem not in sys.modules else f"user_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def exported(
    path: str,
    function: str,
    methods: tuple[str, ...],
    notify: Say,
    loaded: Callable[[], object] | None = None,
) -> Exported:
    """Run a file, call a function of it, and export what it returns.

    Args:
        path: of the file
        function: its name, or that of what it would return
        methods: only these; empty for all
        notify: called with messages
        loaded: called before the function, for what may need the user's code and shall not wait
            for the model and its export

    Raises: AnswerError for a missing function or an unsupported result; errors of the user's code
        or torch
    """
    with timed_stage(notify, "load"):
        with _naming(path):
            found = member_of(path, function, notify)
        if loaded is not None:
            loaded()
        with _naming(path):
            answer, asked = _called(found, path)
    try:
        return replace(export_answer(answer, methods, notify), asked=asked)
    except Exception as error:
        point_to(error, asked)
        raise


@contextlib.contextmanager
def _naming(path: str) -> Generator[None, None, None]:
    """Name the file in its syntax errors: that of invalid bytes names none."""
    try:
        yield
    except SyntaxError as error:
        point_to(error, (str(Path(path).absolute()), 0))
        raise


def _warn_of_hidden(file: Path, notify: Say) -> None:
    """Warn of modules next to the user's file that are shadowed by ours."""
    for name in ("compiler", "inspector", "runtime", "schema"):
        ours = name in sys.modules and (HERE / name).is_dir()
        beside = (file.parent / f"{name}.py").is_file() or (file.parent / name).is_dir()
        if ours and beside and not HERE.samefile(file.parent):
            text = f"the module {name} next to the file is shadowed by one of ETScope; use --python"
            notify("warning", text=text, file=str(file), line=0)


def export_answer(answer: Any, methods: tuple[str, ...], notify: Say) -> Exported:  # noqa: ANN401
    """Export what a user's function returned.

    Args:
        answer: any of the documented forms
        methods: only these; empty for all
        notify: called with messages

    Raises: AnswerError for any other form; errors of torch or the model
    """
    entries, constants = entries_of(answer)
    unknown = [name for name in methods if name not in entries]
    if unknown:
        raise AnswerError(f"unknown method {unknown[0]!r}; available: {', '.join(entries)}")
    programs: dict[str, ExportedProgram] = {}
    for name, entry in entries.items():
        if not methods or name in methods:
            programs[name] = _export(name, entry, notify)
    return Exported(programs, constants)


def _export(name: str, entry: Any, notify: Say) -> ExportedProgram:  # noqa: ANN401
    if isinstance(entry, ExportedProgram):
        return entry
    tracer: Any = sys.modules.get("torch._dynamo")
    if tracer is not None:  # sizes of a former trace of a branch would pin symbolic ones
        tracer.reset()
    with timed_stage(notify, "export", name) as more, _graphs_in_log(notify):
        try:
            program = torch.export.export(
                entry.module,
                entry.inputs,
                dict(entry.kwargs) or None,
                dynamic_shapes=entry.dynamic_shapes,
                strict=False,
            )
        except Exception:
            if entry.module.training:  # as of a batch norm that refuses a batch of one
                _warn_of_training(name, entry.module, [], notify)
            raise
        more["nodes"] = sum(node.op == "call_function" for node in program.graph.nodes)
    layers = trained_layers(program)
    if layers:
        _warn_of_training(name, entry.module, layers, notify)
    return program


@contextlib.contextmanager
def _graphs_in_log(notify: Say) -> Generator[None, None, None]:
    """Redirect the unfinished graph that torch prints on failure to the log."""
    home, name = sys.modules.get("torch.export._trace"), "print"
    if home is None or hasattr(home, name):
        yield
        return

    def log(*parts: object, **_how: object) -> None:
        notify("log", text="\n".join(map(str, parts)))

    setattr(home, name, log)
    try:
        yield
    finally:
        delattr(home, name)


def _warn_of_training(name: str, module: Any, layers: list[str], notify: Say) -> None:  # noqa: ANN401 - a module
    code: Any = getattr(getattr(module.__class__, "forward", None), "__code__", None)
    file = code.co_filename if code is not None and is_users(code.co_filename) else ""
    more = f" and {len(layers) - _MOST_PARTS:,} more" if len(layers) > _MOST_PARTS else ""
    what = (
        f": dropout or batch norm trains in {', '.join(layers[:_MOST_PARTS])}{more}"
        if layers
        else ""
    )
    text = (
        f"the module of method {name} is in training mode{what}; call .eval() before returning it"
    )
    notify("warning", text=text, file=file, line=code.co_firstlineno if code and file else 0)


# -- as a script -----------------------------------------------------------------------------


def save_exported(found: Exported, folder: Path) -> None:
    """Write programs and constants, and a list of them."""
    listed: dict[str, str] = {}
    for name, program in found.programs.items():
        listed[name] = f"{len(listed)}.pt2"
        torch.export.save(program, folder / listed[name])
    torch.save(dict(found.constants), folder / CONSTANTS)
    manifest = {"programs": listed, "asked": found.asked}
    (folder / MANIFEST).write_text(json.dumps(manifest), "utf-8")
