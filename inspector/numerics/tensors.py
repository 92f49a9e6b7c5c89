"""Stored and logged tensors of a session.

A tensor whose bytes are not at hand is missing, with a reason; it never becomes zeros.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.files.session import Session
from inspector.memory.plan import value_name
from inspector.numerics.tensor_statistics import Facts, data_statistics, statistics
from inspector.trace.blocks import Block, trace_blocks
from schema.dtypes.scalar_type import known_nbytes, numel, scalar_type, to_float64
from schema.errors import FormatError
from schema.etdump import DebugTensor, DebugValue
from schema.etdump.debug_buffer import DebugBuffer
from schema.program import ProgramFile
from schema.program import model as m

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A constant, an initial value or an external tensor of a program.

    Attributes:
        name: fully qualified name when the file has one, else ``v<index>``
        method: method whose value table it is in
        value: index in that table
        role: constant, state or external
        dtype: name of the dtype
        sizes: shape
        dim_order: outermost dimension in memory first
        nbytes: bytes of the shape, None when a size below zero leaves them unknown
        data: its bytes, None when they are not in these files
        missing: why bytes are missing, empty otherwise
        code: scalar type code
    """

    name: str
    method: str
    value: int
    role: str
    dtype: str
    sizes: tuple[int, ...]
    dim_order: tuple[int, ...]
    nbytes: int | None
    data: memoryview | None
    missing: str
    code: int

    def array(self) -> Array | None:
        """Return the values in storage order, None if they are missing."""
        if self.data is None:
            return None
        return to_float64(np.frombuffer(self.data, dtype=np.uint8), self.code)

    def shaped(self) -> Array | None:
        """Return the values in their shape, None if they are missing or do not fill it."""
        if self.data is None:
            return None
        return shaped(self.data, self.code, self.sizes, self.dim_order)

    def statistics(self) -> Facts | None:
        """Return statistics of the values, None if they are missing."""
        return None if self.data is None else data_statistics(self.data, self.code)


@dataclass(frozen=True, slots=True)
class LoggedTensor:
    """A tensor of the debug buffer.

    Attributes:
        event: name of the event that logged it
        instruction: as logged, None for program outputs
        position: place among the values of its instruction
        is_output: whether it is an output of the program
        dtype: name of the dtype
        sizes: shape
        nbytes: bytes of the shape, None when a size below zero leaves them unknown
        missing: why bytes are missing, empty otherwise
        tensor: where it is
        buffer: the debug buffer, None without one
        block: of the trace, None for program outputs
        row: its event in the block
    """

    event: str
    instruction: int | None
    position: int
    is_output: bool
    dtype: str
    sizes: tuple[int, ...]
    nbytes: int | None
    missing: str
    tensor: DebugTensor
    buffer: DebugBuffer | None
    block: Block | None = None
    row: int = -1

    def array(self) -> Array | None:
        """Return the values in their shape, None if they are missing."""
        if self.buffer is None or self.missing:
            return None
        return self.buffer.tensor_array(self.tensor).values()

    def statistics(self) -> Facts | None:
        """Return statistics of the values, None if they are missing."""
        return statistics(self.array())


def shaped(
    data: memoryview, code: int, sizes: tuple[int, ...], dim_order: tuple[int, ...]
) -> Array | None:
    """Return stored bytes as values in their shape, None if they do not fill it."""
    array = to_float64(np.frombuffer(data, dtype=np.uint8), code) if _whole(data, code) else None
    order = dim_order or tuple(range(len(sizes)))
    if array is None or array.size != numel(sizes) or sorted(order) != list(range(len(sizes))):
        return None
    stored: Array = np.reshape(array, [sizes[dimension] for dimension in order])
    return np.transpose(stored, [order.index(dimension) for dimension in range(len(order))])


def _whole(data: memoryview, code: int) -> bool:
    item = scalar_type(code).item_bytes
    return item > 0 and len(data) % item == 0


def stored_tensors(session: Session, method: str) -> tuple[StoredTensor, ...]:
    """Return the tensors of a method that have bytes outside of an execution."""
    program = session.program
    if program is None or method not in session.methods:
        return ()
    plan = program.plan(method)
    found: list[StoredTensor] = []
    for index, entry in enumerate(plan.values):
        tensor = entry.val
        if isinstance(tensor, m.Tensor):
            role = _role(tensor)
            if role:
                found.append(_stored(session, program, plan, index, tensor, role))
    return tuple(found)


