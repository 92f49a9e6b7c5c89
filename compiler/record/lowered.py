"""Lowered modules as JSON of a record: payload, compile specs and original program.

Source: exir/serde/schema.py ``LoweredBackendModule``
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.interface.backend import value_of_spec
from compiler.interface.file_data import in_memory


def lowered_json(module: Any, write: Callable[[ExportedProgram], bytes]) -> str:  # noqa: ANN401
    """Return a lowered module as JSON.

    Args:
        module: a LoweredBackendModule
        write: returns a program as JSON
    """
    original: ExportedProgram = module.original_module
    specs = [
        {"key": s.key, "value": _base64(value_of_spec(s, module.backend_id))}
        for s in module.compile_specs
    ]
    named = module.named_data_store_output
    return json.dumps(
        {
            "original_module": json.loads(write(original)),
            "original_state_dict": _base64(_saved(original.state_dict)),
            "original_constants": _base64(_saved(original.constants)),
            "processed_bytes": _base64(module.processed_bytes),
            "compile_specs": specs,
            "backend_id": module.backend_id,
            "named_data_store": None if named is None else json.dumps(_named(named)),
        }
    )


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _saved(tensors: Mapping[str, Any]) -> bytes:
    stream = io.BytesIO()
    torch.save(dict(tensors), stream)
    return stream.getvalue()


def _named(named: Any) -> dict[str, Any]:  # noqa: ANN401 - a NamedDataStoreOutput
    return {
        "buffers": [_base64(in_memory(data)) for data in named.buffers],
        "pte_data": _entries(named.pte_data),
        "external_data": {tag: _entries(found) for tag, found in named.external_data.items()},
    }


def _entries(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: {
            "buffer_index": entry.buffer_index,
            "alignment": entry.alignment,
            "tensor_layout": _layout(entry.tensor_layout),
        }
        for key, entry in entries.items()
    }


def _layout(layout: Any) -> Any:  # noqa: ANN401 - a TensorLayout or None
    if layout is None:
        return None
    return {
        "scalar_type": layout.scalar_type,
        "sizes": list(layout.sizes),
        "dim_order": list(layout.dim_order),
    }
