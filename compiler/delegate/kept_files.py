"""Files that a vendor's tools leave while they compile a partition."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from compiler.interface.backend import CompileSpec, PreprocessResult
from schema.backends import backend_of, resolve

_LARGEST = 64 << 20  # bytes of one file
_MOST = 100


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
        result.kept = _files(Path(folder))
    return result


def _files(folder: Path) -> dict[str, bytes]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())[:_MOST]
    by_content = {
        path.read_bytes(): path.relative_to(folder).as_posix()
        for path in reversed(paths)  # of equal files the first
        if path.stat().st_size <= _LARGEST
    }
    return {name: data for data, name in reversed(by_content.items())}
