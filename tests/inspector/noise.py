"""Times as machines give them: drift, outliers, modes, and blocks that hang together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int, int], Floats]


def plain(rng: np.random.Generator, rounds: int, runs: int) -> Floats:
    """Each run on its own, a few percent apart, and slower rather than faster."""
    return 1 + 0.04 * rng.gamma(1.5, 1.0, (2, rounds, runs))


def blocks(rng: np.random.Generator, rounds: int, runs: int) -> Floats:
    """What a block shares: its place in memory."""
    return plain(rng, rounds, runs) * np.exp(0.025 * rng.standard_normal((2, rounds, 1)))


def drift(rng: np.random.Generator, rounds: int, runs: int) -> Floats:
    """A machine that grows warm by a fifth, and wanders."""
    steps = rounds * 2
    way = 1 + 0.2 * np.linspace(0, 1, steps) + np.cumsum(0.01 * rng.standard_normal(steps))
    order = np.array([(0, 1) if number % 2 == 0 else (1, 0) for number in range(rounds)])
    shared = np.empty((2, rounds, 1))
    for number, pair in enumerate(order):
        for place, which in enumerate(pair):
            shared[which, number, 0] = way[2 * number + place]
    return plain(rng, rounds, runs) * shared


def outliers(rng: np.random.Generator, rounds: int, runs: int) -> Floats:
    """Runs that are interrupted, and whole blocks beside a busy neighbour."""
    times = blocks(rng, rounds, runs)
    hit = rng.random(times.shape) < 0.05
    times = np.where(hit, times * rng.uniform(1.5, 12, times.shape), times)
    busy = rng.random((2, rounds, 1)) < 0.08
    return np.where(busy, times * rng.uniform(1.1, 1.8, (2, rounds, 1)), times)


def modes(rng: np.random.Generator, rounds: int, runs: int) -> Floats:
    """Two speeds a quarter apart; a run takes the slow one now and then."""
    slow = rng.random((2, rounds, runs)) < 0.35
    return blocks(rng, rounds, runs) * np.where(slow, 1.25, 1.0)


def sticky_modes(rng: np.random.Generator, rounds: int, runs: int) -> Floats:
    """Two speeds, of which one lasts for a while."""
    found = np.empty((2, rounds, runs))
    state = rng.random((2, rounds)) < 0.3
    for run in range(runs):
        change = rng.random((2, rounds)) < np.where(state, 0.12, 0.05)
        state = state ^ change
        found[:, :, run] = np.where(state, 1.12, 1.0)
    return blocks(rng, rounds, runs) * found


def correlated(rng: np.random.Generator, rounds: int, runs: int) -> Floats:
    """A run is like the one before it."""
    steps = 0.02 * rng.standard_normal((2, rounds, runs))
    for run in range(1, runs):
        steps[:, :, run] += 0.9 * steps[:, :, run - 1]
    return blocks(rng, rounds, runs) * np.exp(steps)


def everything(rng: np.random.Generator, rounds: int, runs: int) -> Floats:
    """All of it, each a little less."""
    parts = (drift, outliers, correlated, sticky_modes)
    return np.prod([part(rng, rounds, runs) ** 0.5 for part in parts], axis=0)


FAMILIES: tuple[Noise, ...] = (
    plain,
    blocks,
    drift,
    outliers,
    modes,
    sticky_modes,
    correlated,
    everything,
)
