"""Helpers of graphs and programs that passes and backends written for ExecuTorch import."""

from __future__ import annotations

import copy
import operator
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch.export import ExportedProgram, default_decompositions
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx.passes.utils import fuser_utils

from compiler.compat.delegated_graphs import get_control_flow_submodules
from compiler.dialect.templates import walk
from compiler.edge.decompositions import decomposition_of
from compiler.emit.backend_options import DynamicMemoryPlanningMode
from compiler.passes.base import PassResult, PassType
from compiler.passes.manager import PassManager
from compiler.passes.pipeline import managed
from compiler.passes.standard.spec_prop import SpecPropPass
from compiler.passes.standard.sym_shapes import HintBasedSymShapeEvalPass
from compiler.untyped import OpOverload, ranges_of

Node = torch.fx.Node
_fuser: Any = fuser_utils
_getitem = operator.getitem
_SCALARS = (int, float, bool, str)
_WRITTEN = (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION)


def transform(
    program: ExportedProgram, *passes: PassType, override_verifiers: Sequence[Any] | None = None
) -> ExportedProgram:
    """Return the program transformed by passes; the given one is not changed.

    Args:
        program: edge or exported program
        *passes: in order
        override_verifiers: verifiers of the result; None keeps those of the program

    Raises: PassError for a pass that fails
    """
    assert not any(isinstance(one, list) for one in passes), "expected passes, not a list of them"
    return managed(PassManager([*passes]), program, override_verifiers).exported_program


