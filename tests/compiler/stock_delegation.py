"""Verbs of the stock server about delegation: what it makes of the same programs, as plain data."""

from __future__ import annotations

import base64
from typing import Any


def demos(folder: str) -> dict[str, Any]:
    """Return what the demonstrations of the wheel make of each exported program in a folder."""
    import pathlib

    import torch
    from executorch.exir import to_edge, to_edge_transform_and_lower
    from executorch.exir.backend.test import op_partitioner_demo as demo

    makers: dict[str, Any] = {
        "AddMulPartitionerDemo": demo.AddMulPartitionerDemo,
        "NonDecompTestPartitioner": demo.NonDecompTestPartitioner,
    }
    found: dict[str, Any] = {}
    for path in sorted(pathlib.Path(folder).glob("*.pt2")):
        for name, maker in makers.items():
            program = torch.export.load(path)
            if name == "AddMulPartitionerDemo":
                edge = to_edge(program).to_backend(maker())
            else:
                edge = to_edge_transform_and_lower(program, partitioner=[maker()])
            module = edge.exported_program().graph_module
            calls = [n.target.__name__ for n in module.graph.nodes if n.op == "call_function"]
            modules = [m for n, m in module.named_children() if n.startswith("lowered_module")]
            found[f"{path.stem} {name}"] = {
                "calls": [name for name in calls if name != "getitem"],
                "payloads": [m.processed_bytes.decode() for m in modules],
            }
    return found


def xnnpack(exported: str) -> dict[str, Any]:
    """Return the payload, named data and handles the stock XNNPACK backend makes of a program."""
    import torch
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    edge = to_edge_transform_and_lower(
        torch.export.load(exported), partitioner=[XnnpackPartitioner()]
    )
    module = edge.exported_program().graph_module
    (lowered,) = [m for n, m in module.named_children() if n.startswith("lowered_module")]
    store = lowered.named_data_store_output
    return {
        "payload": base64.b64encode(lowered.processed_bytes).decode(),
        "specs": [[s.key, base64.b64encode(s.value).decode()] for s in lowered.compile_specs],
        "data": {
            key: [base64.b64encode(bytes(store.buffers[e.buffer_index])).decode(), e.alignment]
            for key, e in store.pte_data.items()
        },
    }


def deserialise(path: str) -> dict[str, Any]:
    """Return what the stock deserialiser reads of the delegates of a program."""
    from executorch.exir._serialize._program import deserialize_pte_binary

    with open(path, "rb") as stream:
        file = deserialize_pte_binary(stream.read())
    plan = file.program.execution_plan[0]
    data = file.program.backend_delegate_data
    return {
        "delegates": [
            [
                d.id,
                [[s.key, s.value.hex()] for s in d.compile_specs],
                data[d.processed.index].data.hex(),
            ]
            for d in plan.delegates
        ],
        "named": sorted(file.named_data.pte_data) if file.named_data else [],
    }


def joined(etrecord: str, trace: str = "") -> dict[str, Any]:
    """Return what the stock tools read of a record, joined with a trace if there is one."""
    from executorch.devtools import Inspector, parse_etrecord

    read = parse_etrecord(etrecord)
    facts: dict[str, Any] = {
        "graphs": sorted(read.graph_map or {}),
        "handles": read._debug_handle_map,
        "delegates": read._delegate_map,
    }
    if trace:
        inspector = Inspector(etdump_path=trace, etrecord=etrecord)
        facts["rows"] = [
            {
                "name": event.name,
                "delegate": event.delegate_backend_name or "",
                "op_types": event.op_types,
                "lines": sorted(event.stack_traces or {}),
            }
            for block in inspector.event_blocks
            for event in block.events
        ]
    return facts


def lowered(exported: str, program: str = "") -> dict[str, Any]:
    """Return how often the stock XNNPACK partitioner calls what, and the delegate.

    The program goes to a file.
    """
    import collections
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch
        import torchao.quantization.pt2e.quantize_pt2e
        import torchao.quantization.quant_primitives  # noqa: F401  registers operators
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
        from executorch.exir import to_edge_transform_and_lower

        edge = to_edge_transform_and_lower(
            torch.export.load(exported), partitioner=[XnnpackPartitioner()]
        )
    nodes = edge.exported_program().graph.nodes
    targets = [n.target for n in nodes if n.op == "call_function"]
    names = [t.__name__ for t in targets if hasattr(t, "_schema")]
    if program:
        with open(program, "wb") as stream:
            stream.write(edge.to_executorch().buffer)
    delegates = sum(getattr(t, "__name__", "") == "executorch_call_delegate" for t in targets)
    return {"left": collections.Counter(names), "delegates": delegates}


VERBS = {
    "lowered": lowered,
    "demos": demos,
    "xnnpack": xnnpack,
    "deserialise": deserialise,
    "joined": joined,
}
