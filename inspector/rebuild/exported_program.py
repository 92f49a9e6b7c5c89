"""Recorded programs as torch.export.ExportedProgram objects, read by torch's own deserializer.

Only this module depends on torch and on torch's private reader of exported programs.
Weights are loaded without unpickling objects.
"""

from __future__ import annotations

import io
import json
import operator
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from compiler.record.provenance import remember
from inspector.rebuild import dim_order_ops
from inspector.rebuild.lowered_programs import MOST_DEPTH, hold, register, take_delegates
from inspector.rebuild.serde_rewrite import (
    HANDLE,
    OWN_NAMESPACE,
    Json,
    RebuildError,
    mapping,
    nodes,
    rewrite,
)
from inspector.rebuild.torch_bridge import Torch, load_packages, load_torch
from schema.errors import FormatError
from schema.etrecord import RecordFile
from schema.etrecord.members import SIDE_FILES

if TYPE_CHECKING:
    from torch.export import ExportedProgram

_EDGE_OP = rb"executorch\.exir\.dialects\.edge\.ops\.([\w.]+)"
_FAKE_TENSOR = "executorch.exir.serde.export_serialize._reconstruct_fake_tensor"
_QUANTIZED = "torch.ao.quantization.fx._decomposed"  # importing it registers its operators


def rebuilt(
    record: RecordFile, member: str, *, delegates: bool = False, edge_ops: bool = False
) -> ExportedProgram:
    """Return a recorded program as a torch ExportedProgram; loads torch.

    Debug handles are in ``node.meta["debug_handle"]``, as in the program that was recorded.

    Args:
        record: of a program
        member: name of the recorded program
        delegates: accept a program recorded after delegation, see ``lowered_programs``; the
            result cannot be called
        edge_ops: keep calls of edge operators instead of calls of the underlying ATen operators

    Raises: RebuildError if torch cannot read it; FormatError
    """
    try:
        program = _deserialised(load_torch(), record, member, delegates=delegates)
    except (RebuildError, FormatError):
        raise
    except Exception as error:
        raise RebuildError(f"torch cannot read {member}: {_sentence(error)}") from error
    restore_handles(program.graph_module)
    if edge_ops:
        adopt_edge_ops(bytes(record.read(member)), program)
    remember(program, record, member)
    return program


def _deserialised(
    torch: Torch, record: RecordFile, member: str, *, delegates: bool
) -> ExportedProgram:
    source = bytes(record.read(member))
    load_packages(source)
    tree = json.loads(source)
    sides = [
        _loaded(torch, record.read(name) if name in record.archive else b"", name)
        for name in (member + suffix for suffix in SIDE_FILES)
    ]
    return program_of(torch, tree, sides, member, MOST_DEPTH if delegates else 0)


def program_of(
    torch: Torch, tree: Json, sides: list[Torch], member: str, depth: int
) -> ExportedProgram:
    """Return the program built from its JSON and saved tensors, with those in its delegates.

    Its debug handles are restored by `restore_handles`, edge operators by `adopt_edge_ops`.

    Args:
        torch: the torch module
        tree: JSON, changed in place
        sides: parameters, constants and example inputs
        member: name, for errors
        depth: nesting depth of delegates

    Raises: RebuildError if an operator is missing in torch
    """
    dim_order_ops.register()
    __import__(_QUANTIZED)
    from torch._export.serde import schema as serde
    from torch._export.serde import serialize

    inside: dict[str, ExportedProgram] = {}
    modules: dict[str, Json] = {}
    for name, (module, saved) in take_delegates(tree) if depth else ():
        register()
        place = f"{member}, {name}"
        own = [_loaded(torch, data, place) for data in saved]
        original = module["original_module"]
        inside[name] = program_of(torch, original, [*own, None], place, depth - 1)
        modules[name] = module
    rewrite(tree, _dtype_numbers(serialize), serde.SCHEMA_VERSION)
    _name_registered(torch, tree)
    _check_registered(torch, tree)
    sides[2] = sides[2] or None  # programs may be recorded without example inputs
    artifact = serialize.SerializedArtifact(json.dumps(tree).encode(), *sides)
    program = serialize.deserialize(artifact, _unsafe_skip_version_check=True)
    hold(program, inside, modules)
    return program


