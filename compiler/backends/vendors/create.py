"""Creates the object that a line of the table of vendors names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compiler.backends.vendors.options import OptionError, VendorOptions
from compiler.innermost import innermost
from schema.backends import BACKENDS, resolve
from schema.vendors.needs import use_own_commands
from schema.vendors.table import VENDORS, Vendor


def load_creators() -> None:
    """Import every module that the tables name, for a process that forgets our names."""
    places = {
        place
        for one in VENDORS
        for place in (one.make, one.flow, one.quantizer, one.operators, one.joins)
    }
    places |= {one.decoder for one in BACKENDS.values()}
    for place in filter(None, places):
        resolve(place)


class VendorError(Exception):
    """A vendor's compiler that is not here, or that refuses its options; one sentence."""


def create_partitioner_of(vendor: Vendor, options: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Return a partitioner of a vendor.

    Raises: VendorError
    """
    return _created(vendor, vendor.make, vendor.alias, options)


def create_flow_of(vendor: Vendor, options: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Return the flow of a vendor.

    Raises: VendorError
    """
    return _created(vendor, vendor.flow, vendor.alias, options)


def create_quantizer_of(vendor: Vendor, options: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Return a quantizer of a vendor.

    Raises: VendorError
    """
    if not vendor.quantizer:
        raise VendorError(f"{vendor.alias} has no quantizer")
    return _created(vendor, vendor.quantizer, f"quantizer of {vendor.alias}", options)


def options_of(vendor: Vendor, place: str = "") -> dict[str, tuple[str, ...]]:
    """Return the options of a vendor, with the values each takes where they are a list.

    Args:
        vendor: a line of the table
        place: dotted name of the function that reads them; that of the partitioner by default

    Raises: VendorError if the vendor's compiler is not here
    """
    given = VendorOptions(vendor.alias, {})
    _reading(vendor, place or vendor.make or vendor.flow, given)
    return given.known


def operators_of(vendor: Vendor) -> list[tuple[str, str]]:
    """Return the operators that a vendor's own tables list, each with the dtypes it takes.

    Raises: VendorError if the vendor's compiler is not here
    """
    if not vendor.operators:
        return []
    _check_here(vendor)
    try:
        return sorted(resolve(vendor.operators)())
    except Exception as error:
        raise VendorError(_why(vendor, error)) from error


def _created(vendor: Vendor, place: str, name: str, options: Mapping[str, Any]) -> Any:  # noqa: ANN401
    given = VendorOptions(name, options)
    create = _reading(vendor, place, given)
    try:
        return create()
    except Exception as error:
        raise VendorError(f"{name} does not accept these options: {innermost(error)}") from error


def _reading(vendor: Vendor, place: str, given: VendorOptions) -> Any:  # noqa: ANN401
    """Return the factory of an object, after its options were read and checked."""
    _check_here(vendor)
    use_own_commands()
    try:
        create = resolve(place)(given)
        given.check()
    except OptionError as error:
        raise VendorError(str(error)) from error
    except Exception as error:  # whatever a vendor's package raises when it is imported
        raise VendorError(_why(vendor, error)) from error
    return create


def _check_here(vendor: Vendor) -> None:
    missing = vendor.missing()
    if missing:
        raise VendorError(unavailable(vendor, missing))


def unavailable(vendor: Vendor, why: str) -> str:
    """Return the sentence for a vendor that cannot be used here, with how to get it."""
    installed = f" or `etscope backends install {vendor.alias}`" if vendor.packages else ""
    return f"{vendor.alias} is not available here: {why}; {vendor.install}{installed}"


def _why(vendor: Vendor, error: Exception) -> str:
    return unavailable(vendor, innermost(error))
