"""The ETRecord of a program: graphs, weights and maps as one zip archive."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import torch
from torch.export import ExportedProgram

from compiler.emit.delegates import DelegateMaps
from compiler.files import write_whole
from compiler.record.examples import plain_containers
from compiler.record.graph import program_json
from compiler.record.graph_numbers import GraphNumbers
from compiler.record.saved import SavedStates, torch_save
from schema.etrecord import members as m
from schema.etrecord.guard import MEMBER as REFUSALS
from schema.etrecord.guard import Refusal, encode_refusals
from schema.etrecord.recipe import MEMBER as RECIPE
from schema.etrecord.verdicts import MEMBER as VERDICTS
from schema.etrecord.verdicts import Verdict, encode_verdicts
from schema.etrecord.zip_write import Content, archive_chunks
from schema.garbage import uncollected

_FORWARD = "forward"


@dataclass(frozen=True)
class RecordSource:
    """What a record is written from; none of it is ever changed.

    Attributes:
        exported: the programs as they were exported, by method
        edge: the edge programs, by method
    """

    exported: Mapping[str, ExportedProgram]
    edge: Mapping[str, ExportedProgram]


class ETRecord:
    """A record that can be given reference data and saved."""

    def __init__(
        self,
        source: RecordSource,
        debug_handles: Mapping[str, Mapping[int, int | list[int]]],
        delegates: Mapping[str, DelegateMaps] | None = None,
        verdicts: Mapping[str, Sequence[Verdict]] | None = None,
    ) -> None:
        """Hold what a record is written from.

        Args:
            source: the programs
            debug_handles: by method, those of each instruction
            delegates: by method, what is known about its delegate instructions
            verdicts: by method, why each node was delegated or not
        """
        self._source = source
        self._debug_handles = debug_handles
        self._delegates = delegates or {}
        self._verdicts = verdicts or {}
        self._inputs: Any = None
        self._outputs: Any = None
        self._recipe: bytes | None = None
        self._refusals: tuple[Refusal, ...] = ()

    def update_representative_inputs(self, inputs: list[Any]) -> None:
        """Set the inputs the numbers of the edge program are computed from."""
        self._inputs = inputs

    def update_reference_outputs(self, outputs: Any) -> None:  # noqa: ANN401
        """Set what the program is expected to return: of ``forward``, or by method."""
        self._outputs = outputs if isinstance(outputs, dict) else {_FORWARD: [outputs]}

    def update_recipe(self, recipe: bytes) -> None:
        """Set how the program was made, as text; the stock tool does not read it."""
        self._recipe = recipe

    def update_refusals(self, refusals: Sequence[Refusal]) -> None:
        """Set which partitions their engine does not load; the stock tool does not read it."""
        self._refusals = tuple(refusals)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the record, whole or not at all."""
        with uncollected():  # a look at all of torch's objects in between takes 0.2 s
            # A thread that writes behind was no faster: a new one takes fresh memory for its pages.
            write_whole(Path(path), self.write_to_file)

    def write_to_file(self, stream: IO[bytes]) -> None:
        """Write the record to a stream."""
        for chunk in self._chunks():
            stream.write(chunk)

    def _chunks(self) -> Iterator[bytes | memoryview]:
        saved = SavedStates()
        return archive_chunks(self._contents(saved), saved.sums)

    def _contents(self, saved: SavedStates) -> Iterator[Content]:
        yield Content(m.MARKER, b"")
        exported = self._source.exported.get(_FORWARD)
        if exported is not None and _bodies_hold_tensors(exported):
            exported = None  # the format has no place for them; the edge program has them lifted
        numbers = GraphNumbers(exported.graph if exported is not None else None)
        if exported is not None:
            yield from _program(m.EXPORTED, exported, saved, numbers, edge=False)
        for method, program in self._source.edge.items():
            yield from _program(f"{m.EDGE}/{method}", program, saved, numbers, edge=True)
        handles = {
            method: {str(place): handle for place, handle in by_place.items()}
            for method, by_place in self._debug_handles.items()
        }
        maps = {method: self._delegates.get(method) or DelegateMaps() for method in handles}
        yield Content(m.HANDLES, _json(handles))
        yield Content(m.DELEGATES, _json({method: found.maps for method, found in maps.items()}))
        yield Content(m.COUNTS, _json({method: found.results for method, found in maps.items()}))
        if any(self._verdicts.values()):
            members = {method: found.members for method, found in maps.items()}
            yield Content(VERDICTS, encode_verdicts(self._verdicts, members))
        if self._recipe is not None:
            yield Content(RECIPE, self._recipe)
        if self._refusals:
            yield Content(REFUSALS, encode_refusals(self._refusals))
        if self._outputs is not None:
            yield Content(m.OUTPUTS, torch_save(self._outputs))
        if self._inputs is not None:
            yield Content(m.INPUTS, torch_save(self._inputs))
        if exported is not None:
            yield Content(m.GRAPH_ID, _json(numbers.of(id(exported.graph))))


def _bodies_hold_tensors(program: ExportedProgram) -> bool:
    """Return whether a body of control flow made a tensor of numbers, which it then holds."""
    modules: Any = program.graph_module.modules()
    return any(
        node.op == "get_attr" and isinstance(getattr(module, str(node.target), None), torch.Tensor)
        for module in modules
        if isinstance(module, torch.fx.GraphModule)
        for node in module.graph.nodes
    )


def _program(
    name: str, program: ExportedProgram, saved: SavedStates, numbers: GraphNumbers, *, edge: bool
) -> Iterator[Content]:
    state, constants, inputs = m.SIDE_FILES
    yield Content(name, program_json(program, numbers, edge=edge))
    yield Content(name + state, saved.bytes_of(program.state_dict))
    yield Content(name + constants, saved.bytes_of(program.constants))
    yield Content(name + inputs, torch_save(plain_containers(program.example_inputs)))


def _json(value: object) -> bytes:
    return json.dumps(value).encode()
