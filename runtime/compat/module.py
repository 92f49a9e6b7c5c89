"""The Module facade: a program that is loaded, like its methods, on first use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from runtime.api import Runtime
from runtime.errors import invalid_input
from runtime.execution.method import Method
from runtime.execution.program import Program
from runtime.program.loaders import LoadMode
from runtime.program.loading import Data
from runtime.program.meta import MethodMeta
from runtime.tracing.tracer import EventTracer

_UNSET = object()


class Module:
    """A program whose methods are called by name; everything is loaded on first use.

    Inputs set in advance apply to later calls until they are replaced, or cleared by None.

    Args:
        file_path: path, bytes or `DataLoader` of a ``.pte``
        data_files: ``.ptd`` files
        event_tracer: records loads and runs
        load_mode: how files are loaded; None reads small ones and maps large ones
        runtime: loads the program; by default the shared one of the process
    """

    def __init__(
        self,
        file_path: Data,
        data_files: Sequence[Path | str] = (),
        event_tracer: EventTracer | None = None,
        *,
        load_mode: LoadMode | None = None,
        runtime: Runtime | None = None,
    ) -> None:
        self._source = file_path
        self._data_files = list(data_files)
        self._tracer = event_tracer
        self._load_mode = load_mode
        self._runtime = runtime
        self._program: Program | None = None
        self._inputs: dict[str, list[Any]] = {}

    def load(self) -> Program:
        """Return the program, loaded at the first call.

        Raises: ExecutionError
        """
        if self._program is None:
            runtime = self._runtime or Runtime.get()
            self._program = runtime.load_program(
                self._source,
                data_path=self._data_files,
                tracer=self._tracer,
                load_mode=self._load_mode,
            )
        return self._program

    def is_loaded(self) -> bool:
        """Return whether the program is loaded."""
        return self._program is not None

    def method_names(self) -> set[str]:
        """Return the names of all methods."""
        return self.load().method_names

    def num_methods(self) -> int:
        """Return the number of methods."""
        return self.load().num_methods()

    def load_method(self, method_name: str) -> Method:
        """Return a method, loaded at the first call.

        Raises: UnknownMethodError
        """
        return self.load().load_method(method_name)

    def load_forward(self) -> Method:
        """Load `forward`."""
        return self.load_method("forward")

    def unload_method(self, method_name: str) -> bool:
        """Unload a method and clear its preset inputs; return whether it was loaded."""
        self._inputs.pop(method_name, None)
        return self._program is not None and self._program.unload_method(method_name)

    def unload_forward(self) -> bool:
        """Unload `forward`."""
        return self.unload_method("forward")

    def is_method_loaded(self, method_name: str) -> bool:
        """Return whether a method is loaded."""
        return self._program is not None and self._program.is_method_loaded(method_name)

    def method_meta(self, method_name: str) -> MethodMeta:
        """Return the metadata of a method."""
        return self.load().metadata(method_name)

    def execute(self, method_name: str, *inputs: Any) -> list[Any]:  # noqa: ANN401 - values
        """Run a method on the given inputs, followed by preset ones.

        Raises: ExecutionError InvalidArgument naming an input that is neither given nor preset
        """
        method = self.load_method(method_name)
        requested = method.metadata.num_inputs()
        if len(inputs) > requested:
            raise invalid_input(f"expected {requested} inputs, found {len(inputs)}")
        values = [*inputs, *self._preset(method_name, requested)[len(inputs) :]]
        missing = [place for place, value in enumerate(values) if value is _UNSET]
        if missing:
            raise invalid_input(f"{method_name}: input {missing[0]} is missing")
        return method.execute(values)

    def forward(self, *inputs: Any) -> list[Any]:  # noqa: ANN401 - values
        """Run `forward`."""
        return self.execute("forward", *inputs)

    def _preset(self, method_name: str, count: int) -> list[Any]:
        return self._inputs.setdefault(method_name, [_UNSET] * count)

    def set_input(
        self,
        value: Any,  # noqa: ANN401 - tensor or scalar
        index: int,
        method_name: str = "forward",
    ) -> None:
        """Preset one input; None clears it.

        Raises: ExecutionError InvalidArgument for an unknown input
        """
        count = self.method_meta(method_name).num_inputs()
        if not 0 <= index < count:
            raise invalid_input(f"input {index} not found; the method has {count}")
        self._preset(method_name, count)[index] = _UNSET if value is None else value

    def set_inputs(self, values: Sequence[Any], method_name: str = "forward") -> None:
        """Preset all inputs; an empty sequence clears them.

        Raises: ExecutionError InvalidArgument for a wrong number of inputs
        """
        count = self.method_meta(method_name).num_inputs()
        if values and len(values) != count:
            raise invalid_input(f"expected {count} inputs, found {len(values)}")
        self._inputs[method_name] = list(values) or [_UNSET] * count

    def set_output(
        self, tensor: torch.Tensor, index: int = 0, method_name: str = "forward"
    ) -> None:
        """Write an output without planned memory into a tensor of the caller."""
        self.load_method(method_name).set_output(tensor, index)

    def set_outputs(self, tensors: Sequence[torch.Tensor], method_name: str = "forward") -> None:
        """Write all outputs into tensors of the caller."""
        count = self.method_meta(method_name).num_outputs()
        if len(tensors) != count:
            raise invalid_input(f"{len(tensors)} outputs are given, the method has {count}")
        for index, tensor in enumerate(tensors):
            self.set_output(tensor, index, method_name)

    def get_outputs(self, method_name: str = "forward") -> list[Any]:
        """Return copies of the outputs of the last run."""
        return self.load_method(method_name).get_outputs()

    def get_output(self, index: int = 0, method_name: str = "forward") -> Any:  # noqa: ANN401
        """Return a copy of one output of the last run.

        Raises: ExecutionError InvalidArgument for an unknown output
        """
        outputs = self.get_outputs(method_name)
        if not 0 <= index < len(outputs):
            raise invalid_input(f"output {index} not found; the method has {len(outputs)}")
        return outputs[index]

    def event_tracer(self) -> EventTracer | None:
        """Return the tracer of loads and runs, None if absent."""
        return self._tracer
