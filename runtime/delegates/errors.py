"""Errors of a partition, with the partition and the node."""

from __future__ import annotations

from dataclasses import dataclass

from runtime.errors import ErrorCode, ExecutionError

_OF_PAYLOAD = (
    "Compile the program again for this backend's version; `--guard fix` leaves out of the "
    "partitions operators that do not load."
)
_KEEP_OUT = (
    "Keep the operator of this node out of the partition and compile again: `etscope compile "
    "--guard fix` finds such operators and does so."
)
# Written to guard reports, which older versions read too: hence the British spelling.
LOADING, SHAPES, ENDED = "initialisation", "shapes", "ended"


class DelegateError(ExecutionError):
    """A partition that cannot be loaded or run.

    Attributes:
        why: the reason without its location
        partition: its index among the delegates of the method
        node: index of the node in the payload, None if no node caused the error
        kind: kind of the node, empty if none caused the error
        debug_handle: of the operator that the node was lowered from, None if unknown
    """

    def __init__(  # noqa: PLR0913 - parts of the location
        self,
        code: ErrorCode,
        reason: str,
        *,
        partition: int = 0,
        node: int | None = None,
        kind: str = "",
        debug_handle: int | None = None,
        remedy: str | None = None,
    ) -> None:
        self.why = reason
        self.partition = partition
        self.node = node
        self.kind = kind
        self.debug_handle = debug_handle
        if remedy is None and code is ErrorCode.DelegateInvalidCompatibility:
            remedy = _OF_PAYLOAD if node is None else _KEEP_OUT
        super().__init__(code, f"{self._place()}: {reason}", remedy=remedy)

    def _place(self) -> str:
        parts = [f"partition {self.partition}"]
        if self.node is not None:
            parts.append(f"node {self.node} ({self.kind})")
        if self.debug_handle is not None:
            parts.append(f"debug handle {self.debug_handle}")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class LoadFailure:
    """A partition that an engine does not load.

    Attributes:
        phase: ``initialisation``, ``shapes`` when it loads but its first run would fail, or
            ``ended`` when the process of the kernels crashed
        errors: one for each faulty node; a single one without a node if the node is unknown
    """

    phase: str
    errors: tuple[ExecutionError, ...]
