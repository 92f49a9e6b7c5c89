"""Rewrites the JSON of a recorded program for the deserializer of the installed torch.

ExecuTorch writes its own branch of torch's export format: other codes for dtypes, another
version, edge operators in place of torch's. The tree is changed in place; torch is not needed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, cast

from schema.etrecord.graph.dtypes import FIRST_TORCH_MAJOR, serde_dtype_names
from schema.etrecord.graph.unions import mapping

Json: TypeAlias = Any
HANDLE = "debug_handle"
OWN_NAMESPACE = "etscope_recorded"  # the compiler keeps one of its own
_EDGE = "executorch.exir.dialects.edge.ops."
_BACKEND = "executorch.exir.dialects.backend.ops."
_HIGHER = "torch.ops.higher_order."
_KNOWN = ("torch.ops.", "_operator.", "math.", "torch.sym_")
DELEGATE = f"{_HIGHER}executorch_call_delegate"


class RebuildError(ValueError):
    """A recorded program that torch cannot convert, with the reason."""


def rewrite(tree: Json, dtype_numbers: Mapping[str, int], version: tuple[int, int]) -> None:
    """Change the parsed JSON of a recorded program into the form that torch's deserializer expects.

    Args:
        tree: the JSON, changed in place
        dtype_numbers: code of each dtype by its torch name, in the installed torch
        version: schema version of the installed torch

    Raises: RebuildError for operators that torch does not know
    """
    major = mapping(tree.get("schema_version")).get("major", 0)
    _check_targets(tree)
    _rewrite_values(tree, _renumbering(major, dtype_numbers))
    tree["schema_version"] = {"major": version[0], "minor": version[1]}
    tree["verifiers"] = ["TRAINING"]
    for limits in mapping(tree.get("range_constraints")).values():
        for key, value in mapping(limits).items():
            if isinstance(value, float):
                limits[key] = int(value) if math.isfinite(value) else None


def _renumbering(major: int, dtype_numbers: Mapping[str, int]) -> dict[int, int]:
    names = serde_dtype_names(major) if major < FIRST_TORCH_MAJOR else {}
    return {number: dtype_numbers[name] for number, name in names.items() if name in dtype_numbers}


def _check_targets(tree: Json) -> None:
    for node in nodes(tree):
        target = node["target"]
        if target == DELEGATE:
            raise RebuildError(
                "the program was recorded after delegation; its delegate calls are not torch"
                " operators (the graphs inside are in the record's lowered modules)"
            )
        if target.startswith(("memory.alloc", "executorch.exir.memory")):
            raise RebuildError(
                "the program was recorded after memory planning; memory.alloc is not torch's"
            )
        if not target.startswith((_EDGE, _BACKEND, *_KNOWN)):
            raise RebuildError(f"torch has no operator {target}")
        _rewrite_node(node)


def nodes(tree: Json) -> Iterator[Json]:
    """Yield the nodes of all graphs in a program's JSON, nested ones included."""
    stack = [tree]
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            entries = cast("dict[str, Json]", part)
            if isinstance(entries.get("target"), str) and "inputs" in entries:
                yield entries
            stack.extend(entries.values())
        elif isinstance(part, list):
            stack.extend(cast("list[Json]", part))


def _rewrite_node(node: Json) -> None:
    target: str = node["target"]
    for prefix in (_EDGE, _BACKEND):
        if target.startswith(prefix):
            node["target"] = "torch.ops." + target.removeprefix(prefix)
    dim_order = "torch.ops.dim_order_ops."
    if node["target"].startswith(dim_order):
        own = node["target"].removeprefix(dim_order)
        node["target"] = f"torch.ops.{OWN_NAMESPACE}.{own}"
    if target.startswith(_HIGHER):
        node.setdefault("is_hop_single_tensor_return", True)
    metadata = mapping(node.get("metadata"))
    if HANDLE in metadata:  # torch keeps only keys it knows, and this one
        kept: Json = json.loads(metadata.get("custom") or "{}")
        metadata["custom"] = json.dumps({**kept, HANDLE: int(metadata[HANDLE])})


def _rewrite_values(tree: Json, numbers: Mapping[int, int]) -> None:
    stack = [tree]
    while stack:
        part = stack.pop()
        if isinstance(part, list):
            stack.extend(cast("list[Json]", part))
        elif isinstance(part, dict):
            entries = cast("dict[str, Json]", part)
            if entries.get("as_none") == []:
                entries["as_none"] = True
            for key in ("as_scalar_type", "dtype"):
                if isinstance(entries.get(key), int):
                    entries[key] = numbers.get(entries[key], entries[key])
            stack.extend(entries.values())