def _name_registered(torch: Torch, tree: Json) -> None:
    """Replace operators that only their own library registers by those of the compiler."""
    from compiler.dialect.llama import NAMESPACE, WRITTEN

    begin = f"torch.ops.{WRITTEN}."
    for node in nodes(tree):
        name = node["target"].removeprefix(begin)
        if name == node["target"]:
            continue
        operator = name.partition(".")[0]
        own = getattr(torch.ops, NAMESPACE)
        if not hasattr(getattr(torch.ops, WRITTEN), operator) and hasattr(own, operator):
            node["target"] = f"torch.ops.{NAMESPACE}.{name}"


def _check_registered(torch: Torch, tree: Json) -> None:
    from runtime.kernels.vendors.functional import register_functional

    called = {(parts[2], parts[3]) for parts in (name.split(".") for name in _called(tree))}
    register_functional(_unregistered(torch, called))
    missing = [f"{space}::{name}" for space, name in _unregistered(torch, called)]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise RebuildError(
            f"{', '.join(missing)} {verb} not registered in this process;"
            " load the library that does so (--library on the command line)"
        )


def _unregistered(torch: Torch, called: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [
        (space, name)
        for space, name in sorted(called)
        if space != "higher_order" and not hasattr(getattr(torch.ops, space), name)
    ]


def _called(tree: Json) -> Iterator[str]:
    """Yield the torch operators a program calls or passes as arguments."""
    for node in nodes(tree):
        given = [mapping(one.get("arg")).get("as_operator") for one in node["inputs"]]
        for name in (node["target"], *given):
            if isinstance(name, str) and name.startswith("torch.ops.") and name.count(".") > 2:
                yield name


def adopt_edge_ops(source: bytes, program: ExportedProgram) -> None:
    """Restore the calls of edge operators that were recorded.

    Args:
        source: its JSON
        program: changed in place
    """
    from compiler.dialect.dim_order import NAMESPACE
    from compiler.dialect.ops import edge_op
    from compiler.untyped import OpOverload

    torch = load_torch()
    modules: Torch = program.graph_module.modules()
    named = {name.decode() for name in re.findall(_EDGE_OP, source)}
    nodes = (
        n for part in modules if isinstance(part, torch.fx.GraphModule) for n in part.graph.nodes
    )
    for node in nodes if named else ():
        target: Torch = node.target
        if not isinstance(node.target, OpOverload):
            continue
        if target.namespace == OWN_NAMESPACE:
            packet = getattr(getattr(torch.ops, NAMESPACE), target._schema.name.split("::")[1])
            target = getattr(packet, target._overloadname)
        edge = edge_op(target)
        if edge.__name__ in named:
            node.target = edge


def _dtype_numbers(serialize: Torch) -> dict[str, int]:
    table = serialize._TORCH_TO_SERIALIZE_DTYPE
    return {str(dtype).removeprefix("torch."): int(number) for dtype, number in table.items()}


def _loaded(torch: Torch, data: bytes | memoryview, name: str) -> Torch:
    if not len(data):
        return {}
    load_packages(data)
    safe = [(_fake_tensor, _FAKE_TENSOR)]
    try:
        with torch.serialization.safe_globals(safe):
            return torch.load(io.BytesIO(data), weights_only=True)
    except Exception as error:
        raise RebuildError(f"the weights in {name} cannot be loaded: {_sentence(error)}") from error


def _fake_tensor(described: bytes, is_parameter: bool) -> Torch:
    """Return a tensor without elements for one that was only traced."""
    torch = load_torch()
    from torch._export.serde import serialize

    meta = json.loads(described)
    sizes, strides = ([entry["as_int"] for entry in meta[key]] for key in ("sizes", "strides"))
    numbers = {number: name for name, number in _dtype_numbers(serialize).items()}
    dtype = getattr(torch, numbers[meta["dtype"]])
    tensor = torch.empty_strided(sizes, strides, dtype=dtype, device="meta")
    return torch.nn.Parameter(tensor, requires_grad=False) if is_parameter else tensor


def restore_handles(module: Torch) -> None:
    """Restore the debug handles of a program of `program_of` in place."""
    graph_module = load_torch().fx.GraphModule
    for part in module.modules():
        for node in part.graph.nodes if isinstance(part, graph_module) else ():
            custom: Json = node.meta.get("custom") or {}
            if HANDLE in custom:
                node.meta[HANDLE] = custom.pop(HANDLE)
                if not custom:
                    del node.meta["custom"]
            elif node.target is operator.getitem and HANDLE in node.args[0].meta:
                node.meta[HANDLE] = node.args[0].meta[HANDLE]  # a part of the same operator


def _sentence(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300] if lines else ''}"
