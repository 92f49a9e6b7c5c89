"""Constant folding."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputSpec,
    TensorArgument,
)

from compiler.dialect.copies import ProgramDraft
from compiler.dialect.dim_order import CLONE_DIM_ORDER, dim_order_of, in_dim_order
from compiler.dialect.ops import EdgeOp, edge_op
from compiler.dialect.templates import nodes_in, walk
from compiler.edge.written_buffers import WRITTEN_ELSEWHERE
from compiler.interface.external_weights import is_exchanged_by_name, mark_for_folded
from compiler.memory.specs import raw_bytes
from compiler.passes.base import ExportedProgramPassBase, ExportedProgramPassResult
from compiler.passes.fake import fake_mode_of
from compiler.passes.signature import constant_values, updated_signature
from compiler.passes.standard.dead_code import drop_unused_weights
from compiler.passes.standard.folded_expressions import folded_expressions
from compiler.untyped import OpOverload, aten

Node = torch.fx.Node
PREFIX = "_prop_tensor_constant"
# A constant filled with one value is larger in the file than the operator that fills it.
_SKIPPED: frozenset[Any] = frozenset((edge_op(aten.full.default), edge_op(aten.full_like.default)))
_QUANTIZED = "quantized_decomposed"


class ConstantPropPass(ExportedProgramPassBase):
    """Replaces nodes whose inputs are all constants; bodies of control flow are not changed."""

    def __init__(self, custom_skip_targets: Collection[Any] | None = None) -> None:
        """Set the operators that are not folded.

        Args:
            custom_skip_targets: edge operators; None for ``full`` and quantization
        """
        self._skip_targets = custom_skip_targets

    def call(self, exported_program: ExportedProgram) -> ExportedProgramPassResult:
        """Return a program without the nodes that could be computed."""
        built = constant_prop_pass(exported_program, self._skip_targets)
        return ExportedProgramPassResult(built, built is not exported_program)


def constant_prop_pass(
    exported_program: ExportedProgram,
    custom_skip_targets: Collection[Any] | None = None,
    _skip_dim_order: bool = False,
) -> ExportedProgram:
    """Return a program with folded constants.

    Args:
        exported_program: an edge program, or as exported; it is not changed
        custom_skip_targets: operators not to fold; None for ``full`` and quantization
        _skip_dim_order: copy a returned constant by ``clone``, not ``_clone_dim_order``

    Returns: the given program if nothing could be folded
    """
    return _propagated(
        exported_program,
        lambda node: _may_compute(node, custom_skip_targets),
        skip_dim_order=_skip_dim_order,
    )


def with_quantized_constants(
    edge: ExportedProgram, *, expressions: bool = False
) -> ExportedProgram:
    """Return a program in which quantized constants are folded to integer constants.

    ``convert_pt2e(..., fold_quantize=False)`` leaves this to the lowering.

    Args:
        edge: an edge program; it is not changed
        expressions: fold what is computed from weights alone too, where that makes the file no
            larger

    Returns: the given program if nothing is folded
    """
    weights = set(_constants(edge.graph, edge.graph_signature, edge))
    fixed = set(weights)
    requested: set[Node] = set()
    for node in edge.graph.nodes:
        inputs = node.all_input_nodes
        if not inputs or not fixed.issuperset(inputs):
            continue
        if _may_compute(node, None):
            fixed.add(node)
        elif _quantizes(node):
            requested |= _ancestors(node)
    if expressions:
        left = requested.copy()
        requested |= folded_expressions(
            edge.graph, weights, lambda node: node not in left and _may_compute(node, None)
        )
    if not requested:
        return edge
    names = {node.name for node in requested}
    return _propagated(edge, lambda node: node.name in names, skip_dim_order=False, hashed=True)


def _quantizes(node: Node) -> bool:
    target: Any = node.target
    if node.op != "call_function" or not isinstance(target, EdgeOp):
        return False
    name = target.op._schema.name
    return name.startswith(f"{_QUANTIZED}::quantize_")


def _ancestors(node: Node) -> set[Node]:
    found, left = {node}, [node]
    while left:
        new = set(left.pop().all_input_nodes) - found
        found |= new
        left += new
    return found


def _propagated(
    exported_program: ExportedProgram,
    may: Callable[[Node], bool],
    *,
    skip_dim_order: bool,
    hashed: bool = False,
) -> ExportedProgram:
    """Return a program in which foldable nodes are constants.

    Args:
        exported_program: it is not changed
        may: decides whether a node is folded if its inputs are known
        skip_dim_order: as for ``constant_prop_pass``
        hashed: name constants by their content, so that equal ones of several methods share a
            name in a data file, and different ones do not
    """
    draft = ProgramDraft.of(exported_program)
    known = _computed(draft, may)
    found = {node: value for node, value in known.items() if node.op == "call_function"}
    if not found:
        return exported_program
    specs = _replaced(draft, found, hashed=hashed)
    draft.signature = _with_constants(draft, specs)
    _copy_returned(draft.graph, set(specs), _clone_of(found, skip_dim_order=skip_dim_order))
    draft.graph.eliminate_dead_code(is_impure_node=_is_fixed)
    draft.signature = updated_signature(draft.signature, draft.graph, "constant_prop_pass")
    drop_unused_weights(draft)
    return draft.built(exported_program)


def _computed(draft: ProgramDraft, may: Callable[[Node], bool]) -> dict[Node, Any]:
    known: dict[Node, Any] = {**_constants(draft.graph, draft.signature, draft)}
    for node in draft.graph.nodes:
        called = node.op == "call_function"
        if called and may(node) and all(i in known for i in node.all_input_nodes):
            value = _value(node, known)
            if value is not None:
                known[node] = value
    return known


def _constants(
    graph: torch.fx.Graph, signature: ExportGraphSignature, data: ExportedProgram | ProgramDraft
) -> dict[Node, torch.Tensor]:
    """Return the values of weights and constants that no method writes and no file exchanges."""
    values = constant_values(signature, {**data.constants, **data.state_dict})
    return {
        node: values[node.name]
        for node in graph.nodes
        if node.op == "placeholder" and node.name in values
        if WRITTEN_ELSEWHERE not in node.meta and not is_exchanged_by_name(node)
    }


def _may_compute(node: Node, skipped: Collection[Any] | None) -> bool:
    target: Any = node.target
    if node.op != "call_function":
        return False
    if target is operator.getitem:
        return True
    if not isinstance(target, (EdgeOp, OpOverload)) or target._schema.is_mutable:
        return False
    if torch.Tag.nondeterministic_seeded in target.tags:
        return False
    if skipped is not None:
        return target not in skipped
    edge = target if isinstance(target, EdgeOp) else edge_op(target)
    return edge not in _SKIPPED and edge.namespace != _QUANTIZED


def _value(node: Node, known: Mapping[Node, Any]) -> Any:  # noqa: ANN401
    def real(leaf: Any) -> Any:  # noqa: ANN401
        return known[leaf] if isinstance(leaf, Node) else leaf

    args, kwargs = walk(real, (tuple(node.args), dict(node.kwargs)))
    target: Any = node.target
    with torch.no_grad():
        try:
            value = target(*args, **kwargs)
        except RuntimeError:  # no kernel here for this dtype; the runtime may have one
            return None
    return walk(lambda leaf: _plain(leaf, node), value)


def _plain(leaf: Any, node: Node) -> Any:  # noqa: ANN401
    if not isinstance(leaf, torch.Tensor):
        return leaf
    expected: Any = node.meta["val"]
    order = dim_order_of(expected) if isinstance(expected, torch.Tensor) else None
    leaf = leaf.detach()
    if not isinstance(node.target, EdgeOp):  # an ATen operator may return a view
        return leaf.clone()
    if order is not None and tuple(expected.stride()) != tuple(leaf.stride()):
        return in_dim_order(leaf, order)
    return leaf


def _replaced(
    draft: ProgramDraft, found: Mapping[Node, Any], *, hashed: bool
) -> dict[Node, InputSpec]:
    """Replace folded nodes by placeholders; add their tensors to the constants or the weights."""
    graph, taken = draft.graph, {*draft.constants, *draft.state_dict}
    mode = fake_mode_of(graph.nodes)
    anchor = next(n for n in graph.nodes if n.op != "placeholder")
    weights = _weights(draft)
    specs: dict[Node, InputSpec] = {}
    built: dict[str, Node] = {}
    free = (
        f"{PREFIX}{i}" for i in range(len(taken) + len(found) + 1) if f"{PREFIX}{i}" not in taken
    )
    for node, value in found.items():
        if not isinstance(value, torch.Tensor) or all(user in found for user in node.users):
            continue
        name = _hashed_name(value, taken) if hashed else next(free)
        if name in built:  # an equal one
            node.replace_all_uses_with(built[name], delete_user_cb=lambda user: user not in found)
            continue
        with graph.inserting_before(anchor):
            new = graph.placeholder(name)
        fake = mode.from_tensor(value, static_shapes=True)
        new.meta = {**node.meta, "val": fake, **mark_for_folded(node)}
        built[name] = new
        argument = TensorArgument(name=new.name)
        # What came from weights is stored where weights are, in a data file if requested. It is
        # a buffer of the state: one that is not kept is taken for a state without a value.
        of_weights = hashed and not weights.isdisjoint(_ancestors(node))
        (draft.state_dict if of_weights else draft.constants)[name] = value
        kind = InputKind.BUFFER if of_weights else InputKind.CONSTANT_TENSOR
        specs[new] = InputSpec(kind, argument, name, persistent=True)
        node.replace_all_uses_with(new, delete_user_cb=lambda user: user not in found)
    return specs


def _hashed_name(value: torch.Tensor, taken: Collection[str]) -> str:
    described = f"{value.dtype} {tuple(value.shape)} {tuple(value.stride())}".encode()
    digest = hashlib.sha256(described)
    digest.update(raw_bytes(value))
    name = f"{PREFIX}_{digest.hexdigest()[:12]}"
    while name in taken:
        name += "_"
    return name


def _weights(draft: ProgramDraft) -> set[Node]:
    kinds = (InputKind.PARAMETER, InputKind.BUFFER)
    names = {s.arg.name for s in draft.signature.input_specs if s.kind in kinds}
    return {node for node in draft.graph.nodes if node.name in names}


def _with_constants(draft: ProgramDraft, specs: Mapping[Node, InputSpec]) -> ExportGraphSignature:
    """Move the new placeholders before the user's inputs; return the signature with them."""
    signature = draft.signature
    inputs = list(signature.input_specs)
    users = [place for place, spec in enumerate(inputs) if spec.kind == InputKind.USER_INPUT]
    if users:
        name = inputs[users[0]].arg.name
        anchor = next(node for node in draft.graph.nodes if node.name == name)
        for node in specs:
            anchor.prepend(node)
    place = users[0] if users else len(inputs)
    outputs = [OutputSpec(spec.kind, spec.arg, spec.target) for spec in signature.output_specs]
    return ExportGraphSignature([*inputs[:place], *specs.values(), *inputs[place:]], outputs)


def _clone_of(computed: Iterable[Node], *, skip_dim_order: bool) -> Any:  # noqa: ANN401
    """Return the operator that copies a tensor, in the dialect of the nodes."""
    if not any(isinstance(node.target, EdgeOp) for node in computed):
        return aten.clone.default
    return edge_op(aten.clone.default if skip_dim_order else CLONE_DIM_ORDER)


def _copy_returned(graph: torch.fx.Graph, constants: set[Node], target: Any) -> None:  # noqa: ANN401
    """Copy constants that the program returns: a result needs separate memory."""
    last = next(iter(reversed(graph.nodes)))
    returned = {node for node in nodes_in(last.args) if node in constants}
    for node in returned:
        order: Any = [*dim_order_of(node.meta["val"])]
        options = {"dim_order": order} if target is edge_op(CLONE_DIM_ORDER) else {}
        with graph.inserting_before(last):
            copied = graph.call_function(target, (node,), options)
        copied.meta = dict(node.meta)
        last.replace_input_with(node, copied)


def _is_fixed(node: Node) -> bool:
    return node.op in ("placeholder", "output")
