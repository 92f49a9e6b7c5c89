"""Runs verbs in this process, on sessions that are loaded once, and validates their JSON."""

from __future__ import annotations

import contextlib
import functools
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from inspector.cli import main, options
from inspector.files.load import load_session
from inspector.files.session import Session, SessionOptions
from tests.inspector.sessions import DATA, folders

SCHEMAS = DATA.parents[1] / "docs" / "json-schema"
FORMATS = ("text", "json", "tsv", "csv")
# Verbs that take any mix of files and write only to standard output.
READING = (
    "summary",
    "profile",
    "delegation",
    "memory",
    "roofline",
    "size",
    "tensors",
    "graph",
    "check",
    "trace",
    "report",
    "export",
)
SESSIONS = folders()
LONE = sorted(
    path
    for pattern in ("corpus/payloads/*.pte", "old/*.p*", "records/*.etrecord", "damaged/*.etdp")
    for path in DATA.glob(pattern)
)


@dataclass(frozen=True)
class Run:
    """What a verb did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.out, parse_constant=_no_constant)


def _no_constant(name: str) -> float:
    raise AssertionError(f"{name} is not JSON")


def run(*arguments: str | Path) -> Run:
    """Run a verb as `etscope ARGUMENTS` would."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return Run(code, out.getvalue(), err.getvalue())


def loaded_once(patch: pytest.MonkeyPatch) -> None:
    """Let all runs of a process share the sessions they load."""

    def load(paths: list[str], reading: SessionOptions, *, strict: bool = False) -> Session:
        return _load(tuple(paths), reading.source_time_scale, reading.time_scale_assumed, strict)

    patch.setattr(options, "load_session", load)


@functools.lru_cache(maxsize=8)
def _load(paths: tuple[str, ...], unit: str, assumed: bool, strict: bool) -> Session:
    reading = SessionOptions(source_time_scale=unit, time_scale_assumed=assumed)
    return load_session(list(paths), reading, strict=strict)


@functools.cache
def _registry() -> Registry[Any]:
    found: Registry[Any] = Registry()
    for path in SCHEMAS.glob("*.json"):
        found = Resource.from_contents(json.loads(path.read_text("utf-8"))) @ found
    return found


@functools.cache
def validator(verb: str) -> Draft202012Validator:
    """Return the validator of a verb's answers."""
    schema = json.loads((SCHEMAS / f"{verb}.json").read_text("utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, registry=_registry())


def valid(answer: Run, verb: str) -> dict[str, Any]:
    """Return the JSON of an answer once it satisfies the published schema."""
    tree = answer.json
    wrong = [
        f"{error.json_path}: {error.message[:200]}" for error in validator(verb).iter_errors(tree)
    ]
    assert wrong == []
    return tree
