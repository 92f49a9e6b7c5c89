"""Backends: what each needs, and which share of a model each would take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inspector.files.session import Session
from inspector.graph.delegation import analyse_delegation
from inspector.jobs.backend_plan import BackendPlan
from inspector.tables.rows import RowField, row_table
from inspector.tables.selection import Units
from inspector.tables.table import Table
from inspector.toolchain.backend_cards import AVAILABLE, BackendCard, backend_cards
from inspector.units import Quantity

_HERE = "here"


def _tone(value: object) -> str:
    return "good" if str(value).startswith(AVAILABLE) else "muted"


_CARD = (
    RowField("backend", mono=True),
    RowField("hardware"),
    RowField(_HERE, tone=_tone),
    RowField("how to get it", mono=True),
    RowField("what works"),
    RowField("payloads run"),
    RowField("quantizer"),
    RowField("delegates", Quantity.COUNT, missing="—"),
)
_PLAN = (
    RowField("backend", mono=True),
    RowField("method", mono=True),
    RowField("taken", Quantity.SHARE),
    RowField("nodes", Quantity.COUNT),
    RowField("of", Quantity.COUNT),
    RowField("partitions", Quantity.COUNT),
    RowField("why not the rest"),
)


def backends(session: Session, units: Units) -> Table:
    """Return one row per backend, with the number of its delegates in a session."""
    counts: dict[str, int] = {}
    for method in analyse_delegation(session):
        for one in method.delegates:
            counts[one.backend_id] = counts.get(one.backend_id, 0) + 1
    return card_table(backend_cards(), counts, units)


def with_short_states(table: Table) -> Table:
    """Return a table of backends whose states are a word or two; whole on hover."""
    columns = [
        replace(one, text=_state_in_short) if one.title == _HERE else one for one in table.columns
    ]
    return replace(table, columns=tuple(columns))


def _state_in_short(state: object) -> str:
    text = str(state)
    if text.startswith(AVAILABLE):
        return AVAILABLE
    return "not installed" if text.endswith(" is not installed") else "not here"


def card_table(
    cards: Sequence[BackendCard], counts: dict[str, int] | None = None, units: Units | None = None
) -> Table:
    """Return one row per card.

    Args:
        cards: of backends
        counts: delegates of a session by backend, None without a session
        units: of numbers
    """
    del units
    rows = [
        (
            *(one.name, one.hardware, one.state, one.install if one.missing else ""),
            *(one.works, one.runs, "yes" if one.quantizer else "no"),
            (counts or {}).get(one.backend) if one.backend else None,
        )
        for one in cards
    ]
    return row_table(_CARD, rows, "backends", keys=[one.name for one in cards])


def plan_table(plan: BackendPlan) -> Table:
    """Return one row per backend and method, the largest share first."""
    found = sorted(plan.rows, key=lambda one: (-one.share, one.backend, one.method))
    rows = [
        (
            *(one.backend, one.method or None, None if one.error else one.share),
            *(one.taken, one.nodes, one.partitions),
            one.error or "; ".join(one.reasons) or "nothing is left",
        )
        for one in found
    ]
    return row_table(_PLAN, rows, "backends", keys=[(one.backend, one.method) for one in found])
