"""A partitioner of a user's that takes more than the kernels can do: its rules check nothing."""

from __future__ import annotations

from dataclasses import replace

from compiler.backends.xnnpack import XnnpackPartitioner
from compiler.backends.xnnpack.configs import ALL_PARTITIONER_CONFIGS


class Bold(XnnpackPartitioner):
    """Takes every operator that there is a rule for, whatever its arguments."""

    def __init__(self) -> None:
        super().__init__([replace(rule, checks=()) for rule in ALL_PARTITIONER_CONFIGS])