def map_args(
    op: Any,  # noqa: ANN401 - an operator overload
    fn: Callable[[Any, Any], Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call after `fn(value, argument of the schema)` of each."""
    changed, named = [*args], dict(kwargs)
    for place, argument in enumerate(op._schema.arguments):
        if argument.name in named:
            named[argument.name] = fn(named[argument.name], argument)
        elif not argument.kwarg_only and place < len(changed):
            changed[place] = fn(changed[place], argument)
    return tuple(changed), named


def is_identical_graph(left: torch.fx.GraphModule, right: torch.fx.GraphModule) -> bool:
    """Return whether two graphs have the same calls of the same values in the same order."""
    ones, others = [*left.graph.nodes], [*right.graph.nodes]
    if len(ones) != len(others):
        return False
    places = {node: place for nodes in (ones, others) for place, node in enumerate(nodes)}
    return all(
        _key(one, left, places) == _key(other, right, places)
        for one, other in zip(ones, others, strict=True)
    )


def _key(node: Node, module: torch.fx.GraphModule, places: Mapping[Node, int]) -> Any:  # noqa: ANN401
    target = node.target
    if node.op == "placeholder":
        target = ""  # the name of an input does not matter
    elif node.op == "get_attr":
        found: Any = module
        for part in str(target).split("."):
            found = getattr(found, part)
        target = id(found) if isinstance(found, torch.Tensor) else str(target)
    given = walk(
        lambda leaf: f"%{places[leaf]}" if isinstance(leaf, Node) else leaf,
        (node.args, dict(node.kwargs)),
    )
    return node.op, target, repr(given)


def create_submodule_from_nodes(
    gm: torch.fx.GraphModule,
    node_list: Sequence[Node],
    tag: str,
    skip_legalize_graph: bool = False,
) -> tuple[torch.fx.GraphModule, Node]:
    """Move nodes into a module `fused_TAG` that the graph calls, and return it and the call.

    Args:
        gm: changed in place
        node_list: calls that one call can replace: none reads a value computed between them
        tag: suffix of the module name
        skip_legalize_graph: keep the order of the nodes instead of restoring a valid one

    Raises: RuntimeError if one call cannot replace the nodes
    """
    order = _fuser.topo_sort([*node_list])
    name = f"fused_{tag}"
    inner, inputs, outputs = _fuser.fuse_as_graphmodule(gm, order, name)
    end = inner.graph.output_node()
    results = end.args[0]
    end.args = ([*results] if isinstance(results, (list, tuple)) else [results],)
    _fuser.insert_subgm(gm, inner, inputs, outputs)
    calls = [node for node in gm.graph.nodes if node.op == "call_module" and node.target == name]
    if len(calls) != 1:
        raise RuntimeError(
            f"the nodes {[*node_list]} are not a connected part of the graph {gm.graph}"
        )
    call = calls[0]
    if len(outputs) == 1 and isinstance(outputs[0].meta.get("val"), torch.Tensor):
        with gm.graph.inserting_after(call):
            first = gm.graph.call_function(_getitem, (call, 0))
        first.meta = dict(outputs[0].meta)
        for user in [*call.users]:
            if user is not first:
                user.replace_input_with(call, first)
    for user in call.users:  # its sources are not located at the call
        for key in ("nn_module_stack", "source_fn_stack"):
            user.meta.pop(key, None)
    _fuser.erase_nodes(gm, order)
    if not skip_legalize_graph:
        _fuser.legalize_graph(gm)
    return inner, next(node for node in gm.graph.nodes if node.target == name)


def arrange_graph_outputs(
    gm: torch.fx.GraphModule, output_specs: list[Any], call_module_node: Node
) -> torch.fx.GraphModule:
    """Reorder results in place: mutated values before the user's.

    Args:
        gm: a module that a graph calls
        output_specs: specs of its results; reordered with them
        call_module_node: the call, whose `getitem` users are renumbered

    Raises: RuntimeError if there are not as many results as specs
    """
    end = gm.graph.output_node()
    results: Any = end.args[0]
    if len(results) != len(output_specs):
        raise RuntimeError(f"{len(results)} results of the graph, {len(output_specs)} output specs")
    order = sorted(range(len(results)), key=lambda place: output_specs[place].kind not in _WRITTEN)
    end.args = (type(results)(results[place] for place in order),)
    output_specs[:] = [output_specs[place] for place in order]
    for user in call_module_node.users:
        if user.target is _getitem:
            user.args = (call_module_node, order.index(int(str(user.args[1]))))
    gm.recompile()
    return gm


def get_fake_program(real_exported_program: ExportedProgram) -> ExportedProgram:
    """Return a copy whose state has sizes and no values; constants are shared.

    Raises: AssertionError if no placeholder has a fake value
    """
    program: Any = real_exported_program
    values = [node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"]
    mode: Any = detect_fake_mode(tuple(values))
    assert mode is not None, f"no fake values at the placeholders of {program.graph}"
    with warnings.catch_warnings():  # torch copies one of its own deprecated classes
        warnings.filterwarnings("ignore", ".*LeafSpec", FutureWarning)
        module = copy.deepcopy(program.graph_module)
        calls = copy.deepcopy(program.module_call_graph)
    state = {
        name: mode.from_tensor(tensor, static_shapes=True)
        for name, tensor in program.state_dict.items()
    }
    return ExportedProgram(
        root=module,
        graph=module.graph,
        graph_signature=copy.deepcopy(program.graph_signature),
        state_dict=state,
        range_constraints=copy.deepcopy(ranges_of(program)),
        module_call_graph=calls,
        constants=program.constants,
        verifiers=[program.verifier],
    )


def update_to_real_program(
    fake_exported_program: ExportedProgram, real_exported_program: ExportedProgram
) -> None:
    """Replace the state of a fake program by that of the real one, in place."""
    fake_exported_program.state_dict.update(real_exported_program.state_dict)


def do_user_inputs_exist(graph_signature: Any) -> bool:  # noqa: ANN401
    """Return whether a program has inputs that are not scalars or strings."""
    specs: list[Any] = [] if graph_signature is None else graph_signature.input_specs
    given: list[Any] = [spec.arg for spec in specs if spec.kind == InputKind.USER_INPUT]
    return any(not isinstance(getattr(one, "value", None), _SCALARS) for one in given)


def default_decomposition_table() -> dict[Any, Callable[..., Any]]:
    """Return the decomposition table of the lowering, for `run_decompositions`."""
    table: Any = default_decompositions()
    kept: dict[Any, Any] = {op: _own_rule(op) or rule for op, rule in table.items()}
    norm = torch.ops.aten.linalg_vector_norm.default
    own = decomposition_of(norm)
    return {**kept, **({} if own is None else {norm: own})}


def _own_rule(op: Any) -> Callable[..., Any] | None:  # noqa: ANN401
    """Return our decomposition of an operator, with the signature that torch's tables need."""
    rule: Any = decomposition_of(op)
    return None if getattr(rule, "__self__", None) is op else rule


def contains_any_call_fn_target_op(
    graph_module: torch.fx.GraphModule, ops: Collection[Any]
) -> bool:
    """Return whether a graph, or a body of control flow in it, calls any of some operators.

    Args:
        graph_module: its calls of edge operators count as those of the overloads below
        ops: overloads of torch
    """
    modules: list[torch.fx.GraphModule] = [graph_module]
    while modules:
        module = modules.pop()
        for node in module.graph.nodes:
            target: Any = node.target
            below = target if isinstance(target, OpOverload) else getattr(target, "_op", target)
            if node.op == "call_function" and below in ops:
                return True
        modules += [body for _, body, _ in get_control_flow_submodules(module)]
    return False


def bfs_trace_with_node_process(
    gm: torch.fx.GraphModule, node_op: Callable[[torch.fx.Node], Any]
) -> None:
    """Call a function with each node of a graph and then of the bodies of control flow in it."""
    modules = [gm]
    for module in modules:
        for node in module.graph.nodes:
            node_op(node)
        modules += [body for _, body, _ in get_control_flow_submodules(module)]


def get_submodule(
    graph_module: torch.fx.GraphModule, node: Node, arg_index: int
) -> tuple[str, torch.nn.Module, Node]:
    """Return name and module of an argument of a call, and the call."""
    home = node.args[arg_index]
    assert isinstance(home, Node), f"argument {arg_index} of {node} is not a module: {home}"
    name = str(home.target)
    return name, graph_module.get_submodule(name), node


def dead_code_elimination_pass(graph_module: torch.fx.GraphModule) -> Any:  # noqa: ANN401
    """Remove dead code from a graph and its bodies in place; return a PassResult."""
    changed = False
    for module in graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            changed |= bool(module.graph.eliminate_dead_code())
            module.recompile()
    return PassResult(graph_module, changed)


def propagate_dynamic_shape(
    dynamic_memory_planning_mode: DynamicMemoryPlanningMode = DynamicMemoryPlanningMode.UPPER_BOUND,
) -> list[PassType]:
    """Return the passes that give nodes specs with concrete sizes.

    Args:
        dynamic_memory_planning_mode: accepted as documented
    """
    del dynamic_memory_planning_mode
    return [SpecPropPass(), HintBasedSymShapeEvalPass()]
