"""Memory plans of all methods of a program: separate, with shared state, or joint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from torch.export import ExportedProgram

from compiler.memory.blocks import BlockPlacement
from compiler.memory.lifetimes import Schedule
from compiler.memory.plan import plan_method, share_buffers, without_shared
from compiler.memory.scheduling import schedule
from compiler.stages import Stages


class PlanningConfig(Protocol):
    """The fields of an ``ExecutorchBackendConfig`` that memory planning reads."""

    @property
    def joint_arena(self) -> bool:
        """Return whether all methods get planned buffers of the size of the largest."""
        ...

    @property
    def remove_view_copy(self) -> bool:
        """Return whether static views share the memory of their source."""
        ...

    def planning_of(self, method: str) -> Any:  # noqa: ANN401 - a MemoryPlanningPass, or alike
        """Return the memory options of a method."""
        ...

    def takes_hints(self, method: str) -> bool:
        """Return whether the upper bounds of a method are the sizes of its example inputs."""
        ...


@dataclass(frozen=True)
class PlannedMethod:
    """A method with its instructions and memory plan.

    Attributes:
        program: the planned edge program, with its trained weights as results
        steps: its instructions and memory blocks
        plan: the location of each block
        external: the file of each constant that is stored elsewhere, by placeholder
    """

    program: ExportedProgram
    steps: Schedule
    plan: BlockPlacement
    external: Mapping[str, str]


def plan_methods(
    programs: Mapping[str, ExportedProgram],
    config: PlanningConfig,
    tags: Mapping[str, Mapping[str, str]],
    stages: Stages,
) -> dict[str, PlannedMethod]:
    """Return the plan of each method.

    Args:
        programs: edge programs by method
        config: how to plan
        tags: by method, the placeholders whose bytes are in other files
        stages: times and reports the work

    Raises: CompileError if a shape cannot be planned, or a plan is not sound
    """
    schedules: dict[str, Schedule] = {}
    plans: dict[str, BlockPlacement] = {}
    state = _shared_state(programs, config)
    for name in sorted(programs):
        options = config.planning_of(name)
        with stages.stage("plan", name):
            steps = schedules[name] = schedule(
                programs[name],
                options,
                elide_views=config.remove_view_copy,
                not_viewed=frozenset(tags[name]),
                state=state if _shares(options) else frozenset(),
                hints=config.takes_hints(name),
            )
            alone = without_shared(steps) if _shares(options) else steps
            plans[name] = plan_method(programs[name], alone, options)
    plans |= _shared(programs, config, schedules, plans)
    if config.joint_arena:
        plans = _joint(plans)
    return {
        name: PlannedMethod(programs[name], schedules[name], plan, tags[name])
        for name, plan in plans.items()
    }


def _shares(options: Any) -> bool:  # noqa: ANN401
    return bool(getattr(options, "share_mutable_buffers", False))


def _shared_state(
    programs: Mapping[str, ExportedProgram], config: PlanningConfig
) -> frozenset[str]:
    """Return the buffers that any method which shares its buffers writes."""
    sharing = [one for name, one in programs.items() if _shares(config.planning_of(name))]
    return frozenset(
        target for one in sharing for target in one.graph_signature.buffers_to_mutate.values()
    )


def _shared(
    programs: Mapping[str, ExportedProgram],
    config: PlanningConfig,
    schedules: Mapping[str, Schedule],
    plans: Mapping[str, BlockPlacement],
) -> dict[str, BlockPlacement]:
    sharing = {name: config.planning_of(name) for name in programs}
    sharing = {name: options for name, options in sharing.items() if _shares(options)}
    if not sharing:
        return {}
    names = {
        name: {
            spec.arg.name: spec.target or "" for spec in programs[name].graph_signature.input_specs
        }
        for name in sharing
    }
    alignment = max(int(options.alignment) for options in sharing.values())
    return share_buffers(plans, {n: schedules[n] for n in sharing}, names, alignment)


def _joint(plans: Mapping[str, BlockPlacement]) -> dict[str, BlockPlacement]:
    """Give all methods planned buffers of one size, so that a runtime can share them."""
    count = max(len(plan.arena_sizes) for plan in plans.values())
    padded = {name: (*p.arena_sizes, *[0] * count)[:count] for name, p in plans.items()}
    most = tuple(max(sizes) for sizes in zip(*padded.values(), strict=True))
    return {name: replace(p, sizes=most, nbytes=sum(most)) for name, p in plans.items()}
