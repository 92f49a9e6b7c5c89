"""The documentation names every verb, every option, every exit code and every member."""

from __future__ import annotations

import argparse
import importlib
import json
import re

import pytest

from inspector.cli import answer
from inspector.cli.main import VERBS
from tests.inspector.cli_runs import SCHEMAS

DOCS = SCHEMAS.parent
CLI = (DOCS / "cli.md").read_text("utf-8")
CONTRACT = (DOCS / "json-contract.md").read_text("utf-8")


def _options(verb: str) -> set[str]:
    parser = argparse.ArgumentParser()
    importlib.import_module(f"inspector.cli.{verb.replace('-', '_')}").add_arguments(parser)
    return {name for action in parser._actions for name in action.option_strings}


@pytest.mark.parametrize("verb", VERBS)
def test_reference_names_the_verb_and_its_options(verb: str) -> None:
    head, *sections = re.split(r"^### (?=\S+$)", CLI, flags=re.MULTILINE)
    own = next(section for section in sections if section.startswith(f"{verb}\n"))
    missing = {name for name in _options(verb) if not _mentions(head + own, name)}
    assert missing == set()


def _mentions(text: str, option: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text) is not None


def test_reference_names_no_verb_that_is_not_there() -> None:
    assert re.findall(r"^### (\S+)$", CLI, flags=re.MULTILINE) == list(VERBS)


def test_reference_names_every_exit_code() -> None:
    names = ("FINE", "JUDGED", "USAGE", "UNREADABLE", "FAILED", "INTERRUPTED")
    codes = {getattr(answer, name) for name in names}
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", CLI, flags=re.MULTILINE)} == codes


@pytest.mark.parametrize("verb", VERBS)
def test_contract_names_the_members_of_each_verb(verb: str) -> None:
    line = next(line for line in CONTRACT.splitlines() if line.startswith(f"| `{verb}` |"))
    data = json.loads((SCHEMAS / f"{verb}.json").read_text("utf-8"))["properties"]["data"]["anyOf"][
        1
    ]
    shapes = data.get("anyOf", [data])
    if verb == "trace":
        assert "traceEvents" in line
    else:
        missing = {name for name in shapes[-1]["properties"] if name not in line}
        assert missing == set()
