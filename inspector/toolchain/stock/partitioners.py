"""Partitioners of the package by name: found in its files, imported on first access."""

from __future__ import annotations

import difflib
import enum
import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from compiler.backends.vendors.create import (
    VendorError,
    create_flow_of,
    create_partitioner_of,
    load_creators,
)
from compiler.named_options import options_in_words
from inspector.toolchain.stock.package import StockError
from schema.vendors.names import flow_vendor, partitioner_vendor
from schema.vendors.table import Vendor, vendor_called, with_flow, with_partitioner

_CLASS = re.compile(r"^class (\w+)Partitioner\(", re.MULTILINE)
_NOT_BACKENDS = ("test", "tests", "example")
load_creators()  # the names of their modules are forgotten afterwards


@dataclass(frozen=True)
class KnownPartitioner:
    """A partitioner that the files of the package define.

    Attributes:
        alias: short name
        cls: name of the class
        module: that defines it
    """

    alias: str
    cls: str
    module: str


def known() -> list[KnownPartitioner]:
    """Return the partitioners of the backends, without importing any."""
    roots = [Path(path) for path in importlib.import_module("executorch").__path__]
    found: dict[str, KnownPartitioner] = {}
    for root in roots:
        for path in sorted((root / "backends").rglob("*partition*.py")) + sorted(
            (root / "backends").rglob("partition*/**/*.py")
        ):
            if set(path.relative_to(root).parts) & set(_NOT_BACKENDS):
                continue
            for one in _in_file(root, path):
                found.setdefault(one.cls, one)
    return sorted(found.values(), key=lambda one: one.alias)


def _in_file(root: Path, path: Path) -> Iterator[KnownPartitioner]:
    try:
        text = path.read_text("utf-8", "replace")
    except OSError:
        return
    module = ".".join(("executorch", *path.relative_to(root).with_suffix("").parts))
    for name in _CLASS.findall(text):
        yield KnownPartitioner(name.lower(), f"{name}Partitioner", module)


def listed() -> Iterator[dict[str, Any]]:
    """Yield each partitioner, with the reason if it cannot be used here, else empty."""
    vendors = [one for one in with_partitioner() if partitioner_vendor(one.alias) is one]
    for one in vendors:
        module = one.place.partition(":")[0]
        known_one = KnownPartitioner(one.alias, one.class_name, module)
        why = one.missing() or _why_not(known_one)
        yield _row(known_one, why or "")
    for one in with_flow():
        module = one.flow.partition(":")[0]
        yield _row(KnownPartitioner(one.alias, one.class_name, module), one.missing())
    classes = {one.class_name for one in vendors}
    for one in known():
        if one.cls in classes:
            continue
        why = _why_not(one)
        if why is not None:
            yield _row(one, why)


def _row(one: KnownPartitioner, why: str) -> dict[str, Any]:
    return {"alias": one.alias, "class": one.cls, "module": one.module, "why_not": why}


def _why_not(one: KnownPartitioner) -> str | None:
    """Return why a partitioner cannot be imported, empty if it can, None for an abstract one."""
    try:
        cls = getattr(importlib.import_module(one.module), one.cls)
    except BaseException as error:  # noqa: BLE001 - whatever a vendor's package raises
        text = str(error).strip().splitlines()
        return f"{type(error).__name__}: {text[0] if text else ''}".rstrip(": ")
    return None if inspect.isabstract(cls) else ""


def make(asked: Mapping[str, Any]) -> Any:  # noqa: ANN401 - of the package, or anyone's
    """Return a new partitioner.

    Args:
        asked: name and options of the partitioner

    Raises: StockError; errors of its file or class
    """
    name, options = str(asked["name"]), dict(asked["options"])
    vendor = _vendor(name)
    if vendor is not None:
        return _of_vendor(vendor, options)
    cls = _class_of(name)
    _check_options(name, cls, options)
    given = {key: _value(value, cls) for key, value in options.items()}
    built = cls(**given)
    if not callable(getattr(built, "partition", None)):
        raise StockError(f"{name} is not a partitioner: it has no method partition")
    return built


def check(asked: Mapping[str, Any]) -> None:
    """Raise StockError for a partitioner of the package that is unknown or cannot be loaded.

    One in a file of the user is left: its code runs after the source, whose operators it may need.
    """
    name, options = str(asked["name"]), dict(asked["options"])
    vendor = _vendor(name)
    flow = flow_vendor(name)
    if vendor is not None:
        _of_vendor(vendor, options)
    elif flow is not None:
        _flow(flow, options)
    elif ".py:" not in name:
        _check_options(name, _class_of(name), options)


def _vendor(name: str) -> Vendor | None:
    return None if ".py:" in name else partitioner_vendor(name)


def _of_vendor(vendor: Vendor, options: Mapping[str, Any]) -> Any:  # noqa: ANN401
    try:
        return create_partitioner_of(vendor, options)
    except VendorError as error:
        raise StockError(str(error)) from error


def _flow(vendor: Vendor, options: Mapping[str, Any]) -> None:
    try:
        create_flow_of(vendor, options)
    except VendorError as error:
        raise StockError(str(error)) from error


def _check_options(name: str, cls: Any, options: Mapping[str, Any]) -> None:  # noqa: ANN401
    try:
        if ".py:" not in name:
            options_in_words(name, cls, options)
        inspect.signature(cls).bind(**options)
    except ValueError as error:
        raise StockError(str(error)) from error
    except TypeError as error:
        raise StockError(f"{name} does not accept these options: {error}") from error


def takes(name: str, option: str) -> bool:
    """Return whether the class of a partitioner has an option of that name."""
    if _vendor(name) is not None:
        return False
    return option in inspect.signature(_class_of(name)).parameters


def _class_of(name: str) -> Any:  # noqa: ANN401
    if ".py:" in name:
        return _in_own_file(*name.rsplit(":", 1))
    there = known()
    for one in there:
        if name.lower() in (one.alias, one.cls.lower()):
            return _imported(one)
    vendors = [one.alias for one in with_partitioner()]
    names = [*vendors, *(one.alias for one in there if vendor_called(one.cls) is None)]
    close = difflib.get_close_matches(name.lower(), names, 1)
    hint = f"did you mean {close[0]}?" if close else f"available: {', '.join(names) or 'none'}"
    raise StockError(f"unknown partitioner {name!r} in this executorch; {hint}")


def _imported(one: KnownPartitioner) -> Any:  # noqa: ANN401
    try:
        return getattr(importlib.import_module(one.module), one.cls)
    except (ImportError, OSError) as error:
        why = f"{type(error).__name__}: {error}"
        raise StockError(f"partitioner {one.alias} cannot be loaded here: {why}") from error


def _in_own_file(path: str, cls: str) -> Any:  # noqa: ANN401
    file = Path(path).absolute()
    if not file.is_file():
        raise StockError(f"{path} is not there")
    spec = importlib.util.spec_from_file_location(f"partitioner_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.append(str(file.parent))
    spec.loader.exec_module(module)
    found = getattr(module, cls, None)
    if not isinstance(found, type):
        raise StockError(f"{path} has no class {cls!r}")
    return found


def _value(value: Any, cls: Any) -> Any:  # noqa: ANN401
    """Return an option; the name of an enumeration member next to the class is converted to it."""
    if isinstance(value, list):
        return [_value(one, cls) for one in cast("list[Any]", value)]
    if not isinstance(value, str):
        return value
    beside = vars(sys.modules[cls.__module__])
    for one in beside.values():
        if isinstance(one, type) and issubclass(one, enum.Enum) and value in one.__members__:
            return one[value]
    return value
