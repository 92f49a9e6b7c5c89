"""Size of a model: its tensors, its delegates, and the rest."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from inspector.compat.devtools import size_of_files as files
from inspector.compat.devtools.etrecord import ETRecord
from inspector.compat.devtools.fx_nodes import Fx
from schema.program import ProgramFile

Row = dict[str, Any]
Deserializers = Mapping[str, Callable[[bytes], Mapping[str, Any]]]


def generate_model_size_information(
    model: object,
    delegate_deserializers: Deserializers | None = None,
    flatbuffer: bytes | None = None,
) -> dict[str, Any]:
    """Return tensors and delegate payloads by size, and their sums; ready for JSON.

    Args:
        model: a torch.export.ExportedProgram, an ETRecord (its edge program of ``forward``, or
            of its only method), the path of a ``.pte`` or ``.bpte``, or a decoded program
        delegate_deserializers: backend id -> further facts of a payload
        flatbuffer: the program file, for bytes outside of tensors and payloads; a program file is
            its own

    Returns: ``tensor_data``, ``delegate_blob_data``, ``overview``; for program files also
        ``named_data``, the blobs delegates look up by key

    Raises: TypeError for a model of another kind; FormatError, OSError
    """
    total = len(flatbuffer) if flatbuffer is not None else None
    if isinstance(model, (str, os.PathLike, ProgramFile)):
        parts = files.of_program(cast("str | ProgramFile", model))
        tensors, payloads = parts.tensors, parts.payloads
        total = parts.size if total is None else total
    else:
        parts, (tensors, payloads) = None, _rows(model)
    blobs = [_blob(name, backend, data, delegate_deserializers) for name, backend, data in payloads]
    found = {"tensor_data": tensors, "delegate_blob_data": blobs}
    if parts is not None:
        found["named_data"] = parts.named
    for rows in found.values():
        rows.sort(key=lambda row: row["num_bytes"], reverse=True)
    return {**found, "overview": _overview(found, total)}


def _overview(found: Mapping[str, list[Row]], total: int | None) -> dict[str, int]:
    sums = {key: sum(row["num_bytes"] for row in rows) for key, rows in found.items()}
    overview = {f"total_{key}_size": size for key, size in sums.items()}
    if total is not None:
        overview["serialization_metadata_size"] = total - sum(sums.values())
        overview["model_size"] = total
    return overview


def _rows(model: object) -> tuple[list[Row], list[files.NamedPayload]]:
    if isinstance(model, ETRecord):
        return files.of_record(model.artifact)
    if not hasattr(model, "graph_module"):
        raise TypeError(f"expected a program, a record or a path, found {type(model).__name__}")
    tensors: list[Row] = []
    payloads: list[files.NamedPayload] = []
    _walk(cast("Any", model).graph_module, model, tensors, payloads)
    return tensors, payloads


def _walk(module: Fx, program: Fx, tensors: list[Row], payloads: list[files.NamedPayload]) -> None:
    for node in module.graph.nodes:
        if node.op == "placeholder" and program is not None:
            tensors += _parameter(node, program)
        elif node.op == "get_attr":
            held = getattr(node.graph.owning_module, node.target)
            if _is_tensor(held):
                tensors.append(_tensor(node, held))
            elif hasattr(held, "processed_bytes"):
                payloads.append((node.name, held.backend_id, held.processed_bytes))
            elif hasattr(held, "graph"):
                _walk(held, None, tensors, payloads)


def _parameter(node: Fx, program: Fx) -> Iterator[Row]:
    signature = program.graph_signature
    for names in (signature.inputs_to_parameters, signature.inputs_to_buffers):
        if node.name in names:
            tensor = program.state_dict.get(names[node.name])
            if _is_tensor(tensor):
                yield _tensor(node, tensor)
            return


def _is_tensor(value: object) -> bool:
    return hasattr(value, "element_size") and hasattr(value, "numel")


def _tensor(node: Fx, tensor: Fx) -> Row:
    stack = node.meta.get("nn_module_stack", None)
    return {
        "name": node.name,
        "numel": tensor.numel(),
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "element_size": tensor.element_size(),
        "shape": list(tensor.shape),
        "num_bytes": tensor.element_size() * tensor.numel(),
        "nn_module_stack": str(stack) if "nn_module_stack" in node.meta else None,
    }


def _blob(
    name: str, backend: str, data: bytes | memoryview, deserializers: Deserializers | None
) -> Row:
    row: Row = {"name": name, "backend_id": backend, "num_bytes": len(data)}
    if deserializers is not None and backend in deserializers:
        row.update(deserializers[backend](bytes(data)))
    return row
