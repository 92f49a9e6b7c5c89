"""Moves constants and named blobs out of a program into external data, and back.

A constant without a name gets one derived from its content, so that external data of another
program is rejected. Merging restores the original file, byte for byte if our
encoder or the stock emitter with its default alignment of tensors wrote it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from schema.dtypes.scalar_type import numel
from schema.errors import FormatError, Issue, Severity
from schema.flat_tensor import Entry, FileSegment, FlatTensor, TensorLayout
from schema.program import model as m
from schema.program.alignment import alignment_of
from schema.program.program import EXTERNAL, IN_SEGMENT, ProgramFile

_TENSOR_STEP = 16  # bytes, constant_tensor_alignment of the stock emitter
_DIGITS = 64  # of a SHA-256 digest
_EMPTY = memoryview(b"")
Place = tuple[int, int, int, int]


def split(program: ProgramFile) -> tuple[ProgramFile, FlatTensor]:
    """Return a program without its constants and named blobs, and external data with them.

    Mutable data, payloads of delegates without a key, and constants that are already external
    are not changed.

    Raises: FormatError if bytes are missing, or two tensors with one name differ in content
    """
    _require_whole(program.issues, program.file)
    moved = _Moved(program)
    plans = _tensors_replaced(program, moved.tensor)
    table, places = program.table, moved.blobs()
    segments = list(program.segments)
    starts = table.constant_segment
    if starts is not None and moved.constants:
        if starts.segment_index not in _referred(replace(table, constant_segment=None)):
            segments[starts.segment_index] = _EMPTY
        starts = replace(starts, offsets=starts.offsets[:1])
    kept = [at for at in range(len(segments)) if at not in places]
    table = replace(
        table,
        execution_plan=plans,
        constant_segment=starts,
        constant_buffer=table.constant_buffer and table.constant_buffer[:1],
        named_data=None,
    )
    rest = _renumbered(table, {at: number for number, at in enumerate(kept)})
    return (
        _rewritten(program, rest, [segments[at] for at in kept]),
        FlatTensor(tuple(moved.entries), tuple(moved.segments), file=program.file),
    )


def merge(program: ProgramFile, files: Iterable[FlatTensor]) -> ProgramFile:
    """Return a program with its external data stored in its segments.

    Blobs and tensors that no value of the program names become named data, since delegates look up
    keys that the program does not list.

    Raises: FormatError if data is missing, has a different layout, or a key has two contents
    """
    _require_whole(program.issues, program.file)
    given = list(files)
    for file in given:
        _require_whole(file.issues, file.file)
    filled = _Filled(program, given)
    plans = _tensors_replaced(program, filled.tensor)
    table = replace(program.table, execution_plan=plans)
    return _rewritten(program, *filled.placed(table))


class _Moved:
    """Collects the data for an external file."""

    def __init__(self, program: ProgramFile) -> None:
        self.program = program
        self.entries: list[Entry] = []
        self.segments: list[FileSegment] = []
        self.constants = 0
        self._known: dict[str, Entry] = {}
        self._keys: dict[object, str] = {}
        self._places: dict[object, int] = {}
        found = [t for plan in program.plans for t in map(_tensor, plan.values) if t is not None]
        for tensor in sorted(filter(_is_constant, found), key=lambda t: t.data_buffer_idx):
            self._add(tensor)

    def _add(self, tensor: m.Tensor) -> None:
        key, data = self._key(tensor), self._bytes(tensor)
        layout = TensorLayout(tensor.scalar_type, tensor.sizes, tensor.dim_order)
        held = self._known.get(key)
        if held is None:
            place = tensor.data_buffer_idx, len(data)
            self._put(key, place, data, layout)
            self.constants += 1
        elif held.layout != layout or held.data != data:
            text = f"a second tensor of type {layout.scalar_type} and sizes {list(layout.sizes)}"
            raise FormatError(
                "one content for each name", text, field=repr(key), file=self.program.file
            )

    def _put(self, key: str, place: object, data: memoryview, layout: TensorLayout | None) -> None:
        if place not in self._places:
            self._places[place] = len(self.segments)
            self.segments.append(FileSegment(data))
        entry = Entry(key, self._places[place], layout, 0, data)
        self.entries.append(entry)
        self._known[key] = entry

    def blobs(self) -> set[int]:
        """Add the named data; return the segments with no other reference."""
        named = self.program.table.named_data or ()
        used = sorted({entry.segment_index for entry in named})
        constants = {bytes(s.data): n for n, s in enumerate(self.segments) if used}
        for at in used:  # segments in the order they have, keys in the order they have
            data = self.program.segment(at, f"a key of segment {at}")
            number = constants.get(bytes(data), len(self.segments))
            self._places["blob", at] = number
            if number == len(self.segments):
                self.segments.append(FileSegment(data))
        for entry in named:
            if entry.key in self._known:
                raise FormatError(
                    "a key once", "it is there twice", field=repr(entry.key), file=self.program.file
                )
            place = "blob", entry.segment_index
            self._put(entry.key, place, self.segments[self._places[place]].data, None)
        self._blobs_last([self._places["blob", at] for at in used])
        return set(used) - _referred(self.program.table)

    def _blobs_last(self, blobs: Sequence[int]) -> None:
        """Keep the order of blob segments even if one is also a constant."""
        last = dict.fromkeys(blobs)
        order = [at for at in range(len(self.segments)) if at not in last] + [*last]
        number = {at: place for place, at in enumerate(order)}
        self.segments = [self.segments[at] for at in order]
        self.entries = [
            replace(entry, segment_index=number[entry.segment_index]) for entry in self.entries
        ]

    def tensor(self, tensor: m.Tensor) -> m.Tensor:
        """Return a tensor whose bytes are elsewhere."""
        if not _is_constant(tensor):
            return tensor
        extra = tensor.extra_tensor_info or m.ExtraTensorInfo(0, "", EXTERNAL, 0, 0)
        extra = replace(extra, fully_qualified_name=self._key(tensor), location=EXTERNAL)
        return replace(tensor, data_buffer_idx=0, extra_tensor_info=extra)

    def _bytes(self, tensor: m.Tensor) -> memoryview:
        data = self.program.constant_data(tensor)
        if data or not numel(tensor.sizes):
            return _EMPTY if data is None else data
        code = f"{tensor.scalar_type}, whose bytes are not known"
        raise FormatError("a dtype", code, field="scalar_type", file=self.program.file)

    def _key(self, tensor: m.Tensor) -> str:
        place = tensor.data_buffer_idx, tensor.scalar_type, tensor.sizes, tensor.dim_order
        if _name(tensor):
            return _name(tensor)
        if place not in self._keys:
            self._keys[place] = _content_key(tensor, self._bytes(tensor))
        return self._keys[place]


class _Filled:
    """Resolves data of external files."""

    def __init__(self, program: ProgramFile, files: Sequence[FlatTensor]) -> None:
        self.program = program
        self._home: dict[str, tuple[int, Entry]] = {}
        for number, file in enumerate(files):
            for entry in file.entries:
                held = self._home.setdefault(entry.key, (number, entry))[1]
                if held is not entry and (held.data != entry.data or held.layout != entry.layout):
                    raise FormatError(
                        "one content for each key", "two", field=repr(entry.key), file=file.file
                    )
        states = (program.table.mutable_data_segments or (None,))[0]
        self._constants = self._area(program.table.constant_segment, _TENSOR_STEP)
        self._written = self._area(states, 1)
        if not self._constants.offsets[1:]:
            for at, buffer in enumerate((program.table.constant_buffer or ())[1:]):
                self._constants.place(("inline", at), buffer.storage)
            self._constants.changed = False
        self._used: set[str] = set()
        self._inside: dict[int, m.DataSegment] = {}
        self._alignment = alignment_of(program, *files)
        order = {key: at for at, key in enumerate(self._home)}
        requested = [
            t for plan in program.plans for t in map(_tensor, plan.values) if t is not None
        ]
        outside = {_name(t): t for t in requested if _is_external(t)}
        left = [home for key, home in self._home.items() if key not in outside]
        self._shared = (
            {_place(*home) for home in left} if self._constants.is_first else set[Place]()
        )
        for name in sorted(outside, key=lambda name: order.get(name, -1)):
            self._entry(outside[name])

    def _area(self, starts: m.SubsegmentOffsets | None, step: int) -> _Area:
        found = starts is not None and starts.segment_index < len(self.program.segments)
        if starts is None or not found:
            return _Area(_EMPTY, (0,), step)
        area = _Area(self.program.segments[starts.segment_index], starts.offsets, step)
        area.is_first = starts.segment_index == 0
        return area

    def tensor(self, tensor: m.Tensor) -> m.Tensor:
        """Return a tensor with its bytes in the program.

        Raises: FormatError if they are missing, or of a different layout
        """
        extra = tensor.extra_tensor_info
        if extra is None or extra.location != EXTERNAL:
            return tensor
        key, data = extra.fully_qualified_name, self._home
        index = self._entry(tensor)
        built = tensor.allocation_info is None and len(key) == _DIGITS
        built = built and key == _content_key(tensor, data[key][1].data)
        kept = None if built else replace(extra, location=0)
        return replace(tensor, data_buffer_idx=index, extra_tensor_info=kept)

    def _entry(self, tensor: m.Tensor) -> int:
        """Return the index of a tensor's bytes among the constants, or among mutable data."""
        key, where = _name(tensor), self.program.file
        if key not in self._home:
            text = f"none of {len(self._home)} keys; give the .ptd file that has it"
            raise FormatError(f"external data for {key!r}", text, field="values", file=where)
        number, entry = self._home[key]
        requested = TensorLayout(tensor.scalar_type, tensor.sizes, tensor.dim_order)
        layout = requested if entry.layout is None else entry.layout
        if layout != requested or len(entry.data) < requested.nbytes:
            raise FormatError(
                f"type {requested.scalar_type}, sizes {list(requested.sizes)}, dim_order "
                f"{list(requested.dim_order)}, {requested.nbytes} bytes",
                f"type {layout.scalar_type}, sizes {list(layout.sizes)}, dim_order "
                f"{list(layout.dim_order)}, {len(entry.data)} bytes in external data",
                field=repr(key),
                file=where,
            )
        self._used.add(key)
        area = self._constants if tensor.allocation_info is None else self._written
        place = _place(number, entry)
        step = self._alignment if place in self._shared else 1
        return area.place(place, entry.data[: requested.nbytes], step)

    def placed(
        self, table: m.ProgramTable
    ) -> tuple[m.ProgramTable, list[memoryview], dict[int, m.DataSegment]]:
        """Return tables and segments with all data.

        The last value maps segments to ranges of the first one.
        """
        segments = list(self.program.segments)
        states = table.mutable_data_segments or ()
        if self._constants.changed:
            starts = self._constants.put(table.constant_segment, segments)
            inline = table.constant_buffer and ()
            table = replace(table, constant_segment=starts, constant_buffer=inline)
        if self._written.changed:
            first = self._written.put(states[0] if states else None, segments)
            table = replace(table, mutable_data_segments=(first, *states[1:]))
        named = (*(table.named_data or ()), *self._blobs(segments))
        return replace(table, named_data=named or None), segments, self._inside

    def _blobs(self, segments: list[memoryview]) -> list[m.NamedData]:
        """Add segments for data that no value names, and return their keys."""
        inside = self.program.named_data_map()
        left = {key: home for key, home in self._home.items() if key not in self._used}
        for key, (_, entry) in left.items():
            if inside.get(key, entry.data) != entry.data:
                text = "a different one in the program"
                raise FormatError(
                    "one content for each key", text, field=repr(key), file=self.program.file
                )
        places = {_place(*home): home[1].data for home in left.values()}
        numbers = {place: len(segments) + at for at, place in enumerate(sorted(places))}
        for place in sorted(places):
            start = self._constants.start(place) if place in self._shared else None
            if start is not None and places[place]:
                self._inside[len(segments)] = m.DataSegment(start, len(places[place]))
            segments.append(places[place])
        return [
            m.NamedData(key, numbers[_place(*home)])
            for key, home in left.items()
            if key not in inside
        ]


