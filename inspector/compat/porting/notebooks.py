"""Notebooks: their code cells form one script, whose edits are mapped back to the cells."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

from inspector.compat.porting.port import Name, Ported, port_source

# Lines that IPython reads and Python does not: %magic, !command, name?, x = !command.
_MAGIC = re.compile(
    r"^([ \t]*)(?:[%!?][^\n]*|[\w.]+\?{1,2}[ \t]*|[\w, ]+=[ \t]*[%!][^\n]*)$", re.MULTILINE
)
_MARK = "# etscope: cell {}\n"
_MARKS = re.compile(r"^# etscope: cell (\d+)\n", re.MULTILINE)
_MASK = "pass  # etscope: line {}"
_MASKS = re.compile(r"pass  # etscope: line (\d+)")


def port_notebook(text: str) -> Ported:
    """Port the code cells of a notebook; cells in other languages (`%%bash`) are kept.

    Args:
        text: the file, JSON of notebook format 4

    Returns: the file before and after; lines of names count in their cell

    Raises: SyntaxError with a line of its cell, ValueError for an invalid notebook
    """
    tree = json.loads(text)
    notebook = cast("dict[str, Any]", tree) if isinstance(tree, dict) else {}
    if "cells" not in notebook:
        raise ValueError("not a notebook of format 4: expected a list of cells, found none")
    scripts = {
        number: "".join(cell["source"])
        for number, cell in enumerate(notebook["cells"], 1)
        if cell.get("cell_type") == "code" and not "".join(cell["source"]).startswith("%%")
    }
    masked: list[str] = []

    def mask(found: re.Match[str]) -> str:
        masked.append(found.group().removeprefix(found.group(1)))
        return found.group(1) + _MASK.format(len(masked) - 1)

    joined = "".join(
        _MARK.format(number) + _MAGIC.sub(mask, script) + "\n" for number, script in scripts.items()
    )
    try:
        whole = port_source(joined)
    except SyntaxError as error:
        number, line = _place(joined, error.lineno or 1)
        raise SyntaxError(f"cell {number}, line {line}: {error.msg}") from error
    after = _MARKS.split(whole.text)[1:]
    for number, script in zip(after[::2], after[1::2], strict=True):
        new = _MASKS.sub(lambda found: masked[int(found.group(1))], script.removesuffix("\n"))
        _put(notebook["cells"][int(number) - 1], new)
    names = [replace(name, cell=cell, line=line) for name, cell, line in _placed(whole, joined)]
    result = _dumped(notebook, text) if whole.text != joined else text
    return Ported(text, result, tuple(names))


def _placed(whole: Ported, joined: str) -> Iterator[tuple[Name, int, int]]:
    for name in whole.names:
        yield name, *_place(joined, name.line)


def _place(joined: str, line: int) -> tuple[int, int]:
    """Return the cell and the line in it of a line of the joined script."""
    cell, start = 0, 0
    for number, text in enumerate(joined.split("\n"), 1):
        found = _MARKS.match(f"{text}\n")
        if found and number <= line:
            cell, start = int(found.group(1)), number
    return cell, line - start


def _put(cell: dict[str, Any], script: str) -> None:
    if "".join(cell["source"]) != script:
        lines = script.splitlines(keepends=True)
        cell["source"] = lines if isinstance(cell["source"], list) else script


def _dumped(notebook: dict[str, Any], text: str) -> str:
    """Return the JSON with the indent and the end of the file as they were."""
    indent = re.search(r"\n( +)", text)
    end = "\n" if text.endswith("\n") else ""
    found = json.dumps(
        notebook, indent=len(indent.group(1)) if indent else None, ensure_ascii=False
    )
    return found + end
