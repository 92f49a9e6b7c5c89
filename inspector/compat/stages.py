"""The stages of a session with the calls documented for `executorch.export.stages`.

The classes are those of the compiler (compiler.compat.session.stages); here they look up their
functions in this module, so that a caller may replace one. They need torchao.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import torch
from typing_extensions import override

from compiler import EdgeProgramManager
from compiler import to_edge as to_edge
from compiler import to_edge_transform_and_lower as to_edge_transform_and_lower
from compiler.compat.session import model_stages, stages
from compiler.compat.session.recipe import StageType
from compiler.compat.session.stage import PipelineArtifact as PipelineArtifact
from compiler.compat.session.stage import Stage as Stage
from compiler.compat.session.stages import Partitioners
from inspector.compat.devtools.delegation_info import get_delegation_info as get_delegation_info

_pt2e: Any = importlib.import_module("torchao.quantization.pt2e")
_steps: Any = importlib.import_module("torchao.quantization.pt2e.quantize_pt2e")
_quantizers: Any = importlib.import_module("torchao.quantization.pt2e.quantizer")
quantize_: Any = importlib.import_module("torchao.quantization").quantize_
unwrap_tensor_subclass: Any = importlib.import_module("torchao.utils").unwrap_tensor_subclass
allow_exported_model_train_eval: Any = _pt2e.allow_exported_model_train_eval
move_exported_model_to_eval: Any = _pt2e.move_exported_model_to_eval
move_exported_model_to_train: Any = _pt2e.move_exported_model_to_train
convert_pt2e: Any = _steps.convert_pt2e
prepare_pt2e: Any = _steps.prepare_pt2e
prepare_qat_pt2e: Any = _steps.prepare_qat_pt2e
ComposableQuantizer: Any = _quantizers.ComposableQuantizer
_HERE = sys.modules[__name__]


class SourceTransformStage(model_stages.SourceTransformStage):
    """Quantizes the modules themselves, before they are exported."""

    functions = _HERE

    @override
    def _unwrap(self, model: torch.nn.Module) -> None:
        unwrap_tensor_subclass(model)


class QuantizeStage(model_stages.QuantizeStage):
    """Quantizes exported graphs with quantizers, after calibration or training."""

    functions = _HERE

    @override
    def _traced(self, model: Any, inputs: tuple[Any, ...], shapes: object, *, is_qat: bool) -> Any:
        if is_qat:
            model.train()  # batch norm and dropout are exported as they train
        run: Any = torch.export.export
        return run(model, inputs, dynamic_shapes=shapes, strict=True).module()

    @override
    def _get_quantizer_for_prepare_pt2e(self, quantizers: Sequence[Any]) -> Any:
        composable = [one for one in quantizers if isinstance(one, _quantizers.Quantizer)]
        older = [one for one in quantizers if one not in composable]
        if not quantizers:
            raise ValueError("No quantizers detected")
        if composable and older:
            raise ValueError("Mixed quantizer types are not supported")
        if len(older) > 1:
            raise ValueError("Multiple quantizers of torch.ao.quantization.quantizer not supported")
        return older[0] if older else ComposableQuantizer(composable)


class TorchExportStage(model_stages.TorchExportStage):
    """Exports each module."""

    @override
    def _exported(self, model: Any, inputs: tuple[Any, ...], shapes: Any) -> Any:
        run: Any = torch.export.export
        return run(model, inputs, dynamic_shapes=shapes, strict=self.strict)


class _WithDelegationInfo(stages.LoweringStage):
    """Adds the delegation of each method to the context of its artifact."""

    functions = _HERE

    @property
    def delegation_info(self) -> Any:  # noqa: ANN401 - a DelegationInfo
        """Return the delegation of `forward`, or of the first method by name."""
        return self.get_artifacts().get_context("delegation_info")

    @property
    def delegation_info_by_method(self) -> dict[str, Any]:
        """Return the delegation of each method."""
        return self.get_artifacts().get_context("delegation_info_by_method")

    @override
    def _leave(self, artifact: PipelineArtifact, manager: EdgeProgramManager) -> None:
        super()._leave(artifact, manager)
        found = {
            name: get_delegation_info(manager.exported_program(name).graph_module)
            for name in sorted(manager.methods)
        }
        left = self.get_artifacts()
        left.add_context("delegation_info_by_method", found)
        left.add_context("delegation_info", found.get("forward", next(iter(found.values()), None)))


class EdgeTransformAndLowerStage(_WithDelegationInfo, stages.EdgeTransformAndLowerStage):
    """Lowers exported programs and delegates their partitions to backends."""


class ToEdgeStage(_WithDelegationInfo, stages.ToEdgeStage):
    """Lowers exported programs."""


class EdgeProgramManagerTransformStage(
    _WithDelegationInfo, stages.EdgeProgramManagerTransformStage
):
    """Changes lowered programs by passes, which may be created from the manager."""


class ToBackendStage(_WithDelegationInfo, stages.ToBackendStage):
    """Delegates partitions of lowered programs to backends."""

    @override
    def _delegated(self, manager: Any, partitioners: Partitioners) -> Any:
        for one in _rounds(partitioners):
            manager = manager.to_backend(one)
        return manager


def _rounds(partitioners: Partitioners) -> Iterator[Any]:
    if not isinstance(partitioners, Mapping):
        yield from partitioners
        return
    for found in zip_longest(*partitioners.values()):
        named = zip(partitioners, found, strict=True)
        yield {name: one for name, one in named if one is not None}


class ExecutorchStage(stages.ExecutorchStage):
    """Plans memory and emits the program."""

    after = tuple(one for one in stages.ExecutorchStage.after if one is not StageType.TO_EDGE)
