"""The tables that Vela writes beside a command stream: cycles of each layer, use of memories.

Everything in them is an estimate of Vela's model of the hardware.
Source: ethos-u-vela 5.1, columns of ``*_per-layer.csv`` and ``*_summary_*.csv``
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from schema import payloads
from schema.payloads.estimates import (
    EstimateSummary,
    LayerEstimate,
    MemoryEstimate,
    PayloadEstimate,
)
from schema.payloads.ethosu.debug_tables import DebugTables
from schema.payloads.ethosu.payload import command_stream
from schema.payloads.ethosu.vela_csv import csv_rows
from schema.payloads.nested import nested_calls

_LAYERS, _SUMMARY = "_per-layer.csv", "_summary_"
_GRAPH = ".tosa"
_KIB = 1024
# name of a memory, prefix of its columns in the summary, title of its access cycles by layer
MEMORIES = (
    ("SRAM", "sram", "SRAM AC"),
    ("DRAM", "dram", "DRAM AC"),
    ("on-chip flash", "on_chip_flash", "OnFlash AC"),
    ("off-chip flash", "off_chip_flash", "OffFlash AC"),
)


def read_estimates(payload: memoryview, files: Mapping[str, bytes]) -> PayloadEstimate | None:
    """Return the files of Vela for a payload, None without any.

    Raises: FormatError if a table cannot be read
    """
    summary, layers = vela_summary(files), layer_estimates(files)
    if summary is None and not layers:
        return None
    tables = DebugTables(files)
    nodes = _operators(files, layers, tables)
    stream = command_stream(payload)
    operations = stream.operations if stream is not None else ()
    places = tables.command_layers([one.at for one in operations])
    commands = tuple(
        (f"{one.kind}_{index}", place if place is not None and place < len(layers) else None)
        for index, (one, place) in enumerate(zip(operations, places, strict=True))
    )
    return PayloadEstimate(summary, layers, nodes, commands, tables.tensors())


def _operators(
    files: Mapping[str, bytes], layers: Sequence[LayerEstimate], tables: DebugTables
) -> tuple[tuple[str, ...], ...]:
    """Return the operators of each layer: by the debug database, and by the tensor it writes."""
    name = next((one for one in sorted(files) if one.endswith(_GRAPH)), "")
    graph = payloads.decode("TOSABackend", memoryview(files[name])).graph if name else None
    if graph is None:
        return ((),) * len(layers)
    writers = {made: label for label, node in nested_calls(graph) for made in node.outputs}
    operators = tables.layer_operators()
    same = [one for one, _ in operators] == [one.name for one in layers]
    found: list[tuple[str, ...]] = []
    for index, one in enumerate(layers):
        place = operators[index][1] if same else None
        known = place is not None and 0 <= place < len(graph.nodes)
        first = graph.nodes[place].name if known and place is not None else ""
        found.append(tuple(dict.fromkeys(filter(None, (first, writers.get(one.name, ""))))))
    return tuple(found)


def layer_estimates(files: Mapping[str, bytes]) -> tuple[LayerEstimate, ...]:
    """Return the layers in the table among the files that Vela left, empty without one.

    Raises: FormatError if the file is not such a table
    """
    name = next((one for one in sorted(files) if one.endswith(_LAYERS)), "")
    return tuple(map(_layer, csv_rows(files[name], name, "Op Cycles"))) if name else ()


def vela_summary(files: Mapping[str, bytes]) -> EstimateSummary | None:
    """Return the summary among the files that Vela left, None without one.

    Raises: FormatError if the file is not such a table
    """
    names = [one for one in sorted(files) if _SUMMARY in one and one.endswith(".csv")]
    rows = csv_rows(files[names[0]], names[0], "cycles_total") if names else []
    return _summary(rows[0]) if rows else None


def _layer(row: Mapping[str, str]) -> LayerEstimate:
    busy = _number(row, "Util% (MAC)")
    return LayerEstimate(
        row.get("Original Operator", ""),
        row.get("NNG Operator", ""),
        row.get("Target", ""),
        row.get("Name", ""),
        _count(row, "Op Cycles"),
        _count(row, "NPU"),
        tuple(_count(row, title) for _, _, title in MEMORIES),
        _count(row, "Staging Usage" if "Staging Usage" in row else "SRAM Usage"),
        _count(row, "MAC Count"),
        None if busy is None else busy / 100,
    )


def _summary(row: Mapping[str, str]) -> EstimateSummary:
    return EstimateSummary(
        row.get("accelerator_configuration", ""),
        row.get("system_config", ""),
        row.get("memory_mode", ""),
        _number(row, "core_clock"),
        _count(row, "cycles_total"),
        _number(row, "inference_time"),
        tuple(_memory(row, name, prefix) for name, prefix, _ in MEMORIES),
    )


def _memory(row: Mapping[str, str], name: str, prefix: str) -> MemoryEstimate:
    used = _number(row, f"{prefix}_memory_used")
    areas = (("weights", "weights_storage_area"), ("activations", "feature_map_storage_area"))
    held = [what for what, key in areas if row.get(key, "").lower() == name.lower()]
    return MemoryEstimate(
        name,
        None if used is None else round(used * _KIB),
        " and ".join(held),
        _count(row, f"{prefix}_feature_map_read_bytes"),
        _count(row, f"{prefix}_feature_map_write_bytes"),
        _count(row, f"{prefix}_weight_read_bytes"),
        _count(row, f"{prefix}_weight_write_bytes"),
        _count(row, f"cycles_{prefix}_access"),
    )


def _number(row: Mapping[str, str], key: str) -> float | None:
    try:
        found = float(row[key])
    except (KeyError, ValueError):
        return None
    return found if -1e300 < found < 1e300 else None  # neither infinite nor NaN


def _count(row: Mapping[str, str], key: str) -> int | None:
    found = _number(row, key)
    return None if found is None else round(found)