class _Area:
    """Bytes of several tensors, one after the other; entry 0 is the placeholder of the format."""

    def __init__(self, data: memoryview, offsets: Sequence[int], step: int = _TENSOR_STEP) -> None:
        self.data = bytearray(data)
        self.offsets = list(offsets) or [0]
        self.changed = False
        self.is_first = False
        self._step = step
        self._known: dict[object, int] = {}

    def start(self, home: object) -> int | None:
        """Return the position of bytes with a given origin."""
        return self.offsets[self._known[home]] if home in self._known else None

    def place(self, home: object, data: memoryview, step: int = 1) -> int:
        """Return the entry of bytes with a given origin, aligned to a multiple of the step."""
        if home not in self._known:
            self.data += bytes(-len(self.data) % max(self._step, step))
            self._known[home] = len(self.offsets)
            self.offsets.append(len(self.data))
            self.data += data
            self.data += bytes(-len(self.data) % self._step)
            self.changed = True
        return self._known[home]

    def put(
        self, starts: m.SubsegmentOffsets | None, segments: list[memoryview]
    ) -> m.SubsegmentOffsets:
        """Store the bytes in the segment that had them before, or after all others."""
        if starts is None or starts.segment_index >= len(segments):
            starts = m.SubsegmentOffsets(len(segments), ())
            segments.append(_EMPTY)
        if len(self.offsets) > 1 and not self.data and self._step == _TENSOR_STEP:
            # The stock runtime reads empty constants alone as a file of the time before segments.
            self.data += bytes(self._step)
        segments[starts.segment_index] = memoryview(self.data)
        return replace(starts, offsets=tuple(self.offsets))


