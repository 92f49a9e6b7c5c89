"""A bug report about a job: versions, request, reports and log; no weights and no values."""

from __future__ import annotations

import json
import platform
import time
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from inspector.files.machine import this_machine
from inspector.files.run_report import REPORT as RUN_REPORT
from inspector.files.written_folders import COMPILE_REPORT
from inspector.jobs.history import JobEntry
from inspector.recipes.recipe import RECIPE
from inspector.units import format_elapsed
from schema.objects.atomic_file import write_atomically

_PACKAGES = ("torch", "executorch", "torchao", "numpy", "msgspec", "PySide6")
_REPORTS = (COMPILE_REPORT, RUN_REPORT, RECIPE)  # text of a few kilobytes, without tensors
_LARGEST = 1 << 20
_RULE = "-" * 72


def report_files(entry: JobEntry) -> Mapping[str, str]:
    """Return the parts of a report by name; the home folder is shortened in all of them."""
    texts = {
        "report.txt": _summary(entry),
        "job.json": json.dumps(dict(entry.request), indent=1, ensure_ascii=False) + "\n",
        "log.txt": _log(entry),
    }
    folder = Path(entry.target)
    for name in _REPORTS:
        path = folder / name
        try:
            if entry.target and path.is_file() and path.stat().st_size <= _LARGEST:
                texts[name] = path.read_text("utf-8", "replace")
        except OSError:
            continue
    return {name: _without_home(text) for name, text in texts.items()}


def _without_home(text: str) -> str:
    """Return a text with ~ for the home folder, however it is written."""
    home = Path.home()
    for place in dict.fromkeys((str(home), str(home.resolve()))):
        if place != home.anchor:
            text = text.replace(place, "~").replace(json.dumps(place)[1:-1], "~")
    return text


def write_report(path: Path, entry: JobEntry) -> None:
    """Write a report: a zip archive, or one text for a name that ends in ``.txt``.

    Raises: OSError
    """
    texts = report_files(entry)
    if path.suffix.lower() == ".txt":
        parts = [f"{_RULE}\n{name}\n{_RULE}\n{text}" for name, text in texts.items()]
        data = "\n".join(parts).encode("utf-8", "replace")
        write_atomically(path, lambda stream: stream.write(data))
        return

    def packed(stream: object) -> None:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:  # pyright: ignore[reportArgumentType, reportCallIssue]
            for name, text in texts.items():
                archive.writestr(name, text)

    write_atomically(path, packed)


def _summary(entry: JobEntry) -> str:
    started = time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(entry.started))
    place = f"{entry.file}:{entry.line}" if entry.file else ""
    facts = (
        ("job", f"{entry.kind} {entry.subject}"),
        ("state", entry.state),
        ("started", started),
        ("took", "" if entry.seconds is None else format_elapsed(entry.seconds, 1)),
        ("output", entry.target),
        ("error", entry.sentence),
        ("at", place),
        ("ETScope", entry.etscope),
        ("Python", platform.python_version()),
        ("system", platform.platform()),
        ("machine", str(this_machine())),
        *((name, _version(name)) for name in _PACKAGES),
    )
    lines = [f"{name + ':':<12}{value}" for name, value in facts if value]
    details = f"\n{entry.details.rstrip()}\n" if entry.details else ""
    return "\n".join(lines) + f"\n{details}"


def _version(name: str) -> str:
    for found in (name, f"{name}_Essentials"):  # PySide6 may be installed without its add-ons
        with suppress(PackageNotFoundError):
            return version(found)
    return "not installed"


def _log(entry: JobEntry) -> str:
    lines = (
        f"{time.strftime('%H:%M:%S', time.localtime(line.at))}  {line.level:>2}  "
        f"{line.origin + ': ' if line.origin else ''}{line.text}"
        for line in entry.log
    )
    return "\n".join(lines) + "\n"
