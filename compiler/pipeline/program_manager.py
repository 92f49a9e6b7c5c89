"""The manager of an emitted program: its bytes, external files, maps and memory plans."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from torch.export import ExportedProgram

from compiler.emit.output import EmitterOutput, emitter_output
from compiler.emit.program import EmittedProgram
from compiler.emit.program_text import program_text
from compiler.memory.blocks import BlockPlacement
from compiler.memory.out_program import out_program
from compiler.partition.verdicts import verdicts_of
from compiler.record.record import ETRecord
from compiler.stages import StageEvent
from schema.etrecord.parts.verdicts import Verdict
from schema.objects.atomic_file import write_atomically
from schema.program import decode
from schema.program.program import ProgramFile

FORWARD = "forward"


class ProgramManager:
    """Programs and constant methods by name.

    Attributes:
        events: completed stages, with their times
    """

    def __init__(
        self,
        programs: Mapping[str, ExportedProgram],
        constants: Mapping[str, Any],
        events: tuple[StageEvent, ...],
    ) -> None:
        """Store programs and the values of constant methods, by method."""
        self._programs = dict(programs)
        self._constants = dict(constants)
        self.events = events

    @property
    def methods(self) -> set[str]:
        """Return the names of the methods that compute."""
        return set(self._programs)

    @property
    def config_methods(self) -> set[str]:
        """Return the names of the methods that return constants."""
        return set(self._constants)

    def _program(self, method: str) -> ExportedProgram:
        """Return the edge program of a method.

        Raises: KeyError listing the available methods
        """
        if method not in self._programs:
            names = ", ".join(sorted(self.methods))
            raise KeyError(f"unknown method {method!r}; available: {names}")
        return self._programs[method]


class ExecutorchProgramManager(ProgramManager):
    """An emitted program with its delegate and debug handle maps."""

    def __init__(
        self,
        emitted: EmittedProgram,
        programs: Mapping[str, ExportedProgram],
        constant_methods: Mapping[str, Any],
        *,
        record: ETRecord | None = None,
        events: tuple[StageEvent, ...] = (),
    ) -> None:
        """Store an emitted program.

        Args:
            emitted: its tables and segments
            programs: the edge programs it was emitted from, by method
            constant_methods: values by the name of the method that returns them
            record: of the edge programs, None if not requested
            events: completed stages, with their times
        """
        super().__init__(programs, constant_methods, events)
        self._emitted = emitted
        self._etrecord = None if record is None else self._recorded(record)

    def exported_program(self, method_name: str = FORWARD) -> ExportedProgram:
        """Return a method as a graph of out variants with their planned memory.

        Raises: KeyError listing the available methods
        """
        self._program(method_name)
        return out_program(self._emitted.planned[method_name])

    @property
    def buffer(self) -> bytes:
        """Return the bytes of the program file."""
        return self._emitted.buffer

    @property
    def called_operators(self) -> frozenset[str]:
        """Return the operators that the methods call, by name and overload."""
        plans = self._emitted.table.execution_plan
        return frozenset(one.full_name for plan in plans for one in plan.operators)

    @property
    def executorch_program(self) -> ProgramFile:
        """Return the program as its tables, read back from the bytes."""
        return decode(self.buffer)

    def dump_executorch_program(
        self,
        verbose: bool = False,
        out: IO[str] | None = None,
    ) -> None:
        """Print the methods with their values and instructions.

        Args:
            verbose: print every value, not only their number
            out: stream; standard output if None
        """
        text = program_text(self.executorch_program, verbose=verbose)
        print(text, file=out)

    @property
    def debug_handle_map(self) -> dict[str, dict[int, int | list[int]]]:
        """Return by method the debug handle of each instruction, all those inside a delegate."""
        return {name: dict(handles) for name, handles in self._emitted.debug_handles.items()}

    @property
    def delegate_map(self) -> dict[str, dict[int, dict[str, Any]]]:
        """Return by method the delegate maps of its delegate instructions."""
        return {name: dict(found.maps) for name, found in self._emitted.delegates.items()}

    @property
    def instruction_id_to_num_outs_map(self) -> dict[str, dict[int, int]]:
        """Return by method the number of outputs of its delegate instructions."""
        return {name: dict(found.results) for name, found in self._emitted.delegates.items()}

    @property
    def _emitter_output(self) -> EmitterOutput:
        """The emitter output, under the attribute that programs for ExecuTorch read."""
        return emitter_output(self._emitted)

    @property
    def _tensor_data(self) -> dict[str, bytes]:
        """The external files, by name without extension."""
        files = self._emitted.files()
        return {name.removesuffix(".ptd"): b"".join(parts) for name, parts in files.items()}

    @property
    def _config_methods(self) -> dict[str, Any]:
        """The values of constant methods, under the attribute that programs for ExecuTorch read."""
        return dict(self._constants)

    @property
    def verdicts(self) -> dict[str, tuple[Verdict, ...]]:
        """Return by method why each node was delegated or not."""
        return {name: verdicts_of(program) for name, program in self._programs.items()}

    @property
    def memory_plans(self) -> dict[str, BlockPlacement]:
        """Return by method the plan of its memory."""
        return {name: found.plan for name, found in self._emitted.planned.items()}

    def write_to_file(self, open_file: IO[bytes]) -> None:
        """Write the program file; weights are written without a copy."""
        self._emitted.write_to(open_file)

    def write_tensor_data_to_file(self, outdir: str | os.PathLike[str]) -> None:
        """Write the external files of constants and blobs, each atomically."""
        folder = Path(outdir)
        for name, parts in self._emitted.files().items():
            write_atomically(folder / name, _writing(parts))

    @property
    def tensor_data_files(self) -> tuple[str, ...]:
        """Return the names of the external files."""
        return tuple(self._emitted.files())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the program file atomically; its name has to end in ``.pte``.

        Raises: ValueError if the name ends otherwise
        """
        target = Path(path)
        if target.suffix != ".pte":
            raise ValueError(f"expected a file name ending in .pte, found {target.name}")
        write_atomically(target, self.write_to_file)

    def get_etrecord(self) -> ETRecord:
        """Return the ETRecord of this program.

        Raises: RuntimeError if none was requested
        """
        return requested_record(self._etrecord)

    def _recorded(self, edge: ETRecord) -> ETRecord:
        record = edge.copy()
        record.add_executorch_program(self)
        members = {name: found.members for name, found in self._emitted.delegates.items()}
        record.update_verdicts(self.verdicts, members)
        record.update_kept(
            {
                name: data
                for each in self._emitted.delegates.values()
                for name, data in each.kept.items()
            }
        )
        record.update_origins(
            {name: each.origins for name, each in self._emitted.delegates.items()}
        )
        return record


def requested_record(record: ETRecord | None) -> ETRecord:
    """Return a record.

    Raises: RuntimeError if it was not requested
    """
    if record is None:
        raise RuntimeError(
            "ETRecord was not generated: lower with to_edge(..., generate_etrecord=True)"
        )
    return record


def _writing(parts: list[Any]) -> Any:  # noqa: ANN401 - writes to a stream
    def write(stream: IO[bytes]) -> None:
        for part in parts:
            stream.write(part)

    return write
