"""A copy of a session for a bug report: no weights, no inputs, no names, no paths.

Files are changed in place, keeping all lengths: the copy preserves anomalies of the original. Only
the graphs of a record are rewritten, without their tensors.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, replace

from inspector.export.anonymise_names import Names, without_paths
from inspector.export.anonymise_record import anonymous_record
from inspector.files.payloads import delegate_payload
from inspector.files.session import LoadedFile, Session
from inspector.size.owners import cover, position, program_parts
from schema import bundled, etdump, flat_tensor
from schema import program as programs
from schema.bundled import BundledFile
from schema.errors import FormatError
from schema.etdump import ETDump
from schema.etrecord import RecordFile
from schema.flat_tensor import FlatTensor
from schema.flatbuf.extents import Extent, extents
from schema.flatbuf.reader import Reader
from schema.payloads import Payload
from schema.program import ProgramFile
from schema.program.model import PROGRAM

_FILES = {
    "pte": "model.pte",
    "ptd": "model.ptd",
    "bpte": "model.bpte",
    "etrecord": "model.etrecord",
    "etdump": "run.etdp",
    "debug_buffer": "run.debug",
    "pt2": "model.pt2",
}
KEPT = (  # what a copy has of the original
    "methods, operators, backends and inner nodes by name, shapes, scalar arguments, numbers of"
    " getters, sizes, memory plans and times"
)
GONE = (  # what it has not
    "weights, inputs, outputs, logged values, strings of getters and lines of code; modules,"
    " tensors, inputs, keys, source files and functions have other names, the same for the same"
    " everywhere; paths are overwritten"
)
_ORDER = {"etrecord": 0, "etdump": 2}
# Parts of a payload that may hold weights or that nobody can read.
_UNKNOWN = frozenset(("undecoded", "binary"))
_NOBODYS = frozenset(("unreferenced", "slack"))  # overwritten so that they remain valid
_NOISE = b"\xff"


@dataclass(frozen=True, slots=True)
class AnonymousFile:
    """A file of the copy.

    Attributes:
        name: a name that reveals only the kind of file
        kind: as in the session
        source: path of the original
        data: the bytes
    """

    name: str
    kind: str
    source: str
    data: bytes


def anonymise(session: Session, names: Names | None = None) -> tuple[AnonymousFile, ...]:
    """Return the readable files of a session without weights, inputs, names and paths.

    Args:
        session: to copy
        names: replacements so far, of other sessions in which the same names mean the same

    Raises: FormatError if the structure of a file cannot be followed far enough to be sure
    """
    names = Names() if names is None else names
    left = set(left_out(session))
    # a record has the names of modules, a trace none of its own
    order = sorted(session.files, key=lambda file: _ORDER.get(file.kind, 1))
    built = {file.path: _file(session, file, names) for file in order if file.path not in left}
    counts: dict[str, int] = {}
    found: list[AnonymousFile] = []
    for file in session.files:
        if file.path in built:
            number = counts[file.kind] = counts.get(file.kind, 0) + 1
            stem, suffix = _FILES[file.kind].split(".")
            name = f"{stem}.{suffix}" if number == 1 else f"{stem}_{number}.{suffix}"
            found.append(AnonymousFile(name, file.kind, file.path, built[file.path]))
    return tuple(found)


def left_out(session: Session) -> tuple[str, ...]:
    """Return the paths of the files that a copy lacks: unreadable ones and values of nodes."""
    return tuple(
        file.path for file in session.files if file.artifact is None or file.kind not in _FILES
    )


def _file(session: Session, file: LoadedFile, names: Names) -> bytes:
    artifact = file.artifact
    if isinstance(artifact, ProgramFile):
        return anonymous_program(artifact, file.data, names, session.external)
    if isinstance(artifact, FlatTensor):
        return anonymous_data(artifact, file.data, names)
    if isinstance(artifact, BundledFile):
        return anonymous_bundle(artifact, file.data, names)
    if isinstance(artifact, RecordFile):
        return anonymous_record(artifact, names)
    if isinstance(artifact, ETDump):
        return anonymous_trace(artifact, file.data, names)
    return bytes(len(file.data))


def anonymous_program(
    program: ProgramFile, data: memoryview, names: Names, external: tuple[object, ...] = ()
) -> bytes:
    """Return a program of the same layout: data zeroed, payloads without constants and names.

    Raises: FormatError if its tables cannot be followed
    """
    out = bytearray(data)
    payloads = _payload_places(program, data, external)
    limit = program.header.program_size if program.header else len(data)
    found = list(extents(Reader(data, limit), PROGRAM))
    for extent in found:
        if extent.kind == "text":
            _change_text(
                out, extent, lambda text, path=extent.path: _program_text(path, text, names)
            )
    told = _told(program)
    for extent in found:
        if extent.kind == "text" and extent.path in told:
            _change_text(out, extent, lambda text: "x" * len(text.encode()))
    for extent in found:
        if extent.kind == "blob" and "compile_specs" in extent.path:
            _change(out, extent.offset, extent.nbytes, without_paths)
        elif extent.kind == "blob" and "backend_delegate_data" not in extent.path:
            _clear_blob(out, extent)
    _clear_gaps(program, data, out, payloads)
    for start, content in payloads:
        out[start : start + len(content)] = names.inside(content)
    return bytes(out)


def _payload_places(
    program: ProgramFile, data: memoryview, external: tuple[object, ...]
) -> list[tuple[int, bytes]]:
    """Return where each payload is and its bytes without data; names are still in them."""
    places: dict[int, bytes] = {}
    for plan in program.plans:
        for index, delegate in enumerate(plan.delegates):
            try:
                view = program.delegate_data(delegate)
            except FormatError:
                continue
            start = position(data, view)
            if start is not None:
                places[start] = _without_data(
                    view, delegate_payload(program, plan, index, external)
                )
    return sorted(places.items())


def _without_data(view: memoryview, payload: Payload) -> bytes:
    """Return a payload with its constants and all unreadable parts overwritten."""
    content = bytearray(view)
    cleared: list[tuple[int, int]] = []
    for constant in payload.constants:
        start = position(view, constant.data) if constant.data is not None else None
        if start is not None and constant.data is not None:
            end = start + len(constant.data)
            content[start:end] = bytes(end - start)
            cleared.append((start, end))
    for part in payload.parts:
        end = part.offset + part.nbytes
        if part.kind in _NOBODYS:
            content[part.offset : end] = _NOISE * part.nbytes
        elif part.kind in _UNKNOWN or (
            # Else the rest of the part is the length in front of its data.
            part.kind == "constant" and not _meets(cleared, part.offset, end)
        ):
            content[part.offset : end] = bytes(part.nbytes)
    return bytes(content)


def _meets(runs: list[tuple[int, int]], start: int, end: int) -> bool:
    return any(low < end and high > start for low, high in runs)


def _clear_gaps(
    program: ProgramFile, data: memoryview, out: bytearray, payloads: list[tuple[int, bytes]]
) -> None:
    """Zero the segments and all unreferenced bytes, except payloads."""
    header = program.header
    for place in program.table.segments or ():
        if header is not None:
            start = header.segment_base_offset + place.offset
            _zero(out, start, place.size, payloads)
    for part in cover(program_parts(program, data), data):
        if part.kind in _NOBODYS:
            out[part.offset : part.offset + part.nbytes] = _NOISE * part.nbytes


def _zero(out: bytearray, start: int, nbytes: int, kept: list[tuple[int, bytes]]) -> None:
    start = max(start, 0)
    end = min(start + max(nbytes, 0), len(out))
    for at, content in kept:
        if at < end and at + len(content) > start:
            _zero(out, start, at - start, [])
            start = at + len(content)
    if end > start:
        out[start:end] = bytes(end - start)


def _program_text(path: str, text: str, names: Names) -> str:
    field = path.rsplit(".", 1)[-1]
    if field == "fully_qualified_name" or (field == "key" and ".named_data[" in path):
        return names.qualified(text)
    if ".container_meta_type." in path:
        return names.containers(text)
    if ".stacktrace" in path:
        if field == "filename":
            return names.file(text)
        return names.function(text) if field == "name" else " " * len(text.encode())
    return without_paths(text.encode()).decode()


def _told(program: ProgramFile) -> set[str]:
    """Return where a program has strings that a method returns, as a getter of a name does."""
    return {
        f"{PROGRAM.name}.execution_plan[{number}].values[{place}].val.string_val"
        for number, plan in enumerate(program.plans)
        for place in plan.outputs
    }


def _change_text(out: bytearray, extent: Extent, change: Callable[[str], str]) -> None:
    length = struct.unpack_from("<I", out, extent.offset)[0]
    start = extent.offset + 4
    text = bytes(out[start : start + length])
    try:
        new = change(text.decode()).encode()
    except UnicodeDecodeError:
        new = b"x" * length
    if len(new) != length:
        raise FormatError(f"a name of {length} bytes", f"one of {len(new)}", field=extent.path)
    out[start : start + length] = new


def _change(out: bytearray, start: int, nbytes: int, change: Callable[[bytes], bytes]) -> None:
    out[start : start + nbytes] = change(bytes(out[start : start + nbytes]))


def _clear_blob(out: bytearray, extent: Extent) -> None:
    length = struct.unpack_from("<I", out, extent.offset)[0]
    start = extent.offset + 4
    if bytes(out[start : start + length]) != etdump.EMULATED:
        out[start : start + length] = bytes(len(out[start : start + length]))


def anonymous_data(data: FlatTensor, buffer: memoryview, names: Names) -> bytes:
    """Return external data of the same layout with every segment zeroed.

    Raises: FormatError if its tables cannot be followed
    """
    out = bytearray(buffer)
    reader, table, base = flat_tensor.root_table(buffer)
    for extent in extents(reader, table, base):
        if extent.kind == "text":
            _change_text(out, extent, names.qualified)
    if data.header is not None and data.header.segment_base_offset:
        start = data.header.segment_base_offset
        _zero(out, start, len(out) - start, [])
    return bytes(out)


def anonymous_bundle(data: BundledFile, buffer: memoryview, names: Names) -> bytes:
    """Return a bundled program with the same cases, all of zeros.

    Raises: FormatError if its tables cannot be followed
    """
    inner = anonymous_program(programs.decode(data.program, file=data.file), data.program, names)
    numbers = any(
        not isinstance(value.val, (bundled.BundledTensor, type(None)))
        for suite in data.method_test_suites
        for case in suite.test_cases
        for value in (*case.inputs, *case.expected_outputs)
    )
    if numbers:  # they are inline in tables, so the file is rewritten
        suites = tuple(_empty_suite(suite) for suite in data.method_test_suites)
        program = memoryview(inner)
        return bundled.encode(replace(data, method_test_suites=suites, program=program))
    out = bytearray(buffer)
    reader, table, base = bundled.root_table(buffer)
    for extent in extents(reader, table, base):
        if extent.kind == "blob":
            _clear_blob(out, extent)
    start = data.program_offset
    out[start : start + len(inner)] = inner
    return bytes(out)


def _empty_suite(suite: bundled.BundledSuite) -> bundled.BundledSuite:
    cases = tuple(
        bundled.TestCase(
            tuple(map(_empty_value, case.inputs)), tuple(map(_empty_value, case.expected_outputs))
        )
        for case in suite.test_cases
    )
    return replace(suite, test_cases=cases)


def _empty_value(value: bundled.BundledValue) -> bundled.BundledValue:
    found = value.val
    if isinstance(found, bundled.BundledTensor):
        found = replace(found, data=memoryview(bytes(len(found.data))))
    elif isinstance(found, bundled.BundledInt):
        found = bundled.BundledInt(0)
    elif isinstance(found, bundled.BundledDouble):
        found = bundled.BundledDouble(0.0)
    elif isinstance(found, bundled.BundledBool):
        found = bundled.BundledBool(False)
    return bundled.BundledValue(found)


def anonymous_trace(dump: ETDump, buffer: memoryview, names: Names) -> bytes:
    """Return a trace with the same events and times, without delegate metadata.

    A damaged trace is rewritten with the events that could be read.

    Raises: ValueError if these exceed the limits of a trace
    """
    try:
        return _clear_trace(buffer, names)
    except FormatError:
        return _clear_trace(memoryview(etdump.encode(dump)), names)


def _clear_trace(buffer: memoryview, names: Names) -> bytes:
    out = bytearray(buffer)
    reader, table, base = etdump.root_table(buffer)
    for extent in extents(reader, table, base):
        if extent.kind == "text":
            _change_text(out, extent, lambda text: names.inside(text.encode()).decode())
        elif extent.kind == "blob":
            _clear_blob(out, extent)
    return bytes(out)
