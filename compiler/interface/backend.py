"""The backend interface: compile specs and an edge program in, a payload out."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias, cast

from torch.export import ExportedProgram

from compiler.dialect.copies import isolated_copy
from compiler.errors import CompileError
from compiler.interface.named_data import NamedDataStoreOutput

DebugHandleMap: TypeAlias = Mapping[Any, Sequence[int]]  # keys are all integers or all strings


@dataclass
class CompileSpec:
    """A compile spec of a backend: a key and raw bytes, both written to the program file."""

    key: str
    value: bytes


@dataclass
class PreprocessResult:
    """The result of a backend for an edge program.

    Attributes:
        processed_bytes: the payload
        debug_handle_map: debug handles by identifier that the delegate logs
        data_store_output: blobs the payload looks up by key
        _delegate_info_meta: backend data, stored in the lowered module
        origins: names of nodes by the same identifiers; several nodes may
            share a debug handle, so names are more precise
        kept: files that the vendor's tools have left, by name
    """

    processed_bytes: bytes = b""
    debug_handle_map: DebugHandleMap | None = None
    data_store_output: NamedDataStoreOutput | None = None
    _delegate_info_meta: Any = None
    origins: Mapping[str, Sequence[str]] | None = None
    kept: Mapping[str, bytes] | None = None

    @property
    def delegate_info_meta(self) -> Any:  # noqa: ANN401 - the backend's own
        """Return the metadata that the backend attaches to the lowered module."""
        return self._delegate_info_meta


class BackendDetails(ABC):
    """Base of every backend; the name of the class is the backend's id.

    Attributes:
        concurrent: several partitions may be in ``preprocess`` at once, in threads
    """

    concurrent: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:  # noqa: ANN401
        """Reject a subclass of another backend.

        Raises: TypeError naming both
        """
        super().__init_subclass__(**kwargs)
        for base in cls.__bases__:
            if issubclass(base, BackendDetails) and base is not BackendDetails:
                raise TypeError(
                    f"ExecuTorch delegate doesn't support nested backend, '{base.__name__}' should "
                    "be a final backend implementation and should not be subclassed (attempted "
                    f"by '{cls.__name__}')."
                )

    @classmethod
    def copy_exported_program_for_preprocess(
        cls, edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> ExportedProgram:
        """Return a program that ``preprocess`` may change as it likes."""
        del compile_specs
        return isolated_copy(edge_program)

    @classmethod
    def prepare(cls, edge_programs: Sequence[ExportedProgram], outside: Collection[str]) -> None:
        """Look at all partitions of a method before ``preprocess`` is given each of them.

        Args:
            edge_programs: the partitions; only metadata of their nodes may change
            outside: names of the constants that nodes outside of all partitions read too
        """
        del edge_programs, outside

    @staticmethod
    @abstractmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        """Return the payload of an edge program, which is a private copy.

        Args:
            edge_program: flat graph; weights are placeholders
            compile_specs: settings
        """

    @classmethod
    def preprocess_multimethod(
        cls,
        edge_programs: dict[str, list[ExportedProgram]],
        compile_specs: dict[str, list[list[CompileSpec]]],
    ) -> dict[str, list[PreprocessResult]]:
        """Return the payloads of all parts of all methods, in order.

        A backend that shares data between them does it here; this does one after the other.
        """
        return {
            method: [
                cls.preprocess(program, specs)
                for program, specs in zip(programs, compile_specs[method], strict=True)
            ]
            for method, programs in edge_programs.items()
        }


class CompileSpecError(CompileError, TypeError):
    """Invalid compile specs."""


class BackendNotFoundError(CompileError, NotImplementedError):
    """A backend that was never imported; documented as a NotImplementedError."""


def backends() -> Iterator[type[BackendDetails]]:
    """Yield every backend that has been imported, the newest of a name first."""
    yield from reversed(BackendDetails.__subclasses__())


def find_backend(backend_id: str) -> type[BackendDetails]:
    """Return the backend of an id.

    Raises: BackendNotFoundError if no imported backend has that id
    """
    for backend in backends():
        if backend.__name__ == backend_id:
            return backend
    known = ", ".join(sorted({backend.__name__ for backend in backends()})) or "none"
    raise BackendNotFoundError(
        f"Backend {backend_id} was not found. A class of that name has to be imported where its "
        f"partitioner is; available: {known}"
    )


def has_own_multimethod(backend: type[BackendDetails]) -> bool:
    """Return whether a backend preprocesses all partitions of all methods together."""
    return "preprocess_multimethod" in vars(backend)


def why_no_settings(specs: Any) -> str:  # noqa: ANN401 - of users
    """Return why a value is not a list of compile specs, empty for a valid one."""
    if not isinstance(specs, (list, tuple)):
        return f"compile_specs is {specs!r}, not a list of CompileSpec"
    for spec in cast("list[Any]", specs):
        if not isinstance(spec, CompileSpec):
            return f"{spec!r} is not a CompileSpec"
        if not isinstance(cast("Any", spec.key), str):
            return f"{spec!r} needs a string as key"
    return ""


def value_of_spec(spec: CompileSpec, backend_id: str) -> bytes:
    """Return the value of a setting as stored in a program file; None is empty.

    Other values are possible as long as the program is not written to a file.

    Raises: CompileSpecError naming the backend and the setting if the value is not bytes
    """
    value = cast("Any", spec.value)
    if value is None or value == "":
        return b""
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    raise CompileSpecError(
        f"setting {spec.key!r} of {backend_id} is {value!r}, a {type(value).__name__}; a program "
        "file stores bytes: encode it, as in b'text' or struct.pack('<i', 1)"
    )


def copied_specs(specs: Sequence[CompileSpec]) -> list[CompileSpec]:
    """Return a deep copy of compile specs.

    Raises: CompileSpecError for anything else
    """
    why = why_no_settings(specs)
    if why:
        raise CompileSpecError(f"settings of a backend: {why}")
    return copy.deepcopy(list(specs))
