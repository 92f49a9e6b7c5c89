"""Selective builds: the kernels that programs or lists need, and how many are excluded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from runtime.compat.kernel_yaml import KernelLibrary
from runtime.errors import invalid_argument
from runtime.kernels import TABLE
from schema.dtypes.scalar_type import scalar_type
from schema.program import ProgramFile
from schema.program import model as m


@dataclass(frozen=True, slots=True)
class KernelSelection:
    """A set of kernels.

    Attributes:
        operators: full names, sorted
        dtypes: names of the dtypes that each operator is called with; empty unless requested
    """

    operators: tuple[str, ...]
    dtypes: Mapping[str, tuple[str, ...]]

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the operators without a built-in kernel."""
        return tuple(name for name in self.operators if name not in TABLE)

    @property
    def saved(self) -> int:
        """Return how many built-in kernels are excluded."""
        return len(TABLE) - (len(self.operators) - len(self.missing))


def selected(
    *,
    operators: Iterable[str] | None = None,
    programs: Iterable[ProgramFile] | None = None,
    libraries: Iterable[KernelLibrary] | None = None,
    every: bool = False,
    with_dtypes: bool = False,
) -> KernelSelection:
    """Return the kernels needed by operators, programs or libraries, for `Runtime(operators=...)`.

    Args:
        operators: full names
        programs: programs whose operators are needed
        libraries: from `read_kernel_yaml`, whose operators are needed
        every: select all built-in kernels
        with_dtypes: select by dtypes as well, for programs only

    Raises: ExecutionError InvalidArgument if not exactly one is given, or dtypes are requested
        without programs
    """
    ways = (operators is not None, programs is not None, libraries is not None, every)
    if sum(ways) != 1:
        raise invalid_argument("select exactly one of operators, programs, libraries and every")
    if with_dtypes and programs is None:
        raise invalid_argument("dtypes are available for programs only")
    if libraries is not None:
        operators = [name for library in libraries for name in library.names]
    if operators is not None:
        return KernelSelection(tuple(sorted({*operators})), MappingProxyType({}))
    if programs is None:
        return KernelSelection(tuple(sorted(TABLE)), MappingProxyType({}))
    found: dict[str, set[str]] = {}
    for program in programs:
        for plan in program.plans:
            _add(found, plan)
    names = {name: tuple(sorted(found[name])) for name in sorted(found)}
    return KernelSelection(tuple(names), MappingProxyType(names if with_dtypes else {}))


def _add(found: dict[str, set[str]], plan: m.ExecutionPlan) -> None:
    for operator in plan.operators:
        found.setdefault(operator.full_name, set())
    for chain in plan.chains:
        for instruction in chain.instructions:
            args = instruction.instr_args
            if isinstance(args, m.KernelCall) and 0 <= args.op_index < len(plan.operators):
                name = plan.operators[args.op_index].full_name
                found[name].update(_dtypes(plan, args.args))


def _dtypes(plan: m.ExecutionPlan, indices: Iterable[int]) -> Iterable[str]:
    for index in indices:
        value = plan.values[index].val if 0 <= index < len(plan.values) else None
        if isinstance(value, m.Tensor):
            yield scalar_type(value.scalar_type).name
        elif isinstance(value, m.TensorList | m.OptionalTensorList):
            yield from _dtypes(plan, [item for item in value.items if item >= 0])
