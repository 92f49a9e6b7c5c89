"""Exported, lowered and planned programs as bytes and files, as in `executorch.exir.serde`."""

from __future__ import annotations

import ast
import base64
import contextlib
import copyreg
import io
import json
import os
import zipfile
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.export import ExportedProgram

from compiler.delegate.lowered_module import LoweredBackendModule
from compiler.dialect.delegate_call import executorch_call_delegate
from compiler.dialect.memory_ops import alloc, view
from compiler.dialect.ops import EdgeOp
from compiler.edge.verifier import EdgeVerifier
from compiler.interface.backend import CompileSpec
from compiler.interface.named_data import DataEntry, NamedDataStoreOutput, TensorLayout
from compiler.record.arguments import MAJOR, MINOR, tensor_meta
from compiler.record.examples import plain_containers
from compiler.record.graph import program_json
from compiler.record.graph_ids import GraphIds
from compiler.untyped import OpOverload
from inspector.rebuild.exported_program import adopt_edge_ops, program_of, restore_handles
from inspector.rebuild.lowered_programs import CALL, MOST_DEPTH, inside_of, modules_of, register
from inspector.rebuild.serde_rewrite import HANDLE, Json, RebuildError, nodes
from inspector.rebuild.torch_bridge import load_packages
from schema.etrecord.archive.container import open_archive
from schema.etrecord.graph.dtypes import serde_dtype_names

_MEMORY = ("memory.alloc", "memory.view")
_PROGRAM = "serialized_exported_program.json"
_SIDES = ("serialized_state_dict.pt", "serialized_constants.pt", "serialized_example_inputs.pt")
Target = str | os.PathLike[str] | IO[bytes]


class GraphModuleDeserializer:
    """Deserializer of tensors without elements.

    Attributes:
        fake_tensor_mode: of the created tensors
    """

    def __init__(self) -> None:
        self.fake_tensor_mode = FakeTensorMode()


# The last one is used; `deserialize` pushes one.
_CURRENT_DESERIALIZER: list[GraphModuleDeserializer] = []


@dataclass
class SerializedArtifact:
    """A program as bytes.

    Attributes:
        exported_program: JSON of graph and signature
        state_dict: `torch.save` bytes of parameters and buffers
        constants: those of tensors written in code
        example_inputs: those of the inputs it was exported with; empty without any
    """

    exported_program: bytes
    state_dict: bytes
    constants: bytes
    example_inputs: bytes


def serialize(
    exported_program: ExportedProgram, opset_version: Mapping[str, int] | None = None
) -> SerializedArtifact:
    """Return a program as bytes that `deserialize` and the stock tool read.

    Args:
        exported_program: exported, of the edge dialect, delegated or planned
        opset_version: accepted as documented

    Raises: UnsupportedError if an argument cannot be represented
    """
    del opset_version
    inputs = exported_program.example_inputs
    numbers = GraphIds(exported_program.graph, kept=True)
    return SerializedArtifact(
        program_json(exported_program, numbers, edge=_is_lowered(exported_program)),
        serialize_torch_artifact(dict(exported_program.state_dict)),
        serialize_torch_artifact(dict(exported_program.constants)),
        b"" if inputs is None else serialize_torch_artifact(plain_containers(inputs)),
    )


def _is_lowered(program: ExportedProgram) -> bool:
    """Return whether a program is of the edge dialect or behind it."""
    called: list[Any] = [n.target for n in program.graph.nodes if n.op == "call_function"]
    special = (executorch_call_delegate, alloc, view)
    if any(isinstance(target, EdgeOp) or target in special for target in called):
        return True
    verifiers: Any = program.verifiers
    return any(issubclass(one, EdgeVerifier) for one in verifiers)


def deserialize(artifact: SerializedArtifact) -> ExportedProgram:
    """Return the program of its bytes.

    Raises: RebuildError if torch cannot rebuild the program
    """
    text = artifact.exported_program
    load_packages(text)
    tree = json.loads(text)
    numbers = serde_dtype_names(tree["schema_version"]["major"])
    lowered = "EDGE" in (tree.get("verifiers") or ())
    for node in nodes(tree):
        if node["target"] in _MEMORY:
            _hold_memory(node)
    with _deserializing():
        given = (artifact.state_dict, artifact.constants, artifact.example_inputs)
        sides = [deserialize_torch_artifact(data) for data in given]
    program = program_of(torch, tree, [*sides[:2], sides[2] or None], "the program", MOST_DEPTH)
    return _finished(program, text, numbers, lowered=lowered)


