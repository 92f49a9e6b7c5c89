"""Writes a program for an interpreter of the user, with what torch's own form of it leaves out."""

from __future__ import annotations

import contextlib
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.record.graph import program_json
from inspector.toolchain.handed_files import CUSTOM_MEMBER, NAMES_MEMBER


def write_program(program: ExportedProgram, folder: Path) -> None:
    """Write a program with the operators of the edge dialect, as in a record."""
    with zipfile.ZipFile(folder / "program.zip", "w") as file:
        file.writestr("program.json", program_json(program, edge=True))
        file.writestr(CUSTOM_MEMBER, json.dumps(_custom(program)))
        file.writestr(NAMES_MEMBER, json.dumps(_names(program)))
        for name, values in (("state.pt", program.state_dict), ("constants.pt", program.constants)):
            data = io.BytesIO()
            torch.save({**values}, data)
            file.writestr(name, data.getvalue())


def _names(program: ExportedProgram) -> dict[str, list[str]]:
    """Return the names of calls in order, by path of the graph."""
    owner: Any = program.graph_module
    return {
        path: [node.name for node in module.graph.nodes if node.op == "call_function"]
        for path, module in owner.named_modules()
        if isinstance(module, torch.fx.GraphModule)
    }


def _custom(program: ExportedProgram) -> dict[str, dict[str, Any]]:
    """Return the custom metadata of nodes, by path of the graph and name; a record has none."""
    found: dict[str, dict[str, Any]] = {}
    owner: Any = program.graph_module
    for path, module in owner.named_modules():
        if isinstance(module, torch.fx.GraphModule):
            kept = {node.name: _plain(node.meta.get("custom") or {}) for node in module.graph.nodes}
            found[path] = {name: one for name, one in kept.items() if one}
    return found


def _plain(custom: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, value in custom.items():  # whatever a quantizer leaves
        with contextlib.suppress(TypeError, ValueError):
            kept[key] = json.loads(json.dumps(value))
    return kept
