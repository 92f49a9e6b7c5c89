"""Partitioners of users that fail in every way."""

from __future__ import annotations

import os
import signal
from typing import Any

from compiler import Partitioner, PartitionResult


class Fatal(Partitioner):
    def partition(self, exported_program: Any) -> PartitionResult:
        os.kill(os.getpid(), signal.SIGKILL)
        return PartitionResult(exported_program, {})


class Raising(Partitioner):
    def partition(self, exported_program: Any) -> PartitionResult:
        raise RuntimeError("no idea")


class Leaving(Partitioner):
    def partition(self, exported_program: Any) -> PartitionResult:
        raise SystemExit(3)