def _hold_memory(node: Json) -> None:
    """Replace a memory call by one of our operator, which torch accepts."""
    register()
    for given in node["inputs"]:
        given["name"] = ""  # by position
    if node["target"] == "memory.alloc":
        given = node["inputs"][0]["arg"]
        given["as_string"] = f"memory.alloc;{given['as_string']}"
    else:
        node["inputs"].insert(0, {"name": "", "arg": {"as_string": node["target"]}})
    node["target"] = f"torch.ops.higher_order.{CALL}"


def _finished(
    program: ExportedProgram, text: bytes, numbers: Mapping[int, str], *, lowered: bool
) -> ExportedProgram:
    restore_handles(program.graph_module)
    adopt_edge_ops(text, program)
    modules: Any = program.graph_module.modules()
    for module in [one for one in modules if isinstance(one, torch.fx.GraphModule)]:
        for node in list(module.graph.nodes):
            if getattr(node.target, "__name__", "") == CALL and not isinstance(
                node.target, OpOverload
            ):
                _restore_call(program, module, node, numbers)
        module.recompile()
    if lowered:
        changed: Any = program
        changed._verifiers = [EdgeVerifier]
    return program


def _restore_call(
    program: ExportedProgram,
    module: torch.fx.GraphModule,
    node: torch.fx.Node,
    numbers: Mapping[int, str],
) -> None:
    name, *given = node.args
    kind, *spec = str(name).split(";")
    if kind == "memory.alloc":
        shape, number = spec
        node.target = alloc
        node.args = ((ast.literal_eval(shape), getattr(torch, numbers[int(number)])),)
        node.meta.pop(HANDLE, None)  # the format has one on each node
    elif kind == "memory.view":
        node.target, node.args = view, tuple(given)
    else:
        written = modules_of(program)[kind]
        built = _lowered_module(written, inside_of(program)[kind], numbers)
        module.add_module(written["name"], built)
        with module.graph.inserting_before(node):
            home = module.graph.get_attr(written["name"])
        node.target, node.args = executorch_call_delegate, (home, *given)


def _lowered_module(
    written: Json, original: ExportedProgram, numbers: Mapping[int, str]
) -> LoweredBackendModule:
    text = json.dumps(written["original_module"]).encode()
    named = written.get("named_data_store")
    return LoweredBackendModule(
        _finished(original, text, numbers, lowered=True),
        written["backend_id"],
        base64.b64decode(written["processed_bytes"]),
        [
            CompileSpec(spec["key"], base64.b64decode(spec["value"]))
            for spec in written["compile_specs"]
        ],
        None if named is None else _named(json.loads(named)),
    )


def _named(written: Json) -> NamedDataStoreOutput:
    return NamedDataStoreOutput(
        [base64.b64decode(data) for data in written["buffers"]],
        _entries(written["pte_data"]),
        {tag: _entries(found) for tag, found in written["external_data"].items()},
    )


def _entries(written: Json) -> dict[str, DataEntry]:
    return {
        key: DataEntry(
            one["buffer_index"],
            one["alignment"],
            None if one["tensor_layout"] is None else TensorLayout(**one["tensor_layout"]),
        )
        for key, one in written.items()
    }


@contextlib.contextmanager
def _deserializing() -> Generator[None]:
    _CURRENT_DESERIALIZER.append(GraphModuleDeserializer())
    try:
        yield
    finally:
        _CURRENT_DESERIALIZER.pop()


def _reduce_fake_tensor(tensor: FakeTensor) -> tuple[Any, ...]:
    meta = json.dumps(tensor_meta(tensor)).encode()
    return _reconstruct_fake_tensor, (meta, isinstance(tensor, torch.nn.Parameter))


