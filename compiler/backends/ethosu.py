"""Files of the tools for Ethos-U beside a payload: the TOSA graph, and tables of estimates.

Source: backends/arm/common/arm_compile_spec.py (keys), backends/arm/arm_vela.py
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler.interface.backend import CompileSpec

_FOLDER, _FLAGS = "debug_artifact_path", "compile_flags"
_ESTIMATES = ("--verbose-performance", "--verbose-cycle-estimate", "--enable-debug-db")


def leaving_files(specs: Sequence[CompileSpec], folder: str) -> list[CompileSpec]:
    """Return compile specs with which the tools write their files to a folder.

    Specs that have a folder already are returned unchanged: it is their user's.
    """
    changed = with_folder(specs, folder)
    if len(changed) == len(specs):
        return changed
    return [_estimating(one) if one.key == _FLAGS else one for one in changed]


def with_folder(specs: Sequence[CompileSpec], folder: str) -> list[CompileSpec]:
    """Return compile specs with a folder for intermediate files, unchanged if they have one."""
    if any(one.key == _FOLDER for one in specs):
        return list(specs)
    return [*specs, CompileSpec(_FOLDER, folder.encode())]


def _estimating(flags: CompileSpec) -> CompileSpec:
    given = bytes(flags.value).decode().split()
    more = [one for one in _ESTIMATES if one not in given]
    return CompileSpec(flags.key, " ".join((*given, *more)).encode())
