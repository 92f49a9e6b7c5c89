"""The documented ETRecord object over a record that is read without torch.

Maps are plain JSON values. Programs and tensors become torch objects when they are asked for;
`artifact` is the torch-free record itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from inspector.api import record_edits as edits
from inspector.api.exported_program import RebuiltPrograms, rebuilt
from inspector.api.values import LazyValues, as_tensor, saved_source
from inspector.load import open_bytes
from schema import etrecord
from schema.errors import FormatError
from schema.etrecord import members as m
from schema.graph import Graph

if TYPE_CHECKING:
    from torch.export import ExportedProgram

EDGE_GRAPH = "edge_dialect_graph_module"
_FORWARD = "forward"
_NOT_WHOLE = "ETRecord must contain edge dialect program and executorch program to be saved"


class ETRecord:
    """What the compiler knew: programs, maps from instructions to debug handles, reference values.

    Adding and updating change this object, not the file it was read from; `save` writes a file.
    """

    def __init__(self, artifact: etrecord.ETRecord) -> None:
        self._artifact = artifact
        self._changes: dict[str, bytes | None] = {}
        self._programs: dict[str, ExportedProgram] = {}

    @property
    def artifact(self) -> etrecord.ETRecord:
        """Return the torch-free record, with all changes made so far."""
        if self._changes:
            self._artifact = etrecord.replace_members(self._artifact, self._changes)
            self._changes = {}
        return self._artifact

    # ---- programs
    @property
    def exported_program(self) -> ExportedProgram | None:
        """Return the program as it was exported, None when it was not recorded.

        Raises: RebuildError if torch cannot make a program of it
        """
        name = self.artifact.roles.exported
        return self._program(name) if name else None

    @property
    def edge_dialect_program(self) -> ExportedProgram | Mapping[str, ExportedProgram] | None:
        """Return the edge program; with several methods, a mapping from method to program.

        Raises: RebuildError if torch cannot make a program of it
        """
        members = self.artifact.roles.edge
        if len(members) > 1:
            return RebuiltPrograms(members, self._program)
        return next((self._program(name) for name in members.values()), None)

    @property
    def graph_map(self) -> Mapping[str, ExportedProgram]:
        """Return the further recorded programs by name, as in ``edge_after_transform/forward``."""
        names = self.artifact.roles.extra
        return RebuiltPrograms({name: name for name in names}, self._program)

    def _program(self, name: str) -> ExportedProgram:
        if name not in self._programs:
            self._programs[name] = rebuilt(self.artifact, name)
        return self._programs[name]

    @property
    def export_graph_id(self) -> int:
        """Return the id of the exported graph, 0 when it was not recorded."""
        return self.artifact.export_graph_id or 0

    # ---- maps, as they are in the file: keys are texts
    @property
    def _debug_handle_map(self) -> Any:  # noqa: ANN401 - JSON
        return self._json(m.HANDLES)

    @property
    def _delegate_map(self) -> Any:  # noqa: ANN401 - JSON
        return self._json(m.DELEGATES)

    @property
    def _instruction_id_to_num_outs_map(self) -> Any:  # noqa: ANN401 - JSON
        return self._json(m.COUNTS)

    def _json(self, name: str) -> Any:  # noqa: ANN401 - JSON
        return self.artifact.json(name) if name in self.artifact.archive else None

    # ---- values
    @property
    def _reference_outputs(self) -> dict[str, list[Any]] | None:
        tree = self.artifact.reference_outputs().value
        if not isinstance(tree, dict):
            return None
        methods = cast("dict[str, object]", tree)
        return {method: as_tensor(saved_source(cases)) for method, cases in methods.items()}

    @property
    def _representative_inputs(self) -> list[Any] | None:
        tree = self.artifact.representative_inputs().value
        return None if tree is None else as_tensor(saved_source(tree))

    def reference_output(self, method: str, case: int) -> LazyValues | None:
        """Return the expected outputs of one test case, None when they were not recorded.

        Args:
            method: name
            case: index of the test case; -1 is a run without one, which has the only case there is
        """
        cases = self._reference_cases.get(method, ())
        if case == -1 and len(cases) == 1:
            case = 0
        if not 0 <= case < len(cases):
            return None
        outputs = saved_source(cases[case])
        listed = cast("tuple[object, ...]", outputs) if isinstance(outputs, tuple) else (outputs,)
        return LazyValues(lambda: listed)

    @cached_property
    def _reference_cases(self) -> dict[str, list[object]]:
        try:
            tree = self.artifact.reference_outputs().value
        except FormatError:
            return {}
        methods = cast("dict[str, object]", tree) if isinstance(tree, dict) else {}
        return {
            method: list(cast("list[object]", cases))
            for method, cases in methods.items()
            if isinstance(cases, (list, tuple))
        }

    def reference_graph(self, name: str) -> Graph | None:
        """Return the graph that names events, None for the edge graph of the method at hand.

        Raises: KeyError if the record has no such graph; FormatError if it cannot be read
        """
        if name in (EDGE_GRAPH, m.EDGE):
            return None
        names = self.artifact.program_names
        for known in (name, f"{name}/{_FORWARD}"):
            if known in names:
                return self.artifact.graph(known)
        listed = ", ".join((EDGE_GRAPH, *names))
        raise KeyError(f"the record has no graph {name!r}; it has {listed}")

    # ---- changes
    def save(self, path: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write the record as a file that this package and the stock tool read.

        Raises: RuntimeError without an edge program and debug handles; OSError
        """
        artifact = self.artifact
        if not artifact.roles.edge or not self._debug_handle_map:
            raise RuntimeError(_NOT_WHOLE)
        data = etrecord.encode(artifact)
        if isinstance(path, (str, os.PathLike)):
            Path(path).write_bytes(data)
        else:
            path.write(data)

    def copy(self) -> ETRecord:
        """Return a record of the programs alone, ready for another executorch program."""
        artifact = self.artifact
        return ETRecord(etrecord.replace_members(artifact, dict.fromkeys(edits.COMPILED)))

    def add_exported_program(self, exported_program: object) -> None:
        """Add the program as it was exported; None adds nothing.

        Args:
            exported_program: a program that was read from a record, or method -> program

        Raises: RuntimeError if there is one already; TypeError for a program of no record
        """
        if self.artifact.roles.exported or self.artifact.export_graph_id is not None:
            raise RuntimeError(edits.already("Exported program", "exported program"))
        chosen = exported_program
        if isinstance(chosen, Mapping):
            chosen = cast("Mapping[str, object]", chosen).get(_FORWARD)
        if chosen is not None:
            self._change(edits.program_members(chosen, m.EXPORTED, with_graph_id=True))

    def add_edge_dialect_program(self, edge_dialect_program: object) -> None:
        """Add the edge program.

        Args:
            edge_dialect_program: a program that was read from a record, or method -> program

        Raises: RuntimeError if there is one already; TypeError for a program of no record
        """
        if self.artifact.roles.edge:
            raise RuntimeError(edits.already("Edge dialect program", "edge dialect program"))
        given = edge_dialect_program
        named: Mapping[str, object] = {_FORWARD: given}
        if isinstance(given, Mapping):
            named = cast("Mapping[str, object]", given)
        for method, program in named.items():
            self._change(edits.program_members(program, f"{m.EDGE}/{method}"))

    def add_extra_export_modules(self, extra_recorded_export_modules: Mapping[str, object]) -> None:
        """Add further programs under names of the caller's.

        Args:
            extra_recorded_export_modules: name -> a program that was read from a record

        Raises: RuntimeError for a reserved name; TypeError for a program of no record
        """
        for name, program in extra_recorded_export_modules.items():
            edits.check_name(name)
            self._change(edits.program_members(program, f"{name}/{_FORWARD}"))

    def add_executorch_program(self, executorch_program: object) -> None:
        """Add the maps of a compiled program, and the test cases if it is a bundled one.

        Args:
            executorch_program: an object with ``debug_handle_map`` and ``delegate_map``, or with
                ``executorch_program`` and ``method_test_suites``

        Raises: RuntimeError if there are such data already; TypeError for another object
        """
        if any(name in self.artifact.archive for name in edits.COMPILED):
            raise RuntimeError(edits.already("Executorch program data", "executorch program data"))
        self._change(edits.compiled_members(executorch_program))

    def update_representative_inputs(self, representative_inputs: object) -> None:
        """Replace the representative inputs; written with torch.

        Args:
            representative_inputs: a list of inputs, or a bundled program whose first case of the
                forward method is taken

        Raises: ValueError if that method has no case
        """
        self._change({m.INPUTS: edits.saved_inputs(representative_inputs)})

    def update_reference_outputs(self, reference_outputs: object) -> None:
        """Replace the reference outputs; written with torch.

        Args:
            reference_outputs: method -> cases, the cases of the forward method, or a bundled
                program

        Raises: ValueError if a case of a bundled program has no expected outputs
        """
        self._change({m.OUTPUTS: edits.saved_outputs(reference_outputs)})

    def _change(self, changes: Mapping[str, bytes | None]) -> None:
        self._changes.update(changes)
        self.__dict__.pop("_reference_cases", None)


def parse_etrecord(etrecord_path: str | os.PathLike[str]) -> ETRecord:
    """Open an ETRecord file.

    Raises: RuntimeError if it is none; OSError if it cannot be read
    """
    path = os.fspath(etrecord_path)
    try:
        return ETRecord(etrecord.decode(open_bytes(path), file=path))
    except FormatError as error:
        raise RuntimeError(f"Invalid etrecord file passed in. {error}") from error
