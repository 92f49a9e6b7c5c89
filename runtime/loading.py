"""Bytes of programs and data files: read, or mapped where they are large."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from runtime.errors import ErrorCode, ExecutionError
from runtime.giving_back import known_file
from schema import bundled, flat_tensor
from schema import program as pte
from schema.errors import FormatError
from schema.garbage import uncollected

Data = bytes | bytearray | memoryview | BinaryIO | Path | str
Buffer = bytes | bytearray | memoryview | mmap.mmap
_MAPPED_FROM = 64 << 20  # a mapped file that is rewritten in place kills the process that reads it


def read(data: Data) -> tuple[memoryview, str]:
    """Return the bytes of a program and where they come from, empty for bytes.

    Raises: ExecutionError AccessFailed for a path that cannot be read; TypeError for anything else
    """
    if isinstance(data, Path | str):
        return memoryview(_file(Path(data))), str(data)
    if isinstance(data, bytes | bytearray | memoryview):
        # A bytearray could be resized under the tensors that view into it.
        return memoryview(bytes(data) if isinstance(data, bytearray) else data), ""
    reader = getattr(data, "read", None)
    if reader is None:
        raise TypeError(
            "Expected data to be bytes, bytearray, a path to a .pte file, or a file-like object, "
            f"but got {type(data).__name__}."
        )
    return memoryview(reader()), ""


def _file(path: Path) -> Buffer:
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < _MAPPED_FROM:
                return file.read()
            # Copy on write: no kernel can reach the file, whatever a program makes it do.
            return known_file(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    except OSError as error:
        reason = f"{path} cannot be read: {error.strerror or error}"
        raise ExecutionError(ErrorCode.AccessFailed, reason) from None


def decode_program(data: memoryview, file: str) -> pte.Program:
    """Return the tables of a program, or of the one inside a bundled program.

    Raises: ExecutionError InvalidProgram
    """
    try:
        with uncollected():
            if bundled.sniff(bytes(data[:8])):
                return pte.decode(bundled.decode(data, file=file).program, file=file)
            return pte.decode(data, file=file)
    except FormatError as error:
        raise ExecutionError(ErrorCode.InvalidProgram, str(error)) from None


def load_data_files(paths: Sequence[Data]) -> list[flat_tensor.FlatTensor]:
    """Return data files.

    Raises: ExecutionError AccessFailed, InvalidExternalData
    """
    files: list[flat_tensor.FlatTensor] = []
    for path in paths:
        data, file = read(path)
        try:
            files.append(flat_tensor.decode(data, file=file))
        except FormatError as error:
            raise ExecutionError(ErrorCode.InvalidExternalData, str(error)) from None
    return files
