"""The operator rows of one block of a trace as columns, built without a loop over its events."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inspector.files.session import Session
from inspector.graph.instruction_names import dotted
from inspector.graph.source import user_frame
from inspector.join.link_codes import link_codes, shown_texts, texts_among
from inspector.join.links import NO_LINK, Link, inner_label, link_block
from inspector.memory.plan import instruction_label
from inspector.profile.attribution import (
    attribution,
    clock_ns,
    mean,
    of_steady_set,
    steady_set,
    whole_ns,
)
from inspector.profile.kernel_names import kernel_names
from inspector.trace.blocks import Block
from inspector.trace.event_kinds import (
    CALLS,
    DELEGATE_CALL,
    KERNEL_PREFIX,
    OPERATOR_CALL,
    inside_delegates,
)
from inspector.trace.group_keys import pack, ranks
from inspector.trace.timing import is_time, scale_factor
from schema.backends import short_backend
from schema.graph import GraphNode, common_module
from schema.program import instructions
from schema.program import model as m

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
UNATTRIBUTED = "unattributed"
TRACING, LOGGING = "cost of tracing", "cost of logging values"
KINDS = ("operator", "inner", "rest", UNATTRIBUTED, TRACING)
OPERATOR, INNER, REST, LEFT, TRACED = range(len(KINDS))
_REST = "delegate overhead"


@dataclass(frozen=True, slots=True, eq=False)
class BlockRows:
    """The rows of one block, in the order of the instructions.

    The unattributed time comes last, and after it what the trace costs, where that is known: a
    negative time that closes the sum to that of a run without a trace.

    Attributes:
        name: of the block, that no other block has
        method: the method that ran, None where unknown
        links: the different links
        modules: dotted path of each link, empty when unknown
        sources: source line of each link as ``file:line``, empty when unknown
        labels: the different names
        kind: index into KINDS
        event: event of the block, -1 for unattributed time
        events: row of the profile, where event is not -1
        instruction: index in the chain, -1 for unattributed time
        link: index into links
        label: index into labels
        timed: whether there are samples
        samples: time of each run, all passes together
        steady: which runs are in the steady set
        mean_ns: mean over these, where it is timed
        tick_ns: step of the clock of a row, 0 for differences of times
        kernel_ns: the kernel's own mean time, where has_kernel is set
        passes: how often it happens in a run
        share: mean_ns over the method's mean time, where it is timed and has_shares
        has_shares: whether the time of the method is known, and is the program's
        joined: whether the trace can be of the program, else of a method of the record; True
            without either
        kernel: index into kernel_names
        kernel_names: that the backend logged for events inside of delegates; the first is empty

    Shapes: samples float64[rows, runs]; steady bool[runs]; all others have one value per row
    Units: samples, mean_ns, tick_ns, kernel_ns nanoseconds
    """

    name: str
    method: str | None
    links: tuple[Link, ...]
    modules: tuple[str, ...]
    sources: tuple[str, ...]
    labels: tuple[str, ...]
    kind: Ints
    event: Ints
    events: Ints
    instruction: Ints
    link: Ints
    label: Ints
    timed: Mask
    samples: Floats
    steady: Mask
    mean_ns: Floats
    tick_ns: Floats
    kernel_ns: Floats
    has_kernel: Mask
    passes: Ints
    share: Floats
    has_shares: bool
    joined: bool
    kernel: Ints
    kernel_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def steady_samples(self) -> Floats:
        """Return the samples of the steady set, float64[rows, steady runs]."""
        return of_steady_set(self.samples, self.steady, axis=1)

    def of_delegate(self, index: int) -> Mask:
        """Return which rows belong to the calls of a delegate."""
        return np.array([link.delegate == index for link in self.links], np.bool_)[self.link]

    @property
    def in_delegate(self) -> Mask:
        """Return whether the time was spent by a delegate, including unknown ones."""
        backends = np.array([bool(link.backend) for link in self.links], np.bool_)
        call = np.array([label == DELEGATE_CALL for label in self.labels], np.bool_)
        return backends[self.link] | np.isin(self.kind, (INNER, REST)) | call[self.label]


def delegate_label(link: Link) -> str:
    """Return ``XNNPACK 0`` for an event of a delegate, empty text outside."""
    if not link.backend:
        return ""
    short = short_backend(link.backend)
    return short if link.delegate is None else f"{short} {link.delegate}"


def block_rows(session: Session, method: str, block: Block, start: int, name: str) -> BlockRows:
    """Return the rows of a block whose first event is that row of the profile."""
    return _Maker(session, method, block).rows(start, name)


@dataclass(frozen=True, slots=True, eq=False)
class _Placed:
    """Assignment of events to rows, without the row of unattributed time."""

    kind: Ints
    event: Ints
    kernel: Ints  # -1 for none
    inner: Ints  # events inside delegates
    call_of: Ints  # row of the call that each of them is in, -1 for none


class _Maker:
    def __init__(self, session: Session, method: str, block: Block) -> None:
        self.block = block
        self.source = session.options.source_time_scale
        self.is_time = is_time(self.source)
        self.scale = scale_factor(self.source, "ns") if self.is_time else 1.0
        self.texts = shown_texts(block)
        self.method_ns = whole_ns(block, self.source)
        self.steady = steady_set(block)
        self.shared = not session.times_with_values
        program = session.program
        joined = link_block(session, block)
        of_record = session.record is None or joined.method is not None
        self.joined = joined.plan is not None if program is not None else of_record
        known = program is not None and method in session.methods and self.joined
        self.plan = program.plan(method) if program is not None and known else None
        self.found = link_codes(session, block)
        self.ran = joined.method
        nodes = [joined.recorded(link) for link in self.found.links]
        self.modules = tuple(map(common_module, nodes))
        self.sources = tuple(_source(of[-1]) if of else "" for of in nodes)

    def _ns(self, events: Ints) -> Floats:
        """Return times as float64[events, runs], a row's runs side by side."""
        return np.ascontiguousarray(np.transpose(self.block.total[:, events])) / self.scale

    def rows(self, start: int, name: str) -> BlockRows:
        placed = _place(self.block, self.texts)
        event, kind = placed.event, placed.kind
        link, links = self.found.codes[event], self.found.links
        label, labels = self._labels(placed)
        kernel_ns, has_kernel = self._kernels(placed.kernel)
        kernel, names = kernel_names(self.block)
        samples = self._samples(placed)
        built = BlockRows(
            name=name,
            method=self.ran,
            links=links,
            modules=self.modules,
            sources=self.sources,
            labels=labels,
            kind=kind,
            event=event,
            events=event + start,
            instruction=self._steps(event),
            link=link,
            label=label,
            timed=self._timed(kind, link),
            samples=samples,
            steady=self.steady,
            mean_ns=self._mean(samples),
            tick_ns=self._ticks(kind, link, samples),
            kernel_ns=kernel_ns,
            has_kernel=has_kernel,
            passes=self.block.layout.occurrences[event],
            share=np.full(len(kind), np.nan),
            has_shares=False,
            joined=self.joined,
            kernel=np.where(kind == INNER, kernel[event], 0),
            kernel_names=names,
        )
        if self.method_ns is None:
            return built
        rest = self.method_ns - _sum(self._ns(attribution(self.block).indices()))
        whole = float(self._mean(self.method_ns)) if self.shared else 0.0
        last = _appended(built, LEFT, rest, float(self._mean(rest)), UNATTRIBUTED)
        return _with_shares(last, whole)

    def _mean(self, samples: Floats) -> Floats:
        """Return the means of samples over the steady runs, which are their last axis."""
        return mean(of_steady_set(samples, self.steady, axis=-1))

    def _kernels(self, kernel: Ints) -> tuple[Floats, Mask]:
        there = (kernel >= 0) & self.is_time
        found = np.full(len(kernel), np.nan)
        found[there] = self._mean(self._ns(kernel[there]))
        return found, there

    def _ticks(self, kind: Ints, link: Ints, samples: Floats) -> Floats:
        tick = 1 / self.scale
        ticks = np.where(kind == REST, 0.0, tick)
        names = [one.backend for one in self.found.links]
        for backend in set(names):
            of_backend = np.array([name == backend for name in names], np.bool_)
            own = (kind == INNER) & of_backend[link]
            ticks[own] = clock_ns(samples[own], backend, tick)
        return ticks

    def _steps(self, event: Ints) -> Ints:
        return self.block.layout.instruction[event]

    def _timed(self, kind: Ints, link: Ints) -> Mask:
        of_link = [is_time(self.source, one.backend) for one in self.found.links]
        inside = np.array(of_link, np.bool_)[link]
        return np.where(kind == INNER, inside, True) & self.is_time

    def _timed_inside(self, events: Ints) -> Mask:
        """Return which events inside of delegates are time: cycles leave their call whole."""
        of_link = [is_time(self.source, one.backend) for one in self.found.links]
        return np.array(of_link, np.bool_)[self.found.codes[events]]

    def _samples(self, placed: _Placed) -> Floats:
        samples = self._ns(placed.event)
        called = (placed.call_of >= 0) & self._timed_inside(placed.inner)
        if called.any():
            inner, call = self._ns(placed.inner[called]), placed.call_of[called]
            for run in range(samples.shape[1]):  # bincount adds up in order, as a loop would
                samples[:, run] -= np.bincount(call, inner[:, run], minlength=len(samples))
        return samples

    def _labels(self, placed: _Placed) -> tuple[Ints, tuple[str, ...]]:
        """Return the names of rows: the program's, else the kernel's, else what was logged."""
        kind, event = placed.kind, placed.event
        steps = instructions(self.plan) if self.plan is not None else ()
        number = self._steps(event)
        planned = (kind == OPERATOR) & (number >= 0) & (number < len(steps))
        # a call of any operator is logged by one name; the event of its kernel says which it is
        calls = texts_among(self.block, self.texts[event], (OPERATOR_CALL,))
        named = np.where(calls & (kind == OPERATOR) & (placed.kernel >= 0), placed.kernel, event)
        text, integer = self.texts[named], self.block.layout.delegate_int[named]
        shown = ~planned & (kind != REST)
        numbered = shown & (kind == INNER) & (integer != -1)  # ids mean nothing outside of a call
        codes, first = ranks(
            pack(
                np.where(planned, OPERATOR + len(KINDS), kind),
                np.where(planned | numbered, number, 0),
                np.where(shown, text, -1),
                np.where(shown, integer, -1),
            )
        )
        labels: list[str] = []
        for row in first.tolist():
            if kind[row] == REST:
                labels.append(_REST)
            elif planned[row] and self.plan is not None:
                labels.append(_planned(self.plan, steps[int(number[row])][2]))
            else:
                name = self.block.event_name(int(named[row]))
                link = self.found.links[int(self.found.codes[named[row]])]
                native = kind[row] == OPERATOR
                labels.append(
                    name.removeprefix(KERNEL_PREFIX) if native else inner_label(link, name)
                )
        return codes, tuple(labels)


