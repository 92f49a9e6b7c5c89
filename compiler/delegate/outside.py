"""Weights of delegates in files beside the program: a mark before export, obeyed afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.delegate.interface import PreprocessResult
from compiler.delegate.named_data import NamedDataStoreOutput
from compiler.errors import CompileError
from compiler.passes.base import PassResult

_CUSTOM, _TAG = "custom", "delegate_constant_tag"  # as documented; export keeps it


def delegate_external_constants_pass_unlifted(
    module: torch.nn.Module,
    gen_tag_fn: Callable[[torch.fx.Node], str | None] | None = None,
) -> Any:  # noqa: ANN401 - as documented
    """Mark the weights of an exported module, ``program.module()``, in place.

    Export it again then, with ``strict=True``: torch drops the marks otherwise.

    Args:
        module: what was exported
        gen_tag_fn: the file of a weight, should a delegate take it; None for the program itself
    """
    graphs = [m.graph for m in module.modules() if isinstance(m, torch.fx.GraphModule)]
    nodes = [n for graph in graphs for n in graph.nodes if n.op == "get_attr" and gen_tag_fn]
    for node in nodes:
        assert gen_tag_fn is not None
        node.meta[_CUSTOM] = {**node.meta.get(_CUSTOM, {}), _TAG: gen_tag_fn(node)}
    return PassResult(module, bool(nodes))


def where_marked(result: PreprocessResult, program: ExportedProgram, what: str) -> PreprocessResult:
    """Return a result whose blobs are in the file that the weights of its program are marked for.

    A backend may pack several weights into one blob, so that a partition has one file.

    Raises: CompileError naming the files if there are several
    """
    given = result.data_store_output
    if given is None or not given.pte_data:
        return result
    marks = {_mark(node) for node in program.graph.nodes if node.op == "placeholder"} - {None}
    if not marks:
        return result
    if len(marks) > 1:
        raise CompileError(
            f"the weights of {what} are marked for {', '.join(sorted(map(str, marks)))}; those of "
            "one partition go into one file"
        )
    tag = str(marks.pop())
    outside = {**given.external_data, tag: {**given.external_data.get(tag, {}), **given.pte_data}}
    return replace(result, data_store_output=NamedDataStoreOutput(given.buffers, {}, outside))


def _mark(node: torch.fx.Node) -> str | None:
    custom = node.meta.get(_CUSTOM)
    return custom.get(_TAG) if isinstance(custom, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
