"""Partitioners by the names a user writes, with options; whoever adds one adds a line here."""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class PartitionerNameError(ValueError):
    """A partitioner that is not known, or options it does not take."""


@dataclass(frozen=True, slots=True)
class NamedPartitioner:
    """A partitioner that can be asked for by name.

    Attributes:
        alias: short name
        home: module of the class
        cls: name of the class, which is a name of the partitioner as well
        what: where the nodes go, in words
    """

    alias: str
    home: str
    cls: str
    what: str


PARTITIONERS: tuple[NamedPartitioner, ...] = (
    NamedPartitioner(
        "demo-add-mul",
        "compiler.backends.demo",
        "AddMulPartitionerDemo",
        "the demonstration backend of the documents: additions and matrix products",
    ),
    NamedPartitioner(
        "demo-all",
        "compiler.backends.demo",
        "AllNodesPartitionerDemo",
        "the whole-graph demonstration: everything, as a program inside the program",
    ),
    NamedPartitioner(
        "xnnpack",
        "compiler.backends.xnnpack",
        "XnnpackPartitioner",
        "XNNPACK, the kernels for processors of the stock runtime",
    ),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A partitioner as a user asked for it.

    Attributes:
        name: alias, class name, or ``file.py:Class``
        options: arguments of the class by name
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


def partitioner_names() -> tuple[str, ...]:
    """Return every name of the table, aliases first."""
    aliases = [one.alias for one in PARTITIONERS]
    return (*aliases, *(one.cls for one in PARTITIONERS))


def is_called(name: str, cls: str) -> bool:
    """Return whether a user means a partitioner of a class by a name; an empty one means any.

    Args:
        name: alias, class, or ``file.py:Class``, with or without options
        cls: name of the class
    """
    short = name.rpartition(".py:")[2].partition(":")[0]
    return short in ("", cls) or any(one.cls == cls and one.alias == short for one in PARTITIONERS)


def parse_partitioner(text: str) -> Asked:
    """Return what ``NAME[:option=value…]`` asks for.

    Options are separated by colons. A value is read as a Python literal where it is one, else as
    text.

    Raises: PartitionerNameError for an option without a value
    """
    name, options = text, ""
    if ".py:" in text:
        file, _, rest = text.partition(".py:")
        cls, _, options = rest.partition(":")
        name = f"{file}.py:{cls}"
    elif ":" in text:
        name, _, options = text.partition(":")
    found: dict[str, Any] = {}
    for part in options.split(":") if options else ():
        key, equals, value = part.partition("=")
        if not equals or not key.isidentifier():
            raise PartitionerNameError(f"{text}: expected option=value, found {part!r}")
        found[key] = _value(value)
    return Asked(name, found)


def _value(text: str) -> Any:  # noqa: ANN401 - any literal
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return {"true": True, "false": False, "none": None}.get(text.lower(), text)


def make_partitioner(asked: Asked) -> Any:  # noqa: ANN401 - ours or anyone's
    """Return a new partitioner.

    Raises: PartitionerNameError if there is none of that name or it does not take the options;
        whatever its file or its class raises
    """
    cls = _class_of(asked.name)
    try:
        inspect.signature(cls).bind(**asked.options)
    except TypeError as error:
        raise PartitionerNameError(f"{asked.name} does not take these options: {error}") from error
    try:
        made = cls(**asked.options)
    except (TypeError, ValueError) as error:
        if ".py:" in asked.name:
            raise  # its own line says more
        raise PartitionerNameError(f"{asked.name} does not take these options: {error}") from error
    if not callable(getattr(made, "partition", None)):
        raise PartitionerNameError(f"{asked.name} is no partitioner: it has no method partition")
    return made


def _class_of(name: str) -> Any:  # noqa: ANN401
    if ".py:" in name:
        return _class_in_file(*name.rsplit(":", 1))
    for one in PARTITIONERS:
        if name in (one.alias, one.cls):
            return getattr(importlib.import_module(one.home), one.cls)
    close = difflib.get_close_matches(name, partitioner_names(), 1)
    hint = f"did you mean {close[0]}?" if close else f"there is {', '.join(partitioner_names())}"
    raise PartitionerNameError(f"no partitioner {name!r}; {hint}")


def _class_in_file(path: str, cls: str) -> Any:  # noqa: ANN401
    file = Path(path).absolute()
    if not file.is_file():
        raise PartitionerNameError(f"{path} is not there")
    name = f"partitioner_{file.stem}"
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
    found = getattr(module, cls, None)
    if not isinstance(found, type):
        raise PartitionerNameError(f"{path} has no class {cls!r}")
    return found
