"""Roles and backends stay apart for people with any kind of colour vision."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from devtools_app.appearance.colours import DARK, LIGHT, Palette, hexadecimal
from tests.app.colour_vision import VISIONS, distance, seen

ROLES = ("good", "warn", "bad", "accent", "muted")
PALETTES = [pytest.param(LIGHT, id="light"), pytest.param(DARK, id="dark")]


def nearest(colours: dict[str, str], vision: str) -> tuple[float, str]:
    """Return the smallest distance of two colours, and which they are."""
    return min(
        (distance(colours[one], colours[other], vision), f"{one} and {other}")
        for one, other in combinations(colours, 2)
    )


def test_simulation_makes_red_and_green_alike_for_those_who_lack_a_cone() -> None:
    red, green = "#c04040", "#708000"
    assert distance(red, green, "usual") > 15
    assert distance(red, green, "deuteranopia") < 8
    assert distance("#ffffff", "#ffffff", "tritanopia") == pytest.approx(0)


@pytest.mark.parametrize("palette", PALETTES)
@pytest.mark.parametrize("vision", VISIONS)
def test_roles_stay_apart(palette: Palette, vision: str) -> None:
    found, which = nearest({name: getattr(palette, name) for name in ROLES}, vision)
    assert found >= 6, which


@pytest.mark.parametrize("palette", PALETTES)
@pytest.mark.parametrize("vision", VISIONS)
def test_backends_stay_apart_and_from_what_is_not_delegated(palette: Palette, vision: str) -> None:
    colours = {f"backend {at}": one for at, one in enumerate(palette.backends)}
    found, which = nearest({**colours, "not delegated": palette.plain_edge}, vision)
    assert found >= 5.5, which


@pytest.mark.parametrize("palette", PALETTES)
@pytest.mark.parametrize("vision", VISIONS)
def test_magnitudes_rise_in_lightness_and_signs_have_two_sides(
    palette: Palette, vision: str
) -> None:
    rows = palette.sequential[::16].tolist()
    light = np.array([seen(hexadecimal(row), vision)[0] for row in rows])
    steps = np.diff(light)
    assert (steps > 0).all() or (steps < 0).all()
    ends = [hexadecimal(palette.diverging[at].tolist()) for at in (0, 128, 255)]
    assert min(distance(one, other, vision) for one, other in combinations(ends, 2)) > 10
