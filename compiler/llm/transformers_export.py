"""Export of a module of ``transformers``: what else to try, and one sentence for what does not."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.dialect.templates import tensors_in
from compiler.errors import UnboundedShapeError
from compiler.frontend import ExportError, export
from compiler.llm.size_checks import FamilyError
from compiler.llm.transformers_source import TransformersDecoder
from compiler.llm.transformers_state import one_line
from compiler.memory.specs import upper_bound

Tensor = torch.Tensor


def export_family(
    module: TransformersDecoder,
    kind: str,
    inputs: tuple[Tensor, ...],
    shapes: tuple[Any, ...] | None,
) -> ExportedProgram:
    """Return an exported decoder of ``transformers``.

    Args:
        module: with a cache or without
        kind: of its family, for messages
        inputs: tokens of shape [1, count], with a cache the position of the first of shape [1]
        shapes: dynamic ones of the inputs, None for a fixed number of tokens

    Raises: FamilyError with what exports instead; ExportError where nothing is known
    """
    try:
        return _export_bounded(module, inputs, shapes)
    except (ExportError, UnboundedShapeError) as error:
        first = error
    if _depends_on_data(first) and module.count_earlier():
        try:
            return _export_bounded(module, inputs, shapes)
        except (ExportError, UnboundedShapeError):
            pass  # the first error is about the modules as they are
    words = _why_not(module, kind, first, longest=shapes[0][1].max if shapes else None)
    raise (FamilyError(f"{words} ({one_line(first)})") if words else first) from first


def _export_bounded(
    module: TransformersDecoder, inputs: tuple[Tensor, ...], shapes: tuple[Any, ...] | None
) -> ExportedProgram:
    """Return an exported decoder whose tensors have a largest size.

    Raises: ExportError, UnboundedShapeError
    """
    found = export(module, inputs, dynamic_shapes=shapes)
    results = [one for node in found.graph.nodes for one in tensors_in(node.meta.get("val"))]
    sizes: list[Any] = [size for one in results for size in one.shape]
    for size in sizes:
        if not isinstance(size, int):
            upper_bound(size, size.node.shape_env.var_to_range)
    return found


def _depends_on_data(error: Exception) -> bool:
    return isinstance(error, UnboundedShapeError) or "data-dependent" in str(error)


def _why_not(module: TransformersDecoder, kind: str, error: Exception, longest: int | None) -> str:
    """Return what is known of an error, and what exports instead; empty for nothing."""
    if _depends_on_data(error):
        return f"the modules of {kind} branch on values of tensors, which no program holds"
    if module.cache.used:
        other = "export it without" + (", or with model.enable_dynamic_shape=false" * bool(longest))
        return f"model.use_kv_cache: its modules do not export over a static cache: {other}"
    if not longest:
        return ""
    return (
        "model.enable_dynamic_shape: its modules do not export for any number of tokens: export it"
        f" for {longest} of them in each call, with model.enable_dynamic_shape=false and"
        " debug.generate_full_logits=true"
    )
