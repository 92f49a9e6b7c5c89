"""Field tables of the native backend's graph.

Source: backends/native/serialization/native_graph.fbs
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from schema.flatbuf.spec import (
    BOOL,
    F64,
    I8,
    I32,
    I64,
    Spec,
    Text,
    Union,
    UnknownMember,
    Vec,
    spec,
)

# The schema's own numbers; they leave c10's at the unsigned types.
SCALAR_TYPES = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7, 11: 11, 15: 15} | {
    16: 27,
    17: 28,
    18: 29,
}
CALL, PLACEHOLDER, OUTPUT = 0, 1, 2
INPUT_KINDS = ("user input", "parameter", "buffer", "constant tensor")
OUTPUT_KINDS = ("user output", "buffer mutation", "user input mutation")
TENSOR, TENSOR_LIST = 0, 1
VALUE_KINDS = ("tensor", "list", "int", "bool", "float")


@dataclass(frozen=True, slots=True)
class AffineGroup:
    """Group-wise affine quantisation along the last dimension."""

    scale_data_key: str = ""
    scale_dtype: int = 0
    quant_min: int = 0
    quant_max: int = 0
    group_size: int = 0
    zero_point_data_key: str = ""
    zero_point_dtype: int = 0


@dataclass(frozen=True, slots=True)
class PackedQuant:
    """A layout defined by a codec, such as ``gguf:q4k``."""

    codec: str = ""


@dataclass(frozen=True, slots=True)
class QuantSpec:
    """The quantisation scheme of a tensor."""

    scheme: AffineGroup | PackedQuant | UnknownMember | None = None


@dataclass(frozen=True, slots=True)
class Dim:
    """A size as a range; max below min stands for unbounded."""

    min: int = 0
    max: int = -1


@dataclass(frozen=True, slots=True)
class TensorMeta:
    """Element type, sizes and layout of a tensor."""

    dtype: int = 0
    sizes: tuple[Dim, ...] = ()
    dim_order: tuple[int, ...] = ()
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
    """None."""


@dataclass(frozen=True, slots=True)
class NumberArg:
    """An int, float or bool; ``ref`` names the value it is read from instead."""

    value: int | float | bool = 0
    ref: str = ""


@dataclass(frozen=True, slots=True)
class StringArg:
    """A text."""

    value: str = ""


@dataclass(frozen=True, slots=True)
class ScalarTypeArg:
    """An element type."""

    value: int = 0


@dataclass(frozen=True, slots=True)
class ListArg:
    """Numbers; a non-empty entry of ``refs`` names the value it is read from."""

    values: tuple[int | float | bool, ...] = ()
    refs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TensorListArg:
    """Values by name; where ``has_value`` is false the entry is None."""

    names: tuple[str, ...] = ()
    has_value: tuple[bool, ...] | None = None


@dataclass(frozen=True, slots=True)
class GraphArg:
    """A nested graph of a control-flow operator."""

    name: str = ""
    graph: Graph | None = None


ArgumentValue: TypeAlias = (
    TensorArg
    | NoneArg
    | NumberArg
    | StringArg
    | ScalarTypeArg
    | ListArg
    | TensorListArg
    | GraphArg
    | UnknownMember
)


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of any kind."""

    value: ArgumentValue | None = None


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
    """What a node makes."""

    name: str = ""
    alias_of: str = ""
    kind: int = 0
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """An fx node."""

    name: str = ""
    op_kind: int = 0
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
    kind: int = 0
    mutated: bool = False


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """What an output is for."""

    name: str = ""
    kind: int = 0
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
    """A method: its graph and what its placeholders are."""

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


