"""Runs passes over a program, one after the other, on a copy; each is a stage that is told of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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

from compiler.config import EdgeCompileConfig
from compiler.delegate.copies import copied_graph, copied_root, rebuilt
from compiler.edge.verifier import EdgeVerifier, check_program, verifier_for
from compiler.errors import CancelledError, CompileError
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
from compiler.passes.lineage import restore_metadata, snapshot
from compiler.passes.manager import ExportedProgramPassManager, PassManager
from compiler.passes.signature import constant_values, updated_signature
from compiler.stages import Stages
from schema.garbage import uncollected

_USER = InputKind.USER_INPUT


@dataclass
class _Work:
    """A program between two passes.

    Attributes:
        base: says all that passes over graph modules cannot change
        module: the graph as it is now
        signature: of the graph
        constants: tensors that the program holds beside its state
    """

    base: ExportedProgram
    module: torch.fx.GraphModule
    signature: ExportGraphSignature
    constants: dict[str, Any]

    def program(self, verifiers: list[Any]) -> ExportedProgram:
        """Return the program as it is now, checked by these verifiers."""
        with uncollected():
            return self._program(verifiers)

    def _program(self, verifiers: list[Any]) -> ExportedProgram:
        made = rebuilt(
            self.base,
            self.module,
            self.module.graph,
            signature=self.signature,
            constants=self.constants,
            verifiers=verifiers,
        )
        made.graph_module.meta.update(self.module.meta)
        return made


def transformed(
    program: ExportedProgram,
    passes: Sequence[PassType] | PassManager,
    config: EdgeCompileConfig,
    stages: Stages,
    method: str = "",
) -> ExportedProgram:
    """Return what passes make of a program; the given one is not changed.

    Each pass is a stage named ``pass NAME``. What a pass leaves is completed (values, source
    lines and debug handles of new nodes) and verified before the next one sees it.

    Raises:
        PassError: a pass raised, or returned what is no result
        SpecViolationError: the verifier refuses what a pass left
    """
    work = _begun(program)
    _all(work, passes, config, stages, method)
    return work.program([verifier_for(config)])


def _begun(program: ExportedProgram) -> _Work:
    with uncollected():
        root, graph = copied_root(program.graph_module), copied_graph(program.graph)
        module = torch.fx.GraphModule(root, graph)
    module.meta = dict(program.graph_module.meta)
    return _Work(program, module, program.graph_signature, dict(program.constants))


def managed(
    manager: PassManager, program: ExportedProgram, verifiers: Sequence[Any] | None = None
) -> ExportedProgramPassResult:
    """Return what the passes of a manager make of a program outside of a compile.

    Raises: PassError naming the pass that failed, or behind which a check fails
    """
    work, config = _begun(program), EdgeCompileConfig(_check_ir_validity=False)
    modified = _all(work, manager, config, Stages(), "")
    kept = list(program.verifiers if verifiers is None else verifiers)
    return ExportedProgramPassResult(work.program(kept), modified)


def _all(
    work: _Work,
    passes: Sequence[PassType] | PassManager,
    config: EdgeCompileConfig,
    stages: Stages,
    method: str,
) -> bool:
    def step(one: PassType) -> bool:
        return _stage(work, one, config, stages, method)

    if isinstance(passes, ExportedProgramPassManager):
        return passes.drive(step, lambda: work.program([EdgeVerifier]))
    if isinstance(passes, PassManager):
        return passes.drive(step, lambda: work.module)
    changed = [step(one) for one in flat_passes(passes)]
    return any(changed)


def _stage(
    work: _Work, one: PassType, config: EdgeCompileConfig, stages: Stages, method: str
) -> bool:
    name = pass_name(one)
    with stages.stage(f"pass {name}", method) as told:
        modified = _run(work, one, config, name)
        told.graph = work.module.graph
        told.modules = {method: work.module}
    return modified


def _run(work: _Work, one: PassType, config: EdgeCompileConfig, name: str) -> bool:
    with uncollected():
        before = snapshot(work.module)
    if takes_program(one):
        modified = _run_on_program(work, one, name)
    else:
        one = _informed(one, work)
        result = graph_result(one, work.module, _called(one, work.module, name))
        work.module, modified = result.graph_module, bool(result.modified)
    with uncollected():
        work.signature, work.constants = _lifted(work, name)
        restore_metadata(before, work.module, name)
        check_program(work.module, work.signature, config, after=name)
    return modified


def _informed(one: PassType, work: _Work) -> PassType:
    """Return a pass that asks for the constants of the program as one that knows them."""
    with_values = getattr(one, "with_values", None)
    if with_values is None:
        return one
    held = {**work.base.state_dict, **work.constants}
    return with_values(constant_values(work.signature, held))


def _run_on_program(work: _Work, one: PassType, name: str) -> bool:
    result = program_result(one, _called(one, work.program([EdgeVerifier]), name))
    made = result.exported_program
    work.base, work.module = made, made.graph_module
    work.signature, work.constants = made.graph_signature, dict(made.constants)
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


def _lifted(work: _Work, name: str) -> tuple[ExportGraphSignature, dict[str, Any]]:
    """Turn tensors that a pass put into the module into constants of the program."""
    graph = work.module.graph
    held = [(n, _held(work.module, n)) for n in graph.nodes if n.op == "get_attr"]
    tensors = [(node, tensor) for node, tensor in held if isinstance(tensor, torch.Tensor)]
    if not tensors:
        return updated_signature(work.signature, graph, name), work.constants
    constants = dict(work.constants)
    user_inputs = {s.arg.name for s in work.signature.input_specs if s.kind == _USER}
    mode = fake_mode_of(graph.nodes)
    anchor = next((n for n in graph.nodes if n.name in user_inputs), next(iter(graph.nodes)))
    specs: dict[str, InputSpec] = {s.arg.name: s for s in work.signature.input_specs}
    for node, tensor in tensors:
        target = _free(constants, work.base.state_dict, str(node.target))
        with graph.inserting_before(anchor):
            new = graph.placeholder(target)
        new.meta = {"val": mode.from_tensor(tensor.detach(), static_shapes=True)}
        constants[target] = tensor.detach()
        specs[new.name] = InputSpec(
            InputKind.CONSTANT_TENSOR, TensorArgument(name=new.name), target
        )
        node.replace_all_uses_with(new)
        graph.erase_node(node)
    ordered = [specs[n.name] for n in graph.nodes if n.op == "placeholder" and n.name in specs]
    signature = ExportGraphSignature(ordered, work.signature.output_specs)
    return updated_signature(signature, graph, name), constants


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
    """Return the programs of all methods, those that passes are given for transformed.

    Args:
        programs: by method
        passes: a list or a manager, for all methods, or either by method
        config: says what the verifier lets through
        stages: told of each pass

    Raises:
        KeyError: passes are given for a method that is not there
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
        passes: one pass, a list or a manager, for all methods, or either by method; or None
        methods: those there are

    Raises: KeyError if passes are given for a method that is not there
    """
    if passes is None:
        return {}
    names = list(methods)
    given: dict[str, Any] = (
        {**passes} if isinstance(passes, Mapping) else dict.fromkeys(names, passes)
    )
    unknown = sorted(given.keys() - set(names))
    if unknown:
        raise KeyError(
            f"no method {', '.join(unknown)} to transform; there are {', '.join(sorted(names))}"
        )
    kinds = (list, tuple, PassManager)
    return {name: one if isinstance(one, kinds) else [one] for name, one in given.items()}
