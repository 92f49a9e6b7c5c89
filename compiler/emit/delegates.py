"""Delegates in a program file: table, payloads, named blobs, and the maps that devtools join by."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from compiler.dialect.delegate_call import is_lowered_module
from compiler.emit.constants import TensorSegment
from compiler.errors import CompileError, UnsupportedError
from compiler.interface.backend import value_of_spec
from compiler.interface.file_data import in_memory
from compiler.interface.named_data import NamedDataStore, NamedDataStoreOutput
from schema.etrecord.parts.kept import member_of
from schema.etrecord.parts.origins import Origins
from schema.program import model as m

INLINE, SEGMENT = 0, 1
_INLINE_ALIGNMENT = 16  # program.fbs BackendDelegateInlineData.data force_align
Parts = tuple[memoryview | bytes, ...]


def called_module(call: torch.fx.Node) -> Any:  # noqa: ANN401 - a LoweredBackendModule
    """Return the lowered module that a delegate call names.

    Raises: UnsupportedError if it does not name one
    """
    home: Any = call.args[0]
    owner = call.graph.owning_module
    found = getattr(owner, str(home.target), None) if isinstance(home, torch.fx.Node) else None
    if not is_lowered_module(found):
        raise UnsupportedError(f"{home} is not a lowered module")
    return found


@dataclass
class DelegateStore:
    """Payloads and named blobs of all methods; equal ones are stored once.

    Attributes:
        payloads: each content once
        named: blobs by key
    """

    payloads: list[bytes] = field(default_factory=list[bytes])
    named: NamedDataStore = field(default_factory=NamedDataStore)
    _by_digest: dict[bytes, int] = field(default_factory=dict[bytes, int])

    def add(self, module: Any) -> m.BackendDelegate:  # noqa: ANN401
        """Return the table entry of a lowered module, with the index of its payload in the store.

        Raises: CompileError if two modules have a key of different content
        """
        digest = hashlib.sha256(module.processed_bytes).digest()
        index = self._by_digest.setdefault(digest, len(self.payloads))
        if index == len(self.payloads):
            self.payloads.append(module.processed_bytes)
        if module.named_data_store_output is not None:
            try:
                self.named.merge_named_data_store(module.named_data_store_output)
            except ValueError as error:
                raise CompileError(f"named data of {module.backend_id}: {error}") from error
        specs = tuple(
            m.CompileSpec(spec.key, memoryview(value_of_spec(spec, module.backend_id)))
            for spec in module.compile_specs
        )
        place = m.BackendDelegateDataReference(INLINE, index)
        return m.BackendDelegate(module.backend_id, place, specs)


@dataclass
class DelegateMaps:
    """Facts about the delegate instructions of one method, by instruction.

    Attributes:
        maps: backend id as ``name``, and its map from identifiers to handles as ``delegate_map``
        handles: debug handles of the nodes inside
        results: number of results of each
        members: names of the nodes inside, those of the recorded edge program
        origins: recorded nodes that each instruction of the method represents
        kept: files of vendors' tools, by the name of their member
    """

    maps: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    handles: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    results: dict[int, int] = field(default_factory=dict[int, int])
    members: dict[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    origins: Origins = field(default_factory=Origins)
    kept: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def note(self, instruction: int, call: torch.fx.Node, module: Any, results: int) -> None:  # noqa: ANN401
        """Record a delegate call.

        Nodes of a separately lowered module have handles unrelated to the program that uses it, so
        all of them are attributed to the call.
        """
        inside = [n for n in module.original_module.graph.nodes if n.op == "call_function"]
        found = [node.meta.get("debug_handle") for node in inside]
        meta: dict[str, Any] = module.meta or {}
        known: dict[Any, Any] = dict(meta.get("debug_handle_map") or {})
        handles = [handle for handle in found if handle]
        if call.meta.get("composed"):
            own = int(call.meta.get("debug_handle") or 0)
            handles, known = [own], dict.fromkeys(known, (own,))
        files: dict[str, bytes] = meta.get("kept") or {}
        self.kept |= {member_of(module.processed_bytes, name): files[name] for name in files}
        self.handles[instruction] = handles
        self.results[instruction] = results
        self.members[instruction] = tuple(node.name for node in inside)
        self.maps[instruction] = {
            "name": module.backend_id,
            "delegate_map": {key: _tuple(value) for key, value in known.items()},
        }


def _tuple(value: Any) -> tuple[int, ...]:  # noqa: ANN401
    return tuple(value) if isinstance(value, (tuple, list, set)) else (value,)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


@dataclass(frozen=True)
class PlacedDelegates:
    """Locations of the payloads and blobs of a program.

    Attributes:
        plans: the methods, with locations of payloads
        inline: payloads in the tables
        segments: all segments of the program
        named: keys and their segments, or None
        alignment: of segments, in bytes
        external: keys stored in other files, by the name of the file
        inside: segments that are ranges of the first one: weights that kernels read too
    """

    plans: tuple[m.ExecutionPlan, ...]
    inline: tuple[m.BackendDelegateInlineData, ...]
    segments: tuple[Parts, ...]
    named: tuple[m.NamedData, ...] | None
    alignment: int
    external: Mapping[str, Mapping[str, bytes]]
    inside: Mapping[int, m.DataSegment]


def place_delegates(
    plans: Sequence[m.ExecutionPlan],
    store: DelegateStore,
    segments: Sequence[TensorSegment],
    *,
    extract: bool = True,
    alignment: int = 128,
    delegate_alignment: int | None = None,
) -> PlacedDelegates:
    """Append payloads and named blobs to the segments.

    Args:
        plans: methods whose delegates name payloads of the store
        store: payloads and blobs
        segments: of constants and state; constants that are also blobs move to the alignment of
            segments
        extract: store each payload in a segment; an empty one stays in the tables
        alignment: of segments, in bytes
        delegate_alignment: of payloads, in bytes, None for that of segments

    Raises: CompileError if payloads in the tables cannot be aligned as requested
    """
    if not extract and _INLINE_ALIGNMENT % (delegate_alignment or 1) and store.payloads:
        raise CompileError(
            f"payloads in the tables start at multiples of {_INLINE_ALIGNMENT} bytes, not of "
            f"{delegate_alignment}; store them in segments with extract_delegate_segments"
        )
    named = store.named.get_named_data_store_output()
    data = replace(named, buffers=[in_memory(one) for one in named.buffers])
    steps = [entry.alignment for entry in data.pte_data.values()]
    whole = math.lcm(alignment, (delegate_alignment or 1) if extract else 1, *steps)
    shared = _shared(data, segments[0], whole)
    parts: list[Parts] = [tuple(segment.parts) for segment in segments]
    places: list[m.BackendDelegateDataReference] = []
    inline: list[m.BackendDelegateInlineData] = []
    for payload in store.payloads:
        if extract and payload:
            places.append(m.BackendDelegateDataReference(SEGMENT, len(parts)))
            parts.append((payload,))
        else:
            places.append(m.BackendDelegateDataReference(INLINE, len(inline)))
            inline.append(m.BackendDelegateInlineData(memoryview(payload)))
    homes: dict[int, int] = {}
    for index in _wasting_last(data, whole):
        homes[index] = len(parts)
        parts.append(() if index in shared else (data.buffers[index],))
    return PlacedDelegates(
        tuple(_placed(plan, places) for plan in plans),
        tuple(inline),
        tuple(parts),
        tuple(m.NamedData(k, homes[e.buffer_index]) for k, e in data.pte_data.items()) or None,
        whole,
        {
            tag: {key: data.buffers[e.buffer_index] for key, e in entries.items()}
            for tag, entries in data.external_data.items()
        },
        {homes[buffer]: place for buffer, place in shared.items()},
    )


def _wasting_last(data: NamedDataStoreOutput, step: int) -> list[int]:
    """Return the buffers, the one that needs most padding last, where it needs none."""
    used = list(dict.fromkeys(entry.buffer_index for entry in data.pte_data.values()))
    last = max(used, key=lambda index: -len(data.buffers[index]) % step, default=None)
    return [index for index in used if index != last] + ([] if last is None else [last])


def _shared(
    data: NamedDataStoreOutput, constants: TensorSegment, step: int
) -> dict[int, m.DataSegment]:
    """Return offsets of store buffers that are also constants, at multiples of the alignment."""
    requested = dict.fromkeys(entry.buffer_index for entry in data.pte_data.values())
    found = {index: constants.held(memoryview(data.buffers[index])) for index in requested}
    shared = {i: entry for i, entry in found.items() if entry is not None and data.buffers[i]}
    for entry in sorted(set(shared.values())):
        constants.align(entry, step)
    return {
        index: m.DataSegment(constants.offsets[entry], len(data.buffers[index]))
        for index, entry in shared.items()
    }


def _placed(
    plan: m.ExecutionPlan, places: Sequence[m.BackendDelegateDataReference]
) -> m.ExecutionPlan:
    delegates = tuple(
        replace(delegate, processed=places[delegate.processed.index])
        for delegate in plan.delegates
        if delegate.processed is not None
    )
    return replace(plan, delegates=delegates)