def with_tracing(rows: BlockRows, added_ns: float, *, logged: bool) -> BlockRows:
    """Return the rows with one more, which takes off what the trace adds to a run.

    Args:
        rows: of the runs with the trace
        added_ns: by the trace
        logged: whether values were logged as well
    """
    missing = np.full(rows.samples.shape[1], np.nan)
    found = _appended(rows, TRACED, missing, -added_ns, LOGGING if logged else TRACING)
    return replace(found, share=np.append(rows.share, np.nan))


def _appended(rows: BlockRows, kind: int, samples: Floats, mean_ns: float, label: str) -> BlockRows:
    """Return the rows with one more that stands for no event."""
    return replace(
        rows,
        links=(*rows.links, NO_LINK),
        modules=(*rows.modules, ""),
        sources=(*rows.sources, ""),
        labels=(*rows.labels, label),
        kind=np.append(rows.kind, kind),
        event=np.append(rows.event, -1),
        events=np.append(rows.events, -1),
        instruction=np.append(rows.instruction, -1),
        link=np.append(rows.link, len(rows.links)),
        label=np.append(rows.label, len(rows.labels)),
        timed=np.append(rows.timed, True),
        samples=np.concatenate([rows.samples, samples[None]]),
        mean_ns=np.append(rows.mean_ns, mean_ns),
        tick_ns=np.append(rows.tick_ns, 0.0),
        kernel_ns=np.append(rows.kernel_ns, np.nan),
        has_kernel=np.append(rows.has_kernel, False),
        passes=np.append(rows.passes, 1),
        kernel=np.append(rows.kernel, 0),
    )


