"""The names by which recipes know partitioners: of our own ones and of vendors."""

from __future__ import annotations

import difflib

from schema.backends import partitioners
from schema.vendors.table import (
    Vendor,
    vendor_called,
    with_flow,
    with_partitioner,
    with_quantizer,
)


def partitioner_aliases() -> tuple[str, ...]:
    """Return the short names of all partitioners, our own first."""
    own = [one.alias for one in partitioners()]
    return (*own, *(one.alias for one in with_partitioner() if one.alias not in own))


def partitioner_class(name: str) -> str:
    """Return the name of the class of a partitioner, the name itself if it is unknown."""
    own = next((one.class_name for one in partitioners() if one.alias == name), "")
    if own:
        return own
    vendor = partitioner_vendor(name)
    return vendor.class_name if vendor is not None else name


def is_partitioner(name: str) -> bool:
    """Return whether a name is that of a partitioner, ours or a vendor's, or of a flow."""
    own = any(name in (one.alias, one.class_name) for one in partitioners())
    return own or partitioner_vendor(name) is not None or flow_vendor(name) is not None


def flow_vendor(text: str) -> Vendor | None:
    """Return the vendor whose flow ``NAME[:option=value…]`` names, else None."""
    found = vendor_called(text.partition(":")[0])
    return found if found is not None and found.flow else None


def partitioner_vendor(name: str) -> Vendor | None:
    """Return the vendor whose partitioner has a name, None for our own and unknown ones."""
    if any(name in (one.alias, one.class_name) for one in partitioners()):
        return None
    found = vendor_called(name)
    return found if found is not None and found.place else None


def unknown_partitioner(name: str) -> str:
    """Return the error for a name that no partitioner has, with what is close or available."""
    found = vendor_called(name)
    if found is not None and found.flow:
        return f"{found.alias} has no partitioner: its passes compile the whole program"
    if found is not None:
        return f"{found.alias} has no partitioner: {found.works}"
    flows = (one.alias for one in with_flow())
    known = (*partitioner_aliases(), *flows, *(one.class_name for one in partitioners()))
    close = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]}?" if close else f"available: {', '.join(known)}"
    return f"unknown partitioner {name!r}; {hint}"


def quantizer_vendor(text: str) -> Vendor | None:
    """Return the vendor whose quantizer ``NAME[:MODE][:option=value…]`` names, else None."""
    found = vendor_called(text.partition(":")[0])
    return found if found is not None and found.quantizer else None


def quantizer_names() -> tuple[str, ...]:
    """Return the names of the quantizers of vendors."""
    return tuple(one.alias for one in with_quantizer())
