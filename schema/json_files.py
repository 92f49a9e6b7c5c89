"""The flatbuffer of each format as JSON in the form of flatc, and back.

Segments behind the flatbuffer of a program or data file are no part of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from schema import bundled, etdump, flat_tensor
from schema.bundled import BUNDLED_PROGRAM
from schema.errors import FormatError
from schema.etdump.from_json import SCALAR_TYPES
from schema.etdump.to_json import tree_of_run
from schema.flat_tensor.tables import FLAT_TENSOR
from schema.flatbuf.json_text import flatc_text, read_json
from schema.flatbuf.json_tree import Enums, tree_of, value_of
from schema.flatbuf.spec import Spec
from schema.flatbuf.writer import write_root
from schema.program import decode as decode_program
from schema.program.tables import PROGRAM

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
    """How the flatbuffer of a format becomes a tree, and a tree its bytes."""

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
    "pte": _of_table(PROGRAM, b"ET12", lambda data: decode_program(data).table),
    "ptd": _of_table(FLAT_TENSOR, b"FT01", _walked(flat_tensor)),
    "bpte": _of_table(BUNDLED_PROGRAM, bundled.IDENTIFIER, _walked(bundled)),
    "etdump": _Form(_trace, lambda tree: etdump.encode(etdump.trace_of(tree))),
}


def to_json(kind: str, data: memoryview) -> str:
    """Return the flatbuffer of a file as JSON.

    Args:
        kind: pte, ptd, bpte or etdump
        data: the file

    Raises: KeyError for another kind; FormatError if it cannot be read
    """
    return flatc_text(FORMS[kind].read(data))


def from_json(kind: str, text: bytes) -> bytes:
    """Return the flatbuffer that a JSON text describes, as flatc prints it or `to_json`.

    Raises: KeyError for another kind; FormatError naming what is not as its schema says
    """
    return FORMS[kind].write(read_json(memoryview(text)))
