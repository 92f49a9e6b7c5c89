"""Record the packaged sample: ``python -m tests.tools.make_sample`` compiles and runs the demo.

Paths of this machine become relative ones, so that source and recipe are found wherever the
package is installed.
"""

from __future__ import annotations

import json
import shutil
import site
import tempfile
from pathlib import Path

from devtools_app.demo import compile_and_run, variants
from devtools_app.sample_data import MODULE
from inspector.files.run_report import REPORT as RUN_REPORT
from inspector.files.stage_log import STAGES
from inspector.jobs.executing import BUFFER, TRACE, VALUES
from inspector.recipes.compile_job import PROGRAM, RECORD, REPORT
from schema import etrecord

RUNS = 30  # enough for the statistic, few enough to be packaged


def record(place: Path, target: Path) -> None:
    """Compile and run the variants in a folder, and write them into another, without its path."""
    for name, job in variants().items():
        folder, kept = place / name, target / name
        compile_and_run(folder, job, runs=RUNS)
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        words = _words(folder)
        for path in (folder / PROGRAM, *(folder / "run" / one for one in (TRACE, VALUES, BUFFER))):
            shutil.copy(path, kept / path.name)
        for path in (folder / STAGES, folder / "run" / RUN_REPORT):
            (kept / path.name).write_bytes(_without(path.read_bytes(), words))
        found = _relative(etrecord.decode((folder / RECORD).read_bytes()), words)
        kept.with_suffix(".etrecord").write_bytes(found)
        _report(folder / REPORT, kept / REPORT, words)


def _words(folder: Path) -> dict[str, str]:
    """Return what to replace: the module, installed packages, the folder, the interpreter."""
    packages = {f"{Path(one)}/": "" for one in site.getsitepackages()}
    return {str(MODULE): MODULE.name, **packages, f"{folder}/": ""}


def _without(content: bytes, words: dict[str, str]) -> bytes:
    for old, new in words.items():
        content = content.replace(old.encode(), new.encode())
    return content


def _relative(found: etrecord.RecordFile, words: dict[str, str]) -> bytes:
    texts = {
        member.name: bytes(found.read(member.name))
        for member in found.archive.members
        if bytes(found.read(member.name))[:1] in (b"{", b"[")
    }
    return etrecord.encode(
        etrecord.replace_members(found, {name: _without(one, words) for name, one in texts.items()})
    )


def _report(path: Path, kept: Path, words: dict[str, str]) -> None:
    report = json.loads(_without(path.read_bytes(), words)) | {"python": "python"}
    kept.write_text(json.dumps(report, indent=1), "utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        record(Path(temporary), MODULE.parent)
