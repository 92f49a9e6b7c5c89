"""Partitioners and backends written for the ``executorch`` package, in a process that has it.

They compare operators with the package's objects and return the package's classes.
They get a copy of the program translated to these, and their results are translated back. Nothing
is
imported here: a process with such a partitioner has already imported what it needs.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from torch.export import ExportedProgram

from compiler.dialect.copies import copied_graph, copied_root, isolated_copy, rebuilt
from compiler.dialect.ops import EdgeOp
from compiler.interface.backend import (
    BackendDetails,
    BackendNotFoundError,
    CompileSpec,
    PreprocessResult,
    find_backend,
)
from compiler.interface.lifted_scalars import show_scalars
from compiler.interface.named_data import DataEntry, NamedDataStoreOutput, TensorLayout
from compiler.interface.package_forms import for_backend, in_package_form
from compiler.interface.vendor_joins import following_vendor

_HOME = "executorch.exir."
_BACKENDS = f"{_HOME}backend.backend_details"
_PARTITIONERS = f"{_HOME}backend.partitioner"


class ForeignId(str):
    """Id of a backend that a partitioner of the package named."""

    __slots__ = ()


class BackendOf(ForeignId):
    """Id of a backend that a partitioner brings along.

    Attributes:
        backend: preprocesses its partitions
    """

    __slots__ = ("backend",)
    backend: Any

    @classmethod
    def named(cls, name: str, backend: Any) -> BackendOf:  # noqa: ANN401
        """Return the id of a backend."""
        found = cls(name)
        found.backend = backend
        return found

    def __deepcopy__(self, memo: dict[int, Any]) -> BackendOf:
        return self


def is_foreign(partitioner: object) -> bool:
    """Return whether a partitioner is one of the package's interface."""
    return any(base.__module__ == _PARTITIONERS for base in type(partitioner).__mro__)


def is_foreign_spec(spec: object) -> bool:
    """Return whether a value is a delegation spec of the stock package."""
    return type(spec).__module__ == _PARTITIONERS and type(spec).__name__ == "DelegationSpec"


def in_foreign_terms(program: ExportedProgram) -> ExportedProgram:
    """Return a copy with the package's operators; ours that it does not have keep their names."""
    root = copied_root(program.graph_module)
    graph = copied_graph(program.graph)
    inner = [m.graph for m in root.modules() if isinstance(m, torch.fx.GraphModule)]
    for each in (graph, *inner):
        _rename(each)
    show_scalars(program, graph)
    for module in root.modules():
        if isinstance(module, torch.fx.GraphModule):
            module.recompile()
    return rebuilt(program, root, graph, verifiers=[_verifier()])


def _rename(graph: torch.fx.Graph) -> None:
    dialect = getattr(sys.modules.get(f"{_HOME}dialects._ops"), "ops", None)
    for node in graph.nodes:
        if not isinstance(node.target, EdgeOp) or dialect is None:
            continue
        name = in_package_form(node.target.__name__, node)
        node.target = _foreign_op(dialect, name) or _foreign_op(dialect, str(node.target.op))


def _foreign_op(dialect: Any, name: str) -> Any:  # noqa: ANN401
    found: Any = dialect.edge
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _verifier() -> Any:  # noqa: ANN401 - a class of the package
    verifiers: Any = sys.modules.get(f"{_HOME}verification.verifier")
    configs: Any = sys.modules.get(f"{_HOME}capture._config")
    if verifiers is None or configs is None:
        raise NotImplementedError("the executorch package has no edge dialect in this process")
    unchecked = configs.EdgeCompileConfig(_check_ir_validity=False)
    return verifiers.EXIREdgeDialectVerifier(unchecked, class_only=True)


def own_spec(spec: Any) -> tuple[str, list[CompileSpec]]:  # noqa: ANN401
    """Return the id of the backend and the settings a foreign spec names."""
    return ForeignId(spec.backend_id), [CompileSpec(s.key, s.value) for s in spec.compile_specs]


