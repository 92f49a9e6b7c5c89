"""Every tensor of a session with elements: weights, state, data files, logged and kept values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.files.payloads import delegate_payload
from inspector.files.session import FORWARD, Session
from inspector.join.saved_tensors import saved_tensors
from inspector.numerics.kept import kept_arrays
from inspector.numerics.tensors import StoredTensor
from inspector.size.constant_names import named_tensors
from inspector.size.users import constant_users, is_hash, name_inside
from inspector.tensors.elements import (
    Elements,
    NibbleElements,
    RealElements,
    StoredElements,
    row_major,
    strides_of,
)
from inspector.tensors.logged_places import LoggedPlace, logged_places
from inspector.tensors.quantized import plan_quantization
from schema.dtypes.scalar_type import BY_CODE, known_nbytes
from schema.etrecord.torch_file.tensor_data import TensorData
from schema.graph import GraphValue, QuantizationParameters
from schema.objects.identity_cache import identity_cache
from schema.payloads import Payload
from schema.payloads.model import Constant

RECORDED = "recorded"  # origin of weights that only a recorded program has
NIBBLES = ("qcint4", "qbint4")
_NIBBLE_ZERO = 8.0  # of XNNPACK weights of 4 bits, stored as 0 to 15
_MISSING = "missing: its bytes are not among these files"


@dataclass(frozen=True, slots=True, eq=False)
class TensorSource:
    """A tensor, and how its elements are read.

    Attributes:
        key: identifies it in its session
        name: qualified name, else that of its value, event or reader
        origin: constant, state, external, delegate 0, data file, recorded, logged or kept
        method: that it belongs to, may be empty
        value: index in the plan, None for others
        instruction: that logged it, None for others
        slot: which of its tensor outputs it is, None for others
        delegate: whose constant it is, None for others
        role: its role for its reader, as in ``filter``
        dtype: name of the dtype
        sizes: shape
        nbytes: in memory, None if unknown
        quantization: None for plain values
        data: the bytes where they are stored, None if missing or not stored
        missing: why there are no elements, empty if there are
        read: returns the elements as stored
        scales: returns the scales that are stored apart, None where they are missing
        nodes: recorded nodes and payload nodes that a logged value is of, empty where unknown
    """

    key: str
    name: str
    origin: str
    method: str
    dtype: str
    sizes: tuple[int, ...]
    nbytes: int | None
    read: Callable[[], Elements]
    missing: str = ""
    value: int | None = None
    instruction: int | None = None
    slot: int | None = None
    delegate: int | None = None
    role: str = ""
    quantization: QuantizationParameters | None = None
    data: memoryview | None = None
    scales: Callable[[], NDArray[np.float64] | None] | None = None
    nodes: frozenset[str] = frozenset()

    def elements(self) -> Elements:
        """Return the elements as stored.

        Raises: ValueError with the reason if there are none; OSError
        """
        if self.missing:
            raise ValueError(self.missing)
        return self.read()

    def real(self) -> Elements | None:
        """Return the real values that quantized integers stand for, None if scales are missing.

        Raises: ValueError, OSError as ``elements``
        """
        scaling = self.scaling()
        if scaling is None:
            return None
        return RealElements(self.elements(), *scaling)

    def scaling(self) -> tuple[NDArray[np.float64], NDArray[np.float64], int] | None:
        """Return scales, zero points, and the elements in a row that share them; or None."""
        given = self.quantization
        if given is None or not self.sizes:
            return None
        scale = np.array(given.scale, np.float64)
        if not len(scale) and self.scales is not None:
            found = self.scales()
            scale = scale if found is None else found
        if not len(scale):
            return None
        default = _NIBBLE_ZERO if self.dtype in NIBBLES else 0.0
        zero = np.array(given.zero_point or (default,), np.float64)
        if len(scale) == 1:
            return scale, zero[:1], 1
        if given.group_size:
            return scale, zero, given.group_size
        axis = given.axis or 0
        whole = axis < len(self.sizes) and len(scale) == self.sizes[axis]
        return (scale, zero, max(row_major(self.sizes)[axis], 1)) if whole else None


@identity_cache
def session_tensors(session: Session) -> tuple[TensorSource, ...]:
    """Return the tensors of a session: of its program and data files, logged, recorded."""
    found = [*_program_tensors(session), *_data_tensors(session)]
    found += [_logged_source(session, *one) for one in enumerate(logged_places(session))]
    return (*found, *_recorded(session))


def _program_tensors(session: Session) -> Iterator[TensorSource]:
    for method in session.methods if session.program is not None else ():
        assert session.program is not None
        quantized = plan_quantization(session.program, method)
        for one in named_tensors(session, method):
            given = quantized.get(one.value)
            yield replace(_stored(one), quantization=given)
        plan = session.program.plan(method)
        for number in range(len(plan.delegates)):
            payload = delegate_payload(session.program, plan, number, session.external)
            yield from _constants(session, method, number, payload)


def _stored(one: StoredTensor) -> TensorSource:
    def read() -> Elements:
        assert one.data is not None
        return StoredElements(one.data, one.code, one.sizes, strides_of(one.sizes, one.dim_order))

    return TensorSource(
        f"{one.method}/value {one.value}",
        one.name,
        one.role,
        one.method,
        one.dtype,
        one.sizes,
        one.nbytes,
        read,
        one.missing or ("" if one.data is not None else _MISSING),
        one.value,
        data=one.data,
    )


def _constants(
    session: Session, method: str, number: int, payload: Payload
) -> Iterator[TensorSource]:
    graph = payload.graph
    if graph is None:
        return
    by_name = {constant.name: constant for constant in payload.constants}
    roles = {
        value: argument.name
        for node in graph.nodes
        for argument in node.args
        for value in argument.values
    }
    for value in graph.values.values():
        constant = by_name.get(value.constant)
        if constant is not None and value.tensor is not None:
            read_by = constant_users(session, method, constant.name)
            role = roles.get(value.name, "")
            yield _constant(
                f"{method}/delegate {number}/{value.name}",
                _readable(constant.name, name_inside(read_by, method, number), number, value.name),
                (method, number, role),
                value,
                constant,
                by_name,
            )


def _readable(name: str, readers: str, delegate: int, value: str) -> str:
    """Return a name that people know: that of the file unless it is a number or a hash."""
    if is_hash(name) and readers:
        return readers
    return f"delegate {delegate} {value} {name}" if name.startswith("constant_") else name


def _constant(
    key: str,
    name: str,
    place: tuple[str, int, str],
    value: GraphValue,
    constant: Constant,
    by_name: dict[str, Constant],
) -> TensorSource:
    tensor = value.tensor
    assert tensor is not None
    sizes = tuple(size for size in tensor.sizes if isinstance(size, int))
    given = tensor.quantization
    missing = "" if constant.data is not None else _MISSING
    if tensor.dtype not in NIBBLES and tensor.scalar_type not in BY_CODE:
        missing = missing or f"missing: values of {tensor.dtype} are packed in a way unknown here"

    def read() -> Elements:
        assert constant.data is not None
        if tensor.dtype in NIBBLES:
            return NibbleElements(constant.data, sizes)
        return StoredElements(constant.data, tensor.scalar_type, sizes, row_major(sizes))

    def scales() -> NDArray[np.float64] | None:
        stored = by_name.get(given.scale_constant) if given is not None else None
        return None if given is None or stored is None else _scales(stored, given)

    return TensorSource(
        key,
        name,
        f"delegate {place[1]}",
        place[0],
        tensor.dtype,
        sizes,
        constant.nbytes,
        read,
        missing,
        delegate=place[1],
        role=place[2],
        quantization=given,
        data=constant.data,
        scales=scales,
    )


def _scales(stored: Constant, given: QuantizationParameters) -> NDArray[np.float64] | None:
    if stored.data is None:
        return None
    raw = np.frombuffer(stored.data, np.uint8)
    if given.group_size and len(raw) % 2 == 0:  # bfloat16
        bits = np.frombuffer(raw, "<u2").astype("<u4") << 16
        return np.frombuffer(bits, "<f4").astype(np.float64)
    return np.frombuffer(raw, "<f4").astype(np.float64) if len(raw) % 4 == 0 else None


def _data_tensors(session: Session) -> Iterator[TensorSource]:
    """Return the tensors of data files that no program reads as such."""
    for number, file in enumerate(session.external):
        for entry in file.entries:
            layout = entry.layout
            if layout is None or layout.scalar_type not in BY_CODE:
                continue
            nbytes = known_nbytes(layout.scalar_type, layout.sizes)
            one = StoredTensor(
                entry.key,
                "",
                -1,
                "data file",
                BY_CODE[layout.scalar_type].name,
                layout.sizes,
                layout.dim_order,
                nbytes,
                entry.data,
                "",
                layout.scalar_type,
            )
            yield replace(_stored(one), key=f"data {number}/{entry.key}", value=None)


def _logged_source(session: Session, number: int, place: LoggedPlace) -> TensorSource:
    one, program = place.tensor, session.program
    given = None
    if program is not None and place.method and place.value is not None:
        given = plan_quantization(program, place.method).get(place.value)

    def read() -> Elements:
        assert one.buffer is not None
        found = one.buffer.tensor_array(one.tensor)
        return StoredElements(found.raw, found.type.code, found.sizes, found.strides)

    return TensorSource(
        f"logged {number}",
        place.name,
        "logged",
        place.method,
        one.dtype,
        one.sizes,
        one.nbytes,
        read,
        one.missing,
        place.value,
        one.instruction,
        slot=place.slot,
        quantization=given,
        nodes=place.nodes,
    )


def _recorded(session: Session) -> Iterator[TensorSource]:
    """Return the weights of the recorded programs."""
    record = session.record
    if record is None:
        return
    alone = {FORWARD: record.roles.exported} if record.roles.exported else {}
    for method, name in (record.roles.edge or alone).items():
        for key, one in saved_tensors(record, name).items():
            yield _saved(method, key, one)


def _saved(method: str, key: str, one: TensorData) -> TensorSource:
    missing = "" if one.data is not None else _MISSING
    if one.big_endian:
        missing = missing or "missing: it was saved on a machine with another order of bytes"

    def read() -> Elements:
        assert one.data is not None
        return StoredElements(one.data, one.scalar_type, one.sizes, one.strides)

    return TensorSource(
        f"{method}/recorded/{key}",
        key,
        RECORDED,
        method,
        one.dtype,
        one.sizes,
        one.nbytes,
        read,
        missing,
        data=one.data,
    )


def kept_pair(path: Path, name: str, method: str) -> tuple[TensorSource, TensorSource]:
    """Return the tensor of a run and its reference, as a comparison kept them.

    Args:
        path: file of the comparison
        name: of both
        method: that they belong to

    Raises: OSError, ValueError if the file cannot be read
    """
    arrays = kept_arrays(path)
    run, reference = (
        array_source(arrays[part], f"{path}/{part}", name, f"{part} of the gap", method)
        for part in ("run", "reference")
    )
    return run, reference


def array_source(
    array: NDArray[np.generic], key: str, name: str, origin: str, method: str
) -> TensorSource:
    """Return an array as a tensor.

    Raises: ValueError for a dtype without a code
    """
    held = np.ascontiguousarray(array)
    kinds = (kind for kind in BY_CODE.values() if kind.numpy is not None)
    found = next((kind for kind in kinds if np.dtype(kind.numpy) == held.dtype), None)
    if found is None:
        raise ValueError(f"{held.dtype} has no values to show")
    sizes = tuple(int(size) for size in array.shape)  # of a scalar the held one has a dimension
    flat: Any = np.frombuffer(held, np.uint8) if held.nbytes else np.zeros(0, np.uint8)
    data = memoryview(flat)
    return TensorSource(
        key,
        name,
        origin,
        method,
        found.name,
        sizes,
        held.nbytes,
        lambda: StoredElements(data, found.code, sizes, row_major(sizes)),
        data=data,
    )
