"""Programs with in-place writes, and which of them torch must functionalize."""

from __future__ import annotations

import operator
import re
import warnings
from collections.abc import Sequence
from typing import Any, cast

import torch
import torch._export.config as export_config
from torch.export import ExportedProgram

from compiler.dialect.functional_variants import has_functional_variant, returns_alias
from compiler.edge.decompositions import torchs_rule
from compiler.errors import UnsupportedError
from compiler.untyped import HigherOrderOperator, OpOverload, aten

_config: Any = cast("Any", export_config)
_CUSTOM = "custom"  # metadata of users, which torch keeps
_PART = re.compile(r"(?P<owner>(.*\.)?)parametrizations\.(?P<weight>\w+)\.original\d+")  # by torch


def without_hard_writes(program: ExportedProgram) -> ExportedProgram:
    """Return a program whose in-place writes are simple: to entire values without views.

    A program with other writes is functionalized by torch, which retraces it completely; all others
    are returned unchanged.

    Bodies of control flow must not write at all.
    """
    if any(_is_hard(node) for node in program.graph.nodes) or _bodies_write(program):
        return functionalised(program)
    return program


def functionalised(program: ExportedProgram, apart: Sequence[Any] = ()) -> ExportedProgram:
    """Return a program functionalized by torch.

    Args:
        program: as exported
        apart: composite operators to decompose, since their parts write
    """
    # auto_functionalized_v2 describes views by strides, which no kernel supports.
    form = _config.patch(enable_auto_functionalized_v2_for_export=False)
    with warnings.catch_warnings(), form:  # torch copies one of its own deprecated classes
        warnings.filterwarnings("ignore", ".*LeafSpec", FutureWarning)
        untyped: Any = program
        try:
            found: ExportedProgram = untyped.run_decompositions(
                {op: torchs_rule(op) for op in apart}
            )
        except RuntimeError as error:
            raise UnsupportedError(f"torch cannot functionalize the writes: {error}") from error
    _copy_custom_to_parts(program, found)
    return found


def _copy_custom_to_parts(given: ExportedProgram, program: ExportedProgram) -> None:
    """Give the parts of tensor subclasses, such as quantized weights, the metadata of the weights.

    Args:
        given: with metadata such as the files of weights
        program: the same one decomposed by torch, which keeps those of whole weights only
    """
    names = _weights(given)
    known = {
        names[node.name]: node.meta[_CUSTOM]
        for node in given.graph.nodes
        if node.name in names and _CUSTOM in node.meta
    }
    names = _weights(program)
    for node in program.graph.nodes:
        part = _PART.fullmatch(names.get(node.name, ""))
        whole = part and part["owner"] + part["weight"]
        if whole in known and _CUSTOM not in node.meta:
            node.meta[_CUSTOM] = known[whole]


def _weights(program: ExportedProgram) -> dict[str, str]:
    """Return the names of parameters and buffers by the names of their nodes."""
    signature = program.graph_signature
    return {**signature.inputs_to_parameters, **signature.inputs_to_buffers}


def _bodies_write(program: ExportedProgram) -> bool:
    graphs = [
        m.graph for m in program.graph_module.modules() if isinstance(m, torch.fx.GraphModule)
    ]
    return any(_writes(node) for graph in graphs[1:] for node in graph.nodes)


def _writes(node: torch.fx.Node) -> bool:
    target: Any = node.target
    if target is aten.detach_.default:
        return False  # after each tensor that a body creates from scalars; it changes no element
    return isinstance(target, OpOverload) and (bool(target._schema.is_mutable) or _is_hard(node))


def _is_hard(node: torch.fx.Node) -> bool:
    if node.op != "call_function":
        return False
    if not isinstance(node.target, OpOverload):
        # Regions such as torch.no_grad() are calls too; torch inlines their nodes.
        name = getattr(node.target, "__name__", "")
        return isinstance(node.target, HigherOrderOperator) and name.startswith("wrap_with_")
    target: Any = node.target
    if target.namespace == "export":
        return True  # a part of a weight that is a tensor subclass, which torch decomposes
    if target is aten.batch_norm.default and node.args[5]:
        return True  # it writes its running statistics, which its schema does not say
    return bool(target._schema.is_mutable) and not _is_simple_write(node, target)


def _is_simple_write(node: torch.fx.Node, target: Any) -> bool:  # noqa: ANN401
    base = node.args[0] if node.args else None
    if not isinstance(base, torch.fx.Node) or not has_functional_variant(target):
        return False
    if _is_alias(base):
        return False
    return not any(_is_alias(user) for user in base.users if user is not node)


def _is_alias(node: torch.fx.Node) -> bool:
    target: Any = node.target
    if target is operator.getitem and isinstance(node.args[0], torch.fx.Node):
        return _is_alias(node.args[0])
    if not isinstance(target, OpOverload) or node.op != "call_function":
        return False
    if bool(target._schema.is_mutable):
        return False
    return returns_alias(target) or target in _MAY_ALIAS


# Composite operators that return a view or their input where they can; their schemas differ.
_MAY_ALIAS = frozenset(
    (
        aten.reshape.default,
        aten.flatten.using_ints,
        aten.contiguous.default,
        aten.to.dtype,
        aten.to.device,
        aten.to.dtype_layout,
        aten.to.other,
        aten.dropout.default,
    )
)
