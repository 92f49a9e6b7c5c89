"""Partitioners and backends of another interpreter, behind our interfaces.

Programs go there as files; tags, settings, reasons and payloads come back as JSON and plain bytes,
which are never unpickled. A program that a quantizer returns is read as any `.pt2` file is:
by torch, which may unpickle what it holds. That interpreter is as trusted as this one.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import itertools
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import torch
from torch.export import ExportedProgram

from compiler.dialect.copies import isolated_copy
from compiler.interface.backend import CompileSpec, PreprocessResult
from compiler.interface.named_data import DataEntry, NamedDataStoreOutput, TensorLayout
from compiler.interface.partitioner import (
    TAG,
    DelegationSpec,
    NodeFilter,
    Partitioner,
    PartitionResult,
)
from compiler.interface.stock_objects import BackendOf
from compiler.named import NamedObject
from compiler.partition.reasons import note, noted, operator_of
from compiler.partition.regions import unit_of
from compiler.partition.steering import keeps_out
from inspector.toolchain.child import Interpreter, ReportedError, ToolchainError
from inspector.toolchain.handed_files import CALLS_FILE, PROGRAM_FILE, QUANTIZED_FILE
from inspector.worker.handed_program import write_program
from schema.etrecord.parts.verdicts import NodeOutcome

Node = torch.fx.Node
_T = TypeVar("_T")
_MOST_BYTES = 1 << 36  # of a payload
_numbers = itertools.count()
_children: dict[str, Interpreter] = {}


class VendorTables(msgspec.Struct):
    """What the tables of a vendor list.

    Attributes:
        options: of its partitioner, each with its values, empty for any
        operators: that it takes, each with the dtypes
    """

    options: dict[str, tuple[str, ...]]
    operators: list[tuple[str, str]]


class _Spec(msgspec.Struct):
    backend: str
    settings: list[tuple[str, str]]
    together: bool


class _Partition(msgspec.Struct):
    nodes: list[tuple[str, str, str | None]]
    data: list[tuple[str, str]]
    specs: dict[str, _Spec]
    reasons: dict[str, list[tuple[str, str]]]


class _Preserved(msgspec.Struct):
    operators: list[tuple[str, str]]
    nodes: list[str] | None
    refused: list[tuple[str, str]] = []


class _Prepared(msgspec.Struct):
    name: str
    spec: _Spec | None = None


_Entries = dict[str, tuple[int, int, tuple[int, list[int], list[int]] | None]]


class _Data(msgspec.Struct):
    buffers: list[int]
    inside: _Entries
    outside: dict[str, _Entries]


class _Result(msgspec.Struct):
    payload: int
    handles: list[tuple[int | str, list[int]]] | None
    data: _Data | None
    origins: dict[str, list[str]] = msgspec.field(default_factory=dict[str, list[str]])


_Results = dict[str, list[_Result]]


def tables_of(python: str, vendor: str) -> VendorTables:
    """Return what the tables of a vendor list in another interpreter.

    Raises: ToolchainError if they cannot be read there
    """
    return _ask(python, VendorTables, do="card", vendor=vendor)


def partitioner_of(
    python: str, asked: NamedObject, libraries: Sequence[str] = ()
) -> PartitionerElsewhere:
    """Return a partitioner of another interpreter.

    Args:
        python: the interpreter
        asked: name and options
        libraries: that register operators of the programs there

    Raises: ToolchainError if it cannot be created there
    """
    number = next(_numbers)
    given = {"name": asked.name, "options": dict(asked.options)}
    needed = {"partitioner": given, "libraries": list(libraries)}
    found = _ask(python, _Prepared, do="prepare", number=number, **needed)
    return PartitionerElsewhere(python, number, found.name, found.spec)


@dataclass(frozen=True, slots=True)
class QuantizerElsewhere:
    """A vendor's quantizer in another interpreter.

    Attributes:
        python: the interpreter
        asked: name and options
        libraries: that register operators of the programs there
    """

    python: str
    asked: NamedObject
    libraries: tuple[str, ...] = ()

    def quantized(
        self, program: ExportedProgram, calls: Sequence[tuple[Any, ...]] | None
    ) -> ExportedProgram:
        """Return a quantized program; the given one is not changed.

        Args:
            program: as exported
            calls: arguments to calibrate with, None for the example inputs

        Raises: ToolchainError if it fails there
        """
        given = {"name": self.asked.name, "options": dict(self.asked.options)}
        needed = {"quantizer": given, "libraries": list(self.libraries)}
        with tempfile.TemporaryDirectory() as folder:
            torch.export.save(program, Path(folder) / PROGRAM_FILE)
            if calls is not None:
                torch.save(list(calls), Path(folder) / CALLS_FILE)
            _ask(self.python, dict[str, Any], do="quantize", folder=folder, **needed)
            return torch.export.load(Path(folder) / QUANTIZED_FILE)


class PartitionerElsewhere(Partitioner):
    """A partitioner that runs in another interpreter.

    Args:
        python: the interpreter
        number: of the partitioner there
        name: of its class
        spec: its backend and settings, None where only tags have them
    """

    is_of_package = True

    def __init__(self, python: str, number: int, name: str, spec: _Spec | None = None) -> None:
        super().__init__()
        self.verdict_name = name
        self._python = python
        self._number = number
        # what rules of the user go by: a backend of integers is not left a part of a region
        self.delegation_spec = None if spec is None else self._described(spec)

    def ops_to_not_decompose(self, ep: ExportedProgram) -> tuple[list[Any], NodeFilter | None]:
        """Return the operators that it wants preserved, and a filter of their nodes."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "program.pt2"
            torch.export.save(ep, path)
            place = {"program": str(path), "number": self._number}
            found = _ask(self._python, _Preserved, do="preserve", **place)
        operators = [_operator(*one) for one in found.operators]
        known = [one for one in operators if one is not None]
        accepted = None if found.nodes is None else frozenset(found.nodes)
        if accepted is None:
            return known, None
        given = {node.name for node in ep.graph.nodes}
        refused = {_operator(*one) for one in found.refused}

        def requested(node: Node) -> bool:
            if node.name in given:
                return node.name in accepted
            return node.target not in refused  # a part of another one, or a functional variant

        return known, requested

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag the nodes that it tags in its copy.

        Raises: ToolchainError if it fails, or answers for another program
        """
        calls = dict(_calls(exported_program.graph_module))
        vetoed = [path for path, node in calls.items() if keeps_out(node)]
        with tempfile.TemporaryDirectory() as folder:
            write_program(exported_program, Path(folder))
            place = {"folder": folder, "number": self._number, "vetoed": vetoed}
            found = _ask(self._python, _Partition, do="partition", **place)
        self._check(calls, found)
        for path, _, tag in found.nodes:
            _tag(calls[path], tag)
        data = dict(found.data)
        for node in exported_program.graph.nodes:
            if node.op in ("placeholder", "get_attr"):
                _tag(node, data.get(node.name))
        self._note(calls, found)
        specs = {tag: self._described(spec) for tag, spec in found.specs.items()}
        return PartitionResult(exported_program, specs)

    def _check(self, calls: Mapping[str, Node], found: _Partition) -> None:
        theirs = {path: operator for path, operator, _ in found.nodes}
        ours = {path: operator_of(node) for path, node in calls.items()}
        other = [path for path in ours | theirs if ours.get(path) != theirs.get(path)]
        if other:
            raise ToolchainError(
                f"{self._python} reads the program otherwise: {other[0]} is "
                f"{ours.get(other[0], 'missing')} here and {theirs.get(other[0], 'missing')} there"
            )

    def _note(self, calls: Mapping[str, Node], found: _Partition) -> None:
        for node in calls.values():
            logged = found.reasons.get(node.name) or found.reasons.get(operator_of(node))
            if TAG in node.meta or unit_of(node) is not node or not logged or noted(node):
                continue
            words = "; ".join(text for text, _ in logged)
            rule = logged[0][1].removeprefix("executorch.")
            note(node, rule, NodeOutcome.REJECTED, f"as the partitioner logged it: {words}")

    def _described(self, spec: _Spec) -> DelegationSpec:
        settings = [CompileSpec(key, _decoded(self._python, value)) for key, value in spec.settings]
        backend = BackendElsewhere(self._python, spec.backend, together=spec.together)
        return DelegationSpec(BackendOf.named(spec.backend, backend), settings)


@dataclass(frozen=True)
class _Part:
    method: str
    program: ExportedProgram
    settings: Sequence[CompileSpec]


class BackendElsewhere:
    """A backend that preprocesses in another interpreter.

    Args:
        python: the interpreter
        name: id of the backend
        together: whether it takes the partitions of all methods at once
    """

    def __init__(self, python: str, name: str, *, together: bool) -> None:
        self.__name__ = name
        self._python = python
        if together:
            self.preprocess_multimethod = self._all_methods

    def copy_exported_program_for_preprocess(
        self, edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> ExportedProgram:
        """Return a private copy of a program."""
        del compile_specs
        return isolated_copy(edge_program)

    def preprocess(
        self, edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        """Return the payload of a program."""
        (found,) = self._ask([_Part("forward", edge_program, compile_specs)], together=False)[
            "forward"
        ]
        return found

    def _all_methods(
        self,
        edge_programs: Mapping[str, Sequence[ExportedProgram]],
        compile_specs: Mapping[str, Sequence[Sequence[CompileSpec]]],
    ) -> dict[str, list[PreprocessResult]]:
        parts = [
            _Part(method, program, settings)
            for method, programs in edge_programs.items()
            for program, settings in zip(programs, compile_specs[method], strict=True)
        ]
        return self._ask(parts, together=True)

    def _ask(self, parts: Sequence[_Part], *, together: bool) -> dict[str, list[PreprocessResult]]:
        with tempfile.TemporaryDirectory() as folder:
            programs: list[dict[str, Any]] = []
            for number, one in enumerate(parts):
                own = Path(folder) / str(number)
                own.mkdir()
                write_program(one.program, own)
                settings = [
                    (each.key, base64.b64encode(each.value).decode()) for each in one.settings
                ]
                programs.append({"method": one.method, "folder": str(own), "settings": settings})
            what = {"backend": self.__name__, "programs": programs, "together": together}
            found = _ask(self._python, _Results, do="preprocess", folder=folder, **what)
            return {
                method: [_result(self._python, one, Path(folder)) for one in results]
                for method, results in found.items()
            }


def close_interpreters() -> None:
    """End the processes of all interpreters."""
    while _children:
        _children.popitem()[1].close()


def _ask(python: str, kind: Any, **question: Any) -> Any:  # noqa: ANN401
    """Return the answer of an interpreter, checked.

    Raises: ToolchainError with its reason
    """
    child = _children.get(python)
    if child is None:
        child = _children[python] = Interpreter(python)
    try:
        result = child.ask(question, _log).result
    except ReportedError as error:
        asked_wrong = error.blame == "usage"
        sentence = str(error) if asked_wrong else f"{python}: {error}"
        raise ToolchainError(sentence, blame=error.blame) from error
    except ToolchainError:
        _children.pop(python, None)
        child.close()
        raise
    try:
        return msgspec.convert(result, kind)
    except msgspec.ValidationError as error:
        raise _broken(python, str(error)) from None


def _log(kind: str, **content: Any) -> None:  # noqa: ANN401 - JSON
    if kind in ("log", "warning"):
        print(content.get("text", ""), file=sys.stderr)  # noqa: T201 - the log of the worker


def _broken(python: str, why: str) -> ToolchainError:
    return ToolchainError(f"the answer of {python} is damaged: {why}")


def _decoded(python: str, value: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _broken(python, str(error)) from None


def _result(python: str, found: _Result, folder: Path) -> PreprocessResult:
    handles: Any = None
    if found.handles is not None:
        handles = {key: tuple(values) for key, values in found.handles}
    data: NamedDataStoreOutput | None = None
    if found.data is not None:
        buffers = [_bytes(python, folder, number) for number in found.data.buffers]
        outside = {name: _entries(own) for name, own in found.data.outside.items()}
        data = NamedDataStoreOutput(buffers, _entries(found.data.inside), outside)
    payload = _bytes(python, folder, found.payload)
    return PreprocessResult(payload, handles, data, origins=found.origins or None)


def _entries(entries: _Entries) -> dict[str, DataEntry]:
    return {
        key: DataEntry(index, alignment, None if layout is None else TensorLayout(*layout))
        for key, (index, alignment, layout) in entries.items()
    }


def _bytes(python: str, folder: Path, number: int) -> bytes:
    path = folder / f"{number}.bin"
    try:
        if path.is_symlink() or path.stat().st_size > _MOST_BYTES:
            raise _broken(python, f"{path.name} is not a payload")
        return path.read_bytes()
    except OSError as error:
        raise _broken(python, f"{path.name}: {error.strerror}") from None


def _operator(name: str, overload: str) -> Any:  # noqa: ANN401 - an operator of torch, or None
    namespace, _, base = name.partition("::")
    with contextlib.suppress(AttributeError, RuntimeError):
        packet = getattr(getattr(torch.ops, namespace), base)
        return getattr(packet, overload or "default", None)
    return None


def _calls(module: torch.fx.GraphModule, path: str = "") -> Iterator[tuple[str, Node]]:
    for node in module.graph.nodes:
        if node.op == "call_function":
            yield f"{path}{node.name}", node
        elif node.op == "get_attr":
            inner: Any = getattr(module, str(node.target), None)
            if isinstance(inner, torch.fx.GraphModule):
                yield from _calls(inner, f"{path}{node.target}/")


def _tag(node: Node, tag: str | None) -> None:
    if tag is None:
        node.meta.pop(TAG, None)
    else:
        node.meta[TAG] = tag
