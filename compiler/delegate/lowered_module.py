"""A lowered partition: its original program and the payload of a backend."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from compiler.dialect.delegate_call import executorch_call_delegate
from compiler.errors import CompileError
from compiler.interface.backend import CompileSpec, PreprocessResult
from compiler.interface.named_data import NamedDataStoreOutput
from compiler.memory.specs import is_static


class LoweredBackendModule(torch.nn.Module):
    """A lowered submodule: called it runs the original program, exported it becomes a delegate.

    Attributes:
        meta: ``debug_handle_map`` of the payload, and further data of the backend
    """

    def __init__(
        self,
        edge_program: ExportedProgram,
        backend_id: str,
        processed_bytes: bytes,
        compile_specs: list[CompileSpec],
        named_data_store_output: NamedDataStoreOutput | None = None,
    ) -> None:
        super().__init__()
        self._original_program = edge_program
        self._backend_id = backend_id
        self._processed_bytes = processed_bytes
        self._compile_specs = compile_specs
        self._named_data = named_data_store_output
        self.meta: dict[str, Any] | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> LoweredBackendModule:
        """Return a module with the same program and payload, which are immutable."""
        built = LoweredBackendModule(
            self._original_program,
            self._backend_id,
            self._processed_bytes,
            copy.deepcopy(self._compile_specs, memo),
            self._named_data,
        )
        built.meta = None if self.meta is None else dict(self.meta)
        return built

    @property
    def backend_id(self) -> str:
        """Return the id of the backend."""
        return self._backend_id

    @property
    def processed_bytes(self) -> bytes:
        """Return the payload."""
        return self._processed_bytes

    @property
    def compile_specs(self) -> list[CompileSpec]:
        """Return the compile specs of the payload."""
        return self._compile_specs

    @property
    def original_module(self) -> ExportedProgram:
        """Return the original program of the partition."""
        return self._original_program

    @property
    def named_data_store_output(self) -> NamedDataStoreOutput | None:
        """Return the blobs the payload looks up by key."""
        return self._named_data

    def forward(self, *args: Any) -> Any:  # noqa: ANN401
        """Run the original program; traced, this is one call of a delegate."""
        return executorch_call_delegate(self, *args)

    def fake_results(self, args: Sequence[Any]) -> Any:  # noqa: ANN401
        """Return empty results of the expected shapes, None if a size is symbolic.

        Raises: CompileError if the shape of an input differs from that of the payload
        """
        program = self._original_program
        values = {node.name: node.meta.get("val") for node in program.graph.nodes}
        requested = [values[name] for name in _names(program.graph_signature.user_inputs)]
        built = [values[name] for name in _names(program.graph_signature.user_outputs)]
        tensors: list[Any] = [v for v in (*requested, *built) if isinstance(v, torch.Tensor)]
        if len(tensors) < len(requested) + len(built) or not all(map(is_static, tensors)):
            return None
        _check_inputs(self._backend_id, pytree.tree_leaves(list(args)), requested)
        results = [torch.empty_strided(v.shape, v.stride(), dtype=v.dtype) for v in built]
        spec = program.call_spec.out_spec
        return results if spec is None else spec.unflatten(results)

    def program(self, emit_stacktrace: bool = False, memory_planning: Any = None) -> Any:  # noqa: ANN401
        """Return a program whose only instruction calls this delegate.

        Args:
            emit_stacktrace: write source lines into it
            memory_planning: planner of inputs and results
        """
        from schema.program import decode

        alone = self._alone(emit_stacktrace=emit_stacktrace, memory_planning=memory_planning)
        return decode(alone.buffer)

    def buffer(
        self,
        extract_delegate_segments: bool = False,
        segment_alignment: int = 128,
        constant_tensor_alignment: int | None = None,
        delegate_alignment: int | None = None,
        memory_planning: Any = None,  # noqa: ANN401
    ) -> bytes:
        """Return the bytes of a program file whose only instruction calls this delegate.

        Args:
            extract_delegate_segments: store the payload in a segment instead of in the tables
            segment_alignment: bytes; where a segment may start in the file
            constant_tensor_alignment: bytes; where a constant may start
            delegate_alignment: bytes; where the payload may start
            memory_planning: planner of inputs and results
        """
        return self._alone(
            extract_delegate_segments=extract_delegate_segments,
            segment_alignment=segment_alignment,
            constant_tensor_alignment=constant_tensor_alignment,
            delegate_alignment=delegate_alignment,
            memory_planning=memory_planning,
        ).buffer

    def _alone(self, **options: Any) -> Any:  # noqa: ANN401
        # Emission reads lowered modules, so this module cannot import it when it is loaded.
        from compiler.delegate.calling_program import calling_program
        from compiler.emit.config import ExecutorchBackendConfig
        from compiler.emit.program import emit_program
        from compiler.stages import Stages

        planning = options.pop("memory_planning")
        given = {name: value for name, value in options.items() if value is not None}
        if planning is not None:
            given["memory_planning_pass"] = planning
        config = ExecutorchBackendConfig(**given)
        return emit_program({"forward": calling_program(self)}, {}, config, Stages())


def lowered_module(
    program: ExportedProgram,
    backend_id: str,
    specs: list[CompileSpec],
    result: PreprocessResult,
) -> LoweredBackendModule:
    """Return the module of a backend's result."""
    built = LoweredBackendModule(
        program, backend_id, bytes(result.processed_bytes), specs, result.data_store_output
    )
    built.meta = {"debug_handle_map": result.debug_handle_map}
    if result.origins:
        built.meta["origins"] = result.origins
    if result.kept:
        built.meta["kept"] = result.kept
    if result.delegate_info_meta is not None:
        built.meta["_delegate_info_meta"] = result.delegate_info_meta
    return built


def _names(given: Iterable[Any]) -> list[str]:
    return [name for name in given if isinstance(name, str)]


def _check_inputs(backend_id: str, args: Sequence[Any], requested: Sequence[Any]) -> None:
    given = [tuple(a.shape) if isinstance(a, torch.Tensor) else type(a).__name__ for a in args]
    shapes = [tuple(value.shape) for value in requested]
    if given != shapes:
        raise CompileError(
            f"a module lowered to {backend_id} expects inputs of shapes {shapes}, found {given}"
        )
