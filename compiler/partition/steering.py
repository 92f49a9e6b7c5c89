"""Access to the user's rules for partitioners while they run.

A partitioner that knows which nodes are excluded can group the rest accordingly; one that does not
query them is corrected afterwards.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from contextvars import ContextVar
from dataclasses import dataclass

import torch

Node = torch.fx.Node


@dataclass(frozen=True, slots=True)
class Steering:
    """Rules of the user, in the form partitioners query.

    Attributes:
        keeps_out: whether a node is excluded; notes the reason
        turns_off: whether a rule of the partitioner is disabled
    """

    keeps_out: Callable[[Node], bool]
    turns_off: Callable[[str], bool]


_current: ContextVar[Steering | None] = ContextVar("steering", default=None)


@contextlib.contextmanager
def steered_by(steering: Steering) -> Generator[None, None, None]:
    """Make these rules available to partitioners inside the context."""
    token = _current.set(steering)
    try:
        yield
    finally:
        _current.reset(token)


def keeps_out(node: Node) -> bool:
    """Return whether the user excludes a node; the reason is noted."""
    steering = _current.get()
    return steering is not None and steering.keeps_out(node)


def is_off(rule: str) -> bool:
    """Return whether the user has disabled a rule."""
    steering = _current.get()
    return steering is not None and steering.turns_off(rule)
