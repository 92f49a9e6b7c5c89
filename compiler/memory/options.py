"""How memory is planned: which values, by which algorithm, on which boundary."""

from __future__ import annotations

from typing import Any

import torch

from compiler.errors import PlanError
from compiler.memory.algorithms import (
    FAST,
    MemoryPlanningAlgorithmSuite,
    apply_result,
)
from compiler.memory.graph_specs import specs_to_plan
from compiler.memory.planners import DEFAULT_PLANNERS, PLANNERS, Planner
from compiler.memory.tensor_spec import ALIGNMENT, TensorSpec
from compiler.named import NamedObject, UnknownNameError, create_named, object_in_file, parse_named
from compiler.untyped import PassResult

SPECS, SIZES, PADDING = "planned_specs", "non_const_buffer_sizes", "extra_padding"


class MemoryPlanningPass:
    """Plans the memory of a method; a subclass may choose buffers in `run` and call the base.

    Attributes:
        memory_planning_algo: an algorithm, a suite of them, or the name of a built-in planner;
            None tries all of those and keeps the smallest plan
        allow_lifetime_and_storage_overlap: accept a plan in which values overlap
        alloc_graph_input: whether inputs are planned, or use memory of the caller
        alloc_graph_output: whether outputs are planned, or use memory of the caller
        alloc_mutable_buffers: whether mutable buffers are planned
        share_mutable_buffers: whether buffers of one name share memory in all methods
        alignment: of values, in bytes
    """

    def __init__(  # noqa: PLR0913 - as documented
        self,
        memory_planning_algo: Any = None,  # noqa: ANN401 - a function, a suite, or a name
        allow_lifetime_and_storage_overlap: bool = False,
        alloc_graph_input: bool = True,
        alloc_graph_output: bool = True,
        alloc_mutable_buffers: bool = True,
        share_mutable_buffers: bool = False,
        alignment: int = ALIGNMENT,
    ) -> None:
        """Hold the options.

        Raises: ValueError if options contradict each other, or a planner is not known
        """
        if share_mutable_buffers and not alloc_mutable_buffers:
            raise ValueError("share_mutable_buffers needs alloc_mutable_buffers")
        if isinstance(memory_planning_algo, str) and memory_planning_algo not in PLANNERS:
            known = ", ".join(PLANNERS)
            raise ValueError(f"unknown planner {memory_planning_algo!r}; available: {known}")
        if alignment < 1 or alignment & (alignment - 1):
            raise ValueError(f"an alignment is a power of two, not {alignment}")
        self.memory_planning_algo = memory_planning_algo
        self.allow_lifetime_and_storage_overlap = allow_lifetime_and_storage_overlap
        self.alloc_graph_input = alloc_graph_input
        self.alloc_graph_output = alloc_graph_output
        self.alloc_mutable_buffers = alloc_mutable_buffers
        self.share_mutable_buffers = share_mutable_buffers
        self.alignment = alignment

    def run(
        self,
        graph_module: torch.fx.GraphModule,
        graph_signature: Any = None,  # noqa: ANN401 - ExportGraphSignature
    ) -> Any:  # noqa: ANN401 - a PassResult
        """Assign planned buffer and offset to every spec of a graph of out variants.

        Raises: PlanError if the graph was not prepared for planning, or the algorithm returns no
            plan
        """
        specs: list[TensorSpec] | None = graph_module.meta.get(SPECS)
        if specs is None:  # prepared by SpecPropPass instead of to_executorch
            specs = specs_to_plan(
                graph_module,
                graph_signature,
                inputs=self.alloc_graph_input,
                outputs=self.alloc_graph_output,
            )
            if not specs:
                raise PlanError(
                    "no node has a spec in its metadata: run SpecPropPass first, or to_executorch"
                )
        algorithm = self._algorithm()
        padding = graph_module.meta.get(PADDING, 0)
        result: Any = algorithm(self.alignment, specs, graph_module, graph_signature, padding)
        if hasattr(result, "spec_dict"):
            result = apply_result(result)
        if not isinstance(result, list):
            name = getattr(algorithm, "__name__", type(algorithm).__name__)
            raise PlanError(
                f"{name} returned {type(result).__name__}, expected sizes of planned buffers"
            )
        graph_module.meta[SIZES] = result
        return PassResult(graph_module, True)

    def __call__(self, graph_module: torch.fx.GraphModule) -> Any:  # noqa: ANN401
        """Run without a signature."""
        return self.run(graph_module)

    def _algorithm(self) -> Any:  # noqa: ANN401
        algorithm = self.memory_planning_algo
        if algorithm is None:
            return MemoryPlanningAlgorithmSuite()
        if isinstance(algorithm, str):
            return next(found for found, name in FAST.items() if name == algorithm)
        if algorithm in PLANNERS.values():
            return next(found for found, name in FAST.items() if PLANNERS[name] is algorithm)
        return algorithm

    @property
    def planners(self) -> tuple[Planner, ...] | None:
        """Return the planners to try, None if custom code plans."""
        if type(self).run is not MemoryPlanningPass.run:
            return None
        algorithm: Any = self.memory_planning_algo
        if algorithm is None:
            return DEFAULT_PLANNERS
        if isinstance(algorithm, str):
            return (PLANNERS[algorithm],)
        if algorithm in PLANNERS.values():
            return (algorithm,)
        suite = type(algorithm) is MemoryPlanningAlgorithmSuite
        members: list[Any] = algorithm.algo_list if suite else [algorithm]
        if all(_is_ours(member) for member in members):
            return tuple(PLANNERS[FAST[member]] for member in members)
        return None


def named_planning(text: str, **options: Any) -> MemoryPlanningPass:  # noqa: ANN401
    """Return the memory planning that a user names.

    Args:
        text: name of a built-in planner, empty for the smallest of all plans, or ``file.py:NAME``,
            where
            NAME is a planning algorithm or a subclass of ``MemoryPlanningPass``
        options: of ``MemoryPlanningPass``

    Raises: UnknownNameError if it cannot be found or is neither; errors of its file
    """
    asked = parse_named(text)
    if not asked.in_file:
        return MemoryPlanningPass(text or None, **options)
    found = object_in_file(asked.name)
    if isinstance(found, type) and issubclass(found, MemoryPlanningPass):
        return create_named(NamedObject(asked.name, {**options, **asked.options}), found)
    built = create_named(asked, found)
    if not callable(built):
        raise UnknownNameError(
            f"{asked.name} is neither a planning algorithm nor a MemoryPlanningPass"
        )
    return MemoryPlanningPass(built, **options)


def _is_ours(algorithm: Any) -> bool:  # noqa: ANN401
    try:
        return algorithm in FAST
    except TypeError:  # not hashable
        return False
