"""Access to the user's rules for partitioners while they run.

A partitioner that knows what is kept out can decide what goes along with what; one that does not
ask is corrected afterwards.
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
        keeps_out: whether a node stays outside, which then is noted with the reason
        turns_off: whether a rule of the partitioner is not to be used
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
    """Return whether the user keeps a node out; the reason is noted."""
    steering = _current.get()
    return steering is not None and steering.keeps_out(node)


def is_off(rule: str) -> bool:
    """Return whether the user has turned a rule off."""
    steering = _current.get()
    return steering is not None and steering.turns_off(rule)
