"""OpenVINO: the device and any further setting that its compiler passes on."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.backends.vendors.nncf_folding import folding_right
from compiler.backends.vendors.options import Creator, VendorOptions
from compiler.backends.vendors.package import backend_part, spec

_DEVICES = ("CPU", "GPU", "NPU", "AUTO")
_FOLDED = "compressed_weight_updated_constant"  # NNCF's name of a weight as integers
_REAL = "real_"  # before the name of such a weight
_SCALE, _SHIFT = torch.ops.aten.mul.Tensor, torch.ops.aten.sub.Tensor


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
        with folding_right():
            quantized = home.quantize_model(
                captured,
                _Calls(calls),
                mode=self.mode,
                subset_size=len(calls),
                fast_bias_correction=None,
                fold_quantize=True,  # the front end converts stored integers only
            )
        give_real_weights(quantized)
        return quantized


def give_real_weights(module: torch.fx.GraphModule) -> None:
    """Let every reader of a weight that was folded to integers read its real value.

    NNCF computes that value for the reader that it quantized; other readers of the same weight, as
    the steps of a recurrent layer, it leaves with the stored integers. They get a constant of their
    own: where they share the computed value, OpenVINO's compiler ends with a type that it lacks.

    Args:
        module: as NNCF returns it; changed
    """
    for weight in [*module.graph.nodes]:
        if weight.op != "get_attr" or _FOLDED not in str(weight.target):
            continue
        scalings = [user for user in weight.users if _is_by_constants(user, _SCALE)]
        others = [user for user in weight.users if user not in scalings]
        if len(scalings) != 1 or not others:
            continue
        steps = [*scalings, *(one for one in scalings[0].users if _is_by_constants(one, _SHIFT))]
        name = f"{_REAL}{weight.target}"
        module.register_buffer(name, _computed(module, weight, steps))
        with module.graph.inserting_after(weight):
            real = module.graph.get_attr(name)
        real.meta = dict(steps[-1].meta)
        for user in others:
            user.replace_input_with(weight, real)
    module.recompile()


def _computed(
    module: torch.fx.GraphModule, weight: torch.fx.Node, steps: Iterable[torch.fx.Node]
) -> torch.Tensor:
    """Return what steps by constants make of a weight."""
    value: torch.Tensor = getattr(module, str(weight.target))
    for step in steps:
        operator: Any = step.target
        other: Any = step.args[1]
        is_node = isinstance(other, torch.fx.Node)
        value = operator(value, getattr(module, str(other.target)) if is_node else other)
    return value


def _is_by_constants(node: torch.fx.Node, target: object) -> bool:
    """Return whether a node is a call of an operator whose second argument is a constant."""
    other = node.args[1] if len(node.args) > 1 else None
    constant = isinstance(other, (int, float)) or getattr(other, "op", "") == "get_attr"
    return node.target is target and constant


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