def _with_shares(rows: BlockRows, whole: float) -> BlockRows:
    if not whole:
        return replace(rows, share=np.full(len(rows), np.nan))
    share = np.where(rows.timed, rows.mean_ns / whole, np.nan)
    return replace(rows, share=share, has_shares=True)


def _planned(plan: m.ExecutionPlan, instruction: m.Instruction) -> str:
    return dotted(instruction_label(plan, instruction.instr_args))


def _sum(parts: Floats) -> Floats:
    """Return the sum over rows, added up one after another as they come."""
    none = np.zeros(len(parts), np.int64)
    runs = range(parts.shape[1])
    return np.array([np.bincount(none, parts[:, run], minlength=1)[0] for run in runs])


def _place(block: Block, texts: Ints) -> _Placed:
    layout = block.layout
    inside = (layout.chain >= 0) & (layout.instruction != -1)
    delegated = inside_delegates(block)
    outer = texts_among(block, texts, CALLS) & ~delegated
    numbers, which = np.unique(layout.instruction, return_inverse=True)
    first_outer = _first(inside & outer, which, len(numbers))
    first_kernel = _first(inside & ~outer & ~delegated, which, len(numbers))
    main = np.where(first_outer >= 0, first_outer, first_kernel)
    inner = np.flatnonzero(inside & delegated)
    has_inner = np.bincount(which[inner], minlength=len(numbers)) > 0
    called = np.flatnonzero(main >= 0)
    # the operators inside of a call come before what they leave of it
    order = np.lexsort(
        (np.repeat([0, 1], [len(inner), len(called)]), np.concatenate([which[inner], called]))
    )
    event = np.concatenate([inner, main[called]])[order]
    kind = np.where(has_inner[called], REST, OPERATOR)
    kind = np.concatenate([np.full(len(inner), INNER), kind])[order]
    kernel = np.where((first_outer >= 0) & ~has_inner, first_kernel, -1)[called]
    kernel = np.concatenate([np.full(len(inner), -1), kernel])[order]
    row_of = np.full(len(numbers), -1)
    rows = np.flatnonzero(kind != INNER)
    row_of[called] = rows
    return _Placed(kind, event, kernel, inner, row_of[which[inner]])


def _first(mask: Mask, which: Ints, groups: int) -> Ints:
    """Return the first event of each group in a mask, -1 for none."""
    found = np.full(groups, -1, np.int64)
    events = np.flatnonzero(mask)[::-1]
    found[which[events]] = events
    return found


def _source(node: GraphNode) -> str:
    frame = user_frame(node.stack_trace)
    return "" if frame is None else frame.label
