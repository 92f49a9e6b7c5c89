"""A recipe: a compile job and the versions it was run with, as JSON to build the program again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast

from inspector.files.digest import sha256_of
from inspector.recipes.compile_job import (
    PRECISIONS,
    CompileJob,
)
from inspector.recipes.emission import WordError, check_passes, config_of, edge_config_of
from inspector.recipes.options import option_of
from inspector.recipes.paths import placed
from schema.objects.codec import ContentError, from_json, shown, to_json
from schema.recipe.assignments import AssignmentError, parse_assignment

RECIPE = "recipe.json"
VERSION = 1
LARGEST = 1 << 20  # bytes; recipes are written by hand


class RecipeError(ValueError):
    """An invalid recipe; one sentence with place, expected and found content."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a program is built.

    Attributes:
        job: the compile job
        source_sha256: of the source file at compile time, empty if unknown
        made_with: versions of the packages that compiled it, by name; not part of the request
    """

    job: CompileJob
    source_sha256: str = ""
    made_with: Mapping[str, str] | None = None

    @property
    def text(self) -> str:
        """Return the recipe as JSON; equal recipes have equal strings."""
        file = _RecipeFile(VERSION, self.job, self.source_sha256, dict(self.made_with or {}))
        return json.dumps(to_json(file), indent=1, ensure_ascii=False) + "\n"

    def compiled_from(self, other: Recipe) -> Recipe:
        """Return this recipe with the source of another one, whose program it was compiled from."""
        job = replace(self.job, source=other.job.source)
        return replace(self, job=job, source_sha256=other.source_sha256)

    def changed_source(self) -> bool:
        """Return whether the source is known to have changed since.

        Raises: OSError if it cannot be read
        """
        return bool(self.source_sha256) and sha256_of(self.job.source.path) != self.source_sha256


@dataclass(frozen=True, slots=True)
class _RecipeFile:
    """A recipe as its file has it."""

    recipe: int
    job: CompileJob
    source_sha256: str = ""
    made_with: dict[str, str] = field(default_factory=dict[str, str])


def recipe_of(job: CompileJob, made_with: Mapping[str, str]) -> Recipe:
    """Return the recipe of a running job; its files become absolute paths.

    Raises: OSError if the source cannot be read
    """
    job = placed(job)
    return Recipe(job, sha256_of(job.source.path), made_with)


def parse_recipe(data: bytes, place: str) -> Recipe:
    """Return the recipe in a text.

    Args:
        data: UTF-8
        place: name of the file, for the error

    Raises: RecipeError
    """
    content = _content(data, place)
    _check_version(content, place)
    try:
        file = from_json(content, _RecipeFile, place, closed=True)
    except (ContentError, RecursionError) as error:
        raise RecipeError(str(error)) from error
    check_job(file.job, f"{place}: job")
    return Recipe(file.job, file.source_sha256, file.made_with)


def check_job(job: CompileJob, place: str) -> None:
    """Check the words of a recipe whose meaning is known without its source.

    Args:
        job: the job to compile
        place: of the job, for the error

    Raises: RecipeError
    """
    _check_choices(job, place)
    _check_precision(job, f"{place}.precision")
    for name, check in (
        ("passes", check_passes),
        ("backend_config", config_of),
        ("edge_config", edge_config_of),
    ):
        try:
            check(getattr(job, name))
        except WordError as error:
            raise RecipeError(f"{place}.{name}: {error}") from error


def _check_version(content: Mapping[str, Any], place: str) -> None:
    """Raise RecipeError for a recipe of another release, naming it if known."""
    found = content.get("recipe")
    if type(found) is int and found == VERSION:
        return
    if "recipe" not in content:
        raise RecipeError(f"{place}: recipe: expected version {VERSION}, found nothing")
    made_with: Any = content.get("made_with")
    wrote: Any = (
        cast("dict[str, Any]", made_with).get("etscope") if isinstance(made_with, dict) else ""
    )
    by = f", which etscope {wrote:.40} wrote" if isinstance(wrote, str) and wrote else ""
    raise RecipeError(f"{place}: recipe: expected version {VERSION}, found {shown(found)}{by}")


def _check_choices(part: object, place: str) -> None:
    """Raise RecipeError for a value that its field does not allow."""
    for one in fields(cast("Any", part)):
        value, known = getattr(part, one.name), option_of(one)
        if known is None:
            _check_choices(value, f"{place}.{one.name}")
        elif known.choices and value not in dict(known.choices):
            words = ", ".join(choice for choice, _ in known.choices if choice)
            raise RecipeError(f"{place}.{one.name}: expected {words}, found {value!r}")


def _check_precision(job: CompileJob, place: str) -> None:
    for kind in ("modules", "operators", "nodes"):
        for at, text in enumerate(getattr(job.precision, kind)):
            try:
                parse_assignment(text, "TYPE", PRECISIONS)
            except AssignmentError as error:
                raise RecipeError(f"{place}.{kind}[{at}]: {error}") from error


def _content(data: bytes, place: str) -> dict[str, Any]:
    if len(data) > LARGEST:
        raise RecipeError(f"{place}: expected a recipe, found {len(data):,} bytes")
    try:
        found = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise RecipeError(f"{place}: expected a recipe as JSON: {error}") from error
    if not isinstance(found, dict):
        raise RecipeError(f"{place}: expected an object, found a {type(found).__name__}")
    return cast("dict[str, Any]", found)
