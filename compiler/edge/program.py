"""Exported program in, edge program out: the front end as one function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.exported_program import ModuleCallEntry, ModuleCallSignature
from torch.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)

from compiler.dialect.dim_order import is_stored_as_it_is
from compiler.dialect.outputs import GRADIENT, is_user_output
from compiler.edge.config import EdgeCompileConfig
from compiler.edge.decompositions import torchs_rule
from compiler.edge.functional import functionalised, without_hard_writes
from compiler.edge.lost_updates import warn_of_lost_updates
from compiler.edge.lower import LoweredGraph, lower
from compiler.edge.tracing import PreservationPolicy
from compiler.edge.verifier import verifier_for
from compiler.errors import HardWriteError
from compiler.untyped import ranges_of
from schema.objects.cyclic_gc import gc_suspended

_SYMBOLIC: dict[type[Any], type[Any]] = {
    torch.SymInt: SymIntArgument,
    torch.SymFloat: SymFloatArgument,
    torch.SymBool: SymBoolArgument,
}


@gc_suspended()
def edge_program(
    program: ExportedProgram, config: EdgeCompileConfig, keeps: PreservationPolicy | None = None
) -> ExportedProgram:
    """Return a new edge program; the given program is not changed.

    Args:
        program: as exported
        config: dim order, verifier, operators to keep
        keeps: decides for each node whether it is decomposed

    Raises:
        UnsupportedError: the program uses something an edge program cannot express
        SpecViolationError: the verifier rejects the result
    """
    warn_of_lost_updates(program)
    source, lowered = _lowered(program, config, keeps)
    return ExportedProgram(
        root=_owner(lowered),
        graph=lowered.graph,
        graph_signature=_signature(source, lowered),
        state_dict=_stored(source.state_dict),
        range_constraints=ranges_of(source),
        module_call_graph=_module_calls(source),
        example_inputs=source.example_inputs,
        constants={**_stored(source.constants), **lowered.lifted},
        verifiers=[verifier_for(config)],
    )


def _stored(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Return tensors by name; those of other layouts, transposed or with gaps, contiguous."""
    found = dict(tensors)
    for name, one in tensors.items():
        if isinstance(one, torch.Tensor) and not is_stored_as_it_is(one):
            copied = one.detach().contiguous()
            weight = isinstance(one, torch.nn.Parameter)
            found[name] = torch.nn.Parameter(copied, one.requires_grad) if weight else copied
    return found


def give_signature_names(program: ExportedProgram) -> None:
    """Rename placeholders to the names of the signature.

    torch's deepcopy renames those called like a builtin (``input``, the argument of
    ``nn.Sequential``, becomes ``input_1``), without changing the signature.
    """
    placeholders = (node for node in program.graph.nodes if node.op == "placeholder")
    for node, spec in zip(placeholders, program.graph_signature.input_specs, strict=False):
        if node.name != spec.arg.name:
            node.name = spec.arg.name


def _lowered(
    program: ExportedProgram, config: EdgeCompileConfig, keeps: PreservationPolicy | None
) -> tuple[ExportedProgram, LoweredGraph]:
    """Return a program without hard writes and its edge graph.

    Operators whose decomposition writes through views are only found while lowering.
    """
    source, apart = without_hard_writes(program), list[Any]()
    while True:
        try:
            return source, lower(source, config, keeps)
        except HardWriteError as error:
            if error.op in apart or torchs_rule(error.op) is None:
                raise
            apart.append(error.op)
            source = functionalised(program, apart)


def _owner(lowered: LoweredGraph) -> torch.nn.Module:
    owner = torch.nn.Module()
    for name, body in lowered.bodies.items():
        setattr(owner, name, body)
    return owner


def _signature(source: ExportedProgram, lowered: LoweredGraph) -> ExportGraphSignature:
    given = {spec.arg.name: spec for spec in source.graph_signature.input_specs}
    inputs = [
        given.get(node.name) or _lifted_spec(node.name)
        for node in lowered.graph.nodes
        if node.op == "placeholder"
    ]
    written = [_written_spec(given[name], value) for name, value in lowered.written.items()]
    kinds = [spec for spec in source.graph_signature.output_specs if is_user_output(spec)]
    outputs = [
        OutputSpec(GRADIENT, _argument(value), kind.target)
        if kind.kind == GRADIENT
        else OutputSpec(OutputKind.USER_OUTPUT, _argument(value), None)
        for value, kind in zip(lowered.outputs, kinds, strict=True)
    ]
    return ExportGraphSignature(inputs, [*written, *outputs])


def _lifted_spec(name: str) -> InputSpec:
    return InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(name=name), target=name)


def _written_spec(spec: InputSpec, value: torch.fx.Node) -> OutputSpec:
    argument = TensorArgument(name=value.name)
    if spec.kind == InputKind.USER_INPUT:
        return OutputSpec(OutputKind.USER_INPUT_MUTATION, argument, spec.arg.name)
    if spec.kind == InputKind.PARAMETER:
        return OutputSpec(OutputKind.PARAMETER_MUTATION, argument, spec.target)
    return OutputSpec(OutputKind.BUFFER_MUTATION, argument, spec.target)


def _argument(value: Any) -> Any:  # noqa: ANN401
    if not isinstance(value, torch.fx.Node):
        return ConstantArgument(name="", value=value)
    for kind, argument in _SYMBOLIC.items():
        if isinstance(value.meta["val"], kind):
            return argument(name=value.name)
    return TensorArgument(name=value.name)


def _module_calls(source: ExportedProgram) -> list[ModuleCallEntry]:
    """Return the module call signatures without node names, which have changed."""
    calls: list[ModuleCallEntry] = []
    for entry in source.module_call_graph:
        given = entry.signature if entry.fqn == "" else None
        signature = None
        if given is not None:
            signature = ModuleCallSignature(
                [], [], given.in_spec, given.out_spec, given.forward_arg_names
            )
        calls.append(ModuleCallEntry(entry.fqn, signature))
    return calls
