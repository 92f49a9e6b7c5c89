"""The documented ETRecord: programs, maps and reference values of a compile.

It contains live objects, or the parts of a file, read on first access. Nothing here imports
torch before a program or a tensor is written: a record can be opened where torch is not installed.
"""

from __future__ import annotations

import copy
import io
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from compiler.record import user_values
from compiler.record.members import record_chunks
from schema import etrecord
from schema.etrecord.parts.guard import MEMBER as REFUSALS
from schema.etrecord.parts.guard import Refusal, encode_refusals
from schema.etrecord.parts.origins import MEMBER as ORIGINS
from schema.etrecord.parts.origins import Origins, encode_origins
from schema.etrecord.parts.recipe import MEMBER as RECIPE
from schema.etrecord.parts.verdicts import MEMBER as VERDICTS
from schema.etrecord.parts.verdicts import Verdict, encode_verdicts
from schema.objects.atomic_file import write_atomically
from schema.objects.cyclic_gc import gc_suspended

if TYPE_CHECKING:
    from torch.export import ExportedProgram

T = TypeVar("T")
_COMPILED = (
    "_debug_handle_map",
    "_delegate_map",
    "_instruction_id_to_num_outs_map",
    "_reference_outputs",
    "_representative_inputs",
)


class RecordSource(Protocol):
    """A file that parts of a record are read from.

    Attributes:
        artifact: the file, decoded without torch
    """

    artifact: etrecord.RecordFile

    def has(self, part: str) -> bool:
        """Return whether the file has a part, without reading it."""
        ...

    def part(self, name: str) -> Any:  # noqa: ANN401
        """Return a part by the name of its attribute, None if missing."""
        ...


class _RecordPart(Generic[T]):
    """A part of a record: the value that was set, else that of its file."""

    def __set_name__(self, owner: type[object], name: str) -> None:
        self.name = name

    def __get__(self, record: ETRecord, owner: type[ETRecord]) -> T:
        return record._part(self.name)  # pyright: ignore[reportPrivateUsage] - its own class

    def __set__(self, record: ETRecord, value: T) -> None:
        record._give(self.name, value)  # pyright: ignore[reportPrivateUsage]


