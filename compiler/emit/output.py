"""The documented view of an emitted program: its tables, delegate maps and external constants."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any

import torch

from compiler.emit.program import EmittedProgram
from compiler.memory.specs import raw_bytes
from schema.program import decode
from schema.program.program import ProgramFile


@dataclasses.dataclass(frozen=True)
class EmitterOutput:
    """An emitted program with the documented field names.

    Attributes:
        program: the tables of the file
        debug_handle_map: by method, as in the manager
        method_to_delegate_debug_id_map: by method, the delegate map of each delegate instruction
        instruction_id_to_num_outs_map: by method, number of results of a delegate instruction
        mutable_data: initial bytes of mutable buffers, the first one empty; None if there are none
        external_constant_buffer: bytes of the constants in other files, equal ones once
        external_constant_map: by file and name, the index of a constant in that list
    """

    program: ProgramFile
    debug_handle_map: Mapping[str, Mapping[int, int | list[int]]]
    method_to_delegate_debug_id_map: Mapping[str, Mapping[int, Mapping[str, Any]]]
    instruction_id_to_num_outs_map: Mapping[str, Mapping[int, int]]
    mutable_data: list[bytes] | None = None
    external_constant_buffer: list[bytes] = dataclasses.field(default_factory=list[bytes])
    external_constant_map: dict[str, dict[str, int]] | None = None


def emitter_output(emitted: EmittedProgram) -> EmitterOutput:
    """Return an emitted program under its documented field names."""
    program = decode(emitted.buffer)
    buffers, places = _external(emitted.external_tensors)
    return EmitterOutput(
        program,
        {name: dict(handles) for name, handles in emitted.debug_handles.items()},
        {name: dict(found.maps) for name, found in emitted.delegates.items()},
        {name: dict(found.results) for name, found in emitted.delegates.items()},
        _mutable(emitted),
        buffers,
        places,
    )


def _external(
    files: Mapping[str, Mapping[str, torch.Tensor]],
) -> tuple[list[bytes], dict[str, dict[str, int]]]:
    held: dict[bytes, int] = {}
    places = {
        tag: {name: held.setdefault(bytes(raw_bytes(one)), len(held)) for name, one in row.items()}
        for tag, row in files.items()
    }
    return list(held), places


def _mutable(emitted: EmittedProgram) -> list[bytes] | None:
    starts = (emitted.table.mutable_data_segments or (None,))[0]
    if starts is None:
        return None
    data = b"".join(emitted.segments[starts.segment_index])
    return [data[start:end] for start, end in itertools.pairwise((*starts.offsets, len(data)))]
