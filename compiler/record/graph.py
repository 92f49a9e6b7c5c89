"""A graph and its signature as the JSON of a record."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

from compiler.dialect import llama
from compiler.dialect.delegate_call import is_lowered_module
from compiler.dialect.memory_ops import alloc, view
from compiler.dialect.mutating_ops import is_write, writer_of
from compiler.dialect.outputs import GRADIENT
from compiler.emit.containers import tree_spec_string
from compiler.errors import UnsupportedError, at
from compiler.record.arguments import (
    MAJOR,
    MINOR,
    Json,
    argument,
    dtype_code,
    formula,
    size,
    tensor_meta,
)
from compiler.record.graph_ids import GraphIds
from compiler.record.lowered import lowered_json
from compiler.record.metadata import MetadataWriter
from compiler.untyped import (
    NUMBER_OPERATORS,
    SYMBOLIC,
    HigherOrderOperator,
    OpOverload,
    largest,
    ranges_of,
)
from schema.objects.cyclic_gc import gc_suspended

_EDGE = "executorch.exir.dialects.edge.ops."
_MEMORY: dict[Any, str] = {alloc: "memory.alloc", view: "memory.view"}


@gc_suspended()
def program_json(program: ExportedProgram, numbers: GraphIds | None = None, *, edge: bool) -> bytes:
    """Return a program as a member of a record.

    Args:
        program: an exported or an edge program
        numbers: ids of the graphs that its nodes come from; by default that of its graph
        edge: whether it has debug handles and edge operators

    Raises: UnsupportedError if an argument cannot be represented in a record
    """
    metadata = MetadataWriter(numbers or GraphIds(program.graph), handles=edge)
    module = {
        "graph": _GraphWriter(program.graph_module, metadata).graph(),
        "signature": _signature(program),
        "module_call_graph": [_module_call(entry) for entry in program.module_call_graph],
    }
    top = {
        "graph_module": module,
        "opset_version": {"aten": 10},
        "range_constraints": _ranges(program),
        "schema_version": {"major": MAJOR, "minor": MINOR},
        "dialect": "",
        "verifiers": ["EDGE" if edge else "TRAINING"],
    }
    return json.dumps(top).encode()


def _ranges(program: ExportedProgram) -> Json:
    ranges: Json = {}
    given = ranges_of(program)
    for symbol, values in given.items():
        if values.lower.is_Integer:  # a scalar read from a tensor has no bounds
            bound = largest(symbol, given)
            largest_value = math.inf if bound is None else bound  # null is not an integer
            ranges[str(symbol)] = {"min_val": int(values.lower), "max_val": largest_value}
    return ranges


class _GraphWriter:
    def __init__(self, owner: torch.fx.GraphModule, metadata: MetadataWriter) -> None:
        self.owner = owner
        self.metadata = metadata
        self.tensors: Json = {}
        self.sizes: Json = {}
        self.conditions: Json = {}
        self.single = False

    def graph(self) -> Json:
        inputs: list[Json] = []
        nodes: list[Json] = []
        outputs: list[Json] = []
        for node in self.owner.graph.nodes:
            if node.op == "placeholder":
                inputs.append(self._input(node))
            elif node.op == "output":
                given: Any = node.args[0]
                self.single = not isinstance(given, (list, tuple))
                outputs = [argument(value) for value in ([given] if self.single else given)]
            elif node.op == "get_attr":
                continue  # a body, written as an argument of its call
            elif node.op != "call_function":
                raise UnsupportedError(f"{node.op} cannot be written into a record: {at(node)}")
            elif node.target is not operator.getitem:
                nodes.append(self._node(node))
        return {
            "inputs": inputs,
            "outputs": outputs,
            "nodes": nodes,
            "tensor_values": self.tensors,
            "sym_int_values": self.sizes,
            "sym_bool_values": self.conditions,
            "is_single_tensor_return": self.single,
            "custom_obj_values": {},
        }

    def _input(self, node: torch.fx.Node) -> Json:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            self.tensors[node.name] = tensor_meta(value)
            return {"as_tensor": {"name": node.name}}
        if isinstance(value, SYMBOLIC):
            return self._number(node.name, value)
        return argument(value)

    def _number(self, name: str, value: Any) -> Json:  # noqa: ANN401
        if isinstance(value, torch.SymBool):
            self.conditions[name] = {"as_expr": {"expr_str": formula(value), "hint": None}}
            return {"as_sym_bool": {"as_name": name}}
        self.sizes[name] = size(value)
        return {"as_sym_int": {"as_name": name}}

    def _body(self, node: torch.fx.Node) -> Json:
        body = getattr(self.owner, str(node.target))
        graph = _GraphWriter(body, self.metadata).graph()
        return {"as_graph": {"name": node.target, "graph": graph}}

    def _attribute(self, node: torch.fx.Node) -> Json:
        module: Any = getattr(self.owner, str(node.target))
        if not is_lowered_module(module):
            return {"name": "", "arg": self._body(node)}
        numbers = self.metadata.numbers
        given = lowered_json(module, lambda program: program_json(program, numbers, edge=True))
        return {"name": node.target, "arg": {"as_string": given}}

    def _operands(self, node: torch.fx.Node) -> list[Json]:
        """Return the arguments of control flow, which has no schema."""
        found: list[Json] = []
        for value in node.args:
            if isinstance(value, torch.fx.Node) and value.op == "get_attr":
                found.append(self._attribute(value))
                continue
            if isinstance(value, OpOverload):
                found.append({"name": "", "arg": {"as_operator": target_name(value)}})
                continue
            kind = "Tensor" if isinstance(value, (list, tuple)) and not value else ""
            found.append({"name": "", "arg": argument(value, kind)})
        kinds = _kinds(writer_of(node).op) if is_write(node) else {}
        for name, value in node.kwargs.items():
            found.append({"name": name, "arg": argument(value, kinds.get(name, ""))})
        return found

    def _node(self, node: torch.fx.Node) -> Json:
        return {
            "name": node.name,
            "target": target_name(node.target),
            "inputs": self._operands(node) if _has_bodies(node) else _inputs(node),
            "outputs": self._outputs(node),
            "metadata": self.metadata.of(node),
        }

    def _outputs(self, node: torch.fx.Node) -> list[Json]:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            self.tensors[node.name] = tensor_meta(value)
            return [{"as_tensor": {"name": node.name}}]
        if isinstance(value, SYMBOLIC):
            return [self._number(node.name, value)]
        if isinstance(value, (list, tuple)):
            return self._several(node, [*value])
        return []

    def _several(self, node: torch.fx.Node, values: list[Any]) -> list[Json]:
        taken = {user.args[1]: user.name for user in node.users if user.target is operator.getitem}
        names = [taken.get(i, f"{node.name}_unused_{i}") for i in range(len(values))]
        if is_write(node):  # the format cannot express a None result: an empty tensor stands for it
            values = [torch.empty(0) if value is None else value for value in values]
        for name, value in zip(names, values, strict=True):
            if isinstance(value, torch.Tensor):
                self.tensors[name] = tensor_meta(value)
        target: Any = node.target
        if _has_bodies(node) and len(values) > 1:
            return [
                {"as_tensor": {"name": name}}
                if isinstance(value, torch.Tensor)
                else self._number(name, value)
                for name, value in zip(names, values, strict=True)
            ]
        if _has_bodies(node) or len(target._schema.returns) == 1:
            return [{"as_tensors": [{"name": name} for name in names]}]
        return [{"as_tensor": {"name": name}} for name in names]


def target_name(target: Any) -> str:  # noqa: ANN401
    """Return the name of a call target in a record."""
    if target in _MEMORY:
        return _MEMORY[target]
    if isinstance(target, OpOverload):
        overload: Any = target
        namespace = llama.WRITTEN if overload.namespace == llama.NAMESPACE else overload.namespace
        return f"torch.ops.{namespace}.{overload.__name__}"
    if isinstance(getattr(target, "_op", None), OpOverload):  # the stock package's operators too
        return _EDGE + target.__name__
    if isinstance(target, HigherOrderOperator):
        return f"torch.ops.higher_order.{target.__name__}"
    if NUMBER_OPERATORS.get(target, "").startswith("sym_"):
        return f"torch.{target.__name__}"
    return f"_operator.{target.__name__}"


def _has_bodies(node: torch.fx.Node) -> bool:
    return isinstance(node.target, HigherOrderOperator)


def _inputs(node: torch.fx.Node) -> list[Json]:
    target: Any = node.target
    schema = getattr(target, "_schema", None)
    if target is alloc:
        spec: Any = node.args[0]
        shape, dtype = spec
        return [{"name": "alloc_arg", "arg": {"as_string": f"{shape};{dtype_code(dtype)}"}}]
    if schema is None:
        pairs = zip(("a", "b"), node.args, strict=False)
        return [{"name": name, "arg": argument(value)} for name, value in pairs]
    found: list[Json] = []
    for place, formal in enumerate(schema.arguments):
        if formal.name in node.kwargs:
            value: Any = node.kwargs[formal.name]
        elif place < len(node.args) and not formal.kwarg_only:
            value = node.args[place]
        else:
            continue
        found.append({"name": formal.name, "arg": argument(value, str(formal.type))})
    return found


def _kinds(op: Any) -> dict[str, str]:  # noqa: ANN401 - an operator overload of torch
    return {formal.name: str(formal.type) for formal in op._schema.arguments}


def _module_call(entry: Any) -> Json:  # noqa: ANN401
    call: Json = {"fqn": entry.fqn}
    if entry.signature is not None:
        call["signature"] = {
            "inputs": [],
            "outputs": [],
            "in_spec": tree_spec_string(entry.signature.in_spec),
            "out_spec": tree_spec_string(entry.signature.out_spec),
        }
    return call


def _signature(program: ExportedProgram) -> Json:
    nodes: list[torch.fx.Node] = list(program.graph.nodes)
    signature = program.graph_signature
    # By place: a deep copy renames placeholders called like a builtin, and not their specs.
    inputs = [*zip(signature.input_specs, (n for n in nodes if n.op == "placeholder"), strict=True)]
    names = {spec.arg.name: node.name for spec, node in inputs}
    results: Any = nodes[-1].args[0]
    return {
        "input_specs": [_input_spec(spec, node) for spec, node in inputs],
        "output_specs": [
            _output_spec(spec, value, names)
            for spec, value in zip(signature.output_specs, results, strict=True)
        ],
    }


def _input_spec(spec: Any, node: torch.fx.Node) -> Json:  # noqa: ANN401
    arg = {"name": node.name}
    if spec.kind == InputKind.PARAMETER:
        return {"parameter": {"arg": arg, "parameter_name": spec.target}}
    if spec.kind == InputKind.BUFFER:
        persistent = bool(spec.persistent)
        return {"buffer": {"arg": arg, "buffer_name": spec.target, "persistent": persistent}}
    if spec.kind == InputKind.CONSTANT_TENSOR:
        return {"tensor_constant": {"arg": arg, "tensor_constant_name": spec.target}}
    value = node.meta.get("val")
    if isinstance(value, (torch.Tensor, torch.SymInt)):
        return {"user_input": {"arg": argument(node)}}
    return {"constant_input": {"name": node.name, "value": argument(value)}}


def _output_spec(spec: Any, value: Any, names: Mapping[str, str]) -> Json:  # noqa: ANN401
    if spec.kind == OutputKind.USER_OUTPUT:
        return {"user_output": {"arg": argument(value)}}
    arg = {"name": value.name}
    if spec.kind == GRADIENT:
        return {"gradient_to_parameter": {"arg": arg, "parameter_name": spec.target}}
    if spec.kind == OutputKind.USER_INPUT_MUTATION:
        return {"user_input_mutation": {"arg": arg, "user_input_name": names[spec.target]}}
    return {"buffer_mutation": {"arg": arg, "buffer_name": spec.target}}
