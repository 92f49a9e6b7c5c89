"""All facts of one session folder, each part on its own so that one failure hides no other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.oracle import events, programs, rebuilt, records

FILES = {
    "program": "model.pte",
    "etrecord": "model.etrecord",
    "bundled": "model.bpte",
    "data": "model.ptd",
    "etdump": "run.etdp",
    "debug_buffer": "run.debug",
}


def session_facts(folder: Path) -> dict[str, Any]:
    """Return what stock ExecuTorch says about every file of the folder and the files joined.

    A part that the stock tool refuses is `{"error": sentence, "error_type": class}`; a part
    whose files are not there is None.
    """
    found = {name: folder / file for name, file in FILES.items() if (folder / file).exists()}
    program, etrecord = found.get("program"), found.get("etrecord")
    etdump, debug_buffer = found.get("etdump"), found.get("debug_buffer")
    return {
        "files": {name: path.name for name, path in found.items()},
        "program": _part(programs.decoded_program, program),
        "bundled": _part(programs.decoded_bundled_program, found.get("bundled")),
        "data": _part(programs.decoded_data_file, found.get("data")),
        "etdump": _part(programs.decoded_etdump, etdump),
        "record": _part(records.record_facts, etrecord, optional=(program,)),
        "inspector": _part(events.inspector_facts, etdump, optional=(etrecord, debug_buffer)),
        "inspector_without_debug_buffer": _part(events.inspector_facts, etdump, etrecord),
        "inspector_etdump_only": _part(events.inspector_facts, etdump),
        "rebuilt": _part(rebuilt.rebuilt_facts, etrecord, program),
    }


def _part(
    ask: Callable[..., dict[str, Any]], *needed: Path | None, optional: tuple[Any, ...] = ()
) -> dict[str, Any] | None:
    if any(path is None for path in needed):
        return None
    try:
        return ask(*needed, *optional)
    except Exception as error:  # noqa: BLE001  whatever the stock tool raises is the fact
        return {"error": str(error), "error_type": type(error).__name__}
