"""The recipe that results from a recipe file and the options beside it."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from inspector.cli.answer import UNREADABLE, USAGE, CommandError
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.job_checks import first_problem
from inspector.recipes.recipe import RecipeError
from inspector.recipes.recipe_file import read_recipe
from inspector.recipes.source import Source
from schema.errors import Issue, Severity

_Part = TypeVar("_Part")


def known_recipe(path: str, *, own_source: bool) -> tuple[CompileJob, list[Issue]]:
    """Return the job of a recipe, and its issues.

    Args:
        path: of a recipe or an ETRecord
        own_source: whether its source is used, which may have changed since

    Raises: CommandError, FormatError if the file contains no recipe; OSError
    """
    try:
        found = read_recipe(path)
    except RecipeError as error:
        raise CommandError(str(error), UNREADABLE) from error
    issues = [Issue(Severity.WARNING, path, found.unknown)] if found.unknown else []
    source = found.recipe.job.source.path
    if own_source and found.recipe.changed_source():
        words = "has changed since the recipe was written: the program may differ"
        issues.append(Issue(Severity.WARNING, source, words))
    return found.recipe.job, issues


def check_recipe(job: CompileJob) -> None:
    """Refuse a recipe whose files or names no compile could use, before any work.

    Raises: CommandError
    """
    if problem := first_problem(job):
        raise CommandError(problem, USAGE)


def merged(known: _Part, asked: _Part) -> _Part:
    """Return a job, or a part of one, in which given options replace known ones.

    Options equal to their default do not count.
    """
    changes: dict[str, Any] = {}
    for one in fields(cast("Any", known)):
        old, new = getattr(known, one.name), getattr(asked, one.name)
        if isinstance(new, Source):
            changes[one.name] = new if new.path else old
        elif is_dataclass(new):
            changes[one.name] = merged(old, new)
        elif new != one.default:
            changes[one.name] = new
    return cast("_Part", replace(cast("Any", known), **changes))
