"""Ranges of the values that a quantized program rounds, beside those that its scales can hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.utils import _pytree as _untyped_pytree
from typing_extensions import override

from inspector.graph.source import user_frame
from inspector.jobs.eval_samples import ObservedRange
from inspector.worker.source_program import own

_pytree: Any = _untyped_pytree
_QUANTIZE = "quantized_decomposed::quantize_per_tensor"


def quantizes(program: ExportedProgram) -> bool:
    """Return whether a program quantizes any value with a fixed scale."""
    return any(_is_quantizing(node) for node in program.graph.nodes)


def _is_quantizing(node: torch.fx.Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return node.op == "call_function" and getattr(schema, "name", "") == _QUANTIZE


class RangeObserver:
    """Runs a quantized program and observes what it quantizes with a fixed scale.

    Scales that the program computes for each input (dynamic quantization) and weights, which are
    constants, have no range to compare with.
    """

    def __init__(self, program: ExportedProgram) -> None:
        self._program = program

    def ranges(self, values: Sequence[Any]) -> tuple[ObservedRange, ...]:
        """Return the range of each quantized value for flattened inputs, in order of execution.

        Raises: errors of torch
        """
        spec: Any = self._program.call_spec.in_spec
        args, kwargs = _pytree.tree_unflatten([own(value) for value in values], spec)
        observing = _Observing(self._program.module())
        with torch.no_grad():
            observing.run(*args, *kwargs.values())
        return tuple(observing.found)


class _Observing(torch.fx.Interpreter):
    def __init__(self, module: Any) -> None:  # noqa: ANN401 - a graph module
        super().__init__(module)
        self.found: list[ObservedRange] = []

    @override
    def run_node(self, n: torch.fx.Node) -> Any:
        if _is_quantizing(n):
            self._observe(n)
        return super().run_node(n)

    def _observe(self, node: torch.fx.Node) -> None:
        given, _ = self.fetch_args_kwargs_from_env(node)
        tensor, scale, zero, low, high = given[:5]
        made_by = node.args[0]
        if not isinstance(tensor, torch.Tensor) or not isinstance(made_by, torch.fx.Node):
            return
        if isinstance(scale, torch.Tensor) or not tensor.numel():
            return
        finite = tensor[torch.isfinite(tensor)].double()
        least, most = ((int(end) - int(zero)) * float(scale) for end in (low, high))
        clipped = int(((finite < least - scale / 2) | (finite > most + scale / 2)).sum())
        frame = user_frame(str(made_by.meta.get("stack_trace") or ""))
        self.found.append(
            ObservedRange(
                node.name,
                made_by.name,
                f"{frame.file}:{frame.line}" if frame is not None else "",
                least,
                most,
                float(finite.min()) if len(finite) else 0.0,
                float(finite.max()) if len(finite) else 0.0,
                int(tensor.numel()),
                clipped,
            )
        )
