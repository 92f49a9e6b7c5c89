"""Records that are read: programs and values of a file as those of the documented ETRecord.

Maps are plain JSON values. Programs and tensors become torch objects on first access; the
file itself is decoded without torch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Any, cast

from compiler.record.record import ETRecord as ETRecord
from compiler.record.record import generate_etrecord as generate_etrecord
from inspector.compat.devtools.values import LazyValues, as_tensor, saved_source
from inspector.files.load import open_bytes
from inspector.rebuild.exported_program import rebuilt
from schema import etrecord
from schema.errors import FormatError
from schema.etrecord import members as m
from schema.graph import Graph

if TYPE_CHECKING:
    from torch.export import ExportedProgram

    from schema.etrecord.codec import Buffer

EDGE_GRAPH = "edge_dialect_graph_module"
_FORWARD = "forward"
_MAPS = {
    "_debug_handle_map": m.HANDLES,
    "_delegate_map": m.DELEGATES,
    "_instruction_id_to_num_outs_map": m.COUNTS,
}
_VALUES = {"_reference_outputs": m.OUTPUTS, "_representative_inputs": m.INPUTS}


class RebuiltPrograms(dict[str, Any]):
    """Programs of a record by name, each created on first access."""

    def __init__(self, names: dict[str, str], make: Callable[[str], ExportedProgram]) -> None:
        super().__init__(names)
        self._unmade = dict(names)
        self._make = make

    def __getitem__(self, name: str) -> ExportedProgram:
        if name in self._unmade:
            super().__setitem__(name, self._make(self._unmade[name]))
            del self._unmade[name]
        return super().__getitem__(name)

    def __setitem__(self, name: str, program: ExportedProgram) -> None:
        self._unmade.pop(name, None)
        super().__setitem__(name, program)

    def __iter__(
        self,
    ) -> Iterator[str]:  # without it, dict(self) would copy names of programs not yet created
        return super().__iter__()

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - as of a dict
        """Return a program, or the default if the name is unknown."""
        return self[name] if super().__contains__(name) else default

    def values(self) -> Any:  # noqa: ANN401 - a view, as of a dict
        """Return the programs."""
        return self._loaded().values()

    def items(self) -> Any:  # noqa: ANN401 - a view, as of a dict
        """Return names and programs."""
        return self._loaded().items()

    def _loaded(self) -> dict[str, Any]:
        return {name: self[name] for name in self}


class _RecordFile:
    """A record file as the source of an ETRecord's parts."""

    def __init__(self, artifact: etrecord.RecordFile) -> None:
        self.artifact = artifact

    def has(self, part: str) -> bool:
        roles = self.artifact.roles
        programs = {"exported_program": roles.exported, "_edge_programs": roles.edge}
        if part in programs:
            return bool(programs[part])
        member = _MAPS.get(part) or _VALUES.get(part)
        return member is not None and member in self.artifact.archive

    def part(self, name: str) -> Any:  # noqa: ANN401
        roles = self.artifact.roles
        if name in _MAPS:
            member = _MAPS[name]
            return self.artifact.json(member) if member in self.artifact.archive else None
        if name in _VALUES:
            return self._value(_VALUES[name])
        if name == "export_graph_id":
            return self.artifact.export_graph_id or 0
        if name == "graph_map":
            return RebuiltPrograms({extra: extra for extra in roles.extra}, self._program)
        if name == "_edge_programs":
            return RebuiltPrograms(roles.edge, self._program) or None
        return self._program(roles.exported) if roles.exported else None

    def _program(self, member: str) -> ExportedProgram:
        return rebuilt(self.artifact, member, edge_ops=True)

    def _value(self, member: str) -> Any:  # noqa: ANN401
        tree = self.artifact.saved(member).value
        if isinstance(tree, dict):
            methods = cast("dict[str, object]", tree)
            return {method: as_tensor(saved_source(cases)) for method, cases in methods.items()}
        return None if tree is None or member == m.OUTPUTS else as_tensor(saved_source(tree))


def parse_etrecord(etrecord_path: str | os.PathLike[str] | IO[bytes]) -> ETRecord:
    """Open an ETRecord file, or a stream of its bytes, which is read to its end.

    Raises: RuntimeError for an invalid record; OSError if it cannot be read
    """
    if isinstance(etrecord_path, (str, os.PathLike)):
        path = os.fspath(etrecord_path)
        content: Buffer = open_bytes(path)
    else:
        path = str(getattr(etrecord_path, "name", "") or "ETRecord stream")
        content = etrecord_path.read()
    try:
        return opened(etrecord.decode(content, file=path))
    except FormatError as error:
        raise RuntimeError(f"Invalid etrecord file passed in. {error}") from error


def opened(artifact: etrecord.RecordFile) -> ETRecord:
    """Return the documented object over a decoded record."""
    return ETRecord.from_source(_RecordFile(artifact))


def reference_output(record: etrecord.RecordFile, method: str, case: int) -> LazyValues | None:
    """Return the expected outputs of one test case, None when they were not recorded.

    Args:
        record: decoded
        method: name
        case: index of the test case; -1 is a run without one, which has the only case
    """
    cases = _reference_cases(record).get(method, ())
    if case == -1 and len(cases) == 1:
        case = 0
    if not 0 <= case < len(cases):
        return None
    outputs = saved_source(cases[case])
    listed = cast("tuple[object, ...]", outputs) if isinstance(outputs, tuple) else (outputs,)
    return LazyValues(lambda: listed)


def _reference_cases(record: etrecord.RecordFile) -> dict[str, list[object]]:
    try:
        tree = record.reference_outputs().value
    except FormatError:
        return {}
    methods = cast("dict[str, object]", tree) if isinstance(tree, dict) else {}
    return {
        method: list(cast("list[object]", cases))
        for method, cases in methods.items()
        if isinstance(cases, (list, tuple))
    }


def reference_graph(record: etrecord.RecordFile | None, name: str) -> Graph | None:
    """Return the graph that names events, None for the edge graph of the method at hand.

    Without a record no graph can be named.

    Raises: KeyError if the record has no such graph; FormatError if it cannot be read
    """
    if record is None or name in (EDGE_GRAPH, m.EDGE):
        return None
    names = record.program_names
    for known in (name, f"{name}/{_FORWARD}"):
        if known in names:
            return record.graph(known)
    listed = ", ".join((EDGE_GRAPH, *names))
    raise KeyError(f"the record has no graph {name!r}; it has {listed}")
