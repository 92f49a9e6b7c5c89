"""Converts the flatbuffer of each format to JSON in the form of flatc, and back.

Segments after the flatbuffer of a program or data file are not part of it; `file_of`
appends those of another file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from schema import bundled, etdump, flat_tensor, program
from schema.bundled import BUNDLED_PROGRAM
from schema.errors import FormatError
from schema.etdump.from_json import SCALAR_TYPES
from schema.etdump.to_json import tree_of_run
from schema.files import formats
from schema.flat_tensor.tables import FLAT_TENSOR, DataSegment
from schema.flatbuf.json_text import flatc_text, read_json
from schema.flatbuf.json_tree import Enums, tree_of, value_of
from schema.flatbuf.reader import Reader
from schema.flatbuf.spec import Spec
from schema.flatbuf.writer import write_root
from schema.program.alignment import alignment_of
from schema.program.model import PROGRAM

_TYPES = {number: name for name, number in SCALAR_TYPES.items()}
_ENUMS: Enums = {
    ("Tensor", "scalar_type"): _TYPES,
    ("TensorLayout", "scalar_type"): _TYPES,
    ("Tensor", "shape_dynamism"): {0: "STATIC", 1: "DYNAMIC_BOUND", 2: "DYNAMIC_UNBOUND"},
    ("ExtraTensorInfo", "location"): {0: "SEGMENT", 1: "EXTERNAL"},
    ("ExtraTensorInfo", "device_type"): {0: "CPU", 1: "CUDA"},
    ("NonConstBufferDevice", "device_type"): {0: "CPU", 1: "CUDA"},
    ("BackendDelegateDataReference", "location"): {0: "INLINE", 1: "SEGMENT"},
}


@dataclass(frozen=True, slots=True)
class _Form:
    """Conversion of a format between flatbuffer and JSON tree."""

    read: Callable[[memoryview], dict[str, Any]]
    write: Callable[[object], bytes]


def _of_table(table: Spec[Any], identifier: bytes, root: Callable[[memoryview], Any]) -> _Form:
    def write(tree: object) -> bytes:
        try:
            return write_root(table, value_of(table, tree, _ENUMS), identifier)
        except FormatError as error:
            raise error.inside(table.name) from None

    return _Form(lambda data: tree_of(table, root(data), _ENUMS), write)


def _walked(module: Any) -> Callable[[memoryview], Any]:  # noqa: ANN401 - a module of a format
    def root(data: memoryview) -> Any:  # noqa: ANN401 - a root table
        reader, table, base = module.root_table(data)
        return reader.root(table, base)

    return root


def _trace(data: memoryview) -> dict[str, Any]:
    dump = etdump.decode(data)
    return {"version": dump.version, "run_data": [tree_of_run(run) for run in dump.run_data]}


FORMS = {
    "pte": _of_table(PROGRAM, b"ET12", lambda data: program.decode(data).table),
    "ptd": _of_table(FLAT_TENSOR, b"FT01", _walked(flat_tensor)),
    "bpte": _of_table(BUNDLED_PROGRAM, bundled.IDENTIFIER, _walked(bundled)),
    "etdump": _Form(_trace, lambda tree: etdump.encode(etdump.trace_of(tree))),
}
_OWN_FIELDS = {"execution_plan": "pte", "method_test_suites": "bpte", "run_data": "etdump"}
_DATA_FIELDS = {"version", "segments", "named_data"}


def to_json(kind: str, data: memoryview) -> str:
    """Return the flatbuffer of a file as JSON.

    Args:
        kind: pte, ptd, bpte or etdump
        data: the file

    Raises: KeyError for an unknown kind; FormatError if it cannot be read
    """
    return flatc_text(FORMS[kind].read(data))


def from_json(kind: str, text: bytes) -> bytes:
    """Return the flatbuffer that a JSON document describes, as flatc prints it or `to_json`.

    Raises: KeyError for an unknown kind; FormatError naming the invalid field
    """
    return FORMS[kind].write(read_json(memoryview(text)))


def kind_of_json(text: bytes) -> str:
    """Return the format that a JSON document describes, by the fields of its root.

    Raises: FormatError if they match no format
    """
    tree: object = read_json(memoryview(text))
    names = set(cast("dict[str, object]", tree)) if isinstance(tree, dict) else set[str]()
    own = [kind for name, kind in _OWN_FIELDS.items() if name in names]
    if own:
        return own[0]
    if names and names <= _DATA_FIELDS:
        return "ptd"
    requested = f"one of the fields {', '.join(_OWN_FIELDS)}, or those of a .ptd"
    raise FormatError(requested, ", ".join(sorted(names)) or "no object", field="root")


def file_of(kind: str, flatbuffer: bytes, original: memoryview | None = None) -> bytes:
    """Return a file from a flatbuffer and the segments of another file.

    Args:
        kind: pte, ptd, bpte or etdump
        flatbuffer: as `from_json` returns it
        original: a file of the same kind; its segment area is copied

    Raises: FormatError if referenced segments are missing, or the other file is of a different
        kind or unreadable
    """
    if kind not in ("pte", "ptd"):
        return flatbuffer
    area, step = memoryview(b""), flat_tensor.SEGMENT_ALIGNMENT
    if original is not None:
        area, step = _segment_area(kind, original)
    for number, place in enumerate(_segments(kind, flatbuffer)):
        if place.size and place.offset + place.size > len(area):
            found = "no file with segments" if original is None else f"{len(area):,} bytes"
            end = f"{place.offset + place.size:,}"
            raise FormatError(f"segments of {end} bytes", found, field=f"segments[{number}]")
    if kind == "ptd":
        return flat_tensor.with_header(flatbuffer, len(area), step) + area
    return program.with_header(flatbuffer, len(area), step) + area if len(area) else flatbuffer


def _segments(kind: str, flatbuffer: bytes) -> tuple[DataSegment, ...]:
    reader = Reader(memoryview(flatbuffer))
    if kind == "pte":
        return tuple(DataSegment(s.offset, s.size) for s in reader.root(PROGRAM).segments or ())
    return reader.root(FLAT_TENSOR).segments


def _segment_area(kind: str, data: memoryview) -> tuple[memoryview, int]:
    """Return the bytes after the flatbuffer of a file, and the alignment of its segments."""
    found = formats.recognise(data)
    if found is None or found.kind != kind:
        raise FormatError(f"a .{kind} file for its segments", found.title if found else "another")
    artifact = found.decode(data)
    header = artifact.header
    if header is None or not header.segment_base_offset:
        return data[:0], flat_tensor.SEGMENT_ALIGNMENT
    base = header.segment_base_offset
    end = base + header.segment_data_size
    return data[base : end if end > base else None], alignment_of(artifact)
