"""Objects named by users: ``NAME[:option=value…]`` or ``file.py:NAME[:option=value…]``."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from schema.recipe.assignments import AssignmentError, assignment_error, parse_setting

IN_FILE = ".py:"
_OPTION = "option=value"


class UnknownNameError(ValueError):
    """A name that cannot be resolved, or options that its object does not accept."""


@dataclass(frozen=True, slots=True)
class NamedObject:
    """The name and options of a user's object.

    Attributes:
        name: alias, class or function name, or ``file.py:NAME``
        options: arguments by name
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def in_file(self) -> bool:
        """Return whether a Python file of the user defines the object."""
        return IN_FILE in self.name


def parse_named(text: str, first: str = "") -> NamedObject:
    """Parse ``NAME[:option=value…]``.

    Options are separated by colons. A value is parsed as a Python literal if possible, else it is
    a string.

    Args:
        text: as a user writes it
        first: option that the first part may give without its name

    Raises: UnknownNameError for an option without a value
    """
    name, options = text, ""
    if IN_FILE in text:
        file, _, rest = text.partition(IN_FILE)
        found, _, options = rest.partition(":")
        name = f"{file}{IN_FILE}{found}"
    elif ":" in text:
        name, _, options = text.partition(":")
    values: dict[str, Any] = {}
    for place, part in enumerate(options.split(":") if options else ()):
        setting = f"{first}={part}" if first and place == 0 and part and "=" not in part else part
        try:
            key, value = parse_setting(setting, _OPTION)
            if not key.isidentifier():
                raise assignment_error(setting, _OPTION, repr(key))
        except AssignmentError as error:
            raise UnknownNameError(f"{text}: {error}") from error
        values[key] = _value(value)
    return NamedObject(name, values)


def _value(text: str) -> Any:  # noqa: ANN401 - any literal
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return {"true": True, "false": False, "none": None}.get(text.lower(), text)


_EXECUTED: dict[Path, tuple[tuple[int, int, int], Any]] = {}  # with the stamp of the file


def object_in_file(name: str) -> Any:  # noqa: ANN401 - whatever the file defines
    """Return the object that ``file.py:NAME`` names.

    The file is executed once until it changes: twice it could not register operators.

    Raises: UnknownNameError if the file or the name is missing; errors of the file
    """
    path, _, requested = name.rpartition(":")
    file = Path(path).absolute()
    if not file.is_file():
        raise UnknownNameError(f"{path}: file not found")
    module = _module(file)
    if not hasattr(module, requested):
        raise UnknownNameError(f"{path} does not define {requested!r}")
    return getattr(module, requested)


def _module(file: Path) -> Any:  # noqa: ANN401
    status = file.stat()
    stamp = status.st_mtime_ns, status.st_size, status.st_ino
    known = _EXECUTED.get(file)
    if known is not None and known[0] == stamp:
        return known[1]
    name = f"user_code_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]  # a later try begins anew
        raise
    _EXECUTED[file] = stamp, module
    return module


def create_named(asked: NamedObject, found: Any) -> Any:  # noqa: ANN401
    """Return an instance of a class, or a function with its options bound.

    Args:
        asked: parsed user input
        found: the class or function of that name

    Raises: UnknownNameError if it does not accept the options; errors of a class in a file
    """
    if not isinstance(found, type):
        return partial(found, **asked.options) if asked.options else found
    built: Any = found
    try:
        inspect.signature(built).bind(**asked.options)
    except TypeError as error:
        raise UnknownNameError(f"{asked.name} does not accept these options: {error}") from error
    try:
        return built(**asked.options)
    except (TypeError, ValueError) as error:
        if asked.in_file:
            raise  # its own line is more precise
        raise UnknownNameError(f"{asked.name} does not accept these options: {error}") from error


def create_of_vendor(function: str, vendor: Any, options: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Return the object that a function of the vendors' room creates.

    Raises: UnknownNameError if the vendor's compiler is not here, or refuses the options
    """
    home = importlib.import_module("compiler.backends.vendors.create")
    try:
        return getattr(home, function)(vendor, options)
    except home.VendorError as error:
        raise UnknownNameError(str(error)) from error
