"""Mean times of two sets of runs: whole methods, and the calls that both made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.compare.change import Change
from inspector.compare.sequences import align
from inspector.files.session import Session
from inspector.profile.attribution import MethodRuns, attribution, mean, method_runs
from inspector.trace.event_kinds import KERNEL_PREFIX
from inspector.trace.timing import scale_factor

_NS_PER_MS = 1e6
_MOST = 20  # calls shown, those with the largest difference


@dataclass(frozen=True, slots=True)
class _Runs:
    """The runs of one method in one session.

    Shapes: whole float64[runs]; calls float64[calls]

    Units: ms

    Attributes:
        whole: time of each run
        names: what each call of an instruction is
        calls: mean of each, over the runs of the block with most runs
    """

    whole: NDArray[np.float64]
    names: tuple[str, ...]
    calls: NDArray[np.float64]


def time_changes(old: Session, new: Session) -> list[Change]:
    """Return the times of the methods both ran, and of their calls that differ most."""
    before, after = _by_method(old), _by_method(new)
    found: list[Change] = []
    for method in (name for name in before if name in after):
        one, two = before[method], after[method]
        runs = f"mean of {len(one.whole)} and {len(two.whole)} runs"
        name = method or "run"
        means = float(mean(one.whole)), float(mean(two.whole))
        found.append(Change("time", name, *means, "ms", counts=False, note=runs))
        found += _calls(name, one, two)
    return found


def _calls(method: str, one: _Runs, two: _Runs) -> list[Change]:
    pairs = align(one.names, two.names).pairs
    ranked = sorted(pairs, key=lambda pair: -abs(float(two.calls[pair[1]] - one.calls[pair[0]])))
    return [
        Change(
            "time",
            f"{method} call {here} {one.names[here]}",
            float(one.calls[here]),
            float(two.calls[there]),
            "ms",
            counts=False,
            note="mean",
        )
        for here, there in ranked[:_MOST]
        if one.calls[here] != two.calls[there]
    ]


def _by_method(session: Session) -> dict[str, _Runs]:
    found: dict[str, list[MethodRuns]] = {}
    for one in method_runs(session):
        found.setdefault(one.method, []).append(one)
    scale = scale_factor(session.options.source_time_scale, "ms") if found else 1.0
    return {method: _runs(runs, scale) for method, runs in found.items()}


def _runs(found: list[MethodRuns], scale: float) -> _Runs:
    block = max((one.block for one in found), key=lambda one: len(one.runs))
    outer = attribution(block).indices()
    kernels = {
        block.instruction(event): block.event_name(event).removeprefix(KERNEL_PREFIX)
        for event in range(len(block))
        if block.event_name(event).startswith(KERNEL_PREFIX)
    }
    names = tuple(
        kernels.get(block.instruction(event), block.event_name(event)) for event in outer.tolist()
    )
    whole = np.concatenate([one.times_ns for one in found]) / _NS_PER_MS
    return _Runs(whole, names, mean(block.total[:, outer], axis=0) / scale)