def _role(tensor: m.Tensor) -> str:
    extra = tensor.extra_tensor_info
    if extra is not None and extra.location == 1:
        return "external"
    if tensor.data_buffer_idx == 0:
        return ""
    return "state" if tensor.allocation_info is not None else "constant"


def _stored(
    session: Session,
    program: ProgramFile,
    plan: m.ExecutionPlan,
    index: int,
    tensor: m.Tensor,
    role: str,
) -> StoredTensor:
    data, missing = _bytes(session, program, tensor, role)
    return StoredTensor(
        name=value_name(plan, index),
        method=plan.name,
        value=index,
        role=role,
        dtype=scalar_type(tensor.scalar_type).name,
        sizes=tensor.sizes,
        dim_order=tensor.dim_order,
        nbytes=known_nbytes(tensor.scalar_type, tensor.sizes),
        data=data,
        missing=missing,
        code=tensor.scalar_type,
    )


def _bytes(
    session: Session, program: ProgramFile, tensor: m.Tensor, role: str
) -> tuple[memoryview | None, str]:
    if role != "external":
        try:
            return program.constant_data(tensor), ""
        except FormatError as error:
            return None, str(error)
    assert tensor.extra_tensor_info is not None
    key = tensor.extra_tensor_info.fully_qualified_name
    for data in session.external:
        blob = data.blobs().get(key)
        if blob is not None:
            return blob, ""
    blob = program.named_data_map().get(key)
    return blob, "" if blob is not None else "missing: its .ptd file is not among these files"


def logged_blocks(session: Session) -> tuple[Block, ...]:
    """Return the blocks of the traces with logged values; of all traces where none has any."""
    requested = session.value_dumps
    dumps = session.dumps
    blocks = trace_blocks(dumps).blocks
    return tuple(one for one in blocks if any(dumps[one.dump] is dump for dump in requested))


def buffer_of_block(session: Session, block: Block) -> DebugBuffer | None:
    """Return the debug buffer of a block of logged_blocks, None where it is not known."""
    return session.buffer_of(session.dumps[block.dump])


def logged_tensors(session: Session, run: int = 0) -> tuple[LoggedTensor, ...]:
    """Return the tensors logged in one run of each block, program outputs last."""
    blocks = logged_blocks(session)
    return tuple(one for block in blocks for one in block_tensors(session, block, run))


def block_tensors(session: Session, block: Block, run: int = 0) -> tuple[LoggedTensor, ...]:
    """Return the tensors logged in one run of a block of logged_blocks, program outputs last."""
    if not 0 <= run < len(block.runs):
        return ()
    return tuple(_block_tensors(block, run, buffer_of_block(session, block)))


def _block_tensors(block: Block, run: int, buffer: DebugBuffer | None) -> list[LoggedTensor]:
    found: list[LoggedTensor] = []
    seen: set[int] = set()
    for event in range(len(block)):
        group = int(block.layout.group[event])
        if group in seen:
            continue
        seen.add(group)
        number = block.instruction(event) if block.layout.chain[event] >= 0 else None
        values = block.debug_values(event, run)
        own = _of_values(block.event_name(event), number, values, buffer, is_output=False)
        found += [replace(one, block=block, row=event) for one in own]
    return found + _of_values("output", None, block.outputs(run), buffer, is_output=True)


def _of_values(
    event: str,
    number: int | None,
    values: tuple[DebugValue | None, ...],
    buffer: DebugBuffer | None,
    *,
    is_output: bool,
) -> list[LoggedTensor]:
    tensors = [tensor for value in values if value is not None for tensor in value.all_tensors()]
    return [
        LoggedTensor(
            event=event,
            instruction=number,
            position=position,
            is_output=is_output,
            dtype=scalar_type(tensor.scalar_type).name,
            sizes=tensor.sizes,
            nbytes=known_nbytes(tensor.scalar_type, tensor.sizes),
            missing=_missing(tensor, buffer),
            tensor=tensor,
            buffer=buffer,
        )
        for position, tensor in enumerate(tensors)
    ]


def _missing(tensor: DebugTensor, buffer: DebugBuffer | None) -> str:
    if buffer is None:
        return "missing: no debug buffer"
    try:
        buffer.tensor_array(tensor)
    except FormatError as error:
        return f"missing: {error}"
    return ""
