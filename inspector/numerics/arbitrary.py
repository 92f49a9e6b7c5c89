"""Operators whose values are not determined by what they read."""

from __future__ import annotations

from inspector.join.node_index import base_operator

ARBITRARY = "its values are left open (memory or random numbers); the run's are taken for both"
_UNWRITTEN = ("empty", "empty_like", "empty_strided", "empty_permuted", "_empty_dim_order")
_NEW = ("new_empty", "new_empty_strided")
_RANDOM = (
    *("rand", "rand_like", "randn", "randn_like", "randint", "randint_like", "randperm"),
    *("bernoulli", "multinomial", "normal", "native_dropout", "uniform", "exponential"),
)
_NAMES = frozenset((*_UNWRITTEN, *_NEW, *_RANDOM))


def is_arbitrary(operator: str) -> bool:
    """Return whether two runs of an operator may have different values and be right.

    Args:
        operator: with or without namespace and overload
    """
    return base_operator(operator).rpartition("::")[2] in _NAMES
