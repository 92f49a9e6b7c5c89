"""Which columns of the page of architectures are of an earlier compiler, and its note on them."""

from __future__ import annotations

import json
import subprocess
import textwrap
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.architecture.tree import ROOT

STAMP = "stamp.json"  # beside the results of a model: the compiler of each side
_COLUMNS = {
    "ours": "*nodes*, *KiB* (the left number), *dynamic*, *static*, *error*, *memory*",
    "stock": "*stock nodes*, *KiB* (the right number), *int8 agreement*",
    "gaps": "*gap*",
}
_WIDTH = 100
_INTRODUCTION = "Not all columns are of one run:\n\n"


@dataclass(frozen=True)
class Kept:
    """What is known of rows that an earlier run left on the page.

    Attributes:
        models: whose rows they are; empty for all that no other note names
        columns: of these rows
        words: on them
    """

    models: tuple[str, ...]
    columns: str
    words: str


_DECODERS = ("llama", "qwen2", "qwen3", "mamba_hf", "t5_small")
_OTHERS = (
    *("unet_block", "bert_tiny", "distilbert", "albert", "clip_text", "gpt2"),
    *("whisper_enc", "whisper_dec", "wav2vec2"),
)
_BEFORE_MEANS = "are of the compiler before means of rows were delegated"
KEPT = (
    Kept(
        _DECODERS,
        "*nodes* and *KiB* (the left number)",
        "are of the compiler that delegates means of rows, their *dynamic* and *static* of that "
        "before means of rows were delegated",
    ),
    Kept(_OTHERS, "*nodes*, *KiB*, *dynamic* and *static*", _BEFORE_MEANS),
    Kept(("swin_tiny",), "*nodes*", _BEFORE_MEANS),
    Kept((), "All else", "is of the first run of all models"),
)
"""Of the rows that were made before results were stamped."""


def compiler_now() -> str:
    """Return the last change of compiler and runtime, empty where git does not know it."""
    command = ["git", "log", "-1", "--format=%cs %h", "--", "compiler", "runtime"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def stamp(folder: Path, side: str) -> None:
    """Note of which compiler the results of a side are."""
    path = folder / STAMP
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**known, side: compiler_now()}))


def stamps_of(results: Path, models: Collection[str]) -> dict[str, dict[str, str]]:
    """Return the compiler of each side by model, of those that were measured."""
    paths = {name: results / name / STAMP for name in models}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}


def rows_of(page: Path) -> dict[str, str]:
    """Return the rows of a page by model."""
    lines = page.read_text("utf-8").splitlines() if page.exists() else []
    rows = [line for line in lines if line.startswith("| ") and not line.startswith("| ---")]
    return {line.split(" | ")[0].removeprefix("| "): line for line in rows[1:]}


def defects_of(page: Path) -> dict[str, list[str]]:
    """Return the lines on what is wrong by model."""
    lines = page.read_text("utf-8").splitlines() if page.exists() else []
    found: dict[str, list[str]] = {}
    for line in lines[lines.index("## What is wrong") :] if "## What is wrong" in lines else []:
        name, colon, _ = line.removeprefix("- ").partition(": ")
        if line.startswith("- ") and colon:
            found.setdefault(name, []).append(line.removeprefix("- "))
    return found


def note(kept: Collection[str], stamps: Mapping[str, Mapping[str, str]]) -> str:
    """Return the note on columns that are not of one compiler; empty if all are.

    Args:
        kept: models whose rows are those of the page before
        stamps: the compiler of each side, by measured model
    """
    words = (*_of_kept(kept), *_of_measured(stamps, alone=not kept))
    lines = [textwrap.fill(f"- {line}", _WIDTH, subsequent_indent="  ") for line in words]
    return _INTRODUCTION + "\n".join(lines) + "\n\n" if lines else ""


def _of_kept(kept: Collection[str]) -> list[str]:
    named = {name for one in KEPT for name in one.models}
    found: list[str] = []
    for one in KEPT:
        models = [name for name in one.models if name in kept]
        if models:
            found.append(f"{one.columns} of {', '.join(models)} {one.words}.")
        elif not one.models and kept:
            others = sorted(set(kept) - named)
            found.append(f"{one.columns} {one.words}: {_rest(others)}.")
    return found


def _rest(others: Collection[str]) -> str:
    whole = f"whole rows of {', '.join(others)}" if others else "no whole row"
    return f"the other columns of those, and {whole}"


def _of_measured(stamps: Mapping[str, Mapping[str, str]], *, alone: bool) -> list[str]:
    """Return a line for each compiler of a side; none if all of the page are of one."""
    by: dict[tuple[str, str], list[str]] = {}
    for name, sides in stamps.items():
        for side, of in sides.items():
            by.setdefault((of, side), []).append(name)
    if alone and len({of for of, _ in by}) < 2:
        return []
    return [
        f"{_COLUMNS[side]} of {', '.join(names)} are of the compiler of {of or 'an unknown date'}."
        for (of, side), names in sorted(by.items())
    ]
