"""The torch-free snapshot of a graph: one shape for recorded graphs, plans and delegate payloads.

A graph read from an ETRecord, the instruction list of a plan and a decoded delegate payload all
become this, so that every view, count and search is written once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from types import MappingProxyType

from schema.dtypes.scalar_type import known_nbytes, scalar_type

Dim = int | str  # a symbol or its expression where a size is not static
EMPTY: Mapping[str, object] = MappingProxyType({})
_MOVERS = re.compile(
    r"getitem|quantize(?!d)|choose_qparams|view|permute|transpose(?!d?_conv)|reshape|clone|to_copy"
    r"|_to_dim_order_copy|sym_size|expand|squeeze|unsqueeze|slice_copy|select_copy|alias|Convert"
    r"|StaticTranspose|StaticReshape|Copy",
)


class NodeKind(str, Enum):
    """The kind of a node, in torch.fx terms."""

    PLACEHOLDER = "placeholder"
    CALL = "call_function"
    CONTROL = "control"  # cond, map, scan, jump, move, free
    DELEGATE = "delegate"  # a call into a delegate; its inside is a subgraph
    GET_ATTR = "get_attr"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class QuantizationParameters:
    """Mapping of stored integers to real values.

    Attributes:
        scheme: per_tensor, per_channel, per_token, per_group
        scale: one for per_tensor, one per channel for per_channel if stored inline
        zero_point: one per scale; empty if the scheme has none
        axis: channel dimension in memory order, None for per_tensor
        group_size: elements per group, None unless per_group
        scale_constant: constant of the payload that has the scales, empty where they are inline
    """

    scheme: str
    scale: tuple[float, ...] = ()
    zero_point: tuple[int, ...] = ()
    axis: int | None = None
    group_size: int | None = None
    scale_constant: str = ""


@dataclass(frozen=True, slots=True)
class TensorMeta:
    """Dtype and shape of a tensor value.

    Attributes:
        scalar_type: scalar type code; -1 for a dtype of this format only
        sizes: upper bounds or symbols
        dim_order: outermost dimension first; empty if unknown
        type_name: name shown for the dtype
        quantization: None for plain tensors
        dynamism: TensorShapeDynamism of a program: 0 static, 1 sizes are upper bounds, 2 unbounded
    """

    scalar_type: int
    sizes: tuple[Dim, ...]
    dim_order: tuple[int, ...] = ()
    type_name: str = ""
    quantization: QuantizationParameters | None = None
    dynamism: int = 0

    @property
    def dtype(self) -> str:
        """Return the name shown for the dtype."""
        return self.type_name or scalar_type(self.scalar_type).name

    @property
    def nbytes(self) -> int | None:
        """Return the bytes of a dense tensor, None if a size or the type leaves them unknown."""
        return _dense_bytes(self.scalar_type, self.sizes)


@lru_cache(maxsize=4096)  # a graph of 50,000 values has few shapes, and asks several times
def _dense_bytes(code: int, sizes: tuple[Dim, ...]) -> int | None:
    known = tuple(size for size in sizes if isinstance(size, int))
    return known_nbytes(code, known) if len(known) == len(sizes) else None


@dataclass(frozen=True, slots=True)
class GraphValue:
    """A named value that flows along edges.

    Attributes:
        name: unique within its graph
        tensor: metadata of a tensor value; None for other kinds
        kind: tensor, int, float, bool, str, none, list, symint, other
        literal: the value of a non-tensor constant
        constant: name of the constant with its bytes, empty if it is computed
        constant_bytes: size of that constant, None if unknown
    """

    name: str
    tensor: TensorMeta | None = None
    kind: str = "tensor"
    literal: object = None
    constant: str = ""
    constant_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ModuleFrame:
    """One level of the module stack, outermost first.

    Attributes:
        path: dotted path as in ``layers.0.attn``; empty for the root module
        type_name: dotted class name
    """

    path: str
    type_name: str


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a node: the values it reads, or a literal.

    Attributes:
        name: parameter name in the operator schema, empty when unknown
        values: names of graph values, in order, for tensors, lists of tensors and symbols
        literal: printable constant when the argument reads no value
    """

    name: str = ""
    values: tuple[str, ...] = ()
    literal: object = None


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One occurrence of an operator.

    Attributes:
        name: unique within its graph
        kind: of node
        target: operator name and overload, as in ``aten.convolution.default``; payload node kind
        args: arguments in schema order
        outputs: names of its output values, in order
        debug_handle: join key of the record, None if unset
        modules: module stack, outermost first
        stack_trace: Python traceback text, innermost last; empty if unknown
        attributes: further facts (strides, flags, position in the file)
        subgraphs: names of nested graphs (branches, the inside of a delegate)
        from_node: chain of source names, nearest first, each ``name.graph_id``
    """

    name: str
    kind: NodeKind
    target: str
    args: tuple[Argument, ...] = ()
    outputs: tuple[str, ...] = ()
    debug_handle: int | None = None
    modules: tuple[ModuleFrame, ...] = ()
    stack_trace: str = ""
    attributes: Mapping[str, object] = field(default_factory=lambda: EMPTY, hash=False)
    subgraphs: tuple[str, ...] = ()
    from_node: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[str, ...]:
        """Return the names of all values read, in argument order."""
        if len(self.args) == 1:  # as of half of the nodes
            return self.args[0].values
        return tuple([name for arg in self.args for name in arg.values])

    @property
    def module_path(self) -> str:
        """Return the dotted path of the innermost module, empty when unknown."""
        return self.modules[-1].path if self.modules else ""


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in execution order, their values, and nested graphs.

    Attributes:
        name: ``forward``, a member name of a record, or a payload label
        nodes: in execution order, placeholders first, output last
        values: every value by name
        inputs: names of the user inputs
        outputs: names of the user outputs
        subgraphs: nested graphs by the name used in GraphNode.subgraphs
        attributes: facts about the entire graph (payload version, flags)
    """

    name: str
    nodes: tuple[GraphNode, ...]
    values: Mapping[str, GraphValue]
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    subgraphs: Mapping[str, Graph] = field(default_factory=lambda: _NO_GRAPHS)
    attributes: Mapping[str, object] = field(default_factory=lambda: EMPTY)

    def calls(self) -> tuple[GraphNode, ...]:
        """Return the nodes that compute: no placeholders, attributes or output."""
        passive = (NodeKind.PLACEHOLDER, NodeKind.GET_ATTR, NodeKind.OUTPUT)
        return tuple(node for node in self.nodes if node.kind not in passive)


def inner_name(node: str, number: int) -> str:
    """Return the name of a nested graph of a node: by place, since names differ by writer."""
    return f"{node}/{number}"


_NO_GRAPHS: Mapping[str, Graph] = MappingProxyType({})


def common_module(nodes: Sequence[GraphNode]) -> str:
    """Return the innermost module that holds all nodes that compute, empty for the whole model.

    Those that move data count where no other does: a kernel takes in what lies before it.
    """
    computing = [node for node in nodes if is_compute(node.target)]
    found: list[str] = []
    for parts in zip(*(node.module_path.split(".") for node in computing or nodes), strict=False):
        if len(set(parts)) > 1:
            break
        found.append(parts[0])
    return ".".join(found)


def is_compute(operator: str) -> bool:
    """Return whether an operator computes, as opposed to moving or converting data."""
    return _MOVERS.search(operator) is None
