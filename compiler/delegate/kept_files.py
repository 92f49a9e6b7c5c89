"""Files that a vendor's tools leave while they compile a partition."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from compiler.interface.backend import CompileSpec, PreprocessResult
from schema.backends import backend_of, resolve

_LARGEST = 64 << 20  # bytes of one file
_MOST = 100
_LEFT_OUT = (".npz",)  # Vela's arrays, of which the payload is made


def with_kept_files(
    backend_id: str,
    specs: Sequence[CompileSpec],
    run: Callable[[list[CompileSpec]], PreprocessResult],
) -> PreprocessResult:
    """Return the result of a backend, with the files that its tools have left."""
    keeper = backend_of(backend_id).keeper
    if not keeper:
        return run(list(specs))
    with tempfile.TemporaryDirectory() as folder:
        result = run(resolve(keeper)(specs, folder))
        result.kept = _files(Path(folder), result.processed_bytes)
    return result


def _files(folder: Path, payload: bytes) -> dict[str, bytes]:
    """Return the files of a folder by name, once each, without copies of the payload."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())[:_MOST]
    by_content = {
        _content(path, folder): path.relative_to(folder).as_posix()
        for path in reversed(paths)  # of equal files the first
        if path.stat().st_size <= _LARGEST and path.suffix not in _LEFT_OUT
    }
    return {name: data for data, name in reversed(by_content.items()) if data != payload}


def _content(path: Path, folder: Path) -> bytes:
    """Return a file; in a text without the name of the folder, which differs with each compile."""
    data = path.read_bytes()
    return data if b"\0" in data else data.replace(f"{folder}/".encode(), b"")
