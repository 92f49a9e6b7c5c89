"""OpenVINO: the device and any further setting that its compiler passes on."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.backends.vendors.options import Creator, VendorOptions
from compiler.backends.vendors.package import backend_part, spec

_DEVICES = ("CPU", "GPU", "NPU", "AUTO")


def _devices() -> tuple[str, ...]:
    core = importlib.import_module("openvino").Core()
    return tuple(dict.fromkeys((*_DEVICES, *core.available_devices)))


def partitioner(options: VendorOptions) -> Creator:
    """Return the factory of the partitioner."""
    home = backend_part("openvino.partitioner")
    device: str = options.text("device", "CPU", _devices())
    skip = set(options.words("op_types_to_skip"))
    names = set(options.words("op_names_to_skip"))
    return lambda: home.OpenvinoPartitioner(
        [spec("device", device.encode())], skip or None, names or None
    )


class _Nncf:
    """Quantizes by NNCF, whose own steps the plain ones of torchao cannot replace."""

    def __init__(self, mode: Any) -> None:  # noqa: ANN401
        self.mode = mode

    def annotate(self, model: Any) -> Any:  # noqa: ANN401
        """Annotate a graph, for callers that use the plain steps."""
        return backend_part("openvino.quantizer").OpenVINOQuantizer(mode=self.mode).annotate(model)

    def prepared(self, program: Any) -> ExportedProgram:  # noqa: ANN401
        """Return an exported program whose operators NNCF has shapes for.

        A recurrent layer is one operator with several results, none of which has a shape there.
        """
        known: Any = torch.export.default_decompositions()
        return program.run_decompositions({op: known[op] for op in _recurrent(known)})

    def quantize(self, captured: Any, calls: Sequence[tuple[Any, ...]]) -> Any:  # noqa: ANN401
        """Return a quantized graph module.

        Args:
            captured: graph module of an exported program
            calls: arguments to calibrate with
        """
        home = backend_part("openvino.quantizer")
        return home.quantize_model(
            captured,
            _Calls(calls),
            mode=self.mode,
            subset_size=len(calls),
            fast_bias_correction=None,
            fold_quantize=True,  # the front end converts stored integers only
        )


def _recurrent(operators: Iterable[Any]) -> Iterator[Any]:
    names = ("aten::gru.", "aten::lstm.", "aten::rnn_tanh.", "aten::rnn_relu.")
    return (op for op in operators if op.name().startswith(names))


class _Calls:
    """Arguments of calls in the form that NNCF iterates over."""

    def __init__(self, calls: Sequence[tuple[Any, ...]]) -> None:
        self._calls = [one[0] if len(one) == 1 else tuple(one) for one in calls]
        self.batch_size = 1

    def __iter__(self) -> Any:  # noqa: ANN401
        return iter(self._calls)

    def __len__(self) -> int:
        return len(self._calls)


def quantizer(options: VendorOptions) -> Creator:
    """Return the factory of the quantizer."""
    home = backend_part("openvino.quantizer")
    modes = home.QuantizationMode
    mode = options.member("mode", modes, modes.INT8_SYM)
    return lambda: _Nncf(mode)


def operators() -> list[tuple[str, str]]:
    """Return the operators of the front end's table."""
    home = importlib.import_module("openvino.frontend.pytorch.torchdynamo.op_support")
    names = {**home.OperatorSupport([])._support_dict}
    names.update(
        backend_part("openvino.partitioner").OpenvinoOperatorsSupport.extended_support_dict
    )
    return [(str(name).removeprefix("torch.ops."), "any") for name in names]
