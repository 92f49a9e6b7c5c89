"""Calls a user's function and exports what it returns; needs torch and nothing else.

It imports none of the other modules, since an interpreter chosen by the user may run it without
our packages, see ``export_script``.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib.util
import json
import logging
import os
import re
import sys
import sysconfig
import time
import traceback
import types
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.export import ExportedProgram

if TYPE_CHECKING:
    from typing import TypeGuard

FORWARD = "forward"
MANIFEST, CONSTANTS = "programs.json", "constants.pt"
EXPECTED = (
    "expected (module, inputs), (module, inputs, kwargs, dynamic_shapes, methods), a dict with"
    " these names, or an ExportedProgram"
)
Say = Callable[..., None]

_LONGEST = 600  # characters of a message
_CHECKED = re.compile("Check '|Exception (from|happened)")  # C++: a line a caller, the cause last
_MOST_NAMES, _MOST_PARTS = 20, 3  # functions and modules that a message lists
_NAMES = ("module", "inputs", "kwargs", "dynamic_shapes", "methods", "constant_methods")
# attribute of an error: the user's function, if no closer location is known
_ASKED = "etscope_asked"
_HERE = Path(__file__).parents[2]
_NOT_USERS = tuple(
    f"{path}{os.sep}"
    for path in {
        str(Path(str(torch.__file__)).parent),
        *(str(_HERE / name) for name in ("compiler", "inspector", "runtime", "schema")),
        *(sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")),
    }
)
_SAID = re.compile(r'File "(?P<file>[^"<][^"]*)", line (?P<line>\d+)')
_NAMED = re.compile(r"\((?P<file>[^():\s][^():]*):(?P<line>\d+)\)")
# suffix of a violation in the verifier's message
_NODE = re.compile(r"node \S+ \([^()]*\)$|node \S+$")
_VIOLATIONS = "SpecViolationError"  # each of its lines is one
_DATA_DEPENDENT = "GuardOnDataDependentSymNode"
_ONLY_A_RUN_KNOWS = (
    "a branch, a loop or a size here depends on values of a tensor, known only at run time;"
    " torch.cond and torch.where choose by values, torch._check bounds a size"
)


class AnswerError(Exception):
    """A missing function, or one whose result cannot be exported."""


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


@dataclass(frozen=True)
class _MethodEntry:
    """One method to export."""

    module: Any
    inputs: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    dynamic_shapes: Any


# -- where in the user's own code ------------------------------------------------------------


def is_users(file: str) -> bool:
    """Return whether a file is neither ours nor torch's nor Python's."""
    return not file.startswith(("<", *_NOT_USERS))


def place_of(error: BaseException) -> tuple[str, int]:
    """Return file and line of the innermost user's frame of an error, else of its message."""
    for one in _chain(error):
        if isinstance(one, SyntaxError) and one.filename and is_users(one.filename):
            return one.filename, one.lineno or 0
        for frame in reversed(traceback.extract_tb(one.__traceback__)):
            if is_users(frame.filename) and frame.lineno:
                return frame.filename, frame.lineno
    asked: tuple[str, int] = getattr(error, _ASKED, ("", 0))
    text = _text_of(error)
    output_text = _places_in(text.strip().partition("\n")[0]) or _places_in(text)
    return next((one for one in reversed(output_text) if is_users(one[0])), asked)


def _places_in(text: str) -> list[tuple[str, int]]:
    found = (*_NAMED.finditer(text), *_SAID.finditer(text))
    return [(match["file"], int(match["line"])) for match in found]


