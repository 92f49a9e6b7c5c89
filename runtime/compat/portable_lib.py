"""The older module functions, under their documented names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import torch
from typing_extensions import override

from runtime.api import Runtime, Verification
from runtime.errors import ErrorCode, ExecutionError, invalid_argument
from runtime.execution.method import Method as ExecuTorchMethod
from runtime.execution.program import Program as ExecuTorchProgram
from runtime.program.loaders import DataLoader as PyDataLoader
from runtime.program.loading import Data
from runtime.program.meta import MethodMeta, TensorInfo
from runtime.tracing.tracer import EventTracer
from runtime.verify import (
    ATOL,
    RTOL,
    CaseResult,
    load_bundled_input,
    verify_method_outputs,
)
from schema import bundled, etdump
from schema.errors import FormatError

__all__ = [
    "BundledModule",
    "ExecuTorchMethod",
    "ExecuTorchModule",
    "ExecuTorchProgram",
    "MethodMeta",
    "PyDataLoader",
    "TensorInfo",
    "Verification",
    "_create_profile_block",
    "_dump_profile_results",
    "_get_operator_names",
    "_get_registered_backend_names",
    "_is_available",
    "_load_bundled_program_from_buffer",
    "_load_for_executorch",
    "_load_for_executorch_from_buffer",
    "_load_for_executorch_from_bundled_program",
    "_load_for_executorch_from_data_loader",
    "_load_program",
    "_load_program_from_buffer",
    "_reset_profile_results",
    "_threadpool_get_thread_count",
    "_unsafe_reset_threadpool",
]


class _Profile(EventTracer):
    """Records the runs of modules in the newest profile block."""

    def begin(self, name: str) -> None:
        """Begin a block."""
        super().create_event_block(name)

    @override
    def create_event_block(self, name: str) -> None:
        """Add the events of a run to the open block."""


_profile: list[_Profile] = []  # the recording one; empty until a block is created


class BundledModule:
    """A bundled program, for the functions that run its cases.

    Attributes:
        file: its tables
    """

    def __init__(self, file: bundled.BundledFile) -> None:
        self.file = file

    def verify_result_with_bundled_expected_output(
        self, method_name: str, testset_idx: int, rtol: float = RTOL, atol: float = ATOL
    ) -> list[Any]:
        """Run a case on a newly loaded program, compare the outputs and return them.

        Raises: ExecutionError if an element is outside of the tolerance
        """
        module = ExecuTorchModule(_loaded(bytes(self.file.program), None, False, 0))
        module.verify_result_with_bundled_expected_output(
            self, method_name, testset_idx, rtol, atol
        )
        return module.outputs_of(method_name)


class ExecuTorchModule:
    """A program whose methods are called by name."""

    def __init__(
        self, program: ExecuTorchProgram, data_error: ExecutionError | None = None
    ) -> None:
        """Wrap a loaded program.

        Args:
            program: has the methods
            data_error: raised when a method is loaded, when the stock runtime first reads data
        """
        self._program = program
        self._data_error = data_error

    def __call__(self, inputs: Any = (), clone_outputs: bool = True) -> list[Any]:  # noqa: ANN401
        """Run `forward` on a flat sequence of inputs, or on one input."""
        several = isinstance(inputs, list | tuple)
        given = cast("Sequence[Any]", inputs) if several else [inputs]
        return self.run_method("forward", given, clone_outputs)

    def forward(self, inputs: Sequence[Any] = (), clone_outputs: bool = True) -> list[Any]:
        """Run `forward`."""
        return self.run_method("forward", inputs, clone_outputs)

    def run_method(
        self, method_name: str, inputs: Sequence[Any] = (), clone_outputs: bool = True
    ) -> list[Any]:
        """Run a method.

        Raises: ExecutionError
        """
        return self._method(method_name)(inputs, clone_outputs)

    def plan_execute(self, method_name: str, clone_outputs: bool = True) -> list[Any]:
        """Run a method on its current inputs."""
        method = self._method(method_name)
        method.run()
        return method.get_outputs(clone_outputs)

    def outputs_of(self, method_name: str) -> list[Any]:
        """Return the outputs of a method's last run."""
        return self._method(method_name).get_outputs()

    def _method(self, name: str) -> ExecuTorchMethod:
        if self._data_error is not None:
            raise self._data_error
        method = self._program.load_method(name)
        if self._program.tracer is None:
            method.tracer = _profile[0] if _profile else None
        return method

    def load_bundled_input(self, bundle: BundledModule, method_name: str, testset_idx: int) -> None:
        """Set the inputs of a method to those of a bundled case."""
        load_bundled_input(self._method(method_name), bundle.file, testset_idx)

    def verify_result_with_bundled_expected_output(
        self,
        bundle: BundledModule,
        method_name: str,
        testset_idx: int,
        rtol: float = RTOL,
        atol: float = ATOL,
    ) -> CaseResult:
        """Run a bundled case and compare the outputs.

        Returns: error statistics of each output

        Raises: ExecutionError if an element is outside of the tolerance
        """
        method = self._method(method_name)
        load_bundled_input(method, bundle.file, testset_idx)
        method.run()
        found = verify_method_outputs(method, bundle.file, testset_idx, rtol=rtol, atol=atol)
        if not found.passed:
            worst = max(found.stats, key=lambda entry: entry.mismatched)
            raise invalid_argument(
                f"Method's output data mismatched the expected one: {worst.mismatched} of "
                f"{worst.elements} elements of output {worst.output}, at most "
                f"{worst.max_abs_error:g} apart"
            )
        return found

    def has_etdump(self) -> bool:
        """Return whether loads and runs are recorded."""
        return self._program.has_etdump()

    def write_etdump_result_to_file(
        self, path: str | Path, debug_buffer_path: str | Path | None = None
    ) -> None:
        """Write the trace, and the debug buffer where a path for it is given."""
        self._program.write_etdump_result_to_file(path, debug_buffer_path)

    def method_meta(self, method_name: str) -> MethodMeta:
        """Return the metadata of a method."""
        return self._program.metadata(method_name)

    def method_names(self) -> list[str]:
        """Return the names of all methods."""
        return sorted(self._program.method_names)


