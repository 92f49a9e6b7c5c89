"""Files of ``torch.export.save`` (``.pt2``) as records of one exported program.

Source: torch/export/pt2_archive/constants.py (``models/NAME.json``); torch/_export/serde of
releases before 2.8 (``serialized_exported_program.json``); _package.py, ``_load_state_dict`` (all
weights in one member, of release 2.8).
"""

from __future__ import annotations

import re
import struct
from dataclasses import replace

from schema.errors import FormatError, Issue, Severity
from schema.etrecord import members as m
from schema.etrecord.archive.container import open_archive, starts_like_zip
from schema.etrecord.archive.zip_index import read_directory
from schema.etrecord.exported_weights import StoredWeights
from schema.etrecord.record import RecordFile
from schema.objects.cyclic_gc import gc_suspended

_MODEL = re.compile(r"(?:^|/)(?:models/([^/]+)\.json|serialized_exported_program\.json)$")


def is_exported_file(buffer: bytes | memoryview) -> bool:
    """Return whether a complete file is an archive with an exported program."""
    data = memoryview(buffer)
    if not starts_like_zip(bytes(data[:4])):
        return False
    try:
        return any(_MODEL.search(member.name) for member in read_directory(data))
    except (FormatError, struct.error):
        return False


@gc_suspended()
def decode_exported(buffer: bytes | bytearray | memoryview, *, file: str = "") -> RecordFile:
    """Open an exported program as a record that has only that, with its weights.

    Raises: FormatError if it is not a zip archive or has no program
    """
    archive = open_archive(memoryview(buffer).toreadonly())
    found = [name for name in archive.names if _MODEL.search(name)]
    if not found:
        names = ", ".join(archive.names[:5]) or "none"
        raise FormatError("a member models/….json", f"members {names}", file=file)
    issues = list(archive.issues)
    if len(found) > 1:
        others = ", ".join(found[1:6])
        issues.append(Issue(Severity.INFO, file, f"further programs are not shown: {others}"))
    first = archive.get(found[0])
    assert first is not None  # it is among the readable names
    place = _MODEL.search(found[0])
    model = place[1] if place is not None else None
    saved = {m.EXPORTED + kind: archive.get(name) for kind, name in _saved(found[0], model)}
    sides = {name: member for name, member in saved.items() if member is not None}
    renamed = replace(archive, _by_name={m.EXPORTED: first, **sides})
    roles = m.Roles(m.EXPORTED, {}, (), ())
    weights = model and StoredWeights(archive, found[0].removesuffix(f"models/{model}.json"), model)
    record = RecordFile(renamed, roles, weights=weights or None, file=file, issues=tuple(issues))
    return record.with_tensor_issues()


def _saved(program: str, model: str | None) -> tuple[tuple[str, str], ...]:
    """Return kind -> member that earlier releases saved all weights or constants in."""
    state, constants, _ = m.SIDE_FILES
    if model is None:
        folder = program.removesuffix("serialized_exported_program.json")
        names = ("serialized_state_dict.pt", "serialized_constants.pt")
    else:
        folder = program.removesuffix(f"models/{model}.json")
        names = (f"data/weights/{model}.pt", f"data/constants/{model}.pt")
    return (state, folder + names[0]), (constants, folder + names[1])