def _text_of(error: BaseException) -> str:
    """Return the message of an error; empty if that fails as well."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - whatever the user's code raises
        return ""


def sentence_of(error: BaseException) -> str:
    """Return an error as one line: its type, unless it is one of ours, and its message."""
    if isinstance(error, SystemExit):
        return f"the code called sys.exit({'' if error.code is None else error.code!r})"
    lines = [line.strip() for line in _text_of(error).splitlines() if line.strip()]
    text = lines[0] if lines else ""
    name = type(error).__name__
    if text.endswith((":", "!")) or text.startswith("Constraints violated"):
        text = " ".join(lines if any(map(_CHECKED.match, lines)) else lines[:4])
    text = _shortened(text)
    if name == _DATA_DEPENDENT:
        text = f"{_ONLY_A_RUN_KNOWS} ({text})"
    if name == _VIOLATIONS and lines[1:]:
        others = ", ".join(found[0] for line in lines[1:] if (found := _NODE.search(line)))
        text = f"{text}; and {len(lines) - 1} more{f': {others}' if others else ''}"
    home = type(error).__module__.split(".")[0]
    ours = home in ("compiler", "inspector", "schema") or isinstance(error, AnswerError)
    if (ours or name == _VIOLATIONS) and text:
        return text
    return f"{name}: {text}" if text else name


def _shortened(text: str) -> str:
    """Return a long message without its middle: it begins with what failed, and ends with why."""
    if len(text) <= _LONGEST:
        return text
    head = _LONGEST // 3
    return f"{text[:head]} … {text[head - _LONGEST :]}"


def failure(error: BaseException) -> dict[str, Any]:
    """Return an error as the content of a message."""
    file, line = place_of(error)
    sentence = sentence_of(error)
    place = f"{file}:{line}" if line else file
    if place and place not in sentence and place not in _text_of(error):
        sentence = f"{place}: {sentence}"
    blame = "usage" if isinstance(error, AnswerError) else "failed"
    details = "".join(_traceback_of(error))
    return {"sentence": sentence, "blame": blame, "file": file, "line": line, "details": details}


def _traceback_of(error: BaseException) -> list[str]:
    try:
        return traceback.format_exception(type(error), error, error.__traceback__)
    except Exception:  # noqa: BLE001 - an error of the user's code that cannot be shown
        return traceback.format_tb(error.__traceback__)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or at.__context__


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
    found = member_of(path, function, notify)
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


def exported(path: str, function: str, methods: tuple[str, ...], notify: Say) -> Exported:
    """Run a file, call a function of it, and export what it returns.

    Raises: AnswerError for a missing function or an unsupported result; errors of the user's code
        or torch
    """
    with timed_stage(notify, "load"):
        try:
            answer, asked = answer_of(path, function, notify)
        except SyntaxError as error:
            point_to(error, (str(Path(path).absolute()), 0))  # that of invalid bytes names no file
            raise
    try:
        return replace(export_answer(answer, methods, notify), asked=asked)
    except Exception as error:
        point_to(error, asked)
        raise


def point_to(error: BaseException, asked: tuple[str, int]) -> None:
    """Attach the user's function to an error, as its location if it has no closer one."""
    setattr(error, _ASKED, asked)


def _warn_of_hidden(file: Path, notify: Say) -> None:
    """Warn of modules next to the user's file that are shadowed by ours."""
    for name in ("compiler", "inspector", "runtime", "schema"):
        ours = name in sys.modules and (_HERE / name).is_dir()
        beside = (file.parent / f"{name}.py").is_file() or (file.parent / name).is_dir()
        if ours and beside and not _HERE.samefile(file.parent):
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
    entries, constants = _entries(answer)
    unknown = [name for name in methods if name not in entries]
    if unknown:
        raise AnswerError(f"unknown method {unknown[0]!r}; available: {', '.join(entries)}")
    programs: dict[str, ExportedProgram] = {}
    for name, entry in entries.items():
        if not methods or name in methods:
            programs[name] = _export(name, entry, notify)
    return Exported(programs, constants)


def _entries(answer: Any) -> tuple[dict[str, Any], Mapping[str, Any]]:  # noqa: ANN401
    """Return programs to export, and constants, by method."""
    if isinstance(answer, ExportedProgram):
        return {FORWARD: answer}, {}
    if _is_list(answer):
        if len(answer) > len(_NAMES):
            raise AnswerError(
                f"a {type(answer).__name__} of {len(answer)} was returned; {EXPECTED}"
            )
        answer = {_NAMES[at]: part for at, part in enumerate(answer)}
    if not _is_mapping(answer) or not answer:
        found = "nothing" if answer is None else _kind(answer)
        raise AnswerError(f"{found} was returned; {EXPECTED}")
    given: Mapping[str, Any] = answer
    if "module" not in given and "methods" not in given:
        if any(name in given for name in _NAMES):
            raise AnswerError(f"a dict without 'module' was returned; {EXPECTED}")
        given = {"methods": given}
    strange = [str(name) for name in given if name not in _NAMES]
    if strange:
        raise AnswerError(f"a dict with {strange[0]!r} was returned; {EXPECTED}")
    entries: dict[str, Any] = {FORWARD: _entry(FORWARD, given)} if "module" in given else {}
    for name, one in _named(given, "methods").items():
        if name in entries or not isinstance(name, str):
            raise AnswerError(f"the method name {name!r} is there twice or is not a string")
        entries[name] = _entry(name, one)
    return entries, _named(given, "constant_methods")


