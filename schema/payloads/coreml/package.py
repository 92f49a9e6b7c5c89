"""Core ML's own files as programs: a method for each function, one delegate call in each.

The payload is that of a delegate: the folder, or the model file in a folder of its own.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from schema.dtypes.scalar_type import scalar_type
from schema.errors import FormatError
from schema.graph import Graph, GraphValue
from schema.payloads.coreml.model import CoreMLProgram, read_model
from schema.payloads.coreml.payload import REFERENCE
from schema.payloads.coreml.tree import Buffer, write_tree
from schema.program import encode_parts
from schema.program import model as m

BACKEND_ID = "CoreMLBackend"
_FOLDER, _MODEL = "model.mlpackage", "Data/com.apple.CoreML/model.mlmodel"
_KEY = "model"
_MOST_FILES, _MOST_BYTES = 10_000, 64 << 30
_FLOAT = 6
_ALIGNMENT = 16
_UNBOUND = 2  # TensorShapeDynamism
_LARGEST_SIZE = (1 << 31) - 1


def program_of(path: Path) -> bytes:
    """Return the program that a ``.mlpackage`` folder or a ``.mlmodel`` file is.

    Raises: OSError; FormatError if it has no function that can be shown
    """
    files = _files(path) if path.is_dir() else {_MODEL: path.read_bytes()}
    data = files.get(_MODEL)
    if data is None:
        raise FormatError(f"a package with {_MODEL}", f"{len(files)} other files", file=str(path))
    try:
        return b"".join(_program(read_model(memoryview(data)), files, path.stem))
    except FormatError as error:
        raise error.inside(_MODEL).in_file(str(path)) from None


def _files(folder: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    total = 0
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(place) / name
            if path.is_symlink() or not path.is_file():  # a package may not reach outside of it
                continue
            total += path.stat().st_size
            if len(found) >= _MOST_FILES or total > _MOST_BYTES:
                most = f"at most {_MOST_FILES} files and {_MOST_BYTES} bytes"
                raise FormatError(most, "more", file=str(folder))
            found[path.relative_to(folder).as_posix()] = path.read_bytes()
    return found


def _program(program: CoreMLProgram, files: Mapping[str, bytes], name: str) -> tuple[Buffer, ...]:
    if not program.functions:
        raise FormatError("an ML program or a neural network", f"a {program.kind}")
    methods = {_method(one, program): graph for one, graph in program.functions.items()}
    sides = {
        one: {"inputNames": _inputs(graph), "outputNames": list(graph.outputs)}
        for one, graph in zip(program.functions, methods.values(), strict=True)
    }
    facts: dict[str, object] = {"identifier": name}
    facts |= {"methods": sides} if len(sides) > 1 else next(iter(sides.values()))
    inside: dict[str, Buffer] = {"metadata.json": json.dumps(facts).encode()}
    inside |= {f"{_FOLDER}/{path}": data for path, data in files.items()}
    payloads: list[list[Buffer]] = [write_tree(inside)]
    named: tuple[m.NamedData, ...] = ()
    if len(methods) > 1:
        references = [{"version": 1, "key": _KEY, "functionName": one} for one in sides]
        payloads = [*([_reference(one)] for one in references), *payloads]
        named = (m.NamedData(_KEY, len(methods)),)
    plans = tuple(_plan(one, graph, index) for index, (one, graph) in enumerate(methods.items()))
    table = m.ProgramTable(0, plans, (), (), (), None, None, named)
    return encode_parts(table, payloads)


def _reference(facts: Mapping[str, object]) -> Buffer:
    return REFERENCE + json.dumps(facts).encode()


def _method(function: str, program: CoreMLProgram) -> str:
    """Return the name of a method: an only function is what a program of one method has."""
    return "forward" if len(program.functions) == 1 else function


def _inputs(graph: Graph) -> list[str]:
    states = graph.attributes.get("states", ())
    return [name for name in graph.inputs if not isinstance(states, tuple) or name not in states]


@dataclass(slots=True)
class _Arena:
    """The planned memory of a method."""

    nbytes: int = 0

    def take(self, nbytes: int) -> m.AllocationDetails:
        at = self.nbytes
        self.nbytes += -(-max(nbytes, 1) // _ALIGNMENT) * _ALIGNMENT
        return m.AllocationDetails(1, at & 0xFFFFFFFF, at >> 32)


def _plan(name: str, graph: Graph, index: int) -> m.ExecutionPlan:
    arena = _Arena()
    inputs, outputs = _inputs(graph), list(graph.outputs)
    values = tuple(m.EValue(_tensor(graph.values[one], arena)) for one in (*inputs, *outputs))
    places = tuple(range(len(values)))
    call = m.Instruction(m.DelegateCall(0, places))
    delegate = m.BackendDelegate(BACKEND_ID, m.BackendDelegateDataReference(1, index), ())
    chain = m.Chain((), (), (call,), None)
    return m.ExecutionPlan(
        name,
        None,
        values,
        places[: len(inputs)],
        places[len(inputs) :],
        (chain,),
        (),
        (delegate,),
        (0, arena.nbytes),
        None,
    )


def _tensor(value: GraphValue, arena: _Arena) -> m.Tensor:
    """Return a value of the interface; an open size is one element, or as large as it becomes."""
    meta = value.tensor
    code = meta.scalar_type if meta is not None and meta.scalar_type >= 0 else _FLOAT
    sizes = meta.sizes if meta is not None else ()
    if any(isinstance(size, int) and not 0 <= size <= _LARGEST_SIZE for size in sizes):
        raise FormatError("sizes of 31 bits", str(list(sizes)), field=value.name)
    known = tuple(size if isinstance(size, int) else 1 for size in sizes)
    is_open = any(not isinstance(size, int) for size in sizes)
    place = None
    if not is_open:
        place = arena.take(math.prod(known) * scalar_type(code).item_bytes)
    return m.Tensor(
        scalar_type=code,
        storage_offset=0,
        sizes=known,
        dim_order=tuple(range(len(known))),
        requires_grad=False,
        data_buffer_idx=0,
        allocation_info=place,
        layout=0,
        shape_dynamism=_UNBOUND if is_open else 0,
        extra_tensor_info=None,
    )
