"""Which dtypes the tensors of an edge operator may have, as the verifier of the compiler checks it.

The table, ``operator_dtypes.json``, is generated from the rules of the compiler by
``python -m tests.tools.dtype_table``; a test holds both together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("operator_dtypes.json")


@dataclass(frozen=True, slots=True)
class OperatorDtypes:
    """The dtype constraints of an operator.

    Attributes:
        aliases: names of dtypes by alias, ``T0``, ``T1``, …
        rows: alias by argument name; results without a name are ``__ret_0`` and so on. In a row
            arguments of one alias have the same dtype
    """

    aliases: Mapping[str, tuple[str, ...]]
    rows: tuple[Mapping[str, str], ...]

    def allowed(self) -> dict[str, tuple[str, ...]]:
        """Return the dtypes of each argument and result in any row, sorted by name."""
        found: dict[str, set[str]] = {}
        for row in self.rows:
            for name, alias in row.items():
                found.setdefault(name, set()).update(self.aliases[alias])
        return {name: tuple(sorted(dtypes)) for name, dtypes in found.items()}


def operator_dtypes(target: str) -> OperatorDtypes | None:
    """Return the constraints of an operator such as ``aten.add.Tensor``; None if unconstrained."""
    found = _table().get(target)
    if found is None:
        return None
    aliases = {alias: tuple(names) for alias, names in found["aliases"].items()}
    return OperatorDtypes(aliases, tuple(found["rows"]))


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    return json.loads(TABLE.read_text("utf-8"))