def _named(given: Mapping[str, Any], part: str) -> Mapping[Any, Any]:
    found = given.get(part)
    if found is not None and not _is_mapping(found):
        raise AnswerError(f"the {part} are {_kind(found)}, expected a dict")
    return {} if found is None else found


def _kind(value: object) -> str:
    """Return the type of a value with its article, as ``an int``."""
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _is_list(value: object) -> TypeGuard[tuple[Any, ...] | list[Any]]:
    return isinstance(value, (tuple, list))


def _is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping)


def _entry(name: str, given: Any) -> Any:  # noqa: ANN401
    if isinstance(given, ExportedProgram):
        return given
    if _is_list(given):
        given = {_NAMES[at]: part for at, part in enumerate(given[:4])}
    if not _is_mapping(given) or "module" not in given:
        raise AnswerError(f"method {name!r} is {_kind(given)}; {EXPECTED}")
    module, inputs = given["module"], given.get("inputs")
    if isinstance(module, ExportedProgram):
        return module
    if inputs is None and "inputs" not in given:
        raise AnswerError(f"method {name!r} has no example inputs; {EXPECTED}")
    if isinstance(inputs, torch.Tensor):
        inputs = (inputs,)
    if not _is_list(inputs):
        raise AnswerError(f"the inputs of method {name!r} are {_kind(inputs)}, expected a tuple")
    kwargs = _named(given, "kwargs")
    return _MethodEntry(_module(name, module), tuple(inputs), kwargs, given.get("dynamic_shapes"))


def _module(name: str, given: Any) -> torch.nn.Module:  # noqa: ANN401
    """Return a module; of a bound method one whose forward it is, with the same weights."""
    if isinstance(given, torch.jit.ScriptModule):
        raise AnswerError(
            f"method {name!r} is in TorchScript, which cannot be exported; expected the original"
            " torch.nn.Module"
        )
    if isinstance(given, torch.nn.Module):
        return given
    owner, kind = getattr(given, "__self__", None), _kind(given)
    if isinstance(owner, torch.nn.Module) and isinstance(given, types.MethodType):
        other = copy.copy(owner)
        other.forward = _beside_forward(other, types.MethodType(given.__func__, other))
        return other
    if isinstance(given, type) and issubclass(given, torch.nn.Module):
        raise AnswerError(
            f"method {name!r} is the class {given.__name__}; expected an object of it"
        )
    raise AnswerError(f"method {name!r} is {kind}, expected a torch.nn.Module")


def _beside_forward(module: Any, method: types.MethodType) -> Callable[..., Any]:  # noqa: ANN401
    """Return a method as ``forward`` of a module that may call the module's own ``forward``."""
    held = cast("dict[str, Any]", vars(module))
    own = held.get("forward")  # of this object alone, else that of its class

    @functools.wraps(method)
    def forward(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        if own is None:
            del module.forward
        else:
            module.forward = own
        try:
            return method(*args, **kwargs)
        finally:
            module.forward = forward

    return forward


def _export(name: str, entry: Any, notify: Say) -> ExportedProgram:  # noqa: ANN401
    if isinstance(entry, ExportedProgram):
        return entry
    _warn_of_training(name, entry.module, notify)
    tracer: Any = sys.modules.get("torch._dynamo")
    if tracer is not None:  # sizes of a former trace of a branch would pin symbolic ones
        tracer.reset()
    with timed_stage(notify, "export", name) as more, _graphs_in_log(notify):
        program = torch.export.export(
            entry.module,
            entry.inputs,
            dict(entry.kwargs) or None,
            dynamic_shapes=entry.dynamic_shapes,
            strict=False,
        )
        more["nodes"] = sum(node.op == "call_function" for node in program.graph.nodes)
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


def _warn_of_training(name: str, module: Any, notify: Say) -> None:  # noqa: ANN401 - a module
    parts = [str(part) for part, one in module.named_modules() if one.training]
    if not parts:
        return
    code: Any = getattr(getattr(module.__class__, "forward", None), "__code__", None)
    file = code.co_filename if code is not None and is_users(code.co_filename) else ""
    more = f" and {len(parts) - _MOST_PARTS:,} more" if len(parts) > _MOST_PARTS else ""
    whole = "" if module.training else f"{', '.join(parts[:_MOST_PARTS])}{more} in "
    text = (
        f"{whole}the module of method {name} is in training mode: dropout and batch norm will"
        " train; call .eval() before returning it"
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
