"""Our tables beside the .fbs files of the wheel: every field by name, type, default and slot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from schema.bundled import BUNDLED_PROGRAM
from schema.etdump.tables import ETDUMP
from schema.flat_tensor.tables import FLAT_TENSOR
from schema.flatbuf import spec as fb
from schema.flatbuf.declare import f64, i8, i32, i64, table_of, u16
from schema.flatbuf.reader import Reader
from schema.flatbuf.spec import Blob, Field, Scalar, Spec, Union, Vec
from schema.payloads.mlx.tables import GRAPH as MLX
from schema.payloads.native.tables import PROGRAM as NATIVE
from schema.payloads.settings.options import QNN_OPTIONS, SAMSUNG_OPTIONS
from schema.payloads.tosa.tables import GRAPH_1 as TOSA
from schema.payloads.vulkan.tables import GRAPH as VULKAN
from schema.payloads.xnnpack.model import GRAPH as XNNPACK
from schema.program.model import PROGRAM
from tests.schema import payload_flatc as flatc

pytestmark = pytest.mark.interop
TABLES: dict[str, Spec[Any]] = {
    "schema/program.fbs": PROGRAM,
    "exir/_serialize/program.fbs": PROGRAM,
    "devtools/etdump/etdump_schema_flatcc.fbs": ETDUMP,
    "devtools/bundled_program/schema/bundled_program_schema.fbs": BUNDLED_PROGRAM,
    "extension/flat_tensor/serialize/flat_tensor.fbs": FLAT_TENSOR,
    "backends/xnnpack/serialization/runtime_schema.fbs": XNNPACK,
    "backends/vulkan/serialization/schema.fbs": VULKAN,
    "backends/mlx/serialization/schema.fbs": MLX,
    "backends/native/serialization/native_graph.fbs": NATIVE,
    "backends/arm/tosa/schemas/tosa_1.1.fbs": TOSA,
    "backends/qualcomm/serialization/qc_compiler_spec.fbs": QNN_OPTIONS,
    "backends/samsung/serialization/compile_options_def.fbs": SAMSUNG_OPTIONS,
}
# Names of ours that say more: options are listed by them, and an underscore would be private.
RENAMED = {
    ("QnnExecuTorchHtpBackendOptions", "htp_performance_mode"): "performance_mode",
    ("QnnExecuTorchHtpBackendOptions", "htp_precision"): "precision",
    ("QnnExecuTorchGpuBackendOptions", "gpu_performance_mode"): "performance_mode",
    ("QnnExecuTorchGpuBackendOptions", "gpu_precision"): "precision",
} | {
    (table, name): f"_{name}"
    for table in ("Version", "SoftwareVersion")
    for name in ("major", "minor", "patch", "draft", "micro", "modifier")
}
SCALARS = (
    None, fb.U8, fb.BOOL, fb.I8, fb.U8, fb.I16, fb.U16, fb.I32, fb.U32, fb.I64, fb.U64, fb.F32,
    fb.F64,
)  # fmt: skip
STRING, VECTOR, OBJECT, UNION = range(13, 17)


# reflection.fbs of flatbuffers, as far as it is compared.
@dataclass(frozen=True)
class Type:
    base_type: i8
    element: i8
    index: i32 = -1


@dataclass(frozen=True)
class Member:
    name: str
    value: i64
    object: Object | None
    union_type: Type | None


@dataclass(frozen=True)
class Enum:
    name: str
    values: tuple[Member, ...]


@dataclass(frozen=True)
class TheirField:
    name: str
    type: Type
    id: u16
    offset: u16
    default_integer: i64
    default_real: f64
    deprecated: bool
    required: bool
    key: bool
    attributes: tuple[Member, ...]
    documentation: tuple[str, ...]
    optional: bool


@dataclass(frozen=True)
class Object:
    name: str
    fields: tuple[TheirField, ...]
    is_struct: bool


@dataclass(frozen=True)
class Schema:
    objects: tuple[Object, ...]
    enums: tuple[Enum, ...]
    file_ident: str
    file_ext: str
    root_table: Object


class Comparison:
    """Differences between a table of ours and the root of a schema, with all they lead to."""

    def __init__(self, schema: Schema) -> None:
        self.compared: set[str] = set()
        self.differences: list[str] = []
        self._schema = schema

    def table(self, ours: Spec[Any], theirs: Object) -> None:
        if ours.name in self.compared:
            return
        self.compared.add(ours.name)
        mine = {
            (RENAMED.get((ours.name, field.name), field.name), field.slot): field
            for field in ours.fields
        }
        other = {
            (field.name, field.id - (field.type.base_type == UNION)): field
            for field in theirs.fields
            if not self._is_tag(theirs, field)
        }
        # What is deprecated may be left out.
        other = {key: item for key, item in other.items() if key in mine or not item.deprecated}
        for name, slot in mine.keys() ^ other.keys():
            self._note(f"{ours.name}.{name}", "ours" if (name, slot) in mine else "theirs", slot)
        for key in mine.keys() & other.keys():
            self._field(f"{ours.name}.{key[0]}", mine[key], other[key])

    def _is_tag(self, table: Object, field: TheirField) -> bool:
        unions = {f"{one.name}_type" for one in table.fields if one.type.base_type == UNION}
        return field.name in unions

    def _field(self, where: str, ours: Field, theirs: TheirField) -> None:
        kind, found = ours.type, theirs.type
        optional = theirs.optional
        if isinstance(kind, Vec | Blob):
            if found.base_type != VECTOR:
                self._note(where, "a vector", found)
                return
            kind = kind.element if isinstance(kind, Vec) else fb.U8
            found = replace(found, base_type=found.element)
        elif found.base_type == OBJECT and self._schema.objects[found.index].is_struct:
            optional = True  # a structure is there or not, as ours is a number or None
        self._type(where, kind, found)
        if isinstance(ours.type, Scalar):
            real = ours.type.code in "fd"
            default = theirs.default_real if real else theirs.default_integer
            self._equal(where, ours.default, None if optional else default)

    def _type(self, where: str, kind: Any, found: Type) -> None:
        if found.base_type == UNION:
            self._union(where, kind, self._schema.enums[found.index])
        elif found.base_type == OBJECT:
            self._object(where, kind, self._schema.objects[found.index])
        elif found.base_type == STRING:
            self._equal(where, kind.name, "str")
        else:
            self._equal(where, kind, SCALARS[found.base_type])

    def _object(self, where: str, kind: Any, theirs: Object) -> None:
        if theirs.is_struct:  # of MLX: an index
            self._equal(where, [kind], [SCALARS[one.type.base_type] for one in theirs.fields])
            return
        self._equal(where, kind.name, theirs.name.rpartition(".")[2])
        if isinstance(kind, Spec):
            self.table(kind, theirs)

    def _union(self, where: str, ours: Union, theirs: Enum) -> None:
        self._equal(where, ours.name, theirs.name.rpartition(".")[2])
        self._equal(where, len(ours.members), len(theirs.values))
        for tag, (member, value) in enumerate(zip(ours.members, theirs.values, strict=False)):
            self._equal(f"{where}: {value.name}", tag, value.value)
            if member is not None and value.union_type is not None:
                if not member.name.endswith(" attribute"):  # ours are named by the operator
                    self._equal(where, member.name, value.name.rpartition(".")[2])
                self.table(member, self._schema.objects[value.union_type.index])

    def _equal(self, where: str, ours: object, theirs: object) -> None:
        if ours != theirs:
            self._note(where, ours, theirs)

    def _note(self, where: str, ours: object, theirs: object) -> None:
        self.differences.append(f"{where}: ours {ours!r}, theirs {theirs!r}")


def compared(path: str, ours: Spec[Any], folder: Path) -> Comparison:
    raw = flatc.reflection(flatc.stock_folder() / path, folder)
    schema = Reader(memoryview(raw)).root(table_of(Schema))
    found = Comparison(schema)
    found.table(ours, schema.root_table)
    return found


@pytest.mark.parametrize("path", TABLES)
def test_tables_are_those_of_the_wheels_schema(path: str, tmp_path: Path) -> None:
    found = compared(path, TABLES[path], tmp_path)
    assert found.differences == []


def test_a_difference_in_a_default_a_slot_a_type_or_a_name_is_found(tmp_path: Path) -> None:
    rows = {
        "Int": "int_val:i32",
        "ProfileEvent": "name:str chain_index:i32 instruction_id:i32=1",
        "Event": "profile_event:ProfileEvent allocation_event:Int",
        "RunData": "name:str index:i32=-1 allocators:[str] events:[Event]",
        "ETDump": "version:u32 run_data:[RunData]",
    }
    found = compared(
        "devtools/etdump/etdump_schema_flatcc.fbs", fb.tables(rows)["ETDump"], tmp_path
    )
    text = "\n".join(found.differences)
    assert "ProfileEvent.instruction_id: ours 1, theirs -1" in text
    assert "ProfileEvent.end_time: ours 'theirs', theirs 7" in text
    assert "RunData.index: ours 'ours', theirs 1" in text
    assert "Event.allocation_event: ours 'Int', theirs 'AllocationEvent'" in text
    assert "RunData.allocators: ours 'str', theirs 'Allocator'" in text
