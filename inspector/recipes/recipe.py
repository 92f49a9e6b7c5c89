"""A compile as a value: the job and what it was done with, as text that makes the program again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from typing import Any, cast, get_args, get_origin, get_type_hints

from inspector.recipes.compile_job import (
    GRANULARITIES,
    PRECISIONS,
    QUANTISING_MODES,
    TOOLCHAINS,
    CompileJob,
    job_from,
)
from inspector.recipes.emission import WordError, check_passes, config_of, edge_config_of
from inspector.recipes.paths import placed

RECIPE = "recipe.json"
VERSION = 1
LARGEST = 1 << 20  # bytes; a recipe is text that people write
_TOP = ("recipe", "job", "source_sha256", "made_with")
_CHUNK = 1 << 20
_WORDS: dict[Any, str] = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    type(None): "null",
}


class RecipeError(ValueError):
    """A text that is no recipe; one sentence with the place, what was expected and found."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a program is made.

    Attributes:
        job: what is compiled, and how
        source_sha256: of the file of the source when it was compiled, empty when unknown
        made_with: versions of what compiled it, by name; not part of what is asked for
    """

    job: CompileJob
    source_sha256: str = ""
    made_with: Mapping[str, str] | None = None

    @property
    def text(self) -> str:
        """Return the recipe as JSON; equal recipes have equal texts."""
        content = {
            "recipe": VERSION,
            "job": asdict(self.job),
            "source_sha256": self.source_sha256,
            "made_with": dict(self.made_with or {}),
        }
        return json.dumps(content, indent=1, ensure_ascii=False) + "\n"

    def changed_source(self) -> bool:
        """Return whether the source is known to be another one than at that time.

        Raises: OSError if it cannot be read
        """
        return bool(self.source_sha256) and sha256_of(self.job.source.path) != self.source_sha256


def recipe_of(job: CompileJob, made_with: Mapping[str, str]) -> Recipe:
    """Return the recipe of a job that is being done; its files become absolute paths.

    Raises: OSError if the source cannot be read
    """
    job = placed(job)
    return Recipe(job, sha256_of(job.source.path), made_with)


def sha256_of(path: str) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def parse_recipe(data: bytes, place: str) -> Recipe:
    """Return the recipe in a text.

    Args:
        data: UTF-8
        place: name of the file, for the error

    Raises: RecipeError
    """
    content = _content(data, place)
    _check_version(content, place)
    _known(content, _TOP, place)
    if "job" not in content:
        raise RecipeError(f"{place}: job is missing")
    job = content["job"]
    _check(CompileJob, job, f"{place}: job")
    sha256, made_with = content.get("source_sha256", ""), content.get("made_with", {})
    _check(str, sha256, f"{place}: source_sha256")
    if not isinstance(made_with, dict):
        raise RecipeError(f"{place}: made_with: expected an object, found {_shown(made_with)}")
    versions = cast("dict[str, Any]", made_with)
    for name, version in versions.items():
        _check(str, version, f"{place}: made_with.{name}")
    found = job_from(cast("dict[str, Any]", job))
    if found.rules.granularity not in GRANULARITIES:
        there, given = ", ".join(GRANULARITIES), found.rules.granularity
        raise RecipeError(f"{place}: job.rules.granularity: expected {there}, found {given!r}")
    mode = found.quantising.mode
    if mode and mode not in (*QUANTISING_MODES, "none"):
        there = ", ".join((*QUANTISING_MODES, "none"))
        raise RecipeError(f"{place}: job.quantising.mode: expected {there}, found {mode!r}")
    _check_precision(found, f"{place}: job.precision")
    for name, check in (
        ("passes", check_passes),
        ("backend_config", config_of),
        ("edge_config", edge_config_of),
    ):
        try:
            check(getattr(found, name))
        except WordError as error:
            raise RecipeError(f"{place}: job.{name}: {error}") from error
    if found.toolchain and found.toolchain not in TOOLCHAINS:
        there = ", ".join(TOOLCHAINS)
        raise RecipeError(f"{place}: job.toolchain: expected {there}, found {found.toolchain!r}")
    return Recipe(found, sha256, versions)


def _check_version(content: Mapping[str, Any], place: str) -> None:
    """Raise RecipeError for a recipe that another release wrote, naming it where it says so."""
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
    raise RecipeError(f"{place}: recipe: expected version {VERSION}, found {_shown(found)}{by}")


def _check_precision(job: CompileJob, place: str) -> None:
    for kind in ("modules", "operators", "nodes"):
        for at, text in enumerate(getattr(job.precision, kind)):
            name, _, word = text.rpartition("=")
            if not name or word not in PRECISIONS:
                there = ", ".join(PRECISIONS)
                raise RecipeError(
                    f"{place}.{kind}[{at}]: expected NAME= and one of {there}, found {text!r}"
                )


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


def _shown(value: object) -> str:
    """Return the beginning of a value, with the words that JSON has."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return f"{value!r:.60}"


def _known(content: Mapping[str, Any], names: tuple[str, ...], place: str) -> None:
    for name in content:
        if name not in names:
            raise RecipeError(f"{place}: {name} is unknown here; there is {', '.join(names)}")


def _check(kind: Any, value: object, place: str) -> None:  # noqa: ANN401 - any annotation
    """Raise RecipeError unless a JSON value has the form of an annotation."""
    if is_dataclass(kind):
        _check_members(cast("type", kind), value, place)
    elif get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise RecipeError(f"{place}: expected a list, found {_shown(value)}")
        for at, one in enumerate(cast("list[object]", value)):
            _check(get_args(kind)[0], one, f"{place}[{at}]")
    else:
        plain = get_args(kind) or (kind,)
        if type(value) not in plain and not (float in plain and type(value) is int):
            words = " or ".join(_WORDS[one] for one in plain)
            raise RecipeError(f"{place}: expected {words}, found {_shown(value)}")


def _check_members(kind: type, value: object, place: str) -> None:
    if not isinstance(value, dict):
        raise RecipeError(f"{place}: expected an object, found {_shown(value)}")
    content = cast("dict[str, Any]", value)
    hints = get_type_hints(kind)
    _known(content, tuple(hints), place)
    for one in fields(kind):
        if one.name in content:
            _check(hints[one.name], content[one.name], f"{place}.{one.name}")
        elif one.default is MISSING and one.default_factory is MISSING:
            raise RecipeError(f"{place}: {one.name} is missing")
