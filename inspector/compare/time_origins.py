"""Measured times get a verdict if they have one origin and measure what the programs compute."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from inspector.compare.statistics import ALIKE, TimeVerdict
from schema.origins import ValueOrigin, weakest

_KNOWN = {one.value for one in ValueOrigin}


def weakest_origin(facts: Mapping[str, Any]) -> ValueOrigin:
    """Return the least trustworthy origin of the times of a measured program."""
    partitions = cast("Sequence[Mapping[str, Any]]", facts.get("partitions", ()))
    named = [str(one.get("origin", "")) for one in partitions]
    found = weakest(ValueOrigin(name) for name in named if name in _KNOWN)
    return found or ValueOrigin.MEASURED


def without_verdict(
    verdict: TimeVerdict, old: Mapping[str, Any], new: Mapping[str, Any]
) -> TimeVerdict:
    """Return a verdict, with the reason in its place where the origins of times allow none.

    Args:
        verdict: on the times
        old: facts of the first measured program, with its partitions
        new: those of the other
    """
    sides = weakest_origin(old), weakest_origin(new)
    reason = ""
    if ValueOrigin.EMULATED in sides:
        reason = f"delegates are {ValueOrigin.EMULATED.words}"
    elif sides[0] is not sides[1]:
        reason = f"times are {sides[0].value} on one side, {sides[1].value} on the other"
    if not reason:
        return verdict
    return replace(verdict, word=ALIKE, low=0.0, high=math.inf, reason=reason)
