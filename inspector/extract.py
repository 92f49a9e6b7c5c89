"""What can be taken out of a session as files: payloads, their files, constants, tensors."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.payloads import delegate_payload
from inspector.session import Session
from inspector.tensors import logged_tensors, stored_tensors
from schema.errors import FormatError

KINDS = ("payloads", "constants", "tensors")


@dataclass(frozen=True, slots=True)
class Item:
    """A file that can be written.

    Attributes:
        path: parts of a relative path, not yet made safe
        kind: payloads, constants or tensors
        data: what it holds; arrays become .npy
    """

    path: tuple[str, ...]
    kind: str
    data: memoryview | NDArray[Any]

    def content(self) -> bytes:
        """Return the bytes of the file."""
        if isinstance(self.data, memoryview):
            return bytes(self.data)
        out = io.BytesIO()
        np.save(out, np.ascontiguousarray(self.data), allow_pickle=False)
        return out.getvalue()


def items(session: Session, methods: tuple[str, ...], kinds: tuple[str, ...]) -> Iterator[Item]:
    """Yield everything of these kinds, one at a time so that large files never add up."""
    for method in methods:
        if "payloads" in kinds:
            yield from _payloads(session, method)
        if "constants" in kinds:
            yield from _constants(session, method)
    if "tensors" in kinds:
        yield from _tensors(session)


def _payloads(session: Session, method: str) -> Iterator[Item]:
    program = session.program
    if program is None or method not in session.methods:
        return
    plan = program.plan(method)
    for index, delegate in enumerate(plan.delegates):
        folder = (method, f"delegate_{index}_{delegate.id}")
        try:
            yield Item((*folder, "payload.bin"), "payloads", program.delegate_data(delegate))
        except FormatError:
            continue
        payload = delegate_payload(program, plan, index, session.external)
        for path, data in payload.files.items():
            yield Item((*folder, *path.split("/")), "payloads", data)


def _constants(session: Session, method: str) -> Iterator[Item]:
    for one in stored_tensors(session, method):
        array = one.array()
        if array is not None and array.size == _elements(one.sizes):
            name = f"{one.name}.npy"
            yield Item((method, "constants", name), "constants", np.reshape(array, one.sizes))
        elif one.data is not None:
            name = f"{one.name}.{one.dtype}.bin"
            yield Item((method, "constants", name), "constants", one.data)


def _elements(sizes: tuple[int, ...]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


def _tensors(session: Session) -> Iterator[Item]:
    for number, one in enumerate(logged_tensors(session)):
        array = one.array()
        if array is not None:
            place = "output" if one.is_output else f"{one.instruction}_{one.event}"
            name = f"{number:05d}_{place}_{one.position}.npy"
            yield Item(("tensors", name), "tensors", array)