_AFFINE = spec(
    "AffineGroup",
    AffineGroup,
    ("scale_data_key", Text()),
    ("scale_dtype", I8),
    ("quant_min", I32),
    ("quant_max", I32),
    ("group_size", I32),
    ("zero_point_data_key", Text()),
    ("zero_point_dtype", I8),
)
_SCHEME = Union("QuantScheme", (None, _AFFINE, spec("PackedQuant", PackedQuant, ("codec", Text()))))
_DIM = spec("Dim", Dim, ("min", I64), ("max", I64, -1))
_META = spec(
    "TensorMeta",
    TensorMeta,
    ("dtype", I8),
    ("sizes", Vec(_DIM)),
    ("dim_order", Vec(I32)),
    ("quant", spec("QuantSpec", QuantSpec, ("scheme", _SCHEME))),
)
_NAMES = Vec(Text())


def _graph_arg(graph: Spec[Graph] | None) -> Spec[GraphArg]:
    nested: tuple[Any, ...] = () if graph is None else (("graph", graph),)
    return spec("GraphArg", GraphArg, ("name", Text()), *nested)


_GRAPH_ARG = _graph_arg(None)
_VALUES = Union(
    "ArgumentValue",
    (
        None,
        spec("TensorArg", TensorArg, ("name", Text())),
        spec("NoneArg", NoneArg),
        spec("IntArg", NumberArg, ("value", I64), ("ref", Text())),
        spec("FloatArg", NumberArg, ("value", F64), ("ref", Text())),
        spec("BoolArg", NumberArg, ("value", BOOL), ("ref", Text())),
        spec("StringArg", StringArg, ("value", Text())),
        spec("ScalarTypeArg", ScalarTypeArg, ("value", I8)),
        spec("IntListArg", ListArg, ("values", Vec(I64)), ("refs", _NAMES)),
        spec("FloatListArg", ListArg, ("values", Vec(F64))),
        spec("BoolListArg", ListArg, ("values", Vec(BOOL))),
        spec("TensorListArg", TensorListArg, ("names", _NAMES)),
        spec(
            "OptionalTensorListArg",
            TensorListArg,
            ("names", _NAMES),
            ("has_value", Vec(BOOL), None),
        ),
        _GRAPH_ARG,
    ),
)
_ARGUMENT = spec("Argument", Argument, ("value", _VALUES))
_NAMED_ARGUMENT = spec(
    "NamedArgument", NamedArgument, ("name", Text()), ("arg", _ARGUMENT), ("mutated", BOOL)
)
_OUTPUT = spec(
    "Output", Output, ("name", Text()), ("alias_of", Text()), ("kind", I8), ("names", _NAMES)
)
_NODE = spec(
    "Node",
    Node,
    ("name", Text()),
    ("op_kind", I8),
    ("target", Text()),
    ("inputs", Vec(_NAMED_ARGUMENT)),
    ("outputs", Vec(_OUTPUT)),
    ("metadata", Vec(spec("KeyValue", KeyValue, ("key", Text()), ("value", Text())))),
)
_TENSOR_VALUE = spec("TensorValue", TensorValue, ("name", Text()), ("meta", _META))
GRAPH = spec(
    "Graph",
    Graph,
    ("nodes", Vec(_NODE)),
    ("inputs", _NAMES),
    ("outputs", _NAMES),
    ("tensor_values", Vec(_TENSOR_VALUE)),
)
# A graph holds nodes that hold graphs: the knot is tied once all tables exist.
object.__setattr__(_GRAPH_ARG, "fields", _graph_arg(GRAPH).fields)
object.__setattr__(_GRAPH_ARG, "slots", 2)
_METHOD = spec(
    "Method",
    Method,
    ("name", Text()),
    ("graph", GRAPH),
    (
        "constants",
        Vec(
            spec(
                "NamedTensorRef",
                NamedTensorRef,
                ("name", Text()),
                ("data_key", Text()),
                ("meta", _META),
                ("kind", I8),
                ("mutated", BOOL),
            )
        ),
    ),
    (
        "output_specs",
        Vec(spec("OutputSpec", OutputSpec, ("name", Text()), ("kind", I8), ("target", Text()))),
    ),
    (
        "mutable_buffers",
        Vec(spec("MutableBufferSpec", MutableBufferSpec, ("name", Text()), ("fqn", Text()))),
    ),
)
PROGRAM = spec("Program", Program, ("version", Text()), ("methods", Vec(_METHOD)))
