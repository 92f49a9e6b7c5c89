"""Write schema/dtypes/operator_schemas.json from torch's schemas (-m tests.tools.schema_table)."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import torch

import compiler.dialect.dim_order
import compiler.dialect.quantized  # noqa: F401  # both register operators
from runtime.kernels import TABLE as KERNELS
from schema.dtypes.operator_schemas import TABLE

_OURS = ("quantized_decomposed", "dim_order_ops")


def schemas() -> dict[str, str]:
    """Return the schema of each overload of the operators that programs call, by target."""
    named = [name.partition("::")[2] for name in KERNELS if name.startswith("aten::")]
    wanted = {name.partition(".")[0] for name in named} | _core()
    import_module("torch.ao.quantization.fx._decomposed")  # registers operators
    found: dict[str, str] = {}
    for full in torch._C._dispatch_get_all_op_names():
        space, _, rest = full.partition("::")
        name, _, overload = rest.partition(".")
        if space in _OURS or (space == "aten" and name in wanted):
            packet = getattr(getattr(torch.ops, space), name)
            found[f"{space}.{name}.{overload or 'default'}"] = _schema(packet, overload)
    return dict(sorted(found.items()))


def _schema(packet: Any, overload: str) -> str:
    return str(getattr(packet, overload or "default")._schema)


def _core() -> set[str]:
    """Return the names of the core operators."""
    found: set[str] = set()
    for full in torch._C._dispatch_get_all_op_names():
        space, _, rest = full.partition("::")
        name, _, overload = rest.partition(".")
        if space == "aten":
            tags = getattr(getattr(torch.ops.aten, name), overload or "default").tags
            found |= {name} if torch.Tag.core in tags else set()
    return found


def text() -> str:
    """Return the table, one operator a line."""
    lines = [f"{json.dumps(name)}: {json.dumps(schema)}" for name, schema in schemas().items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    TABLE.write_text(text(), "utf-8")
