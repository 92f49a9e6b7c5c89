"""The demo backends: a chain of sines, and a program inside a program."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from typing_extensions import override

from runtime.delegates.interface import (
    BackendExecutionContext,
    BackendInitContext,
    BackendInterface,
)
from runtime.errors import (
    OF_PAYLOAD,
    ErrorCode,
    ExecutionError,
    UnknownMethodError,
    invalid_argument,
)
from runtime.execution.method import Method
from runtime.execution.program import Program
from runtime.program.loading import decode_program

_OPERATION = re.compile(
    r"op:(?:demo::)?([^,]+), numel:[^,]+, dtype:[^<]+(?:<debug_handle>(-?\d+))?"
)
_MOST_OPERATIONS = 100_000  # a hostile payload must not fill the memory


class BackendWithCompilerDemo(BackendInterface):
    """Runs payloads of `sin`, which list operators without operands.

    Operators of several operands cannot be run from such a payload.
    """

    payload_is_all = False

    @override
    def init(
        self,
        context: BackendInitContext,
        processed: memoryview,
        compile_specs: Mapping[str, bytes],
    ) -> list[int]:
        """Return the debug handle of each sine.

        Raises: ExecutionError DelegateInvalidCompatibility
        """
        del context, compile_specs
        text = bytes(processed).decode("utf-8", "replace")
        pieces = [piece for piece in text.split("#")[1:] if piece.strip("\0 ")]
        found = [_OPERATION.fullmatch(piece) for piece in pieces[:_MOST_OPERATIONS]]
        names = [entry[1] if entry else piece for entry, piece in zip(found, pieces, strict=False)]
        others = sorted({name for name in names if name != "aten.sin.default"})
        if others:
            raise ExecutionError(
                ErrorCode.DelegateInvalidCompatibility,
                f"the payload names {', '.join(others)} but not their operands; only sin can be "
                "run from it",
                remedy="Load with the ETRecord of this program to run its original graph "
                "instead, or run the program without delegation.",
            )
        return [int(entry[2] or -1) for entry in found if entry]

    @override
    def execute(
        self, context: BackendExecutionContext, handle: list[int], args: Sequence[Any]
    ) -> None:
        """Apply the sines one after the other."""
        if len(args) != 2 or not isinstance(args[0], torch.Tensor):
            raise invalid_argument("expected one input tensor and one output tensor")
        value = args[0]
        for identity in handle:
            started = context.tracer.start()
            value = torch.sin(value)
            context.tracer.end(identity, started)
            context.tracer.log_value(identity, value)
        context.store(args[1], value)


class ExecutorBackend(BackendInterface):
    """Runs payloads that are programs, with the kernels and backends of the outer program."""

    @override
    def init(
        self,
        context: BackendInitContext,
        processed: memoryview,
        compile_specs: Mapping[str, bytes],
    ) -> Method:
        """Return the method `forward` of the program inside."""
        del compile_specs
        if context.depth > _DEEPEST:
            raise ExecutionError(
                ErrorCode.DelegateInvalidCompatibility, f"more than {_DEEPEST} programs are nested"
            )
        file = decode_program(memoryview(bytes(processed)), "")
        program = Program(file, context.kernels, context.backends, depth=context.depth + 1)
        try:
            return program.load_method("forward")
        except UnknownMethodError as error:
            code = ErrorCode.DelegateInvalidCompatibility
            raise ExecutionError(code, error.reason, remedy=OF_PAYLOAD) from None

    @override
    def execute(
        self, context: BackendExecutionContext, handle: Method, args: Sequence[Any]
    ) -> None:
        """Run the program inside."""
        meta = handle.metadata
        if len(args) != meta.num_inputs() + meta.num_outputs():
            raise invalid_argument(
                f"{len(args)} arguments for a program of {meta.num_inputs()} inputs and "
                f"{meta.num_outputs()} outputs"
            )
        results = handle(args[: meta.num_inputs()], clone_outputs=False)
        for target, value in zip(args[meta.num_inputs() :], results, strict=True):
            if isinstance(target, torch.Tensor) and isinstance(value, torch.Tensor):
                context.store(target, value)


_DEEPEST = 8  # a program may contain itself; each level is a Python recursion