def _loaded(
    data: Data, data_path: Data | None, enable_etdump: bool, debug_buffer_size: int
) -> ExecuTorchProgram:
    return Runtime.get().load_program(
        data,
        enable_etdump=enable_etdump,
        debug_buffer_size=debug_buffer_size,
        data_path=data_path,
    )


def _load_for_executorch(
    program_path: str | Path,
    data_path: str | Path | None = None,
    enable_etdump: bool = False,
    debug_buffer_size: int = 0,
    program_verification: Verification = Verification.InternalConsistency,
) -> ExecuTorchModule:
    """Load a program from a file."""
    del program_verification
    return ExecuTorchModule(_loaded(program_path, data_path, enable_etdump, debug_buffer_size))


def _load_for_executorch_from_buffer(
    buffer: bytes,
    data_map_buffer: bytes | None = None,
    enable_etdump: bool = False,
    debug_buffer_size: int = 0,
    program_verification: Verification = Verification.InternalConsistency,
) -> ExecuTorchModule:
    """Load a program from bytes, which are kept alive.

    Invalid data raises an ExecutionError when the first method is loaded.
    """
    del program_verification
    try:
        found = _loaded(buffer, data_map_buffer, enable_etdump, debug_buffer_size)
    except ExecutionError as error:
        if error.code is not ErrorCode.InvalidExternalData:
            raise
        found = _loaded(buffer, None, enable_etdump, debug_buffer_size)
        return ExecuTorchModule(found, error)
    return ExecuTorchModule(found)


def _load_for_executorch_from_bundled_program(
    module: BundledModule,
    data_map_buffer: bytes | None = None,
    enable_etdump: bool = False,
    debug_buffer_size: int = 0,
) -> ExecuTorchModule:
    """Load the program inside a bundled program."""
    program = bytes(module.file.program)
    return ExecuTorchModule(_loaded(program, data_map_buffer, enable_etdump, debug_buffer_size))


def _load_for_executorch_from_data_loader(
    loader: PyDataLoader,
    data_path: str | Path | None = None,
    enable_etdump: bool = False,
    debug_buffer_size: int = 0,
) -> ExecuTorchModule:
    """Load a program from a data loader."""
    return ExecuTorchModule(_loaded(loader, data_path, enable_etdump, debug_buffer_size))


def _create_profile_block(name: str) -> None:
    """Record runs of modules loaded without a tracer, from now on into a block of this name.

    The stock wheel is built without its old profiler; there the three functions do nothing.
    """
    if not _profile:
        _profile.append(_Profile())
    _profile[0].begin(name)


def _dump_profile_results() -> bytes:
    """Return the recorded ETDump, empty until a block is created."""
    return etdump.encode(_profile[0].trace()) if _profile else b""


def _reset_profile_results() -> None:
    """Drop the recorded events and stop recording."""
    _profile.clear()


def _load_bundled_program_from_buffer(buffer: bytes, non_const_pool_size: int = 0) -> BundledModule:
    """Return a bundled program.

    Raises: ExecutionError InvalidArgument for other bytes
    """
    del non_const_pool_size
    try:
        return BundledModule(bundled.decode(buffer))
    except FormatError as error:
        reason = f"The input buffer should be a bundled program: {error}"
        raise invalid_argument(reason) from None


def _load_program(
    path: str | Path,
    enable_etdump: bool = False,
    debug_buffer_size: int = 0,
    program_verification: Verification = Verification.Minimal,
    data_path: str | Path | None = None,
) -> ExecuTorchProgram:
    """Load a program from a file, whose methods are loaded one by one."""
    del program_verification
    return _loaded(path, data_path, enable_etdump, debug_buffer_size)


def _load_program_from_buffer(
    buffer: bytes,
    enable_etdump: bool = False,
    debug_buffer_size: int = 0,
    program_verification: Verification = Verification.Minimal,
    data_path: str | Path | None = None,
) -> ExecuTorchProgram:
    """Load a program from bytes, whose methods are loaded one by one."""
    del program_verification
    return _loaded(buffer, data_path, enable_etdump, debug_buffer_size)


def _get_operator_names() -> list[str]:
    """Return the names of all operators with a kernel."""
    return sorted(Runtime.get().operator_registry.operator_names)


def _get_registered_backend_names() -> list[str]:
    """Return the ids of all backends."""
    return Runtime.get().backend_registry.registered_backend_names


def _is_available(backend_name: str) -> bool:
    """Return whether a backend is registered and can run here."""
    return Runtime.get().backend_registry.is_available(backend_name)


def _threadpool_get_thread_count() -> int:
    """Return the number of kernel threads, which is that of torch."""
    return torch.get_num_threads()


def _unsafe_reset_threadpool(num_threads: int) -> None:
    """Set the number of kernel threads.

    Raises: RuntimeError if it is below 1
    """
    torch.set_num_threads(num_threads)
