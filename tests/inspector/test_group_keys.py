"""Keys are numbered as numpy does it, by a table where they lie close together."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from inspector.trace.group_keys import distinct, ranks

INT64 = np.iinfo(np.int64)
KEYS = st.one_of(
    st.lists(st.integers(-3, 5), max_size=40),
    st.lists(st.integers(int(INT64.min), int(INT64.max)), max_size=12),
    st.lists(st.integers(int(INT64.max) - 4, int(INT64.max)), max_size=12),
)


@given(KEYS)
def test_distinct_keys_are_those_of_numpy(keys: list[int]) -> None:
    column = np.array(keys, np.int64)
    values, place = distinct(column)
    expected, inverse = np.unique(column, return_inverse=True)
    assert values.tolist() == expected.tolist()
    assert place.tolist() == np.ravel(inverse).tolist()


@given(KEYS)
def test_ranks_go_by_first_appearance(keys: list[int]) -> None:
    rank, first = ranks(np.array(keys, np.int64))
    order = list(dict.fromkeys(keys))
    assert rank.tolist() == [order.index(key) for key in keys]
    assert first.tolist() == [keys.index(key) for key in order]
