"""Bundled programs: ``.bpte`` files, a program with test cases for its methods.

Source: bundled_program_schema.fbs, identifier BP08; the file is one plain flatbuffer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias

from schema.dtypes.scalar_type import tensor_nbytes
from schema.errors import FormatError, Issue, Notes
from schema.flatbuf.declare import UnionName, f64, i8, i32, i64, named, table_of, u8, u32
from schema.flatbuf.header import HeaderField, header_field
from schema.flatbuf.reader import Reader
from schema.flatbuf.spec import Blob, Spec, UnknownMember
from schema.flatbuf.writer import write_root
from schema.objects.cyclic_gc import gc_suspended

Buffer = bytes | bytearray | memoryview
IDENTIFIER = b"BP08"
VERSION = 2  # BUNDLED_PROGRAM_SCHEMA_VERSION


@named("Tensor")
@dataclass(frozen=True, slots=True)
class BundledTensor:
    """A tensor argument or result.

    Attributes:
        scalar_type: scalar type code
        sizes: size of each dimension
        data: bytes in storage order
        dim_order: outermost dimension first
    """

    scalar_type: i8
    sizes: tuple[i32, ...]
    data: Annotated[memoryview, Blob(16)]
    dim_order: tuple[u8, ...]


@named("Int")
@dataclass(frozen=True, slots=True)
class BundledInt:
    """An integer argument."""

    int_val: i64


@named("Bool")
@dataclass(frozen=True, slots=True)
class BundledBool:
    """A bool argument."""

    bool_val: bool


@named("Double")
@dataclass(frozen=True, slots=True)
class BundledDouble:
    """A floating point argument."""

    double_val: f64


AnyValue: TypeAlias = Annotated[
    BundledTensor | BundledInt | BundledBool | BundledDouble | UnknownMember | None,
    UnionName("ValueUnion"),
]


@named("Value")
@dataclass(frozen=True, slots=True)
class BundledValue:
    """One argument or result; None if the union is not set."""

    val: AnyValue


@named("BundledMethodTestCase")
@dataclass(frozen=True, slots=True)
class TestCase:
    """Inputs and the outputs expected for them.

    Attributes:
        inputs: flattened arguments
        expected_outputs: flattened results, empty when only inputs were given
    """

    __test__ = False  # otherwise pytest would collect every class of this name

    inputs: tuple[BundledValue, ...]
    expected_outputs: tuple[BundledValue, ...] = ()


@named("BundledMethodTestSuite")
@dataclass(frozen=True, slots=True)
class BundledSuite:
    """The cases of one method."""

    method_name: str
    test_cases: tuple[TestCase, ...]


@dataclass(frozen=True, slots=True)
class BundledFile:
    """A ``.bpte`` file.

    Attributes:
        method_test_suites: sorted by method name
        program: a complete ``.pte``, header and segments included
        version: schema version, 2 in every file known
        program_offset: position of the program in the file, 0 if not read from a file
        file: path or label
        issues: inconsistencies that did not prevent reading
        nbytes: size of the file it was read from
    """

    method_test_suites: tuple[BundledSuite, ...]
    program: memoryview
    version: int = VERSION
    program_offset: int = field(default=0, compare=False)
    file: str = field(default="", compare=False)
    issues: tuple[Issue, ...] = field(default=(), compare=False)
    nbytes: int = field(default=0, compare=False)

    def __hash__(self) -> int:
        return id(self)


@named("BundledProgram")
@dataclass(frozen=True, slots=True)
class _Root:
    version: u32
    method_test_suites: tuple[BundledSuite, ...]
    program: Annotated[memoryview, Blob(32)]


BUNDLED_PROGRAM = table_of(_Root)
_PROGRAM_SLOT = 2


def sniff(head: bytes) -> bool:
    """Return whether these first bytes are those of a bundled program."""
    return head[4:6] == IDENTIFIER[:2] and len(head) >= 8 and head[6:8].isdigit()


@gc_suspended()
def decode(buffer: Buffer, *, file: str = "") -> BundledFile:
    """Read a bundled program; the program and tensors stay views into the buffer.

    Raises: FormatError if it is not a bundled program or its tables cannot be read
    """
    data = memoryview(buffer).toreadonly()
    try:
        return _decode(data, Notes(file))
    except FormatError as error:
        raise error.in_file(file) from None


def _decode(data: memoryview, notes: Notes) -> BundledFile:
    head = bytes(data[:8])
    if not sniff(head):
        raise FormatError(
            "the identifier BP08", repr(head[4:8])[1:], field="file_identifier", offset=4
        )
    if head[4:8] != IDENTIFIER:
        notes.add(f"identifier {head[4:8].decode('ascii')}, read with the fields of BP08")
    reader = Reader(data, where=notes.file)
    root = reader.root(BUNDLED_PROGRAM)
    if root.version > VERSION:
        notes.add(f"schema version {root.version}, read with the fields of version {VERSION}")
    if not root.program:
        notes.add("the bundled program contains no program")
    _note_sizes(root, notes)
    return BundledFile(
        root.method_test_suites,
        root.program,
        root.version,
        _program_offset(reader),
        notes.file,
        (*reader.issues, *notes.all()),
        len(data),
    )


def root_table(data: memoryview) -> tuple[Reader, Spec[Any], int]:
    """Return a reader, the field table of the root and where its offset is, for walking."""
    return Reader(data), BUNDLED_PROGRAM, 0


def _program_offset(reader: Reader) -> int:
    at = reader.follow(0)
    entries, _ = reader.slots(at)
    slot = entries[_PROGRAM_SLOT] if len(entries) > _PROGRAM_SLOT else 0
    return reader.follow(at + slot) + 4 if slot else 0


def _note_sizes(root: _Root, notes: Notes) -> None:
    for suite in root.method_test_suites:
        for number, case in enumerate(suite.test_cases):
            for value in (*case.inputs, *case.expected_outputs):
                tensor = value.val
                if not isinstance(tensor, BundledTensor):
                    continue
                requested = tensor_nbytes(tensor.scalar_type, tensor.sizes)
                if requested != len(tensor.data):
                    notes.add(
                        f"case {number} of {suite.method_name!r} has a tensor of "
                        f"{len(tensor.data)} bytes where its shape needs {requested}"
                    )


def header_fields(buffer: Buffer, *, file: str = "") -> tuple[HeaderField, ...]:
    """Return the fields before the tables.

    Raises: FormatError if the file is shorter than they are
    """
    head = bytes(memoryview(buffer)[:8])
    try:
        return (
            header_field(head, "root offset", 0, "I", "position of the root table"),
            header_field(head, "file_identifier", 4, "4s", "names the format"),
        )
    except FormatError as error:
        raise error.in_file(file) from None


def encode(bundled: BundledFile) -> bytes:
    """Return the bytes of a bundled program, its program aligned to 32 and tensors to 16."""
    root = _Root(bundled.version, bundled.method_test_suites, bundled.program)
    return write_root(BUNDLED_PROGRAM, root, IDENTIFIER)
