"""The program inside a bundled program."""

from __future__ import annotations

from schema import program
from schema.bundled import BundledFile
from schema.errors import FormatError
from schema.objects.identity_cache import identity_cache
from schema.program import ProgramFile


@identity_cache
def inner_program(bundled: BundledFile) -> ProgramFile | None:
    """Return the program in a bundle, None if it is unreadable."""
    try:
        return program.decode(bundled.program, file=f"{bundled.file} (program)")
    except FormatError:
        return None
