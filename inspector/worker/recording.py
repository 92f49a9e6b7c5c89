"""Files of a run: outputs, trace and debug buffer, the outputs first."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from inspector.jobs.executing import BUFFER, DEBUG_LEVELS, INPUTS, OUTPUTS, TRACE
from runtime import DebugFilter, DebugLevel, EventTracer
from runtime.tracing.sinks import ALIGNMENT, FileSink
from schema import etdump
from schema.dtypes.scalar_type import tensor_nbytes
from schema.etdump import DebugEvent

_SPARE = 1 << 16  # bytes reserved for the files written last
_TAIL = bytes(ALIGNMENT)  # zeros at the end, by which a debug buffer is known without its trace


class NotWrittenError(Exception):
    """A disk error.

    Attributes:
        reason: message of the system
    """

    def __init__(self, name: str, error: OSError) -> None:
        self.reason = error.strerror or str(error)
        super().__init__(f"{name} cannot be written: {self.reason}")


class Recording:
    """The trace of a run, whose logged tensors are streamed to the folder.

    A full disk ends the logging, not the run; the debug buffer is then truncated to free space
    for the outputs and the trace. If the trace does not fit either, only the outputs are kept.

    Attributes:
        tracer: for the program; None if nothing is recorded
    """

    def __init__(
        self, folder: Path, level: str, chosen: DebugFilter, *, traced: bool = True
    ) -> None:
        """Begin.

        Args:
            folder: for the files
            level: whose values are recorded
            chosen: which intermediate values those are
            traced: whether anything is recorded

        Raises: NotWrittenError if the disk is full already
        """
        self._folder = folder
        self._buffer = folder / BUFFER
        self._inputs = b""
        self._failure = ""
        self.tracer: EventTracer | None = None
        if not traced:
            return
        try:
            self._sink = FileSink(self._buffer)
        except OSError as error:
            raise NotWrittenError(BUFFER, error) from error
        self.tracer = EventTracer(
            DebugLevel(DEBUG_LEVELS.index(level)), sink=self._sink, only=chosen
        )

    def hold_inputs(self, inputs: Sequence[Any]) -> None:
        """Store the inputs of the runs; they are written last, if space permits."""
        self._inputs = _saved(inputs)

    def write(self, outputs: Sequence[Any]) -> dict[str, Any]:
        """Write everything; return the state of the trace.

        Raises: NotWrittenError if not even the outputs can be written
        """
        saved = _saved(outputs)
        if self.tracer is None:
            _write(self._folder / OUTPUTS, saved)
            return {"events": 0, "debug_bytes": 0, "failure": ""}
        self._sink.close()
        reason = self._sink.failure.rpartition(": ")[2]
        self._failure = f"{BUFFER} ends early: {reason}" if reason else ""
        dump = self._left(saved, self.tracer.trace())
        debug_bytes = self._end_with_zeros()
        if self._inputs and not self._failure:
            with contextlib.suppress(
                NotWrittenError
            ):  # all other files exist, and inputs can be passed again
                _write(self._folder / INPUTS, self._inputs)
        return {
            "events": sum(len(run.events) for run in dump.run_data),
            "debug_bytes": debug_bytes,
            "failure": self._failure,
        }

    def _left(self, saved: bytes, dump: etdump.ETDump) -> etdump.ETDump:
        """Write outputs and trace; return the trace that fits.

        First with the complete debug buffer, then with a part of it, with none of it, and finally
        without the trace.
        """
        trace = etdump.encode(dump)
        wanted = len(saved) + len(trace) + _SPARE
        if self._failure:
            dump = self._make_room(dump, wanted)
        for room in (wanted, self._buffer.stat().st_size):
            try:
                self._put(saved, dump)
            except NotWrittenError as error:
                self._failure = f"{BUFFER} ends early: {error.reason}"
                dump = self._make_room(dump, room)
            else:
                return dump
        try:
            self._put(saved, dump)
        except NotWrittenError as error:
            _write(self._folder / OUTPUTS, saved)
            self._failure = f"{TRACE} is missing: {error.reason}"
            return etdump.dump(())
        return dump

    def _put(self, saved: bytes, dump: etdump.ETDump) -> None:
        try:
            _write(self._folder / OUTPUTS, saved)
            _write(self._folder / TRACE, etdump.encode(dump))
        except NotWrittenError:
            (self._folder / TRACE).unlink(missing_ok=True)
            raise

    def drop_trace(self, reason: str) -> dict[str, Any]:
        """Remove the trace for lack of space; return the result."""
        (self._folder / TRACE).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._buffer.unlink()
        return {"events": 0, "debug_bytes": 0, "failure": f"{TRACE} is missing: {reason}"}

    def close(self) -> None:
        """Close the debug buffer's file."""
        if self.tracer is not None:
            self._sink.close()

    def _make_room(self, dump: etdump.ETDump, wanted: int) -> etdump.ETDump:
        """Cut the debug buffer; return the trace without the removed values."""
        size = self._buffer.stat().st_size
        dump = _within(dump, size - wanted)
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


def _saved(outputs: Sequence[Any]) -> bytes:
    stream = io.BytesIO()
    torch.save(list(outputs), stream)
    return stream.getvalue()


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise NotWrittenError(path.name, error) from error
