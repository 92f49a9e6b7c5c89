"""The recipe of an open session: recorded in it or next to its program, or derived."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from inspector.files.session import LoadedFile, Session
from inspector.recipes.compile_job import Quantization
from inspector.recipes.paths import found_beside
from inspector.recipes.recipe import LARGEST, RECIPE, Recipe, RecipeError, parse_recipe
from inspector.recipes.recipe_file import FoundRecipe, recipe_of_record
from inspector.recipes.source import Source
from schema.errors import FormatError
from schema.etrecord import RecordFile

_PROGRAMS = ("pte", "bpte")


def session_recipe(session: Session) -> FoundRecipe:
    """Return how the program of a session was built, as far as its files show.

    If the source is not on this machine it is replaced by the record, with a note.

    Raises: RecipeError if no recipe is known; the message names the missing files
    """
    for file in session.files:
        if isinstance(file.artifact, RecordFile):
            found = _of_record(file.artifact, file.path)
            return _with_source(found, file)
    for file in session.files:
        beside = Path(file.path).parent / RECIPE
        if file.kind in _PROGRAMS and beside.is_file():
            return FoundRecipe(_beside(beside))
    raise RecipeError(
        f"{session.name}: no recipe found: it has no ETRecord, and no {RECIPE} next to the program"
    )


def _of_record(record: RecordFile, path: str) -> FoundRecipe:
    try:
        return recipe_of_record(record, path)
    except FormatError as error:
        raise RecipeError(str(error)) from error


def _beside(path: Path) -> Recipe:
    try:
        with path.open("rb") as stream:
            found = parse_recipe(stream.read(LARGEST + 1), str(path))
    except OSError as error:
        raise RecipeError(f"{path} cannot be read: {error.strerror or error}") from error
    return replace(found, job=found_beside(found.job, path.parent))


def _with_source(found: FoundRecipe, file: LoadedFile) -> FoundRecipe:
    """Use the record as the source if that of the recipe is missing."""
    job = found.recipe.job
    record = file.artifact
    assert isinstance(record, RecordFile)
    if Path(job.source.path).is_file() or not record.program_names:
        return found
    again = replace(
        job, source=Source(str(Path(file.path).absolute())), python="", quantising=Quantization()
    )
    words = f"its source {job.source} is not on this machine: the recorded program is used instead"
    if job.quantising.requested:
        words += ", and is not quantized again"
    unknown = "; ".join(part for part in (found.unknown, words) if part)
    return FoundRecipe(replace(found.recipe, job=again, source_sha256=""), unknown)
