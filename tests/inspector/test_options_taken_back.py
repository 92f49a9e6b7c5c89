"""`compile --recipe --reset OPTION`: what a recipe has is taken back, whatever it is."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from inspector.cli.answer import CommandError
from inspector.cli.recipe_options import (
    PARTS,
    add_changes,
    add_fields,
    option_values,
    recipe_part,
    without,
)
from inspector.recipes.compile_job import CompileJob, Precision, Quantization, Rules
from inspector.recipes.source import Source
from tests.inspector.cli_runs import run

SOURCES = Path(__file__).parents[2] / "tests" / "compiler" / "job_sources.py"
GIVEN = {
    "rules": ("--deny-op", "aten.add.Tensor", "--min-nodes", "3", "--granularity", "module"),
    "words": ("--quantize", "8da4w:group=32", "--quantize-module", "last=none"),
    "tables": ("--quantize-embedding", "4", "--quantize-module", "last=int8"),
    "modes": ("--quantize", "static", "--per-tensor", "--quantize-op", "aten.linear=none"),
    "types": ("--precision-op", "aten.mm.default=float16", "--external-constants"),
    "plan": ("--memory-planner", "naive", "--pass", "views", "--backend-config", "alignment=32"),
    "partitioner": ("--partitioner", "xnnpack", "--method", "forward"),
}


def _parser() -> ArgumentParser:
    parser = ArgumentParser()
    for part in (CompileJob, *PARTS):
        add_fields(parser, part)
    add_changes(parser)
    return parser


def _job(*words: str) -> CompileJob:
    options = _parser().parse_args(words)
    given: dict[str, Any] = option_values(CompileJob, options)
    return CompileJob(
        Source(str(SOURCES), "products"),
        **given,
        rules=recipe_part(Rules, options),
        quantising=recipe_part(Quantization, options),
        precision=recipe_part(Precision, options),
    )


@pytest.mark.parametrize("name", GIVEN)
def test_options_of_a_recipe_are_taken_back(name: str) -> None:
    """Empty values and defaults cannot be asked for by the options themselves."""
    words = GIVEN[name]
    flags = [word for word in words if word.startswith("--")]
    back = [part for flag in flags for part in ("--reset", flag.removeprefix("--"))]
    assert _job(*words) != _job()
    assert without(_job(*words), _parser().parse_args(back)) == _job()


@pytest.mark.parametrize("name", ["toolchain", "libraries"])
def test_options_that_other_verbs_share_are_taken_back(name: str) -> None:
    job = replace(_job(), toolchain="executorch", libraries=("ops.py",))
    found = without(job, _parser().parse_args(["--reset", name]))
    assert getattr(found, name) == getattr(_job(), name)


@pytest.mark.parametrize("name", ["quantise", "source", "rules", ""])
def test_what_is_no_option_cannot_be_taken_back(name: str) -> None:
    with pytest.raises(CommandError, match=f"--reset {name}: expected one of allow-module, "):
        without(_job(), _parser().parse_args(["--reset", name]))


def test_nothing_is_taken_back_without_a_recipe(tmp_path: Path) -> None:
    words = ("--reset", "quantize", "-o", tmp_path / "out")
    found = run("compile", f"{SOURCES}:products", *words)
    assert (found.code, "--reset needs --recipe FILE" in found.err) == (2, True), found.err


def test_other_options_apply_after_what_is_taken_back(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.json"
    job = _job("--quantize", "8da4w", "--quantize-embedding", "4")
    recipe.write_text(json.dumps({"recipe": 1, "job": asdict(job)}))
    words = ("--reset", "quantize", "--quantize-embedding", "8", "--as-python")
    found = run("compile", "--recipe", recipe, *words)
    plain = run("compile", f"{SOURCES}:products", "--quantize-embedding", "8", "--as-python")
    assert (found.code, found.out) == (0, plain.out), found.err
