"""Recorded programs as input of a compile: rebuilt by torch, with operators of the compiler."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.dialect.dim_order import NAMESPACE
from inspector.files.load import open_bytes
from inspector.rebuild.exported_program import rebuilt
from inspector.rebuild.serde_rewrite import OWN_NAMESPACE
from schema import etrecord
from schema.errors import FormatError, Severity
from schema.etrecord import RecordFile

FORWARD = "forward"


def recorded_programs(
    path: str, methods: tuple[str, ...], warn: Callable[[str], object] = str
) -> Mapping[str, ExportedProgram]:
    """Return the programs of an ETRecord by method.

    ``forward`` as exported if recorded, the others as edge programs.

    Args:
        path: of the record
        methods: only these; empty for all
        warn: called with a sentence if a damaged record may have lost some

    Raises: FormatError, OSError for an invalid record, or one without programs; RebuildError if
        torch
        cannot rebuild a program; KeyError listing the available methods
    """
    record = etrecord.decode(open_bytes(path), file=path)
    names = tuple(record.roles.edge)
    if record.roles.exported and FORWARD not in names:
        names = (FORWARD, *names)
    if not names:
        reason = next((f"{i.where}: {i.message}" for i in record.issues), "")
        found = (
            f"none ({reason})" if reason else "no program; record it with generate_etrecord=True"
        )
        raise FormatError("a recorded program", found, file=path)
    missing = [name for name in methods if name not in names]
    if missing:
        raise KeyError(f"unknown method {missing[0]!r}; available: {', '.join(names)}")
    damage = next((i for i in record.issues if i.severity is Severity.ERROR), None)
    if damage is not None:
        what = f"{damage.where}: {damage.message}"
        warn(f"the record is damaged, only its readable part is compiled: {what}")
    return {name: _program(record, name) for name in methods or names}


def further_program(path: str, name: str) -> ExportedProgram:
    """Return a further program of an ETRecord.

    Args:
        path: of the record
        name: of the program, as ``float/forward``

    Raises: FormatError, OSError for an invalid record; RebuildError; KeyError listing the names
    """
    record = etrecord.decode(open_bytes(path), file=path)
    if name not in record.roles.extra:
        known = ", ".join(record.roles.extra) or "none"
        raise KeyError(f"unknown program {name!r}; available: {known}")
    program = rebuilt(record, name)
    adopt_dim_order(program)
    return program


def _program(record: RecordFile, method: str) -> ExportedProgram:
    roles = record.roles
    member = roles.exported if method == FORWARD and roles.exported else roles.edge[method]
    program = rebuilt(record, member)
    adopt_dim_order(program)
    return program


def adopt_dim_order(program: ExportedProgram) -> None:
    """Replace dim-order operators of a rebuilt program by those of the compiler, in place."""
    for part in program.graph_module.modules():
        for node in part.graph.nodes if isinstance(part, torch.fx.GraphModule) else ():
            target: Any = node.target
            if node.op != "call_function" or target is operator.getitem:
                continue
            schema = getattr(target, "_schema", None)
            namespace, _, name = str(getattr(schema, "name", "")).partition("::")
            if namespace == OWN_NAMESPACE:
                packet = getattr(getattr(torch.ops, NAMESPACE), name)
                node.target = getattr(packet, target._overloadname)
