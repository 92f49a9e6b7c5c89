"""What tests draw at random depends on nothing that ran or was imported before."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.seeding import seeded

ROOT = Path(__file__).resolve().parents[2]
_DRAW = """
from tests.seeding import seed_imports
seed_imports()
{before}
from tests.compiler import programs
print(programs.X.sum().item(), programs.IMAGE.sum().item())
"""


def drawn() -> tuple[float, float, float]:
    return random.random(), float(np.random.random()), float(torch.rand(()))


def test_a_name_gives_the_same_numbers_and_moves_nothing_else() -> None:
    with seeded("outer"):
        plain = [drawn(), drawn()]
    with seeded("outer"):
        first = drawn()
        with seeded("inner"):
            inner = drawn()
        second = drawn()
    assert [first, second] == plain
    with seeded("inner"):
        assert drawn() == inner
    assert inner not in plain


@pytest.fixture(scope="module")
def shared() -> tuple[float, float, float]:
    return drawn()


@pytest.mark.parametrize("turn", [0, 1])
def test_a_test_draws_its_own_numbers_whoever_makes_the_shared_fixture(
    turn: int, shared: tuple[float, float, float], request: pytest.FixtureRequest
) -> None:
    with seeded(f"fixture {request.node.parent.nodeid} shared 0"):
        assert drawn() == shared
    with seeded(request.node.nodeid):
        wanted = drawn()
    assert drawn() == wanted


@pytest.mark.slow
def test_modules_draw_the_same_in_every_process_whatever_was_imported_before() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", _DRAW.format(before=before)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for before in ("", "import torch; torch.rand(7)", "from tests.compiler import control_flow")
    }
    assert len(found) == 1
