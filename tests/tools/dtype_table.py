"""Write schema/dtypes/operator_dtypes.json from the verifier rules (-m tests.tools.dtype_table)."""

from __future__ import annotations

import json
from typing import Any

import torch

from compiler.compat.dtype_table import type_constraints
from compiler.dialect.dtype_rules import _RULES
from schema.dtypes.operator_dtypes import TABLE


def operators() -> dict[str, Any]:
    """Return the operators that have a rule, by target."""
    found: dict[str, Any] = {}
    for name in sorted(_RULES):
        packet, _, overload = name.partition(".")
        overload = overload or "default"
        found[f"aten.{packet}.{overload}"] = getattr(getattr(torch.ops.aten, packet), overload)
    return found


def text() -> str:
    """Return the table, one operator a line."""
    lines: list[str] = []
    for target, op in operators().items():
        made = type_constraints(op)
        assert made is not None
        content = json.dumps({"aliases": made.aliases, "rows": made.rows}, separators=(",", ":"))
        lines.append(f'"{target}": {content}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    TABLE.write_text(text(), "utf-8")
