"""Horizontal places of vertices: the main flow straight, long edges straight beside it."""

from __future__ import annotations

from collections.abc import Sequence

from devtools_app.viewmodels.layout.layers import LayerRows, Link

_BOX, _LINE, _LOOSE = 1.0, 1e-3, 1e-2  # how strongly a vertex is pulled to its target
_MANY = 20000  # vertices; 5 or 3 passes, so that large graphs stay fast


def place_rows(state: LayerRows) -> list[float]:
    """Return the x of every anchor; the leftmost extent is at 0."""
    xs = [0.0] * len(state.row_of)
    for row in state.rows:
        _pack(state, row, xs)
    passes = 5 if len(xs) <= _MANY else 3
    for number in range(passes):
        down = number % 2 == 0
        xs = _centred(state.rows[0 if down else -1], xs) if state.rows else xs
        _pass(state, xs, down=down)
    _straighten(state, xs)
    least = min((x - left for x, left in zip(xs, state.left, strict=True)), default=0.0)
    return [x - least for x in xs]


def _pack(state: LayerRows, row: list[int], xs: list[float]) -> None:
    if len(row) == 1:  # most rows of a long program: it stays in the middle
        return
    x = 0.0
    for at, vertex in enumerate(row):
        x = x + state.apart(row[at - 1], vertex) if at else 0.0
        xs[vertex] = x
    for vertex in row:
        xs[vertex] -= x / 2


def _centred(row: Sequence[int], xs: list[float]) -> list[float]:
    """Return all places moved together so that one row is centred at 0."""
    middle = sum(xs[vertex] for vertex in row) / max(len(row), 1)
    return [x - middle for x in xs]


def _pass(state: LayerRows, xs: list[float], *, down: bool) -> None:
    links = state.above if down else state.below
    others = state.below if down else state.above
    for row in state.rows if down else reversed(state.rows):
        if len(row) == 1:
            vertex = row[0]
            joined = links[vertex] or others[vertex]
            if len(joined) == 1:
                xs[vertex] = xs[joined[0][0]] + joined[0][1]
            else:
                xs[vertex] = _preferred_position(joined, xs, xs[vertex])
            continue
        targets: list[float] = []
        strength: list[float] = []
        for vertex in row:
            near = links[vertex]
            target = _preferred_position(near or others[vertex], xs, xs[vertex])
            targets.append(target)
            held = _LINE if vertex >= state.items else _BOX if near else _LOOSE
            strength.append(held)
        _follow(row, links, others, targets)
        _settle(state, row, targets, strength, xs)


def _follow(
    row: Sequence[int], links: list[list[Link]], others: list[list[Link]], targets: list[float]
) -> None:
    """Move vertices without edges together with their row."""
    loose = [at for at, vertex in enumerate(row) if not links[vertex] and not others[vertex]]
    if not loose or len(loose) == len(row):
        return
    rest = [target for at, target in enumerate(targets) if at not in set(loose)]
    for at in loose:
        targets[at] = sum(rest) / len(rest)


def _preferred_position(links: Sequence[Link], xs: list[float], otherwise: float) -> float:
    """Return the median position of the neighbours with the highest priority.

    Of two middle positions and their mean, the nearest to 0 is returned, where rows are centred
    initially: long programs then do not drift sideways.
    """
    if not links:
        return otherwise
    if len(links) == 1:
        near, shift, _, _ = links[0]
        return xs[near] + shift
    most = max(counts for _, _, counts, _ in links)
    found = sorted(xs[near] + shift for near, shift, counts, _ in links if counts == most)
    middle = len(found) // 2
    if len(found) % 2:
        return found[middle]
    low, high = found[middle - 1], found[middle]
    return min(((low + high) / 2, low, high), key=abs)


def _settle(
    state: LayerRows, row: list[int], targets: list[float], strength: list[float], xs: list[float]
) -> None:
    """Place a row close to its desired positions (least squares, pooled violators)."""
    blocks: list[tuple[float, float, int]] = []  # weighted sum, weight, members
    offsets: list[float] = []
    offset = 0.0
    for at, vertex in enumerate(row):
        if at:
            offset += state.apart(row[at - 1], vertex)
        offsets.append(offset)
        total, weight, members = (targets[at] - offset) * strength[at], strength[at], 1
        while blocks and blocks[-1][0] * weight >= total * blocks[-1][1]:
            more, more_weight, more_members = blocks.pop()
            total, weight, members = total + more, weight + more_weight, members + more_members
        blocks.append((total, weight, members))
    at = 0
    for total, weight, members in blocks:
        start = total / weight
        for _ in range(members):
            xs[row[at]] = start + offsets[at]
            at += 1


def _straighten(state: LayerRows, xs: list[float]) -> None:
    """Move each long edge to as few vertical runs as its neighbours allow."""
    long = [path for path in state.paths if len(path) > 2]
    if not long:
        return
    at_row = [0] * len(xs)
    for row in state.rows:
        for at, vertex in enumerate(row):
            at_row[vertex] = at
    done: set[int] = set()
    for path in long:
        chain = path[1:-1]
        if chain[-1] in done:
            continue
        done.update(chain)
        _straighten_chain(state, path, xs, at_row)


def _straighten_chain(
    state: LayerRows, path: list[int], xs: list[float], at_row: list[int]
) -> None:
    run: list[int] = []
    low, high = float("-inf"), float("inf")
    for vertex in path[1:-1]:
        left, right = _room(state, vertex, xs, at_row)
        if run and max(low, left) > min(high, right):
            _set_run(state, run, (low, high), xs)
            run, low, high = [], float("-inf"), float("inf")
        run.append(vertex)
        low, high = max(low, left), min(high, right)
    _set_run(state, run, (low, high), xs)


def _room(state: LayerRows, vertex: int, xs: list[float], at_row: list[int]) -> tuple[float, float]:
    row, at = state.rows[state.row_of[vertex]], at_row[vertex]
    low, high = float("-inf"), float("inf")
    if at:
        low = xs[row[at - 1]] + state.apart(row[at - 1], vertex)
    if at + 1 < len(row):
        high = xs[row[at + 1]] - state.apart(vertex, row[at + 1])
    return min(low, xs[vertex]), max(high, xs[vertex])


def _set_run(state: LayerRows, run: list[int], room: tuple[float, float], xs: list[float]) -> None:
    low, high = room
    above, below = state.above[run[0]], state.below[run[-1]]
    targets = [xs[near] + shift for near, shift, _, _ in (*above[:1], *below[-1:])]
    inside = [target for target in targets if low <= target <= high]
    x = inside[0] if inside else min(max(targets[0], low), high)
    for vertex in run:
        xs[vertex] = x