class ETRecord:
    """An ETRecord: the compiler's record of a program, for the Inspector.

    Attributes:
        exported_program: the program as exported; that of ``forward`` if there are several methods
        export_graph_id: id of its graph in nodes of later programs
        edge_dialect_program: the edge program, a dictionary for several methods
        graph_map: further programs, with names like ``edge_after_transform/forward``
    """

    exported_program = _RecordPart["ExportedProgram | None"]()
    export_graph_id = _RecordPart["int | None"]()
    graph_map = _RecordPart["dict[str, ExportedProgram] | None"]()
    _edge_programs = _RecordPart["dict[str, ExportedProgram] | None"]()
    _debug_handle_map = _RecordPart[Any]()
    _delegate_map = _RecordPart[Any]()
    _instruction_id_to_num_outs_map = _RecordPart[Any]()
    _reference_outputs = _RecordPart["dict[str, list[Any]] | None"]()
    _representative_inputs = _RecordPart["list[Any] | None"]()

    def __init__(
        self,
        exported_program: ExportedProgram | None = None,
        export_graph_id: int | None = None,
        edge_dialect_program: ExportedProgram | Mapping[str, ExportedProgram] | None = None,
        graph_map: dict[str, ExportedProgram] | None = None,
        _debug_handle_map: Any = None,  # noqa: ANN401 - by method, then by instruction
        _delegate_map: Any = None,  # noqa: ANN401 - likewise
        _instruction_id_to_num_outs_map: Any = None,  # noqa: ANN401 - likewise
        _reference_outputs: dict[str, list[Any]] | None = None,
        _representative_inputs: list[Any] | None = None,
    ) -> None:
        """Store parts; `add_...` and `update_...` add further ones.

        Args:
            exported_program: as exported
            export_graph_id: id of its graph in ``from_node`` chains
            edge_dialect_program: the edge program, named ``forward``, or edge programs by method
            graph_map: further programs by name and method
            _debug_handle_map: debug handles of each instruction
            _delegate_map: delegate maps of each delegate instruction
            _instruction_id_to_num_outs_map: number of outputs of each delegate instruction
            _reference_outputs: by method, the outputs expected of each case
            _representative_inputs: inputs of ``forward``
        """
        self.source: RecordSource | None = None
        self._parts: dict[str, Any] = {}
        self._given: set[str] = set()
        self._own: dict[str, Callable[[], bytes]] = {}
        self._encoded: etrecord.RecordFile | None = None
        self.exported_program = exported_program
        self.export_graph_id = export_graph_id
        self.edge_dialect_program = edge_dialect_program
        self.graph_map = graph_map
        self._debug_handle_map = _debug_handle_map
        self._delegate_map = _delegate_map
        self._instruction_id_to_num_outs_map = _instruction_id_to_num_outs_map
        self._reference_outputs = _reference_outputs
        self._representative_inputs = _representative_inputs

    @classmethod
    def from_source(cls, source: RecordSource) -> ETRecord:
        """Return the record of a file; its parts are read lazily."""
        record = cls()
        record.source, record._parts, record._given = source, {}, set()
        return record

    @property
    def edge_dialect_program(self) -> ExportedProgram | dict[str, ExportedProgram] | None:
        """Return the edge program; of several methods a dictionary from method to program."""
        programs = self._edge_programs
        if programs is None or len(programs) > 1:
            return programs
        return next(iter(programs.values()), None)

    @edge_dialect_program.setter
    def edge_dialect_program(
        self, program: ExportedProgram | Mapping[str, ExportedProgram] | None
    ) -> None:
        by_method = program if isinstance(program, Mapping) else {user_values.FORWARD: program}
        self._edge_programs = None if program is None else cast("Any", dict(by_method))

    @property
    def edge_programs(self) -> dict[str, ExportedProgram]:
        """Return the edge programs by method, also for a single one."""
        return dict(self._edge_programs or {})

    # ---- parts
    def _part(self, name: str) -> Any:  # noqa: ANN401
        if name not in self._parts and self.source is not None:
            found = self.source.part(name)
            if found is None or isinstance(found, int):
                return found  # a copy the caller cannot change
            self._parts[name] = found
        return self._parts.get(name)

    def _give(self, name: str, value: object) -> None:
        self._parts[name] = value
        self._given.add(name)
        self._encoded = None

    def _has(self, name: str) -> bool:
        if name not in self._parts and self.source is not None:
            return self.source.has(name)
        return self._parts.get(name) is not None

    @property
    def artifact(self) -> etrecord.RecordFile:
        """Return the record as its file, decoded without torch.

        It shows the parts as passed; in-place changes of parts read from a file are only seen by
        `save`.
        """
        if self.source is not None and not self._given and not self._own:
            return self.source.artifact
        if self._encoded is None:
            stream = io.BytesIO()
            self._write(stream, numbered=False)
            label = self.source.artifact.file if self.source is not None else "ETRecord object"
            self._encoded = etrecord.decode(stream.getbuffer(), file=label)
        return self._encoded

    # ---- changes
    def add_exported_program(
        self, exported_program: ExportedProgram | Mapping[str, ExportedProgram] | None
    ) -> None:
        """Add the program as exported.

        Args:
            exported_program: the program, or programs by method of which that of ``forward`` is
                used, or None

        Raises: RuntimeError if already set; TypeError for anything else
        """
        if self._has("exported_program") or self.export_graph_id:
            raise RuntimeError(_already("Exported program", "exported program"))
        found = user_values.exported_of(exported_program)
        self.exported_program = found
        self.export_graph_id = None if found is None else _graph_id(found)

    def add_edge_dialect_program(self, edge_dialect_program: object) -> None:
        """Add the edge programs.

        Args:
            edge_dialect_program: an EdgeProgramManager, a program, or programs by method

        Raises: RuntimeError if already set, or for anything else
        """
        if self._has("_edge_programs"):
            raise RuntimeError(_already("Edge dialect program", "edge dialect program"))
        self._edge_programs = user_values.edge_programs_of(edge_dialect_program)

    def add_executorch_program(self, executorch_program: object) -> None:
        """Add the maps of a compiled program, and the cases if it is a bundled one.

        Args:
            executorch_program: an ExecutorchProgramManager or a BundledProgram

        Raises:
            RuntimeError: maps, outputs or inputs are already set
            TypeError: not a compiled program
            ValueError: a case of a bundled program has no expected outputs
        """
        if any(self._has(part) for part in _COMPILED):
            raise RuntimeError(_already("Executorch program data", "executorch program data"))
        maps = user_values.maps_of(executorch_program)
        self._debug_handle_map, self._delegate_map, self._instruction_id_to_num_outs_map = maps
        if user_values.is_bundled(executorch_program):
            self.update_reference_outputs(executorch_program)
            self.update_representative_inputs(executorch_program)

    def add_extra_export_modules(self, extra_recorded_export_modules: Mapping[str, object]) -> None:
        """Add further programs under names of the caller's.

        Args:
            extra_recorded_export_modules: name -> a program or an EdgeProgramManager

        Raises: RuntimeError for a reserved name, or for anything else
        """
        found: dict[str, ExportedProgram] = {}
        for name, program in extra_recorded_export_modules.items():
            found |= user_values.extra_programs_of(name, program)
        known = self.graph_map
        if known is None:
            known = {}
        known.update(found)
        self.graph_map = known

    def update_representative_inputs(self, representative_inputs: object) -> None:
        """Replace the representative inputs of the recorded program.

        Args:
            representative_inputs: a list of inputs, or a bundled program whose first case of
                ``forward`` is used

        Raises: ValueError if that method has no case
        """
        bundled = user_values.is_bundled(representative_inputs)
        find = user_values.representative_inputs_of if bundled else user_values.plain
        self._representative_inputs = find(representative_inputs)

    def update_reference_outputs(self, reference_outputs: Any) -> None:  # noqa: ANN401
        """Replace the reference outputs of the program.

        Args:
            reference_outputs: by method, the outputs of each case; those of ``forward`` alone as
                a list; or a bundled program

        Raises: ValueError if a case of a bundled program has no expected outputs
        """
        if user_values.is_bundled(reference_outputs):
            self._reference_outputs = user_values.reference_outputs_of(reference_outputs)
        elif isinstance(reference_outputs, Mapping):
            self._reference_outputs = user_values.plain(cast("object", reference_outputs))
        else:
            self._reference_outputs = {user_values.FORWARD: user_values.plain(reference_outputs)}

    def update_verdicts(
        self,
        verdicts: Mapping[str, Sequence[Verdict]],
        members: Mapping[str, Mapping[int, tuple[str, ...]]],
    ) -> None:
        """Set why each node was delegated or not; the stock tool does not read it.

        Args:
            verdicts: by method
            members: by method and delegate instruction, names of the nodes inside
        """
        if any(verdicts.values()):
            self._set_own(VERDICTS, lambda: encode_verdicts(verdicts, members))

    def update_origins(self, origins: Mapping[str, Origins]) -> None:
        """Set by method which recorded node each instruction is; stock does not read it."""
        self._set_own(ORIGINS, lambda: encode_origins(origins))

    def update_kept(self, files: Mapping[str, bytes]) -> None:
        """Set the files that vendors' tools have left, by member; stock does not read them."""
        for member, data in files.items():
            self._set_own(member, partial(bytes, data))

    def update_recipe(self, recipe: bytes) -> None:
        """Set the recipe of the program, as a JSON string; the stock tool does not read it."""
        self._set_own(RECIPE, lambda: recipe)

    def update_refusals(self, refusals: Sequence[Refusal]) -> None:
        """Set the partitions that their engine does not load; the stock tool does not read it."""
        self._set_own(REFUSALS, lambda: encode_refusals(tuple(refusals)))

    def _set_own(self, member: str, write: Callable[[], bytes]) -> None:
        self._own[member] = write
        self._encoded = None

    # ---- files
    def save(self, path: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write the record atomically, readable by our Inspector and the stock one.

        Graphs have their ids in this process, ``id(program.graph)``;
        `write_to_file` writes the same bytes in each process.

        Args:
            path: of the file, or a stream of bytes

        Raises:
            RuntimeError: without edge program and debug handles
            UnsupportedError: an argument of a program cannot be represented in a record
            OSError: the file cannot be written
        """
        if not (self._has("_edge_programs") and self._has("_debug_handle_map")):
            raise RuntimeError(
                "ETRecord must contain edge dialect program and executorch program to be saved"
            )
        if not isinstance(path, (str, os.PathLike)):
            self._write(path, numbered=False)
            return
        write_atomically(Path(path), lambda stream: self._write(stream, numbered=False))

    def write_to_file(self, stream: IO[bytes]) -> None:
        """Write the record to a stream; equal programs give equal bytes in each process."""
        self._write(stream, numbered=True)

    def _write(self, stream: IO[bytes], *, numbered: bool) -> None:
        if self.source is not None and not self._parts and not self._own:
            stream.write(etrecord.encode(self.source.artifact))
            return
        artifact = None if self.source is None else self.source.artifact
        with gc_suspended():  # a garbage collection over all of torch's objects takes 0.2 s
            # A background writer thread was not faster: a new thread touches fresh memory pages.
            for chunk in record_chunks(artifact, self._parts, self._own, numbered=numbered):
                stream.write(chunk)

    def copy(self) -> ETRecord:
        """Return a record of the programs only, to be completed for another compiled program."""
        new = ETRecord()
        new.source, new._parts, new._given = self.source, dict(self._parts), set(self._given)
        for part in _COMPILED:
            new._give(part, None)
        return new

    def __deepcopy__(self, memo: dict[int, Any]) -> ETRecord:
        """Return a record of copied parts; its file is read-only and shared."""
        new = object.__new__(type(self))
        memo[id(self)] = new
        vars(new).update(vars(self))
        new._given, new._own = set(self._given), dict(self._own)
        new._parts = copy.deepcopy(self._parts, memo)
        return new


def generate_etrecord(
    et_record: str | os.PathLike[str] | IO[bytes],
    edge_dialect_program: object,
    executorch_program: object,
    exported_program: ExportedProgram | Mapping[str, ExportedProgram] | None = None,
    extra_recorded_export_modules: Mapping[str, object] | None = None,
) -> None:
    """Write a record of live programs.

    Compiling does not change the manager it is called on, so no deep copy is needed, but is
    possible.

    Args:
        et_record: path or stream
        edge_dialect_program: an EdgeProgramManager before delegation
        executorch_program: an ExecutorchProgramManager or a BundledProgram
        exported_program: the program as exported, or programs by method
        extra_recorded_export_modules: further programs or managers by name

    Raises: RuntimeError, TypeError, ValueError as the methods of ETRecord do; OSError
    """
    record = ETRecord()
    record.add_exported_program(exported_program)
    record.add_edge_dialect_program(edge_dialect_program)
    record.add_executorch_program(executorch_program)
    if extra_recorded_export_modules is not None:
        record.add_extra_export_modules(extra_recorded_export_modules)
    record.save(et_record)


def _already(what: str, adding: str) -> str:
    return f"{what} already exists in the ETRecord. Cannot add {adding} when it already exists."


def _graph_id(program: ExportedProgram) -> int:
    """Return the identifier of an exported graph: that of its file, if it was read from one."""
    from compiler.record.provenance import origin_of

    origin = origin_of(program)
    known = None if origin is None else origin.artifact.export_graph_id
    return id(program.graph) if known is None else known
