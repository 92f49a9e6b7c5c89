"""Bytes of programs and data files: read, or mapped where they are large."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from runtime.errors import ErrorCode, ExecutionError
from runtime.program.loaders import DataLoader, FileDataLoader, LoadMode, loader_of
from schema import bundled, flat_tensor
from schema import program as pte
from schema.errors import FormatError
from schema.files.vendor_models import is_vendor_model, vendor_program
from schema.objects.cyclic_gc import gc_suspended

Data = bytes | bytearray | memoryview | BinaryIO | Path | str | DataLoader
_MAPPED_FROM = 64 << 20  # a mapped file that is rewritten in place kills the process that reads it


def read(data: Data, mode: LoadMode | None = None) -> tuple[memoryview, str]:
    """Return the bytes of a program and the name of their file, empty for bytes.

    Args:
        data: the bytes, a path, a file object or a loader
        mode: how a path is loaded; None reads small files and maps large ones

    Raises: ExecutionError AccessFailed for a path that cannot be read, NotSupported for one that
        cannot be locked; TypeError for anything else
    """
    if isinstance(data, Path | str) and is_vendor_model(data):
        return _vendor_program(data), str(data)
    if isinstance(data, Path | str):
        data = loader_of(data, mode or _mode_of(data))
    if isinstance(data, DataLoader):
        return memoryview(data.load(0, data.size())), data.name
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


def _vendor_program(path: Path | str) -> memoryview:
    try:
        return vendor_program(path)
    except FormatError as error:
        raise ExecutionError(ErrorCode.InvalidProgram, str(error)) from None
    except OSError as error:
        raise ExecutionError(ErrorCode.AccessFailed, f"{path}: {error.strerror}") from None


def _mode_of(path: Path | str) -> LoadMode:
    large = FileDataLoader(path).size() >= _MAPPED_FROM
    return LoadMode.Mmap if large else LoadMode.File


def decode_program(data: memoryview, file: str) -> pte.ProgramFile:
    """Return the tables of a program, or of the one inside a bundled program.

    Raises: ExecutionError InvalidProgram
    """
    try:
        with gc_suspended():
            if bundled.sniff(bytes(data[:8])):
                return pte.decode(bundled.decode(data, file=file).program, file=file)
            return pte.decode(data, file=file)
    except FormatError as error:
        raise ExecutionError(ErrorCode.InvalidProgram, str(error)) from None


def load_data_files(
    paths: Sequence[Data], mode: LoadMode | None = None
) -> list[flat_tensor.FlatTensor]:
    """Return data files.

    Args:
        paths: the files, or their bytes
        mode: how paths are loaded, see `read`

    Raises: ExecutionError AccessFailed, InvalidExternalData
    """
    files: list[flat_tensor.FlatTensor] = []
    for path in paths:
        data, file = read(path, mode)
        try:
            files.append(flat_tensor.decode(data, file=file))
        except FormatError as error:
            raise ExecutionError(ErrorCode.InvalidExternalData, str(error)) from None
    return files
