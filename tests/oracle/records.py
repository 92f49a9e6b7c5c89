"""What the stock tool reads from an ETRecord: graphs, maps, delegation, sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from executorch.devtools import parse_etrecord
from executorch.devtools.backend_debug import get_delegation_info
from executorch.devtools.size_analysis_tool.size_analysis_tool import (
    generate_model_size_information,
)
from executorch.exir.backend.utils import format_delegated_graph

from tests.oracle.plain import plain


def record_facts(path: Path, program: Path | None = None) -> dict[str, Any]:
    """Parse the ETRecord and return everything in it, each graph with the stock analyses."""
    record = parse_etrecord(str(path))
    buffer = None if program is None else program.read_bytes()
    return {
        "programs": {
            name: program_facts(exported, buffer if name.startswith("edge_dialect") else None)
            for name, exported in recorded_programs(record).items()
        },
        "export_graph_id": record.export_graph_id,
        "debug_handle_map": plain(record._debug_handle_map),
        "delegate_map": plain(record._delegate_map),
        "instruction_id_to_num_outs_map": plain(record._instruction_id_to_num_outs_map),
        "reference_outputs": plain(record._reference_outputs),
        "representative_inputs": plain(record._representative_inputs),
    }


def recorded_programs(record: Any) -> dict[str, Any]:
    """Return the programs of a record by the names of their members in the file."""
    programs = dict(record.graph_map or {})
    if record.exported_program is not None:
        programs["exported_program"] = record.exported_program
    edge = record.edge_dialect_program or {}
    edges = edge if isinstance(edge, dict) else {"forward": edge}
    programs |= {f"edge_dialect_exported_program/{name}": edges[name] for name in edges}
    return programs


def program_facts(exported: Any, buffer: bytes | None = None) -> dict[str, Any]:
    """Return nodes, signature, delegation and sizes of one exported program."""
    return {
        "nodes": node_list(exported.graph_module),
        "signature": signature(exported),
        "state_dict": plain(dict(exported.state_dict)),
        "constants": plain(dict(exported.constants)),
        "delegation": delegation_facts(exported.graph_module),
        "size": plain(generate_model_size_information(exported, flatbuffer=buffer)),
    }


def delegation_facts(graph_module: torch.fx.GraphModule) -> dict[str, Any]:
    """Return the stock delegation numbers, texts and table of one graph."""
    info = get_delegation_info(graph_module)
    rows: list[list[Any]] = []
    if info.delegation_by_operator:  # the stock table of no operators raises KeyError
        frame = info.get_operator_delegation_dataframe()
        rows = [plain(list(row)) for row in frame.itertuples(index=False, name=None)]
    return {
        "num_delegated_subgraphs": info.num_delegated_subgraphs,
        "num_delegated_nodes": info.num_delegated_nodes,
        "num_non_delegated_nodes": info.num_non_delegated_nodes,
        "summary": info.get_summary(),
        "by_operator": rows,
        "formatted_graph": format_delegated_graph(graph_module),
    }


def node_list(graph_module: torch.fx.GraphModule) -> list[dict[str, Any]]:
    """Return the nodes of a graph in order, nested graphs after the node that names them."""
    return [_node(node, graph_module) for node in graph_module.graph.nodes]


def _node(node: torch.fx.Node, owner: torch.fx.GraphModule) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "name": node.name,
        "op": node.op,
        "target": str(node.target),
        "inputs": [value.name for value in node.all_input_nodes],
        "debug_handle": plain(node.meta.get("debug_handle")),
        "stack_trace": node.meta.get("stack_trace"),
        "nn_module_stack": plain(node.meta.get("nn_module_stack")),
        "value": _meta_value(node.meta.get("val")),
    }
    nested = getattr(owner, str(node.target), None) if node.op == "get_attr" else None
    if isinstance(nested, torch.fx.GraphModule):
        facts["graph"] = node_list(nested)
    elif hasattr(nested, "original_module"):
        facts["backend_id"] = nested.backend_id
        facts["processed"] = plain(nested.processed_bytes)
        facts["graph"] = node_list(nested.original_module.graph_module)
    return facts


def _meta_value(value: Any) -> Any:
    if isinstance(value, torch.Tensor):  # a fake tensor: it has no elements
        return {"dtype": str(value.dtype).removeprefix("torch."), "shape": _sizes(value)}
    if isinstance(value, (list, tuple)):
        return [_meta_value(item) for item in value]
    return plain(value)


def _sizes(value: torch.Tensor) -> list[Any]:
    return [size if isinstance(size, int) else str(size) for size in value.shape]


def signature(exported: Any) -> dict[str, Any]:
    """Return the inputs and outputs of the graph signature, by kind."""
    found = exported.graph_signature
    return {
        "inputs": [
            [spec.kind.name, getattr(spec.arg, "name", None), spec.target]
            for spec in found.input_specs
        ],
        "outputs": [
            [spec.kind.name, getattr(spec.arg, "name", None), spec.target]
            for spec in found.output_specs
        ],
    }
