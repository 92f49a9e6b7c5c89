"""Creates bundled programs: a program with inputs and expected outputs of its methods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import torch
from torch.utils import _pytree as _untyped_pytree

from runtime.memory.slots import CODE_OF, as_bytes, dim_order_of, dtype_of
from schema import bundled as file
from schema import program as pte
from schema.program import model as m

_pytree: Any = _untyped_pytree
_TYPES: dict[type[Any], type[Any]] = {
    m.Tensor: torch.Tensor,
    m.Int: int,
    m.Double: float,
    m.Bool: bool,
}


class HasBuffer(Protocol):
    """A compiled program, whose bytes are in `buffer`."""

    @property
    def buffer(self) -> bytes:
        """Return the bytes of the program."""
        ...


class MethodTestCase:
    """Inputs and expected outputs of one call.

    Attributes:
        inputs: tensors and scalars, flattened
        expected_outputs: flattened, may be empty

    Raises: AssertionError for values that a bundled program cannot store, such as None
    """

    def __init__(self, inputs: object, expected_outputs: object = None) -> None:
        self.inputs: list[Any] = _flat(inputs)
        self.expected_outputs: list[Any] = (
            [] if expected_outputs is None else _flat(expected_outputs)
        )


@dataclass
class MethodTestSuite:
    """The cases of one method.

    Attributes:
        method_name: the method
        test_cases: its cases
    """

    method_name: str
    test_cases: Sequence[MethodTestCase]


class BundledProgram:
    """A program with test cases for some of its methods.

    Attributes:
        executorch_program: the compiled program, None when a file was given
        method_test_suites: sorted by name of the method

    Args:
        executorch_program: a compiled program
        method_test_suites: the cases
        pte_file_path: a program file instead of a compiled program

    Raises: AssertionError where a case does not fit the program; RuntimeError unless exactly one
        of program and path is given
    """

    def __init__(
        self,
        executorch_program: HasBuffer | None,
        method_test_suites: Sequence[MethodTestSuite],
        pte_file_path: str | Path | None = None,
    ) -> None:
        if (executorch_program is None) == (pte_file_path is None):
            given = "neither" if pte_file_path is None else "both"
            raise RuntimeError(
                "Either executorch_program or pte_file_path must be provided, and only one of "
                f"them; {given} was"
            )
        self.executorch_program = executorch_program
        self.method_test_suites = sorted(method_test_suites, key=lambda suite: suite.method_name)
        self._program = _bytes_of(executorch_program, pte_file_path)
        _check(pte.decode(self._program), self.method_test_suites)

    def serialize_to_schema(self) -> file.BundledFile:
        """Return the tables of the file."""
        suites = tuple(
            file.BundledSuite(suite.method_name, tuple(map(_case, suite.test_cases)))
            for suite in self.method_test_suites
        )
        return file.BundledFile(suites, memoryview(self._program))


def serialize_from_bundled_program_to_flatbuffer(bundled_program: BundledProgram) -> bytes:
    """Return the bytes of a ``.bpte`` file."""
    return file.encode(bundled_program.serialize_to_schema())


def deserialize_from_flatbuffer_to_bundled_program(flatbuffer: bytes) -> file.BundledFile:
    """Return the tables of a ``.bpte`` file, as ``BundledProgram.serialize_to_schema`` does.

    Raises: FormatError if the bytes are not a bundled program
    """
    return file.decode(flatbuffer)


def _bytes_of(program: HasBuffer | None, path: str | Path | None) -> bytes:
    if program is not None:
        return bytes(program.buffer)
    return Path(cast("str | Path", path)).read_bytes()


def _flat(values: object) -> list[Any]:
    leaves: list[Any] = _pytree.tree_flatten(values)[0]
    for value in leaves:
        _need(value is not None, f"The input {value} should not be in null type.\n")
        _need(
            isinstance(value, torch.Tensor | int | float),
            f"The type of input {value} with type {type(value)} is not supported.\n",
        )
    return leaves


def _case(case: MethodTestCase) -> file.TestCase:
    return file.TestCase(tuple(map(_value, case.inputs)), tuple(map(_value, case.expected_outputs)))


def _value(value: Any) -> file.BundledValue:  # noqa: ANN401 - tensor or scalar
    if isinstance(value, bool):
        return file.BundledValue(file.BundledBool(value))
    if isinstance(value, int):
        return file.BundledValue(file.BundledInt(value))
    if isinstance(value, float):
        return file.BundledValue(file.BundledDouble(value))
    tensor: torch.Tensor = value.detach().cpu()
    order = dim_order_of(tensor)
    if not tensor.permute(order).is_contiguous():
        tensor, order = tensor.contiguous(), tuple(range(tensor.dim()))
    return file.BundledValue(
        file.BundledTensor(CODE_OF[tensor.dtype], tuple(tensor.shape), as_bytes(tensor), order)
    )


def _check(program: pte.ProgramFile, suites: Sequence[MethodTestSuite]) -> None:
    plans = {plan.name: plan for plan in program.plans}
    missing = {suite.method_name for suite in suites} - set(plans)
    _need(
        not missing,
        "All method names in bundled config should be found in program.execution_plan, "
        f"but {missing} does not include.",
    )
    for suite in suites:
        plan = plans[suite.method_name]
        for number, case in enumerate(suite.test_cases):
            _check_values(plan, plan.inputs, case.inputs, f"{number}-th test set", "input")
            if case.expected_outputs:
                outputs = case.expected_outputs
                _check_values(plan, plan.outputs, outputs, f"{number}-th test set", "output")


def _check_values(
    plan: m.ExecutionPlan, indices: Sequence[int], values: Sequence[Any], where: str, what: str
) -> None:
    _need(
        len(indices) == len(values),
        f"The number of {what} in each bundled set and Program shall equal, but get "
        f"{len(indices)} and {len(values)}",
    )
    for place, (requested, value) in enumerate(zip(_held(plan, indices), values, strict=True)):
        kind = _TYPES.get(type(requested))
        _need(kind is not None, f"The type of program's {what} isn't supported.")
        _need(
            type(value) is kind or (kind is torch.Tensor and isinstance(value, torch.Tensor)),
            f"The type {place}-th {what} in {where} of method {plan.name} does not meet Program's "
            f"requirement: expected {kind} but get {type(value)}",
        )
        if isinstance(requested, m.Tensor):
            dtype = dtype_of(requested.scalar_type)
            _need(
                value.dtype is dtype,
                f"The {what} tensor {value} dtype shall be {dtype}, but now is {value.dtype}",
            )


def _held(plan: m.ExecutionPlan, indices: Sequence[int]) -> Iterable[m.KernelType]:
    return [plan.values[index].val for index in indices]


def _need(holds: bool, reason: str) -> None:
    if not holds:
        raise AssertionError(reason)
