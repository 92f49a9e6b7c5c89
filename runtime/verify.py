"""Runs the cases of a bundled program and compares the outputs with the expected ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from runtime.errors import ErrorCode, ExecutionError, invalid_argument, invalid_program
from runtime.execution.method import Method
from runtime.memory.slots import dtype_of, strides_of
from runtime.program.loading import Data, read
from runtime.untyped import from_buffer
from schema import bundled, program
from schema.errors import FormatError

RTOL, ATOL = 1e-5, 1e-8  # those of torch.allclose, as in the stock runtime


@dataclass(frozen=True, slots=True)
class ErrorStats:
    """Error statistics of an output.

    Attributes:
        output: index of the output
        mean_abs_error: mean of |actual - expected|
        max_abs_error: largest |actual - expected|
        mean_relative_error: mean of |actual - expected| / |expected|, without elements expected to
            be 0
        max_relative_error: largest relative error
        mismatched: elements outside of the tolerance
        elements: all elements
    """

    output: int
    mean_abs_error: float
    max_abs_error: float
    mean_relative_error: float
    max_relative_error: float
    mismatched: int
    elements: int


@dataclass(frozen=True, slots=True)
class CaseResult:
    """Result of one case.

    Attributes:
        method_name: the method
        case: index of the case in its suite
        stats: one entry per output, empty for a case without expected outputs
    """

    method_name: str
    case: int
    stats: tuple[ErrorStats, ...]

    @property
    def compared(self) -> bool:
        """Return whether the case has expected outputs."""
        return bool(self.stats)

    @property
    def passed(self) -> bool:
        """Return whether every element is within the tolerance."""
        return all(entry.mismatched == 0 for entry in self.stats)


def is_bundled_program(data: Data) -> bool:
    """Return whether a file or its bytes are a bundled program."""
    return bundled.sniff(bytes(read(data)[0][:8]))


def get_program_data(data: Data) -> memoryview:
    """Return the bytes of the program inside a bundled program, or of a program as they are.

    Args:
        data: path, bytes or file object of a ``.bpte`` or ``.pte``

    Raises: ExecutionError NotSupported for other files, InvalidProgram for damaged tables,
        AccessFailed
    """
    found, file = read(data)
    head = bytes(found[:8])
    try:
        if bundled.sniff(head):
            return memoryview(bundled.decode(found, file=file).program)
    except FormatError as error:
        raise invalid_program(str(error)) from None
    if program.sniff(head):
        return found
    raise ExecutionError(
        ErrorCode.NotSupported,
        f"{file or 'the buffer'} has neither the identifier of a bundled program nor of a program: "
        f"it begins with {head.hex(' ') or 'nothing'}",
    )


def find_case(file: bundled.BundledFile, method_name: str, index: int) -> bundled.TestCase:
    """Return a case of a method.

    Raises: ExecutionError InvalidArgument if it does not exist
    """
    for suite in file.method_test_suites:
        if suite.method_name == method_name:
            if not 0 <= index < len(suite.test_cases):
                raise invalid_argument(
                    f"method {method_name!r} has {len(suite.test_cases)} cases; case {index} not "
                    "found"
                )
            return suite.test_cases[index]
    raise invalid_argument(f"method {method_name!r} has no cases")


def bundled_values(values: Sequence[bundled.BundledValue]) -> list[Any]:
    """Return the tensors and scalars of a case.

    Raises: ExecutionError InvalidProgram for a tensor without enough bytes
    """
    return [_value(entry.val) for entry in values]


def _value(value: bundled.AnyValue) -> Any:  # noqa: ANN401 - tensor or scalar
    if isinstance(value, bundled.BundledTensor):
        return _tensor(value)
    if isinstance(value, bundled.BundledInt):
        return value.int_val
    if isinstance(value, bundled.BundledBool):
        return value.bool_val
    if isinstance(value, bundled.BundledDouble):
        return value.double_val
    raise ExecutionError(ErrorCode.InvalidProgram, "a bundled value is of an unknown kind")


def _tensor(value: bundled.BundledTensor) -> torch.Tensor:
    dtype = dtype_of(value.scalar_type)
    count = math.prod(value.sizes)
    order = value.dim_order or tuple(range(len(value.sizes)))
    if min(value.sizes, default=0) < 0 or sorted(order) != list(range(len(value.sizes))):
        raise ExecutionError(ErrorCode.InvalidProgram, "a bundled tensor has an invalid shape")
    if count * dtype.itemsize > len(value.data):
        raise ExecutionError(
            ErrorCode.InvalidProgram,
            f"a bundled tensor needs {count * dtype.itemsize} bytes, it has {len(value.data)}",
        )
    flat = from_buffer(value.data, dtype, count) if count else torch.empty(0, dtype=dtype)
    return flat.as_strided(value.sizes, strides_of(value.sizes, order))


def load_bundled_input(method: Method, file: bundled.BundledFile, index: int) -> None:
    """Set the inputs of a method to those of a case; later runs are traced with its index.

    Raises: ExecutionError
    """
    method.set_inputs(bundled_values(find_case(file, method.name, index).inputs))
    if method.tracer is not None:
        method.tracer.bundled_input_index = index


def compare_outputs(
    actual: Sequence[Any], expected: Sequence[Any], *, rtol: float = RTOL, atol: float = ATOL
) -> tuple[ErrorStats, ...]:
    """Return the error statistics of outputs; a scalar counts as one element.

    Raises: ExecutionError InvalidArgument if count or shapes differ
    """
    if len(actual) != len(expected):
        raise invalid_argument(f"{len(actual)} outputs, expected {len(expected)}")
    pairs = enumerate(zip(actual, expected, strict=True))
    return tuple(_stats(place, found, requested, rtol, atol) for place, (found, requested) in pairs)


def _stats(place: int, found: Any, requested: Any, rtol: float, atol: float) -> ErrorStats:  # noqa: ANN401
    a, b = torch.as_tensor(found), torch.as_tensor(requested)
    if a.shape != b.shape or a.dtype is not b.dtype:
        raise invalid_argument(
            f"output {place} is {a.dtype} {list(a.shape)}, expected is {b.dtype} {list(b.shape)}"
        )
    exact = not b.dtype.is_floating_point
    same = a == b if exact else torch.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
    gap = (a.double() - b.double()).abs()
    gap[a == b] = 0  # equal infinities
    scale = b.double().abs()
    relative = (gap / scale)[scale > 0]
    return ErrorStats(
        place,
        _mean(gap),
        _largest(gap),
        _mean(relative),
        _largest(relative),
        int((~same).sum()),
        b.numel(),
    )


def _mean(values: torch.Tensor) -> float:
    return float(values.mean()) if values.numel() else 0.0


def _largest(values: torch.Tensor) -> float:
    return float(values.max()) if values.numel() else 0.0


def verify_method_outputs(
    method: Method,
    file: bundled.BundledFile,
    index: int,
    *,
    rtol: float = RTOL,
    atol: float = ATOL,
) -> CaseResult:
    """Compare the outputs of the last run with those of a case.

    Raises: ExecutionError InvalidArgument if count, dtypes or shapes differ
    """
    expected = bundled_values(find_case(file, method.name, index).expected_outputs)
    if not expected:
        return CaseResult(method.name, index, ())
    outputs = method.get_outputs(clone_outputs=False)
    stats = compare_outputs(outputs, expected, rtol=rtol, atol=atol)
    return CaseResult(method.name, index, stats)
