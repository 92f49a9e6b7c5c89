"""Reads a column of strings as indices into a table of distinct strings.

A trace repeats a few dozen names a million times, each time as bytes of its own. Names are
distinguished by a 64-bit mix of their words; every name is then compared with the one it was
matched to, so that a collision costs time, never correctness.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from schema.flatbuf.columns import Ints, Region, Rows, extents

Ids = NDArray[np.int32]
_LONG = 256  # bytes; longer strings are rare and are compared one by one
_WORD = 8  # bytes compared at a time, as one uint64
_ODD = np.uint64(0x9E3779B97F4A7C15)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


def intern(region: Region, rows: Rows, at: Ints, owners: Ints) -> tuple[Ids, tuple[bytes, ...]]:
    """Return the index of each string, -1 where absent, and the strings by first use.

    Shapes: at, owners int64[n] -> int32[n]
    Raises: FormatError if the strings declare more bytes than the file can hold
    """
    present = np.flatnonzero(at >= 0)
    starts, counts = extents(region, rows, at[present], owners[present], 1)
    alike: Ints | None = None
    if int(counts.sum()) > region.limit:  # some are shared: check each position once
        _, first, alike = np.unique(starts, return_index=True, return_inverse=True)
        starts, counts = starts[first], counts[first]
    region.spend(int(counts.sum()), "strings")
    numbers, samples = _numbered(region, starts, counts)
    ids = np.full(len(at), -1, dtype=np.int32)
    ids[present] = numbers if alike is None else numbers[alike.ravel()]
    ids, order = _by_first_use(ids, len(samples))
    raw = [bytes(region.buffer[starts[i] : starts[i] + counts[i]]) for i in samples[order]]
    return ids, tuple(raw)


def _by_first_use(ids: Ids, count: int) -> tuple[Ids, Ints]:
    # Indices must not depend on the mix, or reading a file twice would give different results.
    first = np.full(count + 1, len(ids), dtype=np.int64)
    np.minimum.at(first, ids, np.arange(len(ids)))  # -1 lands in the spare last place
    order = np.argsort(first[:count], kind="stable")
    rank = np.empty(count + 1, dtype=np.int32)
    rank[order] = np.arange(count, dtype=np.int32)
    rank[count] = -1
    return rank[ids], order


def _numbered(region: Region, starts: Ints, counts: Ints) -> tuple[Ids, Ints]:
    """Return a label per string and the position of one sample of each label."""
    short = counts <= _LONG
    mixes = _mixed(region, starts, counts, short)
    mixes[~short] = 0
    _, first, numbers = np.unique(mixes, return_index=True, return_inverse=True)
    numbers = numbers.ravel()  # numpy 2.0 shaped it like the input
    odd = ~short | ~_same(region, starts, counts, first[numbers], short)
    if not odd.any():
        return numbers.astype(np.int32), first
    return _one_by_one(region, starts, counts, numbers, first, odd)


def _words(region: Region, starts: Ints, counts: Ints, index: int) -> NDArray[np.uint64]:
    # Bytes past the end of a string are masked, bytes past the file never read.
    requested = starts + _WORD * index
    at = np.minimum(requested, len(region.buffer) - _WORD)
    shift = ((requested - at) * 8).astype(np.uint64)
    unused = (np.maximum(_WORD * (index + 1) - counts, 0) * 8).astype(np.uint64)
    words = region.numbers(at, "<u8")
    return np.bitwise_and(words >> shift, np.right_shift(_ALL, unused))


def _mixed(
    region: Region, starts: Ints, counts: Ints, short: NDArray[np.bool_]
) -> NDArray[np.uint64]:
    mixes = counts.astype(np.uint64) * _ODD
    for index in range(_LONG // _WORD):
        live = np.flatnonzero(short & (counts > _WORD * index))
        if not len(live):
            break
        word = _words(region, starts[live], counts[live], index)
        mix = (mixes[live] ^ word) * _ODD
        mixes[live] = mix ^ (mix >> np.uint64(32))
    return mixes


def _same(
    region: Region, starts: Ints, counts: Ints, sample: Ints, short: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    same = counts == counts[sample]
    for index in range(_LONG // _WORD):
        live = np.flatnonzero(same & short & (counts > _WORD * index))
        if not len(live):
            break
        here = _words(region, starts[live], counts[live], index)
        there = _words(region, starts[sample[live]], counts[live], index)
        same[live] = here == there
    return same


def _one_by_one(
    region: Region,
    starts: Ints,
    counts: Ints,
    numbers: Ints,
    samples: Ints,
    odd: NDArray[np.bool_],
) -> tuple[Ids, Ints]:
    numbers = np.array(numbers)
    grown = list(samples)
    seen: dict[bytes, int] = {}
    for i in np.flatnonzero(odd):
        raw = bytes(region.buffer[starts[i] : starts[i] + counts[i]])
        if raw not in seen:
            seen[raw] = len(grown)
            grown.append(i)
        numbers[i] = seen[raw]
    used, numbers = np.unique(numbers, return_inverse=True)
    return numbers.ravel().astype(np.int32), np.array(grown, dtype=np.int64)[used]
