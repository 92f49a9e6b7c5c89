"""Order of vertices within rows, so that few edges cross."""

from __future__ import annotations

from bisect import bisect_right, insort

from devtools_app.viewmodels.layout.layers import LayerRows, Link

_COUNTED = 3000  # vertices up to which crossings are counted and the best order is kept
_SMALL, _LARGE = 3000, 30000  # vertices; 8, 4 or 2 sweeps, so that large graphs stay fast
_TIE = 1e-6  # places a pixel


def order_rows(state: LayerRows) -> None:
    """Sort each row by the mean place of its neighbours, downwards and upwards in turn."""
    place = [0.0] * len(state.row_of)
    for row in state.rows:
        _number(row, place)
    if not any(len(row) > 1 for row in state.rows):
        return
    vertices = len(state.row_of)
    sweeps = 8 if vertices <= _SMALL else 4 if vertices <= _LARGE else 2
    if vertices > _COUNTED:
        for sweep in range(sweeps):
            _sweep(state, place, down=sweep % 2 == 0)
        return
    _keep_best(state, place, sweeps)


def _keep_best(state: LayerRows, place: list[float], sweeps: int) -> None:
    best = [list(row) for row in state.rows]
    least = crossings(state, place)
    for sweep in range(sweeps):
        if not least:
            break
        _sweep(state, place, down=sweep % 2 == 0)
        found = crossings(state, place)
        if found < least:
            best, least = [list(row) for row in state.rows], found
    state.rows[:] = best


def _number(row: list[int], place: list[float]) -> None:
    for at, vertex in enumerate(row):
        place[vertex] = float(at)


def _sweep(state: LayerRows, place: list[float], *, down: bool) -> None:
    links = state.above if down else state.below
    rows = state.rows[1:] if down else state.rows[-2::-1]
    for row in rows:
        if len(row) < 2:
            continue
        key = {vertex: _mean(links[vertex], place, place[vertex]) for vertex in row}
        row.sort(key=key.__getitem__)
        _number(row, place)


def _mean(links: list[Link], place: list[float], otherwise: float) -> float:
    if not links:
        return otherwise
    # where a wide box is met settles ties between its ports
    return sum(place[near] + met * _TIE for near, _, _, met in links) / len(links)


def crossings(state: LayerRows, place: list[float]) -> int:
    """Return the number of crossings between neighbouring rows for places within rows."""
    return sum(_crossings_below(state, row, place) for row in state.rows)


def _crossings_below(state: LayerRows, row: list[int], place: list[float]) -> int:
    if len(row) < 2:
        return 0
    seen: list[float] = []
    total = 0
    for vertex in row:
        ends = [place[near] + met * _TIE for near, _, _, met in state.below[vertex]]
        total += sum(len(seen) - bisect_right(seen, end) for end in ends)
        for end in ends:
            insort(seen, end)
    return total
