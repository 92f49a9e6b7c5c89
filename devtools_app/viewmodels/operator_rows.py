"""One row an operator that ran: kernels with the cost of calling them, operators inside delegates.

Rows add up to the method: an OPERATOR_CALL stands for its kernel, a delegate is represented by its
inner operators and by what they leave of its call, and the rest of the method is unattributed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from devtools_app.viewmodels.block_names import block_labels
from inspector.blocks import Block, trace_blocks
from inspector.links import NO_LINK, BlockLinks, Link, link_block
from inspector.memory import instruction_label
from inspector.model_graph import short_backend
from inspector.profile_rows import EXECUTE
from inspector.session import Session
from inspector.timing import is_time, scale_factor
from schema.identity_cache import identity_cache
from schema.program import instructions

Floats = NDArray[np.float64]
_CALL = "DELEGATE_CALL"
OUTER = ("OPERATOR_CALL", _CALL, "JF_CALL", "MOVE_CALL", "FREE_CALL")
UNATTRIBUTED = "unattributed"


@dataclass(frozen=True, slots=True, eq=False)
class OperatorRow:
    """One operator.

    Attributes:
        label: operator name; kernel name inside a delegate
        module: dotted path, empty when unknown
        delegate: ``XNNPACK 0``, empty when not delegated
        block: name of the block, that no other block has
        link: how it was matched
        event: row of the profile, None for rests
        instruction: index in the chain, None for unattributed time
        samples_ns: time of each run, all passes of a loop together; None where it is not time
        kernel_ns: the kernel's own time, mean over runs; None when it was not logged
        passes: how often it happens in a run
        kind: operator, inner, rest or unattributed
        share: of the method's mean time, None when that is unknown
    """

    label: str
    module: str
    delegate: str
    block: str
    link: Link
    event: int | None
    instruction: int | None
    samples_ns: Floats | None
    kernel_ns: float | None
    passes: int
    kind: str
    share: float | None

    @property
    def in_delegate(self) -> bool:
        """Return whether the time was spent by a delegate, also by one nothing is known of."""
        return bool(self.link.backend) or self.kind in ("inner", "rest") or self.label == _CALL


@identity_cache
def operator_rows(session: Session, method: str) -> tuple[OperatorRow, ...]:
    """Return the rows of all runs of a method; empty without a trace."""
    rows: list[OperatorRow] = []
    start = 0
    blocks = trace_blocks(session.dumps).blocks
    for block, label in zip(blocks, block_labels(blocks), strict=True):
        links = link_block(session, block)
        inside = bool((block.layout.chain >= 0).any())
        if inside and links.method in (method, None):
            rows += _Rows(session, method, block, links, start, label).rows()
        start += len(block)
    return tuple(rows)


class _Rows:
    """Makes the rows of one block."""

    def __init__(
        self, session: Session, method: str, block: Block, links: BlockLinks, start: int, label: str
    ) -> None:
        self.session = session
        self.block = block
        self.links = links
        self.start = start
        self.block_label = label
        source = session.options.source_time_scale
        self.is_time = is_time(source)
        self.scale = scale_factor(source, "ns") if self.is_time else 1.0
        self.names = [block.event_name(event) for event in range(len(block))]
        whole = [event for event, name in enumerate(self.names) if name in EXECUTE]
        self.method_ns = self._ns(whole[0]) if whole and self.is_time else None
        program = session.program
        known = program is not None and method in session.methods
        self.plan = program.plan(method) if program is not None and known else None

    def _ns(self, event: int) -> Floats:
        return self.block.total[:, event] / self.scale

    def rows(self) -> list[OperatorRow]:
        """Return the rows of the block in the order of the instructions."""
        outer: dict[int, int] = {}
        kernels: dict[int, int] = {}
        inner: dict[int, list[int]] = {}
        for event, name in enumerate(self.names):
            number = self.block.instruction(event)
            if self.block.layout.chain[event] < 0 or number is None:
                continue
            if self.block.delegate_id(event) is not None:
                inner.setdefault(number, []).append(event)
            elif name in OUTER:
                outer.setdefault(number, event)
            else:
                kernels.setdefault(number, event)
        rows: list[OperatorRow] = []
        for number in sorted(outer.keys() | kernels.keys() | inner.keys()):
            rows += self._instruction(
                number, outer.get(number), kernels.get(number), inner.get(number, [])
            )
        return rows + self._unattributed(list(outer.values()))

    def _instruction(
        self, number: int, outer: int | None, kernel: int | None, inner: list[int]
    ) -> list[OperatorRow]:
        rows = [self._inner(number, event) for event in inner]
        event = outer if outer is not None else kernel
        if event is None:
            return rows
        if inner:
            return [*rows, self._rest(number, event, inner)]
        own = None
        if kernel is not None and kernel != event and self.is_time:
            own = float(self._ns(kernel).mean())
        link = self.links.link(event)
        return [self._row(self._label(number, event), event, number, link, own, "operator")]

    def _inner(self, number: int, event: int) -> OperatorRow:
        link = self.links.link(event)
        return self._row(str(self.block.delegate_id(event)), event, number, link, None, "inner")

    def _rest(self, number: int, event: int, inner: list[int]) -> OperatorRow:
        link = self.links.link(event)
        row = self._row("rest of the delegate call", event, number, link, None, "rest")
        if row.samples_ns is None:
            return row
        left = row.samples_ns - sum(self._ns(one) for one in inner)
        return self._with_samples(row, left)

    def _with_samples(self, row: OperatorRow, samples: Floats) -> OperatorRow:
        return replace(row, samples_ns=samples, share=self._share(samples))

    def _row(
        self,
        label: str,
        event: int,
        number: int,
        link: Link,
        kernel_ns: float | None,
        kind: str,
    ) -> OperatorRow:
        inside = kind == "inner"
        timed = self.is_time and is_time(
            self.session.options.source_time_scale, link.backend if inside else ""
        )
        samples = self._ns(event) if timed else None
        return OperatorRow(
            label,
            self._module(link),
            delegate_label(link),
            self.block_label,
            link,
            self.start + event,
            number,
            samples,
            kernel_ns,
            int(self.block.layout.occurrences[event]),
            kind,
            self._share(samples),
        )

    def _share(self, samples: Floats | None) -> float | None:
        if samples is None or self.method_ns is None:
            return None
        whole = float(self.method_ns.mean())
        return float(samples.mean()) / whole if whole else None

    def _label(self, number: int, event: int) -> str:
        if self.plan is not None:
            steps = instructions(self.plan)
            if number < len(steps):
                label = instruction_label(self.plan, steps[number][2].instr_args)
                return label.replace("::", ".")
        return self.names[event]

    def _module(self, link: Link) -> str:
        names = (link.node,) if link.node else link.nodes[-1:]
        for handle in link.handles:
            for node in self.links.nodes.get(handle, ()):
                if node.name in names:
                    return node.module_path
        return ""

    def _unattributed(self, outer: list[int]) -> list[OperatorRow]:
        if self.method_ns is None:
            return []
        rest = self.method_ns - sum((self._ns(event) for event in outer), np.zeros(1))
        return [_unattributed_row(self.block_label, rest, self._share(rest))]


def _unattributed_row(block: str, rest: Floats, share: float | None) -> OperatorRow:
    return OperatorRow(
        UNATTRIBUTED, "", "", block, NO_LINK, None, None, rest, None, 1, UNATTRIBUTED, share
    )


def delegate_label(link: Link) -> str:
    """Return ``XNNPACK 0`` for an event of a delegate, empty text outside."""
    if not link.backend:
        return ""
    short = short_backend(link.backend)
    return short if link.delegate is None else f"{short} {link.delegate}"