def _place(number: int, entry: Entry) -> Place:
    """Return which bytes of which file an entry names."""
    return number, entry.segment_index, entry.offset, len(entry.data)


def _require_whole(issues: Iterable[Issue], file: str) -> None:
    """Refuse a file whose bytes are not all there.

    Raises: FormatError with the first reason
    """
    bad = next((issue for issue in issues if issue.severity is Severity.ERROR), None)
    if bad is not None:
        raise FormatError("a completely readable file", bad.message, file=file)


def _tensor(value: m.EValue) -> m.Tensor | None:
    return value.val if isinstance(value.val, m.Tensor) else None


def _name(tensor: m.Tensor) -> str:
    extra = tensor.extra_tensor_info
    return "" if extra is None else extra.fully_qualified_name


def _is_external(tensor: m.Tensor) -> bool:
    extra = tensor.extra_tensor_info
    return extra is not None and extra.location == EXTERNAL


def _is_constant(tensor: m.Tensor) -> bool:
    """Return whether bytes in the program are a tensor's, and no method writes it."""
    stored = tensor.data_buffer_idx > 0 and tensor.allocation_info is None
    return stored and not _is_external(tensor)


def _content_key(tensor: m.Tensor, data: memoryview) -> str:
    layout = f"{tensor.scalar_type} {list(tensor.sizes)} {list(tensor.dim_order)} "
    return hashlib.sha256(layout.encode("ascii") + data).hexdigest()


