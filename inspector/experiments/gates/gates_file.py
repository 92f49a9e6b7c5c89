"""A file of requirements: one per line, as ``etscope gate --require`` takes them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from inspector.experiments.gates.requirement import (
    Requirement,
    RequirementError,
    parse_requirement,
)
from schema.errors import FormatError
from schema.objects.atomic_file import write_atomically

COMMENT = "#"
_LARGEST = 1 << 20  # bytes; written by hand
_HEAD = "# requirements of a program, one a line; etscope gate FILES --gates THIS_FILE\n"


def read_gates(path: Path) -> tuple[Requirement, ...]:
    """Return the requirements in a file; blank lines and comments are left out.

    Raises: FormatError naming the line; OSError
    """
    if path.stat().st_size > _LARGEST:
        raise FormatError("a file of requirements", f"more than {_LARGEST:,} bytes", file=str(path))
    try:
        lines = path.read_bytes().decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise FormatError("requirements as UTF-8", str(error), file=str(path)) from error
    found: list[Requirement] = []
    for number, line in enumerate(lines, 1):
        text = line.partition(COMMENT)[0].strip()
        if not text:
            continue
        try:
            found.append(parse_requirement(text))
        except RequirementError as error:
            place = f"{path}, line {number}"
            raise FormatError("a requirement", str(error), file=place) from error
    if not found:
        raise FormatError("requirements", "none", file=str(path))
    return tuple(found)


def write_gates(path: Path, requirements: Iterable[Requirement]) -> None:
    """Write a file of requirements.

    Raises: OSError
    """
    text = _HEAD + "".join(f"{one.text}\n" for one in requirements)
    write_atomically(path, lambda stream: stream.write(text.encode("utf-8")))