def _reconstruct_fake_tensor(serialized_tensor_meta: bytes, is_parameter: bool) -> torch.Tensor:
    """Return a tensor without elements; a floating-point parameter requires gradients."""
    meta = json.loads(serialized_tensor_meta)
    sizes, strides = ([entry["as_int"] for entry in meta[key]] for key in ("sizes", "strides"))
    dtype: torch.dtype = getattr(torch, serde_dtype_names(MAJOR)[meta["dtype"]])
    with _CURRENT_DESERIALIZER[-1].fake_tensor_mode:
        built = torch.empty_strided(sizes, strides, dtype=dtype)
    if not is_parameter:
        return built
    return torch.nn.Parameter(built, dtype.is_floating_point or dtype.is_complex)


def serialize_torch_artifact(artifact: Any) -> bytes:  # noqa: ANN401
    """Return `torch.save` bytes of tensors, those without elements as their sizes; b"" for None."""
    if artifact is None:
        return b""
    stream = io.BytesIO()
    table: dict[Any, Any] = copyreg.dispatch_table
    before = table.get(FakeTensor)
    table[FakeTensor] = _reduce_fake_tensor
    try:
        torch.save(artifact, stream)
    finally:
        table.pop(FakeTensor) if before is None else table.update({FakeTensor: before})
    return stream.getvalue()


def deserialize_torch_artifact(serialized: Any) -> Any:  # noqa: ANN401
    """Return the tensors of their bytes, without unpickling other objects; {} for empty bytes.

    Raises: pickle.UnpicklingError for other objects
    """
    if not isinstance(serialized, bytes):
        return serialized
    if not len(serialized):
        return {}
    serialization: Any = torch.serialization
    known: list[Any] = serialization.get_safe_globals()
    own = [] if _reconstruct_fake_tensor in known else [_reconstruct_fake_tensor]
    with serialization.safe_globals(own) if own else contextlib.nullcontext():
        return torch.load(io.BytesIO(serialized), weights_only=True)


def save(
    ep_save: ExportedProgram,
    f: Target,
    *,
    extra_files: Mapping[str, str] | None = None,
    opset_version: Mapping[str, int] | None = None,
) -> None:
    """Write a program into a zip file that `load` and the stock tool read.

    Args:
        ep_save: exported, of the edge dialect, delegated or planned
        f: path or stream
        extra_files: strings by name to store in the file
        opset_version: accepted as documented

    Raises: UnsupportedError if an argument cannot be represented; OSError
    """
    artifact = serialize(ep_save, opset_version)
    sides = (artifact.state_dict, artifact.constants, artifact.example_inputs)
    with zipfile.ZipFile(f, "w") as archive:
        archive.writestr(_PROGRAM, artifact.exported_program)
        for name, data in zip(_SIDES, sides, strict=True):
            archive.writestr(name, data)
        archive.writestr("version", f"{MAJOR}.{MINOR}")
        for name, text in (extra_files or {}).items():
            archive.writestr(f"extra_files/{name}", text)


def _whole(f: Target) -> bytes:
    if isinstance(f, (str, os.PathLike)):
        return Path(f).read_bytes()
    f.seek(0)  # as zipfile does: a stream that was just written is at its end
    return f.read()


def load(f: Target, *, extra_files: dict[str, str] | None = None) -> ExportedProgram:
    """Return the program of a file.

    Args:
        f: path or stream
        extra_files: filled with the stored strings by name

    Raises: FormatError if it cannot be read; RebuildError if it contains no program, or torch
        cannot
        rebuild it; OSError
    """
    archive = open_archive(memoryview(_whole(f)))
    names = [member.name for member in archive.members]
    missing = {_PROGRAM, *_SIDES}.difference(names)
    if missing:
        raise RebuildError(f"{f}: no saved program, {', '.join(sorted(missing))} not found")
    program, *sides = (bytes(archive.read(name)) for name in (_PROGRAM, *_SIDES))
    for name in names if extra_files is not None else ():
        folder, _, rest = name.partition("/")
        if folder == "extra_files" and extra_files is not None:
            extra_files[rest] = bytes(archive.read(name)).decode()
    return deserialize(SerializedArtifact(program, *sides))
