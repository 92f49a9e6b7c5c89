"""Runs passes over a copy of a program in sequence; each is a stage with events."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    TensorArgument,
)

from compiler.dialect.copies import copied_graph, copied_root, rebuilt
from compiler.edge.config import EdgeCompileConfig
from compiler.edge.verifier import EdgeVerifier, check_program, verifier_for
from compiler.errors import CancelledError, CompileError
from compiler.interface.external_weights import mark_for_folded
from compiler.passes.base import (
    ExportedProgramPassResult,
    PassError,
    PassType,
    flat_passes,
    graph_result,
    pass_name,
    program_result,
    takes_program,
)
from compiler.passes.fake import fake_mode_of
from compiler.passes.in_place import has_writes, without_writes
from compiler.passes.lineage import Snapshot, restore_metadata, snapshot
from compiler.passes.manager import PassManager
from compiler.passes.signature import constant_values, updated_signature
from compiler.stages import Stages
from schema.objects.cyclic_gc import gc_suspended

_LENT = ("_graph_module", "_graph_signature", "_state_dict", "_constants")
_USER = InputKind.USER_INPUT


@dataclass
class _PassState:
    """A program between two passes.

    Attributes:
        base: the parts that graph module passes cannot change
        module: the current graph
        signature: of the graph
        state: weights and buffers
        constants: further tensors of the program
        given: the program that passes may reference; it mirrors this state while they run
        holders: passes that reference it, and change it permanently
    """

    base: ExportedProgram
    module: torch.fx.GraphModule
    signature: ExportGraphSignature
    state: dict[str, Any]
    constants: dict[str, Any]
    given: ExportedProgram
    holders: Sequence[PassType] = ()

    @contextlib.contextmanager
    def lent(self, one: PassType) -> Generator[None, None, None]:
        """Mirror the state in the given program while a pass runs.

        A pass created with `manager.exported_program()` sees its graph in that
        program, and placeholders, weights and a signature that it adds there are adopted.
        Only changes of such a pass persist in the program itself.
        """
        held: Any = self.given
        before = {name: getattr(held, name) for name in _LENT}
        now = (self.module, self.signature, self.state, self.constants)
        _set(held, zip(_LENT, now, strict=True))
        try:
            yield
            _, self.signature, self.state, self.constants = (getattr(held, name) for name in _LENT)
            if one in self.holders:
                before = {}
                self.state, self.constants = dict(self.state), dict(self.constants)
                self.signature = copy.deepcopy(self.signature)
        finally:
            _set(held, before.items())

    def program(self, verifiers: list[Any]) -> ExportedProgram:
        """Return the current program, checked by these verifiers."""
        with gc_suspended():
            return self._program(verifiers)

    def _program(self, verifiers: list[Any]) -> ExportedProgram:
        root: torch.nn.Module = self.module
        graph = self.module.graph
        if self.module is self.given.graph_module:  # a pass changed the program that it holds
            root, graph = copied_root(root), copied_graph(graph)
        built = rebuilt(
            self.base,
            root,
            graph,
            signature=self.signature,
            state_dict=self.state,
            constants=self.constants,
            verifiers=verifiers,
        )
        built.graph_module.meta.update(self.module.meta)
        return built


def _set(program: Any, parts: Iterable[tuple[str, Any]]) -> None:  # noqa: ANN401
    for name, part in parts:
        setattr(program, name, part)


def transformed(
    program: ExportedProgram,
    passes: Sequence[PassType] | PassManager,
    config: EdgeCompileConfig,
    stages: Stages,
    method: str = "",
) -> ExportedProgram:
    """Return the transformed program; the given one is not changed.

    Each pass is a stage named ``pass NAME``. The output of a pass is completed (values, source
    lines and debug handles of new nodes) and verified before the next one sees it.

    Raises:
        PassError: a pass raised, or returned an invalid result
        SpecViolationError: the verifier rejects the output of a pass
    """
    work = _begun(program)
    _all(work, passes, config, stages, method)
    return work.program([verifier_for(config)])


def _begun(program: ExportedProgram) -> _PassState:
    with gc_suspended():
        root, graph = copied_root(program.graph_module), copied_graph(program.graph)
        module = torch.fx.GraphModule(root, graph)
    module.meta = dict(program.graph_module.meta)
    signature = copy.deepcopy(program.graph_signature)
    state, constants = dict(program.state_dict), dict(program.constants)
    work = _PassState(program, module, signature, state, constants, program)
    if _is_incomplete(program.graph_module):
        _complete(work, Snapshot({}), "before the first")
    return work


def completed(program: ExportedProgram) -> ExportedProgram:
    """Return a manually edited program with the missing metadata of its new nodes.

    In-place operators are replaced by functional ones. A program without such nodes is
    returned unchanged, and the given one is never modified.

    Raises: PassError naming a node whose operator rejects its arguments
    """
    kept: list[Any] = list(program.verifiers)
    if _is_incomplete(program.graph_module):
        program = _begun(program).program([EdgeVerifier] if has_writes(program) else kept)
    return without_writes(program, kept)


def _is_incomplete(module: torch.fx.GraphModule) -> bool:
    calls = False
    for node in module.graph.nodes:
        if node.op == "call_function" and "val" not in node.meta:
            return True
        if node.op == "placeholder" and calls:
            return True
        calls = calls or node.op == "call_function"
    return False


class ExportedProgramPassManager(PassManager):
    """Runs passes over a program: program passes and graph module passes."""

    def __call__(
        self, module: ExportedProgram, override_verifiers: Sequence[Any] | None = None
    ) -> ExportedProgramPassResult:
        """Return the transformed program; the given one is not changed.

        Args:
            module: the program
            override_verifiers: of the program that is returned, instead of the given one's

        Raises: PassError naming the pass that failed, or behind which a check fails
        """
        return managed(self, module, override_verifiers)


def managed(
    manager: PassManager, program: ExportedProgram, verifiers: Sequence[Any] | None = None
) -> ExportedProgramPassResult:
    """Return a program transformed by the passes of a manager, outside of a compile.

    Raises: PassError naming the pass that failed, or behind which a check fails
    """
    work, config = _begun(program), EdgeCompileConfig(_check_ir_validity=False)
    modified = _all(work, manager, config, Stages(), "")
    kept = list(program.verifiers if verifiers is None else verifiers)
    return ExportedProgramPassResult(work.program(kept), modified)


def _all(
    work: _PassState,
    passes: Sequence[PassType] | PassManager,
    config: EdgeCompileConfig,
    stages: Stages,
    method: str,
) -> bool:
    def step(one: PassType) -> bool:
        return _stage(work, one, config, stages, method)

    flat = passes.passes if isinstance(passes, PassManager) else flat_passes(passes)
    work.holders = [one for one in flat if _holds(one, work.given)]
    if isinstance(passes, ExportedProgramPassManager):
        return passes.drive(step, lambda: work.program([EdgeVerifier]))
    if isinstance(passes, PassManager):
        return passes.drive(step, lambda: work.module)
    changed = [step(one) for one in flat]
    return any(changed)


def _holds(one: Any, program: ExportedProgram) -> bool:  # noqa: ANN401
    """Return whether a pass references a program in its attributes or closure."""
    owner = getattr(one, "__self__", one)
    cells = [cell.cell_contents for cell in getattr(one, "__closure__", None) or ()]
    return any(value is program for value in (*getattr(owner, "__dict__", {}).values(), *cells))


def _stage(
    work: _PassState, one: PassType, config: EdgeCompileConfig, stages: Stages, method: str
) -> bool:
    name = pass_name(one)
    with stages.stage(f"pass {name}", method) as reported:
        modified = _run(work, one, config, name)
        reported.graph = work.module.graph
        reported.modules = {method: work.module}
    return modified


def _run(work: _PassState, one: PassType, config: EdgeCompileConfig, name: str) -> bool:
    with gc_suspended():
        before = snapshot(work.module)
    if takes_program(one):
        modified = _run_on_program(work, one, name)
    else:
        one = _informed(one, work)
        with work.lent(one):
            found = _called(one, work.module, name)
        result = graph_result(one, work.module, found)
        work.module, modified = result.graph_module, bool(result.modified)
    with gc_suspended():
        _complete(work, before, name)
        check_program(work.module, work.signature, config, after=name)
    return modified


def _complete(work: _PassState, before: Snapshot, name: str) -> None:
    _placeholders_first(work.module.graph)
    _lift(work)
    restore_metadata(before, work.module, name)
    work.signature = updated_signature(work.signature, work.module.graph, name)


def _placeholders_first(graph: torch.fx.Graph) -> None:
    """Move placeholders in front of the nodes that a pass inserted between them."""
    anchor: torch.fx.Node | None = None
    for node in list(graph.nodes):
        if node.op != "placeholder":
            anchor = anchor or node
        elif anchor is not None:
            anchor.prepend(node)


def _informed(one: PassType, work: _PassState) -> PassType:
    """Return a pass bound to the constants of the program, if it accepts them."""
    with_values = getattr(one, "with_values", None)
    if with_values is None:
        return one
    held = {**work.state, **work.constants}
    return with_values(constant_values(work.signature, held))


def _run_on_program(work: _PassState, one: PassType, name: str) -> bool:
    result = program_result(one, _called(one, work.program([EdgeVerifier]), name))
    built = result.exported_program
    work.base, work.module = built, built.graph_module
    work.signature, work.constants = built.graph_signature, dict(built.constants)
    work.state = dict(built.state_dict)
    return result.modified


def _called(one: PassType, given: Any, name: str) -> Any:  # noqa: ANN401
    try:
        return one(given)
    except (PassError, CancelledError):
        raise
    except CompileError as error:
        raise PassError(name, f"the pass {name} failed: {error}") from error
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise PassError(name, f"the pass {name} failed ({what})") from error


def _lift(work: _PassState) -> None:
    """Turn tensors that a pass added to the module into constants of the program."""
    graph = work.module.graph
    held = [(n, _held(work.module, n)) for n in graph.nodes if n.op == "get_attr"]
    tensors = [(node, tensor) for node, tensor in held if isinstance(tensor, torch.Tensor)]
    if not tensors:
        return
    constants = dict(work.constants)
    user_inputs = {s.arg.name for s in work.signature.input_specs if s.kind == _USER}
    mode = fake_mode_of(graph.nodes)
    anchor = next((n for n in graph.nodes if n.name in user_inputs), next(iter(graph.nodes)))
    specs: dict[str, InputSpec] = {s.arg.name: s for s in work.signature.input_specs}
    for node, tensor in tensors:
        target = _free(constants, work.state, str(node.target))
        with graph.inserting_before(anchor):
            new = graph.placeholder(target)
        fake = mode.from_tensor(tensor.detach(), static_shapes=True)
        new.meta = {"val": fake, **mark_for_folded(node)}
        constants[target] = tensor.detach()
        specs[new.name] = InputSpec(
            InputKind.CONSTANT_TENSOR, TensorArgument(name=new.name), target
        )
        node.replace_all_uses_with(new)
        graph.erase_node(node)
    ordered = [specs[n.name] for n in graph.nodes if n.op == "placeholder" and n.name in specs]
    work.signature = ExportGraphSignature(ordered, work.signature.output_specs)
    work.constants = constants


def _held(module: torch.fx.GraphModule, node: torch.fx.Node) -> Any:  # noqa: ANN401
    found: Any = module
    for part in str(node.target).split("."):
        found = getattr(found, part, None)
    return found


def _free(constants: dict[str, Any], state: dict[str, Any], name: str) -> str:
    name = name.replace(".", "_")
    taken = constants.keys() | state.keys()
    if name not in taken:
        return name
    return next(f"{name}_{i}" for i in range(len(taken) + 1) if f"{name}_{i}" not in taken)


def transform_methods(
    programs: Mapping[str, ExportedProgram],
    passes: Any,  # noqa: ANN401 - a list, a manager, or either by method
    config: EdgeCompileConfig,
    stages: Stages,
) -> dict[str, ExportedProgram]:
    """Return the programs of all methods, transformed if passes are given for them.

    Args:
        programs: by method
        passes: a list or a manager, for all methods, or a dictionary by method
        config: of the verifier
        stages: times and reports the work

    Raises:
        KeyError: passes are given for an unknown method
        PassError, SpecViolationError: as ``transformed``
    """
    by_method = passes_by_method(passes, programs)
    return {
        name: transformed(program, by_method[name], config, stages, name)
        if name in by_method
        else program
        for name, program in programs.items()
    }


def passes_by_method(passes: Any, methods: Iterable[str]) -> dict[str, Any]:  # noqa: ANN401
    """Return a list of passes or a manager by method.

    Args:
        passes: one pass, a list or a manager, for all methods, or a dictionary by method; or None
        methods: existing methods

    Raises: KeyError if passes are given for an unknown method
    """
    if passes is None:
        return {}
    names = list(methods)
    given: dict[str, Any] = (
        {**passes} if isinstance(passes, Mapping) else dict.fromkeys(names, passes)
    )
    unknown = sorted(given.keys() - set(names))
    if unknown:
        known = ", ".join(sorted(names))
        raise KeyError(f"unknown method {', '.join(unknown)} to transform; available: {known}")
    kinds = (list, tuple, PassManager)
    return {name: one if isinstance(one, kinds) else [one] for name, one in given.items()}
