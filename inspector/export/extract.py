"""Parts of a session that can be extracted as files: payloads, their files, constants, tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO

import numpy as np

from inspector.files.payloads import delegate_payload
from inspector.files.session import Session
from inspector.numerics.tensor_statistics import has_numbers
from inspector.numerics.tensors import Array, LoggedTensor, logged_tensors, shaped
from inspector.size.constant_names import named_tensors
from schema.dtypes.scalar_type import scalar_type, tensor_nbytes
from schema.errors import FormatError, Issue, Severity
from schema.etdump.debug_buffer import DebugBuffer

PAYLOADS, CONSTANTS, DATA, TENSORS = "payloads", "constants", "named data", "tensors"
KINDS = (PAYLOADS, CONSTANTS, DATA, TENSORS)


@dataclass(frozen=True, slots=True)
class ExtractedItem:
    """A file that can be written; its content is created on demand.

    Attributes:
        path: parts of a relative path, not yet sanitized
        kind: payloads, constants, named data or tensors
        nbytes: bytes of the content, without the header of .npy
        load: returns the content; arrays become .npy
    """

    path: tuple[str, ...]
    kind: str
    nbytes: int
    load: Callable[[], memoryview | Array]

    def write(self, stream: BinaryIO) -> None:
        """Write the content of the file."""
        content = self.load()
        if isinstance(content, memoryview):
            stream.write(content)
        else:
            np.lib.format.write_array(stream, np.ascontiguousarray(content), allow_pickle=False)


def items(
    session: Session, methods: tuple[str, ...], kinds: tuple[str, ...]
) -> tuple[list[ExtractedItem], list[Issue]]:
    """Return all items of these kinds, and reasons for missing ones."""
    found: list[ExtractedItem] = []
    issues: list[Issue] = []
    for method in methods:
        if PAYLOADS in kinds:
            found += _payloads(session, method, issues)
        if CONSTANTS in kinds:
            found += _constants(session, method, issues)
    if DATA in kinds:
        found += _named_data(session)
    if TENSORS in kinds:
        found += _tensors(session, issues)
    return found, issues


def _payloads(session: Session, method: str, issues: list[Issue]) -> Iterator[ExtractedItem]:
    program = session.program
    if program is None:
        return
    plan = program.plan(method)
    for index, delegate in enumerate(plan.delegates):
        folder = (method, f"delegate_{index}_{delegate.id}")
        try:
            data = program.delegate_data(delegate)
        except FormatError as error:
            issues.append(Issue(Severity.ERROR, "/".join(folder), str(error)))
            continue
        yield ExtractedItem((*folder, "payload.bin"), PAYLOADS, len(data), partial(_view, data))
        payload = delegate_payload(program, plan, index, session.external)
        for path, content in payload.files.items():
            yield ExtractedItem(
                (*folder, *path.split("/")), PAYLOADS, len(content), partial(_view, content)
            )
        yield from _kept(session, data, folder, issues)


def _kept(
    session: Session, payload: memoryview, folder: tuple[str, ...], issues: list[Issue]
) -> Iterator[ExtractedItem]:
    """Yield the files of the vendor's tools for a payload, from the record."""
    try:
        files = {} if session.record is None else dict(session.record.kept(payload))
    except FormatError as error:
        issues.append(Issue(Severity.ERROR, "/".join((*folder, "kept")), str(error)))
        return
    for path, content in files.items():
        load = partial(_view, memoryview(content))
        yield ExtractedItem((*folder, "kept", *path.split("/")), PAYLOADS, len(content), load)


def _view(data: memoryview) -> memoryview:
    return data


def _constants(session: Session, method: str, issues: list[Issue]) -> Iterator[ExtractedItem]:
    for one in named_tensors(session, method):
        if one.data is None:
            issues.append(Issue(Severity.WARNING, f"{method} {one.name}", one.missing))
        else:
            facts = (one.data, one.code, one.sizes, one.dim_order)
            yield _stored((method, "constants", one.name), CONSTANTS, facts)


Stored = tuple[memoryview, int, tuple[int, ...], tuple[int, ...]]


def _stored(path: tuple[str, ...], kind: str, facts: Stored) -> ExtractedItem:
    """Return the item of a stored tensor: an array if possible, else its bytes."""
    data, code, sizes, _ = facts
    whole = has_numbers(code) and len(data) == tensor_nbytes(code, sizes)
    suffix = "npy" if whole else f"{scalar_type(code).name}.bin"
    load = partial(_numbers, facts) if whole else partial(_view, data)
    return ExtractedItem((*path[:-1], f"{path[-1]}.{suffix}"), kind, len(data), load)


def _numbers(facts: Stored) -> memoryview | Array:
    array = shaped(*facts)
    return facts[0] if array is None else array


def _named_data(session: Session) -> Iterator[ExtractedItem]:
    if session.program is not None:
        for key, data in session.program.named_data_map().items():
            yield ExtractedItem(("named_data", f"{key}.bin"), DATA, len(data), partial(_view, data))
    for external in session.external:
        for entry in external.entries:
            layout = entry.layout
            if layout is None:
                path = ("external", f"{entry.key}.bin")
                yield ExtractedItem(path, DATA, entry.size, partial(_view, entry.data))
            else:
                facts = (entry.data, layout.scalar_type, layout.sizes, layout.dim_order)
                yield _stored(("external", entry.key), DATA, facts)


def _tensors(session: Session, issues: list[Issue]) -> Iterator[ExtractedItem]:
    missing = 0
    runs = max((len(dump.run_data) for dump in session.dumps), default=0)
    for run in range(runs):
        for number, one in enumerate(logged_tensors(session, run)):
            if one.missing or one.buffer is None or one.nbytes is None:
                missing += 1
                continue
            place = "output" if one.is_output else f"{one.instruction}_{one.event}"
            suffix = "npy" if has_numbers(one.tensor.scalar_type) else f"{one.dtype}.bin"
            name = f"{number:05d}_{place}_{one.position}.{suffix}"
            load = partial(_logged, one, one.buffer)
            yield ExtractedItem((f"tensors_run_{run}", name), TENSORS, one.nbytes, load)
    if missing:
        message = f"{missing} logged tensors have no bytes in these files"
        issues.append(Issue(Severity.WARNING, session.name, message))


def _logged(one: LoggedTensor, buffer: DebugBuffer) -> memoryview | Array:
    array = one.array()
    return buffer.tensor_array(one.tensor).raw if array is None else array
