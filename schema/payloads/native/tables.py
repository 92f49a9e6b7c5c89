"""Field tables of the native backend's graph.

Source: backends/native/serialization/native_graph.fbs
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from schema.flatbuf.declare import UnionName, f64, i8, i32, i64, table_of
from schema.flatbuf.spec import UnknownMember

# The schema's own codes; they differ from c10's from the unsigned types on.
SCALAR_TYPES = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7, 11: 11, 15: 15} | {
    16: 27,
    17: 28,
    18: 29,
}
CALL, PLACEHOLDER, OUTPUT = 0, 1, 2
INPUT_KINDS = ("user input", "parameter", "buffer", "constant tensor")
OUTPUT_KINDS = ("user output", "buffer mutation", "user input mutation")
BUFFER_MUTATION = 1
TENSOR, TENSOR_LIST = 0, 1
VALUE_KINDS = ("tensor", "list", "int", "bool", "float")


@dataclass(frozen=True, slots=True)
class AffineGroup:
    """Group-wise affine quantization along the last dimension."""

    scale_data_key: str = ""
    scale_dtype: i8 = 0
    quant_min: i32 = 0
    quant_max: i32 = 0
    group_size: i32 = 0
    zero_point_data_key: str = ""
    zero_point_dtype: i8 = 0


@dataclass(frozen=True, slots=True)
class PackedQuant:
    """A layout defined by a codec, such as ``gguf:q4k``."""

    codec: str = ""


@dataclass(frozen=True, slots=True)
class QuantSpec:
    """The quantization scheme of a tensor."""

    scheme: Annotated[
        AffineGroup | PackedQuant | UnknownMember | None, UnionName("QuantScheme")
    ] = None


@dataclass(frozen=True, slots=True)
class Dim:
    """A size as a range; unbounded if max is below min."""

    min: i64 = 0
    max: i64 = -1


@dataclass(frozen=True, slots=True)
class TensorMeta:
    """Dtype, sizes and layout of a tensor."""

    dtype: i8 = 0
    sizes: tuple[Dim, ...] = ()
    dim_order: tuple[i32, ...] = ()
    quant: QuantSpec | None = None


@dataclass(frozen=True, slots=True)
class TensorValue:
    """Metadata of a named value."""

    name: str = ""
    meta: TensorMeta | None = None


@dataclass(frozen=True, slots=True)
class TensorArg:
    """A value by name."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class NoneArg:
    """The value None."""


@dataclass(frozen=True, slots=True)
class IntArg:
    """An int; ``ref`` names the value it is read from instead."""

    value: i64 = 0
    ref: str = ""


@dataclass(frozen=True, slots=True)
class FloatArg:
    """A float; ``ref`` names the value it is read from instead."""

    value: f64 = 0.0
    ref: str = ""


@dataclass(frozen=True, slots=True)
class BoolArg:
    """A bool; ``ref`` names the value it is read from instead."""

    value: bool = False
    ref: str = ""


@dataclass(frozen=True, slots=True)
class StringArg:
    """A string."""

    value: str = ""


@dataclass(frozen=True, slots=True)
class ScalarTypeArg:
    """An dtype."""

    value: i8 = 0


@dataclass(frozen=True, slots=True)
class IntListArg:
    """Ints; a non-empty entry of ``refs`` names the value it is read from."""

    values: tuple[i64, ...] = ()
    refs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FloatListArg:
    """Floats."""

    values: tuple[f64, ...] = ()


@dataclass(frozen=True, slots=True)
class BoolListArg:
    """Bools."""

    values: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class TensorListArg:
    """Values by name."""

    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OptionalTensorListArg:
    """Values by name; if ``has_value`` is false the entry is None."""

    names: tuple[str, ...] = ()
    has_value: tuple[bool, ...] | None = None


@dataclass(frozen=True, slots=True)
class GraphArg:
    """A nested graph of a control-flow operator."""

    name: str = ""
    graph: Graph | None = None


# In the order of the union's tags.
ArgumentValue: TypeAlias = Annotated[
    TensorArg
    | NoneArg
    | IntArg
    | FloatArg
    | BoolArg
    | StringArg
    | ScalarTypeArg
    | IntListArg
    | FloatListArg
    | BoolListArg
    | TensorListArg
    | OptionalTensorListArg
    | GraphArg
    | UnknownMember
    | None,
    UnionName("ArgumentValue"),
]


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of any kind."""

    value: ArgumentValue = None


@dataclass(frozen=True, slots=True)
class NamedArgument:
    """An argument with the parameter's name."""

    name: str = ""
    arg: Argument | None = None
    mutated: bool = False


@dataclass(frozen=True, slots=True)
class KeyValue:
    """An entry of a node's metadata."""

    key: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True)
class Output:
    """An output of a node."""

    name: str = ""
    alias_of: str = ""
    kind: i8 = 0
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """An fx node."""

    name: str = ""
    op_kind: i8 = 0
    target: str = ""
    inputs: tuple[NamedArgument, ...] = ()
    outputs: tuple[Output, ...] = ()
    metadata: tuple[KeyValue, ...] = ()


@dataclass(frozen=True, slots=True)
class NamedTensorRef:
    """A placeholder that is a constant, and the key of its bytes."""

    name: str = ""
    data_key: str = ""
    meta: TensorMeta | None = None
    kind: i8 = 0
    mutated: bool = False


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """The use of an output."""

    name: str = ""
    kind: i8 = 0
    target: str = ""


@dataclass(frozen=True, slots=True)
class MutableBufferSpec:
    """A buffer without stored bytes."""

    name: str = ""
    fqn: str = ""


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in execution order."""

    nodes: tuple[Node, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    tensor_values: tuple[TensorValue, ...] = ()


@dataclass(frozen=True, slots=True)
class Method:
    """A method: its graph and the roles of its placeholders."""

    name: str = ""
    graph: Graph | None = None
    constants: tuple[NamedTensorRef, ...] = ()
    output_specs: tuple[OutputSpec, ...] = ()
    mutable_buffers: tuple[MutableBufferSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """The root table."""

    version: str = ""
    methods: tuple[Method, ...] = ()


PROGRAM = table_of(Program)
