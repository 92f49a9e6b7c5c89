"""Constants in external files: tensors by name and blobs of delegates by key."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

from compiler.emit.constants import TensorSegment
from compiler.errors import CompileError
from compiler.interface.external_weights import mark_behind
from compiler.memory.specs import raw_bytes, spec_of
from schema.flat_tensor import FlatTensor, encode_parts
from schema.flat_tensor.model import Entry, FileSegment, TensorLayout

DEFAULT_TAG = "_default_external_constant"
Tagging = bool | Callable[[torch.fx.Node], str | None]


def external_tags(
    program: ExportedProgram, constants: Tagging, *, trained: bool = False
) -> dict[str, str]:
    """Return the file of each constant that is stored elsewhere, by placeholder.

    Scalars and tensors written in the user's code are not moved: they belong to the code.

    Args:
        program: the edge program
        constants: True for all, False for none, or a function that returns the file of a
            placeholder or None; ``mark_behind`` also moves what was folded of marked weights
        trained: whether parameters with a gradient among the outputs are stored in the default file
    """
    signature = program.graph_signature
    kinds = {spec.arg.name: spec for spec in signature.input_specs}
    gradient = getattr(OutputKind, "GRADIENT_TO_PARAMETER", None)
    learned = {spec.target for spec in signature.output_specs if spec.kind == gradient}
    tags: dict[str, str] = {}
    folded = (InputKind.CONSTANT_TENSOR,) if constants is mark_behind else ()
    for node in program.graph.nodes:
        spec = kinds.get(node.name)
        if spec is None or spec.kind not in (InputKind.PARAMETER, InputKind.BUFFER, *folded):
            continue
        tag = constants(node) if callable(constants) else DEFAULT_TAG if constants else None
        if tag is None and trained and spec.target in learned:
            tag = DEFAULT_TAG
        if tag is not None:
            tags[node.name] = tag
    return tags


def external_name(spec: Any, tensor: torch.Tensor) -> str:  # noqa: ANN401 - an InputSpec
    """Return the name of a constant in its file: its own, or of a folded one that of its content.

    Folded constants are numbered, which would name other tensors in a program that shares the file.
    """
    if spec.kind != InputKind.CONSTANT_TENSOR:
        return spec.target
    shape = "x".join(map(str, tensor.shape))
    digest = hashlib.sha256(raw_bytes(tensor)).hexdigest()
    return f"{digest}_{str(tensor.dtype).removeprefix('torch.')}_{shape}"


@dataclass
class ExternalStore:
    """Tensors by file and name.

    Attributes:
        files: the tensors of each file, by name
    """

    files: dict[str, dict[str, torch.Tensor]] = field(
        default_factory=dict[str, dict[str, torch.Tensor]]
    )

    def add(self, tag: str, name: str, tensor: torch.Tensor) -> None:
        """Add a tensor by name; several methods may add the same one.

        Raises: CompileError if a different tensor has that name
        """
        held = self.files.setdefault(tag, {}).setdefault(name, tensor)
        if held is not tensor and not torch.equal(held, tensor):
            raise CompileError(f"two tensors are named {name} in {tag}.ptd")


def file_parts(
    tensors: Mapping[str, torch.Tensor], blobs: Mapping[str, bytes], alignment: int
) -> list[Any]:
    """Return a file of tensors and blobs as buffers to concatenate."""
    store = TensorSegment(1)  # digests identify equal contents
    segments: list[FileSegment] = []
    place_of: dict[int, int] = {}
    entries: list[Entry] = []

    def put(entry: int, data: memoryview) -> int:
        if entry not in place_of:
            place_of[entry] = len(segments)
            segments.append(FileSegment(data))
        return place_of[entry]

    for name, tensor in sorted(tensors.items()):
        data = raw_bytes(tensor)
        spec = spec_of(tensor, {})
        layout = TensorLayout(spec.scalar_type, spec.sizes, spec.dim_order)
        index = put(store.add(tensor), data)
        entries.append(Entry(name, index, layout, 0, segments[index].data))
    for key, blob in sorted(blobs.items()):
        index = put(-1 - len(segments), memoryview(blob))
        entries.append(Entry(key, index, None, 0, segments[index].data))
    return encode_parts(FlatTensor(tuple(entries), tuple(segments)), alignment=alignment)