def _tensors_replaced(
    program: ProgramFile, change: Callable[[m.Tensor], m.Tensor]
) -> tuple[m.ExecutionPlan, ...]:
    def changed(value: m.EValue) -> m.EValue:
        tensor = _tensor(value)
        return value if tensor is None else m.EValue(change(tensor))

    return tuple(replace(plan, values=tuple(map(changed, plan.values))) for plan in program.plans)


def _referred(table: m.ProgramTable) -> set[int]:
    """Return the segments referenced by anything but a key."""
    starts = (*filter(None, (table.constant_segment,)), *(table.mutable_data_segments or ()))
    processed = [one.processed for plan in table.execution_plan for one in plan.delegates]
    found = {ref.index for ref in processed if ref is not None and ref.location == IN_SEGMENT}
    return found | {one.segment_index for one in starts}


def _renumbered(table: m.ProgramTable, number: dict[int, int]) -> m.ProgramTable:
    """Return tables whose references follow segments to their new places."""

    def delegate(one: m.BackendDelegate) -> m.BackendDelegate:
        ref = one.processed
        if ref is None or ref.location != IN_SEGMENT:
            return one
        return replace(one, processed=replace(ref, index=number.get(ref.index, ref.index)))

    def starts(one: m.SubsegmentOffsets) -> m.SubsegmentOffsets:
        return replace(one, segment_index=number.get(one.segment_index, one.segment_index))

    constants, states = table.constant_segment, table.mutable_data_segments
    return replace(
        table,
        execution_plan=tuple(
            replace(plan, delegates=tuple(map(delegate, plan.delegates)))
            for plan in table.execution_plan
        ),
        constant_segment=constants and starts(constants),
        mutable_data_segments=states and tuple(map(starts, states)),
    )


def _rewritten(
    program: ProgramFile,
    table: m.ProgramTable,
    segments: Sequence[memoryview],
    inside: Mapping[int, m.DataSegment] = MappingProxyType({}),
) -> ProgramFile:
    """Return a program with a new segment layout on writing.

    Args:
        program: the program with the previous tables
        table: its segment positions are ignored
        segments: bytes of each
        inside: segments that are ranges of the first one
    """
    if program.table.segments is None and not segments:
        return replace(program, table=table)
    places = [inside.get(at, m.DataSegment(0, 0)) for at in range(len(segments))]
    if inside:
        places[0] = m.DataSegment(0, len(segments[0]))
    return replace(program, table=replace(table, segments=tuple(places)), segments=tuple(segments))
