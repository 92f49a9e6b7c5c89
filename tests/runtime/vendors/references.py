"""Our kernels of vendors' operators beside the references of the stock package.

Answers JSON: for each operator the largest difference, and what the schemas differ in. A process
of its own: the references import the stock package, and what of Arm's tools they name but do not
use is replaced by an empty module where it is not installed.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import typing
from typing import Any
from unittest.mock import MagicMock

import torch
import typing_extensions

from runtime.kernels.vendors import cadence, cortex_m
from runtime.untyped import parse_schema
from tests.runtime.vendors import cadence_calls, cortex_m_calls

OURS = {"cortex_m": (cortex_m, cortex_m_calls), "cadence": (cadence, cadence_calls)}
TRIALS = 5
WIDENED = {"transposed_im2row"}  # by the reference, for a zero point of each batch


def import_references() -> set[str]:
    """Import the references and return the names of those for Cadence."""
    typing.override = getattr(typing, "override", typing_extensions.override)
    if importlib.util.find_spec("tosa_serializer") is None:
        for name in ("tosa_serializer", "tosa_reference_model", "tosa"):
            sys.modules[name] = MagicMock()
    importlib.import_module("executorch.backends.cortex_m.passes.cortex_m_pass_manager")
    kept = torch.library.Library("cadence", "FRAGMENT")
    kept.define(  # 1.5.1 has an implementation without a schema
        "rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None)"
        " -> Tensor"
    )
    importlib.import_module("executorch.backends.cadence.aot.ops_registrations")
    found = importlib.import_module("executorch.backends.cadence.aot.ref_implementations")
    return found.get_registered_ref_implementations()


def functional(space: str, name: str) -> Any:
    """Return a reference by the name in a call."""
    operator, _, overload = name.partition(".")
    return getattr(getattr(getattr(torch.ops, space), operator), overload or "default")


def out_name(name: str) -> str:
    """Return the out variant of a functional one."""
    return f"{name}_out" if "." in name else f"{name}.out"


def largest_gap(space: str, name: str, given: tuple[Any, ...]) -> float:
    """Return the largest difference to the reference, infinity for other shapes or dtypes."""
    expected: Any = _plain(functional(space, name)(*given))
    made = _plain(OURS[space][0].TABLE[f"{space}::{out_name(name)}"].run(*given))
    if name in WIDENED:
        expected = [one.to(made[0].dtype) for one in expected]
    if [(one.shape, one.dtype) for one in made] != [(one.shape, one.dtype) for one in expected]:
        return float("inf")
    gaps = [(a.double() - b.double()).abs() for a, b in zip(made, expected, strict=True)]
    return max((float(one.max()) for one in gaps if one.numel()), default=0.0)


def _plain(made: Any) -> list[torch.Tensor]:
    return list(made) if isinstance(made, (tuple, list)) else [made]


def schema_differences(space: str) -> dict[str, list[str]]:
    """Return ours and the vendor's for each operator whose arguments differ."""
    found: dict[str, list[str]] = {}
    for name, rule in OURS[space][0].TABLE.items():
        theirs = functional(*name.split("::"))._schema
        pairs = [
            [(one.name, str(one.type)) for one in each.arguments]
            for each in (theirs, parse_schema(name + rule.schema))
        ]
        different = [f"{a} {b}" for a, b in zip(*pairs, strict=False) if a != b]
        if different or len(pairs[0]) != len(pairs[1]):
            found[name] = different
    return found


def main() -> None:
    """Print the answer."""
    references = import_references()
    torch.manual_seed(0)
    gaps: dict[str, float] = {}
    for space, (_, calls) in OURS.items():
        for _ in range(TRIALS):
            for group in calls.GROUPS:
                for name, given in group():
                    key = f"{space}::{out_name(name)}"
                    gaps[key] = max(gaps.get(key, 0.0), largest_gap(space, name, given))
    tables = {name for module, _ in OURS.values() for name in module.TABLE}
    known = torch._C._dispatch_get_all_op_names()
    wanted = {f"cadence::{out_name(name)}" for name in references}
    wanted |= {name for name in known if name.startswith("cortex_m::") and name.endswith(".out")}
    answer = {
        "gaps": gaps,
        "not tried": sorted(name for name in tables - gaps.keys() if "_nop." not in name),
        "missing": sorted((wanted & {*known}) - tables),
        "schemas": {space: schema_differences(space) for space in OURS},
    }
    print(json.dumps(answer))  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
