"""Medians of two sets of runs side by side: whole methods, and the calls that both made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.diff.alignment import align
from inspector.diff.change import Change
from inspector.files.session import Session
from inspector.join.links import link_block
from inspector.trace.blocks import Block, trace_blocks
from inspector.trace.event_kinds import (
    DELEGATE_CALL,
    KERNEL_PREFIX,
    OPERATOR_CALL,
    named_events,
    whole_runs,
)
from inspector.trace.timing import is_time, scale_factor

_OUTER = (OPERATOR_CALL, DELEGATE_CALL)
_MOST = 20  # calls shown, those with the largest difference


@dataclass(frozen=True, slots=True)
class _Runs:
    """The runs of one method in one session.

    Shapes: whole float64[runs]; calls float64[calls]

    Units: ms

    Attributes:
        whole: time of each run
        names: what each call of an instruction is
        calls: median of each, over the runs of the block with most runs
    """

    whole: NDArray[np.float64]
    names: tuple[str, ...]
    calls: NDArray[np.float64]


def time_changes(old: Session, new: Session) -> list[Change]:
    """Return medians of the methods both ran, and of their calls that differ most."""
    before, after = _by_method(old), _by_method(new)
    found: list[Change] = []
    for method in (name for name in before if name in after):
        one, two = before[method], after[method]
        runs = f"median of {len(one.whole)} and {len(two.whole)} runs"
        name = method or "run"
        medians = float(np.median(one.whole)), float(np.median(two.whole))
        found.append(Change("time", name, medians[0], medians[1], "ms", counts=False, note=runs))
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
            note="median",
        )
        for here, there in ranked[:_MOST]
        if one.calls[here] != two.calls[there]
    ]


def _by_method(session: Session) -> dict[str, _Runs]:
    unit = session.options.source_time_scale
    if not is_time(unit):
        return {}
    scale = scale_factor(unit, "ms")
    blocks: dict[str, list[Block]] = {}
    for block in trace_blocks(session.dumps).blocks:
        if whole_runs(block).any():
            blocks.setdefault(link_block(session, block).method or "", []).append(block)
    return {method: _runs(found, scale) for method, found in blocks.items()}


def _runs(blocks: list[Block], scale: float) -> _Runs:
    whole = [block.total[:, whole_runs(block)].sum(axis=1) for block in blocks]
    main = max(blocks, key=lambda block: len(block.runs))
    outer = np.flatnonzero(named_events(main, _OUTER))
    kernels = {
        main.instruction(event): main.event_name(event).removeprefix(KERNEL_PREFIX)
        for event in range(len(main))
        if main.event_name(event).startswith(KERNEL_PREFIX)
    }
    names = tuple(
        kernels.get(main.instruction(event), main.event_name(event)) for event in outer.tolist()
    )
    calls = np.median(main.total[:, outer], axis=0) / scale
    return _Runs(np.concatenate(whole) / scale, names, calls)
