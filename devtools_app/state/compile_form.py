"""The input of the Compile dialog, remembered between uses."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inspector.jobs.output_folder import FolderError, check_folder
from inspector.recipes.compile_job import EXECUTORCH, CompileJob, Quantization, code_files
from inspector.recipes.job_checks import job_problems, source_problems
from inspector.recipes.recipe import RecipeError, check_job
from inspector.recipes.source import Source, SourceKind
from schema.backends import DEFAULT
from schema.objects.codec import ContentError, from_json, to_json

_LOG = logging.getLogger(__name__)
_PLACE = "last_compile"
FOLDER = "folder"  # the field of the form that is in no recipe
_BY_WORD = ("methods", "passes", "edge_config", "rules.deny_ops", "rules.deny_nodes")
_OLD_NAMES = {  # fields of the flat form that earlier versions wrote, and where they are now
    "source": "source.path",
    "function": "source.function",
    "planner": "memory_planner",
    "deny_ops": "rules.deny_ops",
    "deny_nodes": "rules.deny_nodes",
    "min_nodes": "rules.min_nodes",
    "quantize": "quantising.mode",
    "calibration": "quantising.calibration",
    "per_tensor": "quantising.per_tensor",
    "quantizer": "quantising.quantizer",
}


_NEW = CompileJob(Source(""), partitioners=(DEFAULT.partitioners[0].alias,))


@dataclass(frozen=True, slots=True)
class CompileForm:
    """The contents of the dialog.

    Attributes:
        job: the recipe as entered
        folder: for the files
        replace: whether files in it may be replaced
    """

    job: CompileJob = _NEW
    folder: str = ""
    replace: bool = False

    @property
    def is_python(self) -> bool:
        """Return whether a function is to be run."""
        return self.job.source.kind is SourceKind.PYTHON

    @property
    def needs_interpreter(self) -> bool:
        """Return whether another interpreter runs the function or compiles."""
        return self.is_python or self.job.toolchain == EXECUTORCH

    def problems(self) -> dict[str, str]:
        """Return the errors that keep it from being compiled, by field: a sentence each."""
        sentences = problems_of(self.request())
        if problem := self._problem_of_folder():
            sentences[FOLDER] = problem
        return sentences

    def problem(self) -> str:
        """Return the first problem as one sentence, empty if it can be compiled."""
        return next(iter(self.problems().values()), "")

    def _problem_of_folder(self) -> str:
        if not self.folder:
            return "Choose a folder for the files."
        try:
            check_folder(Path(self.folder), force=self.replace)
        except FolderError as error:
            if error.usage and "--force" in str(error):
                return "The folder is not empty: choose another or allow replacing files in it."
            return f"{error}."
        return ""

    def fresh(self) -> CompileForm:
        """Return the form to begin another compile with: into a new folder beside the source."""
        return replace(self, folder=proposed_folder(self.job.source.path), replace=False)

    def runs(self) -> tuple[str, ...]:
        """Return the files whose Python code a compile would run."""
        return tuple(path for path in code_files(self.request()) if path)

    def request(self) -> CompileJob:
        """Return the recipe with absolute paths, without the fields that have no meaning in it."""
        job = self.job
        found = job.quantising
        if found.quantizer:
            found = Quantization(calibration=found.calibration, quantizer=found.quantizer)
        elif not found.mode:
            found = Quantization()
        found = replace(found, calibration=_absolute(found.calibration))
        function = job.source.function if job.source.takes_function else ""
        return replace(
            job,
            source=Source(_absolute(job.source.path), function),
            python=job.python if self.needs_interpreter else "",
            libraries=tuple(map(_absolute, job.libraries)),
            quantising=found,
        )


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path)) if path else ""


def problems_of(job: CompileJob) -> dict[str, str]:
    """Return the errors that keep a recipe from being compiled, by field: a sentence each."""
    found: dict[str, str] = {}
    for one in (*source_problems(job), *job_problems(job)):
        found.setdefault(one.path, _sentence(one.sentence))
    return found


def _sentence(text: str) -> str:
    named = any(sign in text.split(" ", 1)[0] for sign in "./\\'\"")  # a file or what was typed
    return f"{text if named else text[:1].upper() + text[1:]}."


def proposed_folder(source: str) -> str:
    """Return a folder beside a source that is not in use, empty without a source."""
    place = _absolute(source)
    if not os.path.isfile(place):
        return ""
    first = Path(place).with_suffix("")
    names = (f"{first.name}_build{number}" for number in ("", *(f"_{n}" for n in range(2, 1000))))
    return next((str(one) for one in map(first.with_name, names) if not one.exists()), "")


def form_content(form: CompileForm) -> dict[str, Any]:
    """Return the form as a JSON object."""
    return to_json(form)


def form_from(content: Mapping[str, Any]) -> CompileForm:
    """Return the form in a JSON object of this version or an earlier one; empty if it is invalid.

    Errors are logged, with the path of the invalid field.
    """
    if not content:
        return CompileForm()
    known = dict(content) if "job" in content else _from_flat(content)
    try:
        found = from_json(known, CompileForm, _PLACE)
        check_job(found.job, f"{_PLACE}.job")
    except (ContentError, RecipeError) as error:
        _LOG.info("the Compile dialog begins empty: %s", error)
        return CompileForm()
    rules = found.job.rules
    rules = replace(rules, min_nodes=max(1, rules.min_nodes))
    return replace(found, job=replace(found.job, rules=rules))


def _from_flat(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a form written by an earlier version: strings."""
    job: dict[str, Any] = {"source": {"path": ""}}
    for name, value in content.items():
        if name in ("folder", "replace", "overrides"):
            continue
        path = _OLD_NAMES.get(name, name)
        part, _, field = path.rpartition(".")
        place = job.setdefault(part, {}) if part else job
        place[field] = _split(path, value) if isinstance(value, str) else value
    modes = job.setdefault("quantising", {})
    text = str(content.get("overrides", "")).split()
    modes["modules"] = [word for word in text if not word.startswith("aten.")]
    modes["operators"] = [word for word in text if word.startswith("aten.")]
    return {
        "job": job,
        **{name: content[name] for name in ("folder", "replace") if name in content},
    }


def _split(path: str, value: str) -> str | list[str]:
    if path == "partitioners":
        return [line.strip() for line in value.splitlines() if line.strip()]
    if path == "libraries":
        return [name.strip() for name in value.split(os.pathsep) if name.strip()]
    return value.split() if path in _BY_WORD else value
