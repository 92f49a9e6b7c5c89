"""Training: programs that compute a loss and its gradients, and an SGD optimizer.

Experimental upstream. A program is trainable when it was exported with its backward pass; its
methods `__et_training_*` return which outputs are gradients and which are parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from runtime.api import Runtime
from runtime.errors import ErrorCode, ExecutionError, invalid_argument
from runtime.execution.method import Method
from runtime.execution.program import Program
from runtime.memory.slots import CODE_OF, as_bytes, dim_order_of, dtype_of, strides_of
from runtime.program.loading import Data, load_data_files
from runtime.untyped import from_buffer
from schema import flat_tensor
from schema.dtypes.scalar_type import numel

__all__ = [
    "SGD",
    "TrainingModule",
    "_load_for_executorch_for_training",
    "_load_for_executorch_for_training_from_buffer",
    "decoded_parameters",
    "encoded_parameters",
    "get_sgd_optimizer",
]
_PREFIX = "__et_training_"
Parameters = Mapping[str, torch.Tensor]


class TrainingModule:
    """A program whose methods have a backward pass.

    Parameters and gradients are those of the last method that ran, unless another one is named.

    Args:
        program: with its `__et_training_*` methods
    """

    gradients_method_prefix = f"{_PREFIX}gradients_index_"
    parameters_method_prefix = f"{_PREFIX}parameters_index_"
    fqn_method_prefix = f"{_PREFIX}fqn_"

    def __init__(self, program: Program) -> None:
        self.program = program
        self._ran: set[str] = set()
        self._last = "forward"

    def forward_backward(self, method_name: str, inputs: Sequence[Any]) -> list[Any]:
        """Run a method with its backward pass and return its outputs.

        Raises: ExecutionError InvalidArgument for a program that was exported without gradients
        """
        gradients, _ = self._split(method_name)
        method = self._method(method_name)
        outputs = method.execute(inputs)
        self._ran.add(method_name)
        self._last = method_name
        return outputs[:gradients]

    execute_forward_backward = forward_backward

    def named_parameters(self, method_name: str = "") -> dict[str, torch.Tensor]:
        """Return the parameters by qualified name: the method's own memory, which may be changed.

        Raises: ExecutionError InvalidArgument for a program that was exported without gradients
        """
        method_name = method_name or self._last
        _, parameters = self._split(method_name)
        values = self._method(method_name).get_outputs(clone_outputs=False)[parameters:]
        return self._named(method_name, values)

    named_params = named_parameters

    def named_gradients(self, method_name: str = "") -> dict[str, torch.Tensor]:
        """Return the gradients of the last run by qualified name; the next run overwrites them.

        Raises: ExecutionError InvalidState before the first run
        """
        method_name = method_name or self._last
        if method_name not in self._ran:
            raise ExecutionError(
                ErrorCode.InvalidState,
                f"{method_name!r} has no gradients before its first forward_backward",
                remedy="",
            )
        gradients, parameters = self._split(method_name)
        values = self._method(method_name).get_outputs(clone_outputs=False)
        return self._named(method_name, values[gradients:parameters])

    named_grads = named_gradients

    def save_parameters(self, path: str | Path, method_name: str = "") -> None:
        """Write the parameters to a ``.ptd`` file."""
        Path(path).write_bytes(encoded_parameters(self.named_parameters(method_name)))

    def load_parameters(self, data: Data, method_name: str = "") -> None:
        """Set the parameters to those in a ``.ptd`` file.

        Raises: ExecutionError InvalidExternalData where one is missing or has another layout
        """
        found = decoded_parameters(data)
        for name, parameter in self.named_parameters(method_name).items():
            saved = found.get(name)
            if saved is None or (saved.shape, saved.dtype) != (parameter.shape, parameter.dtype):
                raise ExecutionError(
                    ErrorCode.InvalidExternalData,
                    f"the file has no {name!r} of sizes {list(parameter.shape)} and "
                    f"{parameter.dtype}",
                    remedy="",
                )
            parameter.copy_(saved)

    def _method(self, name: str) -> Method:
        return self.program.load_method(name)

    def _split(self, name: str) -> tuple[int, int]:
        """Return the indices of the first gradient and of the first parameter."""
        starts: list[int] = []
        for prefix in (self.gradients_method_prefix, self.parameters_method_prefix):
            if prefix + name not in self.program.method_names:
                raise invalid_argument(
                    f"{name!r} was exported without gradients: {prefix}{name} not found"
                )
            (start,) = self._method(prefix + name).execute()
            starts.append(start)
        count = self._method(name).metadata.num_outputs()
        if not 0 <= starts[0] <= starts[1] <= count:
            raise ExecutionError(
                ErrorCode.InvalidProgram,
                f"gradients from {starts[0]} and parameters from {starts[1]} of {count} outputs",
            )
        return starts[0], starts[1]

    def _named(self, method_name: str, values: Sequence[Any]) -> dict[str, torch.Tensor]:
        names = self._method(self.fqn_method_prefix + method_name).execute()
        if len(names) != len(values):
            raise ExecutionError(
                ErrorCode.InvalidProgram, f"{len(names)} names for {len(values)} tensors"
            )
        return dict(zip(names, values, strict=True))


class SGD:
    """Stochastic gradient descent over parameters that are changed in place.

    Args:
        named_params: parameters by name
        lr: learning rate
        momentum: factor of the previous step
        dampening: fraction of the gradient that is not added to the momentum
        weight_decay: L2 penalty
        nesterov: Nesterov momentum

    Raises: ExecutionError InvalidArgument for invalid hyperparameters
    """

    def __init__(
        self,
        named_params: Parameters,
        lr: float,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        if min(lr, momentum, weight_decay) < 0:
            raise invalid_argument("lr, momentum and weight_decay must not be negative")
        if nesterov and (momentum <= 0 or dampening):
            raise invalid_argument("nesterov needs momentum and no dampening")
        self._parameters = dict(named_params)
        self._lr, self._momentum, self._dampening = lr, momentum, dampening
        self._decay, self._nesterov = weight_decay, nesterov
        self._kept: dict[str, torch.Tensor] = {}

    def step(self, named_gradients: Parameters) -> None:
        """Update each parameter that has a gradient.

        Raises: ExecutionError InvalidArgument for a gradient of an unknown parameter
        """
        unknown = set(named_gradients) - set(self._parameters)
        if unknown:
            raise invalid_argument(f"{min(unknown)!r} is not a parameter of the optimizer")
        for name, gradient in named_gradients.items():
            parameter = self._parameters[name]
            parameter.sub_(self._direction(name, parameter, gradient), alpha=self._lr)

    def _direction(
        self, name: str, parameter: torch.Tensor, gradient: torch.Tensor
    ) -> torch.Tensor:
        if self._decay:
            gradient = gradient.add(parameter, alpha=self._decay)
        if not self._momentum:
            return gradient
        kept = self._kept.get(name)
        if kept is None:
            kept = self._kept[name] = gradient.clone()
        else:
            kept.mul_(self._momentum).add_(gradient, alpha=1 - self._dampening)
        return gradient.add(kept, alpha=self._momentum) if self._nesterov else kept


def get_sgd_optimizer(
    named_params: Parameters,
    lr: float = 0.1,
    momentum: float = 0.0,
    dampening: float = 0.0,
    weight_decay: float = 0.0,
    nesterov: bool = False,
) -> SGD:
    """Return an SGD optimizer of parameters."""
    return SGD(named_params, lr, momentum, dampening, weight_decay, nesterov)


def encoded_parameters(parameters: Parameters) -> bytes:
    """Return a ``.ptd`` file with tensors by name."""
    return flat_tensor.encode(
        flat_tensor.pack((name, _blob(value)) for name, value in parameters.items())
    )


def _blob(value: torch.Tensor) -> flat_tensor.PlacedBlob:
    code, sizes = CODE_OF[value.dtype], tuple(value.shape)
    return flat_tensor.PlacedBlob(
        as_bytes(value), flat_tensor.TensorLayout(code, sizes, dim_order_of(value))
    )


def decoded_parameters(data: Data) -> dict[str, torch.Tensor]:
    """Return the tensors of a ``.ptd`` file by name.

    Raises: ExecutionError AccessFailed, InvalidExternalData
    """
    found: dict[str, torch.Tensor] = {}
    for entry in load_data_files([data])[0].entries:
        layout = entry.layout
        if layout is None:
            continue
        dtype, count = dtype_of(layout.scalar_type), numel(layout.sizes)
        if len(entry.data) < count * dtype.itemsize:
            raise ExecutionError(
                ErrorCode.InvalidExternalData, f"{entry.key!r} has too few bytes", remedy=""
            )
        flat = from_buffer(entry.data, dtype, count) if count else torch.empty(0, dtype=dtype)
        found[entry.key] = flat.as_strided(layout.sizes, strides_of(layout.sizes, layout.dim_order))
    return found


def _load_for_executorch_for_training(path: str | Path) -> TrainingModule:
    """Load a program for training from a file."""
    return TrainingModule(Runtime.get().load_program(path))


def _load_for_executorch_for_training_from_buffer(buffer: bytes) -> TrainingModule:
    """Load a program for training from bytes."""
    return TrainingModule(Runtime.get().load_program(buffer))
