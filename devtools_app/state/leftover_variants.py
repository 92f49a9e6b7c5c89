"""Variants next to a program that are in no history, e.g. of a closed window."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from devtools_app.state.variant_places import RUN_FOLDER, variants_place

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.recipes.recipe import Recipe

_LOG = logging.getLogger(__name__)
_MOST = 64  # that are read, newest first; a folder with more was filled by hand


@dataclass(frozen=True, slots=True)
class LeftVariant:
    """A variant on disk.

    Attributes:
        files: its program, record, constants, and recordings of its run
        recipe: its recipe
    """

    files: tuple[str, ...]
    recipe: Recipe


def left_variants(program: str, at_work: str = "") -> tuple[LeftVariant, ...]:
    """Return the variants compiled from a program, oldest first.

    Args:
        program: path of a file of it, or of one of its variants
        at_work: folder of the variant being compiled, which is not complete yet
    """
    place = variants_place(program)
    try:
        with os.scandir(place) as found:
            folders = [Path(one.path) for one in found if one.is_dir() and one.path != at_work]
    except OSError:  # missing, or not readable
        return ()
    folders.sort(key=_number)
    kept = (_variant(folder) for folder in folders[-_MOST:])
    return tuple(one for one in kept if one is not None)


def _number(folder: Path) -> tuple[int, str]:
    digits = folder.name.rpartition("_")[2]
    return (int(digits) if digits.isascii() and digits.isdigit() else 0), folder.name


def _variant(folder: Path) -> LeftVariant | None:
    from inspector.jobs.executing import TRACES
    from inspector.recipes.compile_job import PROGRAM, RECORD
    from inspector.recipes.recipe import RECIPE, RecipeError
    from inspector.recipes.recipe_file import read_recipe
    from schema.errors import FormatError

    if folder.name.startswith(".") or not (folder / PROGRAM).is_file():
        return None
    try:
        recipe = read_recipe(str(folder / RECIPE)).recipe
        data = sorted(str(path) for path in folder.glob("*.ptd"))
    except (RecipeError, FormatError, OSError) as error:
        _LOG.info("%s is left out of the history: %s", folder, error)
        return None
    run = folder / RUN_FOLDER
    others = (folder / RECORD, *(run / name for name in TRACES))
    there = [str(path) for path in others if path.is_file()]
    return LeftVariant((str(folder / PROGRAM), *there[:1], *data, *there[1:]), recipe)
