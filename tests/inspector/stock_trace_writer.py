"""Writes traces by the stock tool, in a process of its own: names and times on standard input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from executorch.devtools.etdump.schema_flatcc import (
    DebugEvent,
    ETDumpFlatCC,
    Event,
    ProfileEvent,
    RunData,
    Tensor,
    Value,
    ValueType,
)
from executorch.devtools.etdump.serialize import serialize_to_etdump_flatcc
from executorch.exir.scalar_type import ScalarType

_CALL = (("Method::execute", -1, 1000, 9000), ("DELEGATE_CALL", 0, 1500, 8500))


def outer(name: str, instruction: int, begin: int, end: int) -> Event:
    """Return an event of the runtime."""
    chain = min(instruction, 0)
    profile = ProfileEvent(name, chain, instruction, -1, "", None, begin, end)
    return Event(profile, None, None)


def inner(row: dict[str, Any]) -> Event:
    """Return an event of the delegate: a time, or a tensor."""
    name = row["name"]
    ids = (name, None) if isinstance(name, int) else (-1, name)
    if "begin" in row:
        return Event(ProfileEvent(None, 0, 0, *ids, None, row["begin"], row["end"]), None, None)
    held = Tensor(ScalarType.FLOAT, row["sizes"], row["strides"], row["offset"])
    value = Value(ValueType.TENSOR.value, held, None, None, None, None, None, None)
    return Event(None, None, DebugEvent(None, 0, 0, *ids, value))


if __name__ == "__main__":
    for trace, rows in json.load(sys.stdin).items():
        events = [*(outer(*one) for one in _CALL), *map(inner, rows)]
        dump = ETDumpFlatCC(0, [RunData("Execute", -1, [], events)])
        data = serialize_to_etdump_flatcc(dump)
        path = Path(sys.argv[1]) / f"{trace}.etdp"
        path.write_bytes(len(data).to_bytes(4, "little") + data)
