"""The grid of a sweep: fields of a recipe, their values, and the recipes of all combinations."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from inspector.recipes.compile_job import CompileJob
from inspector.recipes.paths import placed
from inspector.recipes.recipe import LARGEST, VERSION, RecipeError, parse_recipe
from schema.objects.codec import to_json
from schema.recipe.assignments import AssignmentError, parse_setting

MOST_POINTS = 10_000
_AXIS = "FIELD=VALUE,VALUE… as in rules.min_nodes=1,5"
_KEY_LETTERS = 12
_OPEN, _CLOSE, _QUOTES = "([{", ")]}", "\"'"
_WORDS: Mapping[str, object] = {"true": True, "false": False, "none": None, "null": None}
Changes = tuple[tuple[str, Any], ...]


class GridError(ValueError):
    """A grid that makes no recipes; one sentence with the place, what was expected and found."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The varied fields.

    Attributes:
        fields: of the recipe, in the order of the columns
        rows: values of the fields, one row per point
    """

    fields: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class Point:
    """One combination.

    Attributes:
        number: index in the grid
        changes: fields and values that make it
        job: what is compiled
        key: name of its folder; equal jobs of equal sources have equal keys
    """

    number: int
    changes: Changes
    job: CompileJob
    key: str

    @property
    def label(self) -> str:
        """Return the changes in words."""
        return ", ".join(f"{field}={value_text(value)}" for field, value in self.changes)


def value_text(value: object) -> str:
    """Return a value of a field as a user would write it."""
    if isinstance(value, (list, tuple)):
        return "+".join(map(str, cast("Sequence[object]", value))) or "none"
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return str(value)


def parse_grid(texts: Sequence[str]) -> Grid:
    """Return the grid of several axes such as ``rules.min_nodes=1,5``; all combinations.

    Raises: GridError
    """
    axes: dict[str, list[Any]] = {}
    for text in texts:
        try:
            field, values = parse_setting(text.strip(), _AXIS)
        except AssignmentError as error:
            raise GridError(str(error)) from error
        field = field.strip()
        if field in axes:
            raise GridError(f"{text!r}: {field} is given twice; list all its values in one axis")
        axes[field] = _values(field, values, text)
    return grid_of_axes(axes)


def grid_of_file(data: bytes, place: str) -> Grid:
    """Return the grid in a JSON file.

    An object has a list of values for each field and means all combinations; a list of objects has
    the points themselves.

    Args:
        data: the file
        place: its name, for errors

    Raises: GridError
    """
    if len(data) > LARGEST:
        raise GridError(f"{place}: expected a grid, found {len(data):,} bytes")
    try:
        found = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise GridError(f"{place}: expected a grid as JSON: {error}") from error
    if isinstance(found, dict):
        axes = cast("dict[str, Any]", found)
        for field, values in axes.items():
            if not isinstance(values, list) or not values:
                raise GridError(
                    f"{place}: {field}: expected a list of values, found {values!r:.60}"
                )
        return grid_of_axes(cast("dict[str, list[Any]]", axes))
    if isinstance(found, list):
        return _listed(cast("list[object]", found), place)
    raise GridError(f"{place}: expected an object of fields or a list of points")


def _listed(found: list[object], place: str) -> Grid:
    points: list[dict[str, Any]] = []
    for number, one in enumerate(found):
        if not isinstance(one, dict):
            raise GridError(f"{place}: point {number}: expected an object, found {one!r:.60}")
        points.append(cast("dict[str, Any]", one))
    fields = tuple(dict.fromkeys(field for one in points for field in one))
    for number, one in enumerate(points):
        missing = [field for field in fields if field not in one]
        if missing:
            raise GridError(
                f"{place}: point {number}: {missing[0]} is missing; other points have it"
            )
    return Grid(fields, tuple(tuple(one[field] for field in fields) for one in points))


def grid_of_axes(axes: Mapping[str, list[Any]]) -> Grid:
    """Return all combinations of the values of some fields.

    Raises: GridError for too many
    """
    count = math.prod(len(values) for values in axes.values())
    if count > MOST_POINTS:
        raise GridError(f"the grid has {count:,} points; at most {MOST_POINTS:,} can be made")
    return Grid(tuple(axes), tuple(itertools.product(*axes.values())))


def _values(field: str, text: str, whole: str) -> list[Any]:
    stripped = text.strip()
    if stripped.startswith("["):
        try:
            found = json.loads(stripped)
        except (ValueError, RecursionError) as error:
            raise GridError(f"{whole!r}: expected a JSON list of values: {error}") from error
        if not isinstance(found, list) or not found:
            raise GridError(f"{whole!r}: expected a JSON list of values")
        return cast("list[Any]", found)
    kind = _kind(field)
    return [_value(part.strip(), kind) for part in _split(text)]


def _split(text: str) -> list[str]:
    """Split at commas that are in no brackets and no quotes."""
    parts, depth, quote = [""], 0, ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in _QUOTES:
            quote = char
        depth += (char in _OPEN) - (char in _CLOSE) if not quote else 0
        if char == "," and depth <= 0 and not quote:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def _kind(field: str) -> object:
    """Return the annotation of a field, None where there is none; its check comes later."""
    kind: object = CompileJob
    for name in field.split("."):
        if not is_dataclass(kind):
            return None
        kind = get_type_hints(cast("type", kind)).get(name)
    return kind


def _value(text: str, kind: object) -> object:
    """Return a value in the type of its field; others stay strings, and are refused later."""
    if get_origin(kind) is tuple:
        if get_args(kind)[0] is not str:
            return _json_or_text(text)
        return [] if text.lower() in ("", "none") else text.split("+")
    kinds = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    if str in kinds:
        return text
    found = _json_or_text(text)
    return int(found) if isinstance(found, float) and found.is_integer() else found


def _json_or_text(text: str) -> object:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def points_of(job: CompileJob, grid: Grid, source_sha256: str) -> tuple[Point, ...]:
    """Return the points of a grid over a job; combinations that are the same come once.

    Args:
        job: the varied fields
        grid: how
        source_sha256: of the source as it is now; another source makes other points

    Raises: GridError for a field or value that no recipe has
    """
    plain = json.dumps(to_json(job))
    found: dict[str, Point] = {}
    for row in grid.rows:
        changes = tuple(zip(grid.fields, row, strict=True))
        content = json.loads(plain)
        for field, value in changes:
            _put(content, field, value)
        built = _checked(content, changes)
        text = json.dumps([to_json(built), source_sha256], sort_keys=True)
        key = hashlib.sha256(text.encode()).hexdigest()[:_KEY_LETTERS]
        if key not in found:
            found[key] = Point(len(found), changes, built, key)
    if not found:
        raise GridError("the grid has no points")
    return tuple(found.values())


def _put(content: dict[str, Any], field: str, value: object) -> None:
    *path, last = field.split(".")
    for name in path:
        inner = content.setdefault(name, {})
        if not isinstance(inner, dict):
            raise GridError(f"{field}: {name} has no fields")
        content = cast("dict[str, Any]", inner)
    content[last] = value


def _checked(content: Mapping[str, Any], changes: Changes) -> CompileJob:
    data = json.dumps({"recipe": VERSION, "job": content}).encode()
    label = ", ".join(f"{field}={value_text(value)}" for field, value in changes)
    try:
        return placed(parse_recipe(data, f"grid point {label}").job)
    except RecipeError as error:
        raise GridError(str(error)) from error


__all__ = [
    "MOST_POINTS",
    "Changes",
    "Grid",
    "GridError",
    "Point",
    "grid_of_axes",
    "grid_of_file",
    "parse_grid",
    "points_of",
    "value_text",
]
