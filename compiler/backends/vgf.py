"""Files of the tools for VGF beside a payload: the TOSA graph that it was made from."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.backends.ethosu import with_folder
from compiler.interface.backend import CompileSpec


def leaving_files(specs: Sequence[CompileSpec], folder: str) -> list[CompileSpec]:
    """Return compile specs with which the tools write their files to a folder.

    Specs that have a folder already are returned unchanged: it is their user's.
    """
    return with_folder(specs, folder)
