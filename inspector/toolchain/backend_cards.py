"""Known facts of each backend: one card, from the tables of traits and of vendors."""

from __future__ import annotations

from dataclasses import dataclass

from schema.backends import BACKENDS, Backend, backend_of, partitioners
from schema.vendors.environments import state_here
from schema.vendors.table import VENDORS, Vendor, unknown_vendor, vendor_called

AVAILABLE = "available"
UNKNOWN = "not known here"
_OWN = (
    "compile by our own partitioner; payloads run on the real kernels of an installed wheel, else"
    " by torch"
)
_ANY = "any processor"


@dataclass(frozen=True, slots=True)
class BackendCard:
    """A backend on this machine.

    Attributes:
        name: in recipes
        title: as people write it
        backend: id of its payloads, empty for plain instructions
        hardware: that it is for
        missing: why it cannot compile here, empty if it can
        install: how to get what is missing
        works: what works without its hardware
        runs: how its payloads are run here
        partitioner: whether it has one
        quantizer: whether it has one
        traps: known ones
        environment: that has its compiler, empty if the current interpreter has it or none
    """

    name: str
    title: str
    backend: str
    hardware: str
    missing: str
    install: str
    works: str
    runs: str
    partitioner: bool
    quantizer: bool
    traps: tuple[str, ...] = ()
    environment: str = ""

    @property
    def state(self) -> str:
        """Return ``available``, and where, or the sentence of what is missing."""
        where = f", in the environment {self.environment}" if self.environment else ""
        return self.missing or f"{AVAILABLE}{where}"


def backend_cards() -> tuple[BackendCard, ...]:
    """Return the cards of all backends, our own first."""
    own = {one.alias for backend in BACKENDS.values() for one in backend.partitioners}
    mine = (_own(one) for one in BACKENDS.values() if one.partitioners and one.quantizer)
    return (*mine, *(_of_vendor(one) for one in VENDORS if one.alias not in own))


def backend_card(name: str) -> BackendCard:
    """Return the card of a backend by any of its names.

    Raises: KeyError naming what is close or available
    """
    cards = backend_cards()
    vendor = vendor_called(name)
    alias = vendor.alias if vendor is not None else name.lower()
    found = next((one for one in cards if alias in (one.name, one.backend.lower())), None)
    if found is None:
        raise KeyError(unknown_vendor(name))
    return found


def card_lines(card: BackendCard, options: str = "", operators: str = "") -> dict[str, str]:
    """Return the lines of a card by title.

    Args:
        card: of a backend
        options: that the vendor's own tables list, empty if they were not read
        operators: likewise
    """
    lines = {
        "backend": f"{card.title} ({card.name})",
        "hardware": card.hardware,
        "here": card.state,
        "how to get it": card.install or "it comes with ETScope",
        "what works": card.works or UNKNOWN,
        "payloads run": card.runs,
        "options": UNKNOWN if options and card.missing else options,
        "operators": operators,
        "known traps": "; ".join(card.traps) or "none known",
    }
    return {title: text for title, text in lines.items() if text}


def plannable() -> tuple[str, ...]:
    """Return the names of the partitioners that can be used here."""
    return tuple(one.name for one in backend_cards() if one.partitioner and not one.missing)


def _own(one: Backend) -> BackendCard:
    named = one.partitioners[0]
    return BackendCard(
        *(named.alias, one.name, one.id, _ANY, "", "", _OWN, _runs(one)),
        partitioner=named in partitioners(),
        quantizer=True,
    )


def _of_vendor(one: Vendor) -> BackendCard:
    missing, environment = state_here(one)
    return BackendCard(
        *(one.alias, one.title, one.backend, one.hardware, missing, one.install, one.works),
        _runs(backend_of(one.backend)) if one.backend else "instruction by instruction",
        partitioner=bool(one.place),
        quantizer=bool(one.quantizer),
        traps=one.traps,
        environment=environment,
    )


def _runs(one: Backend) -> str:
    if one.has_engines:
        return "real kernels, or torch"
    if one.has_options:
        return "by the vendor's own runtime, layer by layer"
    return "by torch, node by node" if one.executor else "the recorded graph only"
