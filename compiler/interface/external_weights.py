"""External weights of delegates: weights are marked before export and moved afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.interface.backend import PreprocessResult
from compiler.interface.file_data import in_memory
from compiler.interface.named_data import DataEntry, NamedDataStoreOutput
from compiler.memory.specs import raw_bytes
from compiler.untyped import PassResult

_CUSTOM, _TAG = "custom", "delegate_constant_tag"  # as documented; export preserves it
_BY_NAME = "exchanged_by_name"


def delegate_external_constants_pass_unlifted(
    module: torch.nn.Module,
    gen_tag_fn: Callable[[torch.fx.Node], str | None] | None = None,
) -> Any:  # noqa: ANN401 - as documented
    """Mark the weights of an exported module, ``program.module()``, in place.

    Then export it again with ``strict=True``: otherwise torch drops the marks.

    Args:
        module: the exported module
        gen_tag_fn: returns the file of a weight inside a delegate, None for the program itself
    """
    graphs = [m.graph for m in module.modules() if isinstance(m, torch.fx.GraphModule)]
    nodes = [n for graph in graphs for n in graph.nodes if n.op == "get_attr" and gen_tag_fn]
    for node in nodes:
        assert gen_tag_fn is not None
        node.meta[_CUSTOM] = {**node.meta.get(_CUSTOM, {}), _TAG: gen_tag_fn(node)}
    return PassResult(module, bool(nodes))


def mark_weights(
    program: ExportedProgram,
    file_of: Callable[[str], str | None],
    is_exchanged: Callable[[str], bool] | None = None,
) -> None:
    """Mark the weights of an exported program, in place; without exporting it again.

    Args:
        program: whose weights, in delegates or not, are marked, unless it writes to them
        file_of: returns the file of a weight by its name, None for the program itself
        is_exchanged: returns whether another file may have other values of a weight, by its name;
            kernels then read it by that name, and nothing is folded of it
    """
    signature = program.graph_signature
    weights = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    written = set(signature.buffers_to_mutate.values())
    for node in program.graph.nodes:
        name = weights.get(node.name)
        if name is not None and name not in written:
            marks = {_TAG: file_of(name)}
            if is_exchanged is not None and is_exchanged(name):
                marks[_BY_NAME] = "yes"  # torch compares and prints such metadata
            node.meta[_CUSTOM] = {**node.meta.get(_CUSTOM, {}), **marks}


def is_exchanged_by_name(node: torch.fx.Node) -> bool:
    """Return whether another file may have other values of a weight."""
    custom = node.meta.get(_CUSTOM)
    return isinstance(custom, dict) and _BY_NAME in custom


def mark_behind(node: torch.fx.Node) -> str | None:
    """Return the file that a weight, or the first marked weight behind a node, is marked for."""
    seen: set[torch.fx.Node] = set()
    left = [node]
    while left:
        one = left.pop()
        if one in seen:
            continue
        seen.add(one)
        mark = _mark(one) if one.op in ("placeholder", "get_attr") else None
        if mark is not None:
            return mark
        left.extend(reversed(one.all_input_nodes))
    return None


def mark_for_folded(node: torch.fx.Node) -> dict[str, Any]:
    """Return metadata that sends a folded constant to the file of the weights behind its node."""
    mark = mark_behind(node)
    return {} if mark is None else {_CUSTOM: {**node.meta.get(_CUSTOM, {}), _TAG: mark}}


def where_marked(result: PreprocessResult, program: ExportedProgram) -> PreprocessResult:
    """Return a result whose blobs are stored in the files that its weights are marked for.

    Results of a backend that names files itself, such as XNNPACK, are not changed. Others may pack
    several weights into one blob: if all are marked for one file, all blobs are stored there;
    otherwise only blobs equal to a marked weight are, the rest stays in the program.
    """
    given = result.data_store_output
    if given is None or not given.pte_data or given.external_data:
        return result
    nodes = [node for node in program.graph.nodes if node.op == "placeholder"]
    files = {mark for mark in map(_mark, nodes) if mark is not None}
    if not files:
        return result
    tags = dict.fromkeys(given.pte_data, min(files)) if len(files) == 1 else {}
    for key, entry in given.pte_data.items() if len(files) > 1 else ():
        data = in_memory(given.buffers[entry.buffer_index])
        owner = next((n for n in nodes if _mark(n) and _is_content(program, n, data)), None)
        if owner is not None:
            tags[key] = str(_mark(owner))
    outside: dict[str, dict[str, DataEntry]] = {}
    for key, tag in tags.items():
        outside.setdefault(tag, {})[key] = given.pte_data[key]
    inside = {key: entry for key, entry in given.pte_data.items() if key not in tags}
    return replace(result, data_store_output=NamedDataStoreOutput(given.buffers, inside, outside))


def _is_content(program: ExportedProgram, node: torch.fx.Node, data: bytes) -> bool:
    """Return whether bytes equal the content of a weight."""
    target = next(s.target for s in program.graph_signature.input_specs if s.arg.name == node.name)
    held: Any = {**program.constants, **program.state_dict}.get(target or "")
    if not isinstance(held, torch.Tensor) or held.nbytes != len(data):
        return False
    return raw_bytes(held) == memoryview(data)


def _mark(node: torch.fx.Node) -> str | None:
    custom = node.meta.get(_CUSTOM)
    return custom.get(_TAG) if isinstance(custom, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
