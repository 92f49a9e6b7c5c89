"""A recipe as JSON to edit, as a Python script and as shell commands."""

from __future__ import annotations

import hashlib
import shlex
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from devtools_app.state.variant_places import variants_place
from devtools_app.state.variants import Variant
from devtools_app.viewmodels.recipe_form import change_line
from inspector.recipes.compile_job import CompileJob, code_files
from inspector.recipes.recipe import RECIPE, RecipeError, parse_recipe
from inspector.toolchain.recipe_script import python_script
from schema.objects.atomic_file import write_atomically

_PLACE = "recipe"
_END = "END_OF_RECIPE"
_DIGITS = 12  # of the hash in the name of a file


@dataclass(frozen=True, slots=True)
class RecipeTexts:
    """Content of the recipe panel for a variant.

    Attributes:
        title: kind and name
        changes: changes of its draft in one line, may be empty
        text: the draft as JSON
        script: as Python that builds the program
        unknown: parts that its files do not record, empty if complete
        runs: files whose Python code a compile runs
    """

    title: str
    changes: str
    text: str
    script: str
    unknown: str
    runs: tuple[str, ...]


def recipe_texts(one: Variant) -> RecipeTexts:
    """Return the recipe of the next variant in all forms."""
    job = one.draft.present
    source = job.source
    name = PurePath(source.path).name
    return RecipeTexts(
        f"{name}:{source.function}" if source.function else name,
        change_line(one.recipe.job, job),
        text_of(one),
        python_script(job),
        one.unknown,
        code_files(job),
    )


def text_of(one: Variant) -> str:
    """Return the draft of a variant as recipe JSON."""
    return replace(one.recipe, job=one.draft.present).text


def job_in(text: str) -> tuple[CompileJob | None, str]:
    """Return the job of recipe JSON, or None and the error as one sentence."""
    try:
        found = parse_recipe(text.encode("utf-8", "surrogatepass"), _PLACE)
    except RecipeError as error:
        return None, f"{error}."
    return found.job, ""


def commands(one: Variant) -> str:
    """Return the shell commands that build the program of a draft.

    A saved recipe next to the files is used if it is equal.
    """
    job, saved = one.draft.present, _saved(one)
    if saved is not None and job == one.recipe.job:
        return f"etscope compile --recipe {shlex.quote(str(saved))} -o build\n"
    text = text_of(one)
    return f"cat > {RECIPE} <<'{_END}'\n{text}{_END}\netscope compile --recipe {RECIPE} -o build\n"


def recipe_file(one: Variant) -> Path:
    """Return a file with the recipe of a draft: the one beside the program, else a new one.

    Raises: OSError if it cannot be written
    """
    saved = _saved(one)
    if saved is not None and one.draft.present == one.recipe.job:
        return saved
    text = text_of(one)
    name = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_DIGITS]
    first = one.files[0] if one.files else one.recipe.job.source.path
    path = variants_place(first) / f"recipe-{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, lambda stream: stream.write(text.encode("utf-8", "replace")))
    return path


def _saved(one: Variant) -> Path | None:
    for path in one.files:
        beside = Path(path).parent / RECIPE
        if path.endswith(".pte") and beside.is_file():
            return beside
    return None
