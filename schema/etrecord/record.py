"""ETRecords: the compiler's artifact, with parts that are decoded on first access."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar, cast

import msgspec

from schema.errors import FormatError, Issue, Severity
from schema.etrecord import members as m
from schema.etrecord.archive.container import Archive
from schema.etrecord.archive.zip_index import Member
from schema.etrecord.exported_weights import StoredWeights
from schema.etrecord.graph.graph_json import RecordedProgram, read_program
from schema.etrecord.graph.json_text import Json, parse_json
from schema.etrecord.members import Roles
from schema.etrecord.parts.guard import MEMBER as REFUSALS
from schema.etrecord.parts.guard import Refusal, decode_refusals
from schema.etrecord.parts.kept import PREFIX, SUFFIX, folder_of
from schema.etrecord.parts.maps import (
    FORWARD,
    CountMap,
    DelegateMaps,
    HandleMap,
)
from schema.etrecord.parts.origins import MEMBER as ORIGINS
from schema.etrecord.parts.origins import Origins, decode_origins
from schema.etrecord.parts.verdicts import MEMBER as VERDICTS
from schema.etrecord.parts.verdicts import Members, Verdicts, decode_members, decode_verdicts
from schema.etrecord.torch_file.tensor_data import TensorData
from schema.etrecord.torch_file.torch_save import SavedTree, Tree, read_torch_save
from schema.graph import Graph
from schema.objects.cyclic_gc import gc_suspended

Buffer = bytes | bytearray | memoryview
T = TypeVar("T")
_STEP = 1 << 20  # bytes compared at once, so that equal weights are never copied entirely
_SMALL = 1 << 20  # bytes of a graph that is built to see whether it can be
_SHOWN = 5  # names that an issue lists


@dataclass(frozen=True, eq=False)
class RecordFile:
    """A record. Maps are decoded on opening; graphs and tensors on first use, then kept.

    Two records are equal if their readable members have the same names and bytes.

    Attributes:
        archive: the zip archive; its members have name, size, place and compression
        roles: which member is which program
        debug_handle_map: handles of each instruction by method, None if absent
        delegate_map: delegate maps of each delegate instruction by method, None if absent
        instruction_id_to_num_outs_map: outputs of each delegate instruction, None if absent
        export_graph_id: id of the exported graph in ``from_node`` chains, None if absent
        file: path or label
        issues: issues on opening; parts have separate issues, see ``check``
        weights: of an exported program that is stored with a member for each, else None
    """

    archive: Archive
    roles: Roles
    debug_handle_map: HandleMap | None = None
    delegate_map: DelegateMaps | None = None
    instruction_id_to_num_outs_map: CountMap | None = None
    export_graph_id: int | None = None
    file: str = ""
    issues: tuple[Issue, ...] = ()
    weights: StoredWeights | None = None
    _cache: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RecordFile):
            return NotImplemented
        mine, others = self.archive, other.archive
        names = _content_names(mine)
        if names != _content_names(others):
            return False
        return all(_same(mine.read(name), others.read(name)) for name in names)

    def __hash__(self) -> int:
        return hash(tuple(_content_names(self.archive)))

    # ---- members
    @property
    def members(self) -> tuple[Member, ...]:
        """Return all members of the archive, unreadable ones included."""
        return self.archive.members

    @property
    def methods(self) -> tuple[str, ...]:
        """Return the methods that have an edge program."""
        return tuple(self.roles.edge)

    @property
    def program_names(self) -> tuple[str, ...]:
        """Return the members that are programs: exported, edge, then extra ones."""
        exported = (self.roles.exported,) if self.roles.exported else ()
        return (*exported, *self.roles.edge.values(), *self.roles.extra)

    @property
    def other(self) -> tuple[str, ...]:
        """Return the members no release of the stock tool is known to write."""
        return self.roles.other

    def read(self, name: str) -> memoryview:
        """Return the bytes of a member; a view into the file when it is stored.

        Raises: FormatError if the member is missing or unreadable
        """
        try:
            return self.archive.read(name)
        except FormatError as error:
            raise error.in_file(self.file) from None

    def json(self, name: str) -> Json:
        """Return a JSON member, such as one of ``other``.

        Raises: FormatError if it is not there or no JSON
        """
        return self._once(f"json:{name}", lambda: self._parse(name))

    # ---- programs
    def program(self, name: str) -> RecordedProgram:
        """Return a program by its member name.

        Raises: FormatError if it is not there or cannot be read
        """
        return self._once(f"program:{name}", lambda: self._program(name))

    def graph(self, name: str) -> Graph:
        """Return the graph of a program by its member name.

        Raises: FormatError if it is not there or cannot be read
        """
        return self.program(name).graph

    def edge_graph(self, method: str = FORWARD) -> Graph | None:
        """Return the edge graph of a method, None if the record has none.

        Raises: FormatError if it cannot be read
        """
        name = self.roles.edge.get(method)
        return self.graph(name) if name else None

    def exported_graph(self) -> Graph | None:
        """Return the exported graph, None if the record has none.

        Raises: FormatError if it cannot be read
        """
        return self.graph(self.roles.exported) if self.roles.exported else None

    # ---- tensors
    def state_dict(self, program: str) -> Mapping[str, TensorData]:
        """Return parameters and buffers of a program by name; empty when absent.

        Raises: FormatError if they cannot be read
        """
        saved = _named_tensors(self.saved(f"{program}_state_dict").value)
        if self.weights is not None and program == self.roles.exported:
            return {**self._once("weights", self.weights.tensors), **saved}
        return saved

    def constants(self, program: str) -> Mapping[str, TensorData]:
        """Return lifted constants of a program by name; empty when absent.

        Raises: FormatError if they cannot be read
        """
        return _named_tensors(self.saved(f"{program}_constants").value)

    def example_inputs(self, program: str) -> SavedTree:
        """Return the inputs a program was exported with: positional ones, then keywords.

        Raises: FormatError if they cannot be read
        """
        return self.saved(f"{program}_example_inputs")

    def reference_outputs(self) -> SavedTree:
        """Return the expected outputs: for each method a list of cases, as passed by the user.

        A bundled program provides each case as a list of outputs, users also as a single tensor.

        Raises: FormatError if they cannot be read
        """
        return self.saved(m.OUTPUTS)

    def representative_inputs(self) -> SavedTree:
        """Return the inputs of the first test case of the forward method, in order.

        Raises: FormatError if they cannot be read
        """
        return self.saved(m.INPUTS)

    def saved(self, name: str) -> SavedTree:
        """Return the content of a torch.save member, not loaded if the record has none.

        Raises: FormatError if it cannot be read
        """
        if name not in self.archive:
            return SavedTree(None, loaded=False)
        return self._once(f"saved:{name}", lambda: self._saved(name))

    def verdicts(self) -> Verdicts:
        """Return by method why each node was delegated or not; empty when not recorded.

        Raises: FormatError if they cannot be read
        """
        if VERDICTS not in self.archive:
            return {}
        return self._once("verdicts", lambda: decode_verdicts(self._parse(VERDICTS), self.file))

    def taken(self) -> Members:
        """Return by method and delegate call its nodes; empty if not recorded.

        Raises: FormatError if they cannot be read
        """
        if VERDICTS not in self.archive:
            return {}
        return self._once("taken", lambda: decode_members(self._parse(VERDICTS), self.file))

    def refusals(self) -> tuple[Refusal, ...]:
        """Return the partitions that their engine does not load.

        Raises: FormatError if they cannot be read
        """
        if REFUSALS not in self.archive:
            return ()
        return self._once("refusals", lambda: decode_refusals(self._parse(REFUSALS), self.file))

    def origins(self) -> Mapping[str, Origins]:
        """Return by method the recorded node of each instruction; empty when not recorded.

        Raises: FormatError if they cannot be read
        """
        if ORIGINS not in self.archive:
            return {}
        return self._once("origins", lambda: decode_origins(self._parse(ORIGINS), self.file))

    def kept(self, payload: memoryview) -> Mapping[str, bytes]:
        """Return the files that the vendor's tools left for a payload, by name.

        Raises: FormatError if one cannot be read
        """
        if not any(name.startswith(PREFIX) for name in self.archive.names):
            return {}  # hashing the payload takes a second a gigabyte
        folder = folder_of(payload)
        return {
            name[len(folder) :].removesuffix(SUFFIX): bytes(self.archive.read(name))
            for name in self.archive.names
            if name.startswith(folder)
        }

    def with_tensor_issues(self) -> RecordFile:
        """Return the record with an issue for each part of tensors that cannot be read."""
        found = self._once("tensor issues", self._tensor_issues)
        self._cache["tensor issues"] = ()  # else `unread` would name them again
        return replace(self, issues=(*self.issues, *found)) if found else self

    def unread(self) -> tuple[Issue, ...]:
        """Return an issue for each graph and part of tensors that cannot be read.

        Those found on opening are not among them. Members that are packed are not unpacked for it,
        and of a large graph nothing is built: it is only asked whether it is JSON.
        """
        found: list[Issue] = []
        for name in self.program_names:
            member = self.archive.get(name)
            if member is not None and not member.compressed:
                found += self._graph_issues(name, whole=name in self.roles.edge.values())
        tensors = self._once("tensor issues", self._tensor_issues)
        return (*found, *(one for one in tensors if one.severity is not Severity.INFO))

    def _graph_issues(self, name: str, *, whole: bool) -> list[Issue]:
        """Return why a program cannot be read, or that its bytes were changed."""
        try:
            if (
                (whole and len(self.read(name)) <= _SMALL)
                or f"program:{name}" in self._cache
                or not self._once(f"is JSON:{name}", lambda: _is_json(self.read(name)))
            ):
                self.program(name)
            return self._once(
                f"sum:{name}", lambda: _checksum_issues(self.archive, name, self.file)
            )
        except FormatError as error:
            words = str(error).removeprefix(f"{self.file}: ")
            words = words if name in words else f"in {name}: {words}"
            return [Issue(Severity.ERROR, self.file, f"{words}; its graph is missing")]

    def _tensor_issues(self) -> tuple[Issue, ...]:
        found: list[Issue] = []
        for name in (program + side for program in self.program_names for side in m.SIDE_FILES):
            member = self.archive.get(name)
            if member is None or member.compressed:
                continue
            try:
                issues = _as_one(self.saved(name).issues)
            except FormatError as error:
                words = str(error).removeprefix(f"{self.file}: ")
                issues = [(Severity.ERROR, f"{words}; the tensors in it are missing")]
            for severity, words in issues:  # a file of another kind has its own name for the member
                found.append(Issue(severity, self.file, words.replace(name, member.name)))
        if self.weights is not None:
            found += [replace(one, where=self.file) for one in self.weights.issues()]
        return tuple(found)

    # ---- everything together
    def check(self) -> tuple[Issue, ...]:
        """Decode every part and return all issues, those found on opening first."""
        found = list(self.issues)
        for part in self._parts():
            try:
                found += part().issues
            except FormatError as error:
                found.append(Issue(Severity.ERROR, error.field or self.file, str(error)))
        own: tuple[tuple[str, Callable[[], object]], ...] = (
            (VERDICTS, self.verdicts),
            (VERDICTS, self.taken),
            (REFUSALS, self.refusals),
            (ORIGINS, self.origins),
        )
        for name, read in own:
            try:
                read()
            except FormatError as error:
                found.append(Issue(Severity.ERROR, name, str(error)))
        return tuple(found)

    def verify_checksums(self) -> tuple[Issue, ...]:
        """Return an issue for each member whose bytes differ from its checksum; reads all bytes."""
        names = self.archive.sound_names()
        return tuple(issue for name in names for issue in _checksum_issues(self.archive, name))

    def _parts(self) -> Iterator[Callable[[], RecordedProgram | SavedTree]]:
        for name in self.program_names:
            yield partial(self.program, name)
            for suffix in m.SIDE_FILES:
                yield partial(self.saved, name + suffix)
        yield self.reference_outputs
        yield self.representative_inputs

    # ---- helpers
    def _once(self, key: str, make: Callable[[], T]) -> T:
        """Return a cached result, or raise the cached error, so that a bad part is tried once."""
        with self._lock:  # two threads that need one part would both decode it, and charge it twice
            if key not in self._cache:
                try:
                    self._cache[key] = make()
                except FormatError as error:
                    self._cache[key] = error.in_file(self.file)
            result = self._cache[key]
        if isinstance(result, FormatError):
            raise result.with_traceback(None)
        return cast("T", result)

    def _program(self, name: str) -> RecordedProgram:
        with self.archive.budget.decoding(), gc_suspended():
            program = read_program(self.read(name), name, self.archive.budget)
        return replace(program, issues=(*program.issues, *_checksum_issues(self.archive, name)))

    def _saved(self, name: str) -> SavedTree:
        try:
            return read_torch_save(self.read(name), name, self.archive.budget)
        except FormatError as error:  # its offset is one within the member
            member = self.archive.get(name)
            if member is None or member.compressed:
                error.offset = None
                raise
            raise error.in_file(self.file, member.offset) from None

    def _parse(self, name: str) -> Json:
        return parse_json(self.read(name), self.archive.budget, name)


def _content_names(archive: Archive) -> list[str]:
    """Return the readable members with content; the marker only has to exist."""
    return [name for name in archive.sound_names() if name != m.MARKER]


def _same(mine: memoryview, others: memoryview) -> bool:
    if len(mine) != len(others):
        return False
    steps = range(0, len(mine), _STEP)
    return all(bytes(mine[at : at + _STEP]) == bytes(others[at : at + _STEP]) for at in steps)


def _as_one(issues: Sequence[Issue]) -> list[tuple[Severity, str]]:
    """Return the worst of the issues of a member, with the number of the others."""
    ranks = list(Severity)
    worst = max(issues, key=lambda one: ranks.index(one.severity), default=None)
    if worst is None:
        return []
    rest = f"; and {len(issues) - 1} more" if len(issues) > 1 else ""
    return [(worst.severity, f"in {worst.where}: {worst.message}{rest}")]


def _checksum_issues(archive: Archive, name: str, file: str = "") -> list[Issue]:
    if archive.checksum_matches(name):
        return []
    words = "its bytes do not have the checksum of the archive"
    return [Issue(Severity.WARNING, file or name, f"in {name}: {words}" if file else words)]


def _is_json(data: memoryview) -> bool:
    """Return whether bytes are JSON; False also for numbers that strict JSON lacks, as NaN."""
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _named_tensors(tree: Tree) -> Mapping[str, TensorData]:
    items = cast("dict[Any, Any]", tree).items() if isinstance(tree, dict) else ()
    return {name: tensor for name, tensor in items if isinstance(tensor, TensorData)}
