"""Recipes from files: a recipe file, or the recipe in an ETRecord, as far as known."""

from __future__ import annotations

import mmap
from dataclasses import dataclass, replace
from pathlib import Path

from inspector.recipes.compile_job import CompileJob
from inspector.recipes.paths import found_beside
from inspector.recipes.recipe import LARGEST, Recipe, RecipeError, parse_recipe
from inspector.recipes.source import Source
from schema import etrecord
from schema.backends import backend_of
from schema.etrecord.parts.recipe import MEMBER
from schema.vendors.table import vendors_of

_ZIP = b"PK"


@dataclass(frozen=True, slots=True)
class FoundRecipe:
    """A recipe and its unknown parts.

    Attributes:
        recipe: the recipe
        unknown: description of the unknown parts; empty if the file contains a recipe
    """

    recipe: Recipe
    unknown: str = ""


def read_recipe(path: str) -> FoundRecipe:
    """Return the recipe in a file.

    A record without one, such as the stock tool writes, is a source itself; its partitioners are
    derived from the backends of its delegates.

    Args:
        path: of a recipe or an ETRecord

    Raises: RecipeError, FormatError if it contains none; OSError
    """
    with open(path, "rb") as stream:
        head = stream.read(len(_ZIP))
        if head != _ZIP:
            return FoundRecipe(_beside(parse_recipe(head + stream.read(LARGEST), path), path))
        data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)  # the record keeps it
    return recipe_of_record(etrecord.decode(memoryview(data), file=path), path)


def recipe_of_record(record: etrecord.RecordFile, path: str) -> FoundRecipe:
    """Return the recipe in a record, or as much of one as it contains.

    Args:
        record: the record
        path: of its file

    Raises: RecipeError, FormatError if it contains none
    """
    if MEMBER in record.archive:
        return FoundRecipe(_beside(parse_recipe(bytes(record.read(MEMBER)), path), path))
    return _rebuilt(record, path)


def _beside(recipe: Recipe, path: str) -> Recipe:
    """Find the files of a recipe, relative to its folder."""
    return replace(recipe, job=found_beside(recipe.job, Path(path).absolute().parent))


def _rebuilt(record: etrecord.RecordFile, path: str) -> FoundRecipe:
    if not record.program_names:
        raise RecipeError(f"{path}: expected a recipe or a recorded program, found neither")
    backends = {
        entry.name for method in (record.delegate_map or {}).values() for entry in method.values()
    }
    aliases = {name: _partitioners_of(name) for name in backends}
    known = tuple(found[0] for _, found in sorted(aliases.items()) if found)
    job = CompileJob(Source(str(Path(path).absolute())), partitioners=known)
    foreign = ", ".join(sorted(name for name, found in aliases.items() if not found))
    words = "its passes, rules and memory planner are not recorded"
    more = f"; it was delegated to {foreign}, which has no partitioner here" if foreign else ""
    return FoundRecipe(Recipe(job), f"no recipe in it: {words}{more}")


def _partitioners_of(backend_id: str) -> list[str]:
    """Return the names of the partitioners for a backend, those of vendors last."""
    own = [one.alias for one in backend_of(backend_id).partitioners]
    return own + [one.alias for one in vendors_of(backend_id) if one.place]
