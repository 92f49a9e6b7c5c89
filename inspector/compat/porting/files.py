"""Scripts and notebooks as files: found below folders, read and ported."""

from __future__ import annotations

import codecs
import io
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from inspector.compat.porting.notebooks import port_notebook
from inspector.compat.porting.port import Ported, port_source
from schema.errors import FormatError

_SUFFIXES = (".py", ".ipynb")
_NOT_OWN = {"__pycache__", "node_modules", "site-packages", "venv"}


@dataclass(frozen=True, slots=True)
class PortedFile:
    """A ported file.

    Attributes:
        path: of the script or notebook
        ported: its source and names
        data: the bytes after porting, in the original encoding
    """

    path: Path
    ported: Ported
    data: bytes

    @property
    def changed(self) -> bool:
        """Return whether porting changed the source."""
        return self.ported.text != self.ported.source


def find_scripts(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the given files, and the .py and .ipynb files below the given folders.

    Hidden folders and those of installed packages are skipped.
    """
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        for found in sorted(path.rglob("*")):
            above = found.relative_to(path).parts[:-1]
            foreign = any(part.startswith(".") or part in _NOT_OWN for part in above)
            if found.suffix in _SUFFIXES and found.is_file() and not foreign:
                yield found


def port_file(path: Path) -> PortedFile:
    """Read and port a script, or a notebook (.ipynb); nothing is written.

    Raises: OSError, FormatError for any other file
    """
    data = path.read_bytes()
    try:
        if path.suffix == ".ipynb":
            ported, encoding = port_notebook(data.decode("utf-8")), "utf-8"
        else:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            ported = port_source(data.decode(encoding))
    except SyntaxError as error:
        where = f"line {error.lineno}" if error.lineno else ""
        found = str(error.msg)
        raise FormatError("Python code", found, field=where, file=str(path)) from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise FormatError("a script or a notebook", str(error), file=str(path)) from error
    mark = codecs.BOM_UTF8 if encoding == "utf-8-sig" else b""
    new = mark + ported.text.encode(encoding.removesuffix("-sig"))
    return PortedFile(path, ported, new if ported.text != ported.source else data)
