"""Files of a run: outputs, traces and debug buffer, the outputs first."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from inspector.jobs.executing import (
    BUFFER,
    DEBUG_LEVELS,
    INPUTS,
    OUTPUTS,
    TRACE,
    VALUES,
    RunJob,
)
from inspector.jobs.output_folder import disk_reason, unwritten
from runtime import DebugFilter, DebugLevel, EventTracer
from runtime.tracing.sinks import ALIGNMENT, FileSink
from schema import etdump
from schema.dtypes.scalar_type import tensor_nbytes
from schema.etdump import DebugEvent

_SPARE = 1 << 16  # bytes reserved for the files written last
_LEAST_FIRST = ((INPUTS,), (VALUES, BUFFER), (TRACE,))  # what is given up for the report
_TAIL = bytes(ALIGNMENT)  # zeros at the end, by which a debug buffer is known without its trace


class NotWrittenError(Exception):
    """A disk error.

    Attributes:
        error: of the system
    """

    def __init__(self, path: Path, error: OSError, nbytes: int | None = None) -> None:
        """Name the file.

        Args:
            path: of the file
            error: of the system
            nbytes: size of the file, None where it is unknown
        """
        self.error = error
        super().__init__(unwritten(path, error, nbytes))


class Recording:
    """The traces of timed runs and of the run that logs values, whose tensors go to the folder.

    A full disk ends the logging, not the run; the debug buffer is then truncated to free space
    for the outputs and the traces. If these do not fit either, only the outputs are kept.

    Attributes:
        timed: tracer of the timed runs; None if none are recorded
        values: tracer of the run that logs values; None without one
    """

    def __init__(self, folder: Path, job: RunJob, chosen: DebugFilter) -> None:
        """Open the files.

        Args:
            folder: for the files
            job: which runs are recorded, and whose values
            chosen: which intermediate values those are

        Raises: NotWrittenError if the disk is full already
        """
        self._folder = folder
        self._buffer = folder / BUFFER
        self._inputs = b""
        self._refused: OSError | None = None
        self._cut = False  # the debug buffer
        self._wanted: dict[str, int] = {}  # bytes of each file
        self.timed = EventTracer() if job.records_times else None
        self.values: EventTracer | None = None
        if not job.logs_values:
            return
        try:
            self._sink = FileSink(self._buffer)
        except OSError as error:
            raise NotWrittenError(self._buffer, error) from error
        level = DebugLevel(DEBUG_LEVELS.index(job.debug_level))
        self.values = EventTracer(level, sink=self._sink, only=chosen)

    @property
    def tracers(self) -> tuple[EventTracer, ...]:
        """Return the tracers that there are."""
        return tuple(one for one in (self.timed, self.values) if one is not None)

    @property
    def logged_bytes(self) -> int:
        """Return the bytes of values so far."""
        return self._sink.size if self.values is not None else 0

    def hold_inputs(self, inputs: Sequence[Any]) -> None:
        """Store the inputs of the runs; they are written last, if space permits."""
        self._inputs = _saved(inputs)

    def leave_out_values(self) -> None:
        """Remove the trace of values, for which there was no run."""
        if self.values is not None:
            self._sink.close()
            self._buffer.unlink(missing_ok=True)
        self.values, self._inputs = None, b""

    def write(self, outputs: Sequence[Any]) -> dict[str, Any]:
        """Write all files; return the state of the traces.

        Raises: NotWrittenError if not even the outputs can be written
        """
        state = self._write(outputs)
        return state | {"failure": self._failure()}

    def _write(self, outputs: Sequence[Any]) -> dict[str, Any]:
        files = {OUTPUTS: _saved(outputs)}
        timed = self.timed.trace() if self.timed is not None else etdump.dump(())
        if self.timed is not None:
            files[TRACE] = etdump.encode(timed)
        if self.values is None:
            return self._state(timed if self._all_written(files) else etdump.dump(()))
        self._sink.close()
        self._refused = self._sink.error
        self._cut = self._refused is not None
        self._wanted[BUFFER] = self._sink.size
        if self._inputs:
            self._wanted[INPUTS] = len(self._inputs)
        logged = self._left(files, self.values.trace())
        debug_bytes = self._end_with_zeros()
        if self._inputs and self._refused is None:
            try:  # the last one: inputs can be passed again
                _write(self._folder / INPUTS, self._inputs)
            except NotWrittenError as error:
                self._refused = error.error
                (self._folder / INPUTS).unlink(missing_ok=True)
        return self._state(timed if self.timed is not None else logged, debug_bytes)

    def _state(self, dump: etdump.ETDump, debug_bytes: int = 0) -> dict[str, Any]:
        return {
            "events": sum(len(run.events) for run in dump.run_data),
            "debug_bytes": debug_bytes,
        }

    def _failure(self) -> str:
        """Return which files are missing or end early for lack of space, empty if none does."""
        if self._refused is None:
            return ""
        lost = [name for name in self._wanted if not (self._folder / name).exists()]
        cut = [BUFFER] if self._cut and BUFFER not in lost else []
        found = [f"{name} ends early" for name in cut]
        if lost:
            found.append(f"{_listed(lost)} {'are' if len(lost) > 1 else 'is'} missing")
        needed = sum(self._wanted[name] for name in (*lost, *cut))
        return f"{', '.join(found)}: {disk_reason(self._refused, needed)}"

    def _all_written(self, files: Mapping[str, bytes]) -> bool:
        """Write files, else the outputs alone; return whether all were written.

        Raises: NotWrittenError if not even the outputs can be written
        """
        try:
            self._put(files)
        except NotWrittenError as error:
            _write(self._folder / OUTPUTS, files[OUTPUTS])
            if len(files) == 1:
                raise
            self._refused = error.error
            return False
        return True

    def _left(self, files: dict[str, bytes], dump: etdump.ETDump) -> etdump.ETDump:
        """Write all files; return the trace of values that fits.

        First with the complete debug buffer, then with a part of it, with none of it, and finally
        without any trace.
        """
        requested = sum(map(len, files.values())) + len(etdump.encode(dump)) + _SPARE
        if self._refused is not None:
            dump = self._make_room(dump, requested)
        for room in (requested, self._buffer.stat().st_size):
            try:
                self._put({**files, VALUES: etdump.encode(dump)})
            except NotWrittenError as error:
                self._refused, self._cut = error.error, True
                dump = self._make_room(dump, room)
            else:
                return dump
        written = self._all_written({**files, VALUES: etdump.encode(dump)})
        return dump if written else etdump.dump(())

    def _put(self, files: Mapping[str, bytes]) -> None:
        """Write all files or none but the outputs."""
        self._wanted |= {name: len(data) for name, data in files.items()}
        try:
            for name, data in files.items():
                _write(self._folder / name, data)
        except NotWrittenError:
            for name in files:
                if name != OUTPUTS:
                    (self._folder / name).unlink(missing_ok=True)
            raise

    def make_room(self, error: NotWrittenError) -> dict[str, Any]:
        """Remove the inputs, else the values, else the trace; return what changed of the state.

        Raises: the error if nothing is left to remove
        """
        there = [name for name in _LEAST_FIRST if (self._folder / name[0]).exists()]
        if not there:
            raise error
        for name in there[0]:
            with contextlib.suppress(OSError):
                (self._folder / name).unlink()
        self._refused = error.error
        kept = {} if BUFFER not in there[0] else {"debug_bytes": 0}
        events = {"events": 0} if TRACE in there[0] or self.timed is None else {}
        return {**kept, **events, "failure": self._failure()}

    def close(self) -> None:
        """Close the debug buffer's file."""
        if self.values is not None:
            self._sink.close()

    def _make_room(self, dump: etdump.ETDump, requested: int) -> etdump.ETDump:
        """Cut the debug buffer; return the trace without the removed values."""
        size = self._buffer.stat().st_size
        dump = _within(dump, size - requested)
        ends = [_end(event) for run in dump.run_data for event in run.events]
        with contextlib.suppress(OSError):
            os.truncate(self._buffer, max(ends, default=0))
        return dump

    def _end_with_zeros(self) -> int:
        """Return the bytes of the finished debug buffer; an empty file is removed."""
        with contextlib.suppress(OSError):
            if self._buffer.stat().st_size:
                with self._buffer.open("ab") as stream:
                    stream.write(_TAIL)
            else:
                self._buffer.unlink()
        return self._buffer.stat().st_size if self._buffer.exists() else 0


def _within(dump: etdump.ETDump, size: int) -> etdump.ETDump:
    """Return a trace without the values that lie beyond a shorter debug buffer."""
    return etdump.dump(
        etdump.run(
            run.name,
            [event for event in run.events if _end(event) <= max(size, 0)],
            bundled_input_index=run.bundled_input_index,
            allocators=run.allocators,
        )
        for run in dump.run_data
    )


def _end(event: etdump.AnyEvent) -> int:
    """Return where in the debug buffer the last tensor of an event ends, 0 without any."""
    if not isinstance(event, DebugEvent) or event.value is None:
        return 0
    tensors = event.value.all_tensors()
    return max(
        (one.offset + tensor_nbytes(one.scalar_type, one.sizes) for one in tensors), default=0
    )


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _saved(outputs: Sequence[Any]) -> bytes:
    stream = io.BytesIO()
    torch.save(list(outputs), stream)
    return stream.getvalue()


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise NotWrittenError(path, error, len(data)) from error