def backend_called(backend_id: str) -> type[BackendDetails]:
    """Return the backend of an id: ours, or an imported one of the package.

    A partitioner of the package refers to the package's backend if both exist.

    Raises: BackendNotFoundError if no imported backend has that id
    """
    if isinstance(backend_id, BackendOf):
        return backend_id.backend
    base: Any = getattr(sys.modules.get(_BACKENDS), "BackendDetails", None)
    known: list[Any] = [] if base is None else base.__subclasses__()
    named = [one for one in reversed(known) if one.__name__ == backend_id]
    if named and isinstance(backend_id, ForeignId):
        return cast("Any", _Foreign(named[0]))
    try:
        return find_backend(backend_id)
    except BackendNotFoundError:
        if not named:
            raise
        return cast("Any", _Foreign(named[0]))


class _Foreign:
    """A backend of the package behind our interface."""

    def __init__(self, backend: Any) -> None:  # noqa: ANN401
        self.backend = backend
        self.__name__: str = backend.__name__
        if "preprocess_multimethod" in vars(backend):
            self.preprocess_multimethod = self._all_methods

    def copy_exported_program_for_preprocess(
        self, edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> ExportedProgram:
        """Return a program translated to the package that shares nothing with the given one."""
        del compile_specs
        return for_backend(self.__name__, in_foreign_terms(isolated_copy(edge_program)))

    def preprocess(
        self, edge_program: ExportedProgram, compile_specs: Sequence[CompileSpec]
    ) -> Any:  # noqa: ANN401 - whatever it returned is checked later
        """Return the result of the backend for a program."""
        with following_vendor(self.__name__, edge_program) as joins:
            found = self.backend.preprocess(edge_program, _foreign_specs(compile_specs))
        result = _own_result(found)
        if isinstance(result, PreprocessResult):
            made, handles = result.processed_bytes, result.debug_handle_map
            result.debug_handle_map, result.origins = joins.of(made, handles)
        return result

    def _all_methods(
        self,
        edge_programs: Mapping[str, Any],
        compile_specs: Mapping[str, Sequence[Sequence[CompileSpec]]],
    ) -> Any:  # noqa: ANN401
        specs = {name: [_foreign_specs(s) for s in each] for name, each in compile_specs.items()}
        results: Any = self.backend.preprocess_multimethod(dict(edge_programs), specs)
        if not isinstance(results, Mapping):
            return results
        found: Mapping[str, Any] = results  # pyright: ignore[reportUnknownVariableType]
        return {
            name: [*map(_own_result, cast("list[Any]", each))] if isinstance(each, list) else each
            for name, each in found.items()
        }


def _foreign_specs(specs: Sequence[CompileSpec]) -> list[Any]:
    module: Any = sys.modules[f"{_HOME}backend.compile_spec_schema"]
    return [module.CompileSpec(spec.key, spec.value) for spec in specs]


def _own_result(result: Any) -> Any:  # noqa: ANN401
    if type(result).__module__ != _BACKENDS or type(result).__name__ != "PreprocessResult":
        return result
    return PreprocessResult(
        result.processed_bytes,
        result.debug_handle_map,
        _own_data(result.data_store_output),
        getattr(result, "_delegate_info_meta", None),
    )


def _own_data(output: Any) -> Any:  # noqa: ANN401
    if not type(output).__module__.startswith(_HOME):
        return output
    external = {file: _own_entries(found) for file, found in output.external_data.items()}
    buffers = [_bytes_of(buffer) for buffer in output.buffers]
    return NamedDataStoreOutput(buffers, _own_entries(output.pte_data), external)


def _own_entries(entries: Mapping[str, Any]) -> dict[str, DataEntry]:
    return {
        key: DataEntry(entry.buffer_index, entry.alignment, _own_layout(entry.tensor_layout))
        for key, entry in entries.items()
    }


def _own_layout(layout: Any) -> TensorLayout | None:  # noqa: ANN401
    if layout is None:
        return None
    return TensorLayout(int(layout.scalar_type), tuple(layout.sizes), tuple(layout.dim_order))


def _bytes_of(buffer: Any) -> bytes:  # noqa: ANN401
    if isinstance(buffer, (bytes, bytearray)):
        return bytes(buffer)
    return buffer.to_bytes()  # of a file
